//! Why a metadata file could not be read.

/// What is wrong with a metadata file, for programs. [`FormatError`] has the words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FormatErrorKind {
    /// It is larger than any real file of its kind, and was not parsed.
    TooLarge,
    /// It is empty or ends in the middle.
    Truncated,
    /// It is not UTF-8 JSON, or not a JSON object.
    NotJson,
    /// It is no Avro container, or breaks the schema that it carries.
    NotAvro,
    /// A field without which it means nothing is absent or null.
    MissingField,
    /// A field holds something else than the format says.
    WrongValue,
    /// It says that it is another commit or schema than its name says.
    IdMismatch,
    /// It is sound, and of a version of its format that is not read.
    Unsupported,
}

/// A metadata file that could not be read: what is wrong with it, in one line without the file's
/// name, which the caller knows.
///
/// Reading the same bytes again gives the same error; it is worth another try only when the object
/// itself has been written again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct FormatError {
    /// For programs.
    pub kind: FormatErrorKind,
    /// For people: lower case, without a full stop.
    pub problem: String,
}

impl FormatError {
    pub(crate) fn new(kind: FormatErrorKind, problem: impl Into<String>) -> Self {
        Self { kind, problem: problem.into() }
    }
}

/// Why a metadata file could not be read from a stream.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// What the stream holds is at fault: reading the same object again gives the same error.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The stream itself failed: it is worth another try.
    #[error("the file could not be read: {0}")]
    Io(#[from] std::io::Error),
}
