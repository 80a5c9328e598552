//! Reading a metadata file in one pass, from bytes or from a stream.

use std::cell::Cell;
use std::io::{self, Read};

use serde_json::error::Category;

use super::MAX_JSON_BYTES;
use super::gzip::{GZIP_MAGIC, Source, bounded, decompress};
use super::metadata::Metadata;
use super::visit::Draft;
use crate::error::{FormatError, FormatErrorKind, ReadError};
use crate::json::shorten;

/// Longest description of a problem, in characters.
const MAX_PROBLEM_CHARS: usize = 300;

/// What a reader may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions<'a> {
    /// The property of a snapshot's summary that holds the watermark. The format itself has none.
    pub watermark_property: &'a str,
}

impl ReadOptions<'static> {
    /// Where the Kafka Connect sink writes it: the time up to which all events have arrived.
    pub const WATERMARK_PROPERTY: &'static str = "kafka.connect.valid-through-ts";
}

impl Default for ReadOptions<'static> {
    fn default() -> Self {
        Self { watermark_property: Self::WATERMARK_PROPERTY }
    }
}

impl Metadata {
    /// Reads a metadata file from its bytes, compressed or not.
    ///
    /// A known field that holds something else than the format says is an error, because guessing
    /// at what is current would start work that should not start; unknown fields are ignored. Format
    /// version 4 and later are refused by name.
    pub fn parse(bytes: &[u8], options: ReadOptions<'_>) -> Result<Self, FormatError> {
        if bytes.starts_with(&GZIP_MAGIC) {
            return Self::read(bytes, options).map_err(|error| match error {
                ReadError::Format(error) => error,
                ReadError::Io(error) => FormatError::new(FormatErrorKind::NotJson, error.to_string()),
            });
        }
        if bytes.len() as u64 > MAX_JSON_BYTES {
            let problem = format!("the file has {} bytes, at most {MAX_JSON_BYTES} are read", bytes.len());
            return Err(FormatError::new(FormatErrorKind::TooLarge, problem));
        }
        let draft = Draft::new(options.watermark_property);
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let read = draft.read(&mut json).and_then(|()| json.end());
        match read {
            Ok(()) => draft.finish(),
            Err(error) => Err(format_error(&draft, &error)),
        }
    }

    /// Reads a metadata file from a stream, compressed or not. Beside what is kept it takes about
    /// 200 KB of memory, however large the file is.
    ///
    /// The reader is asked for 64 KB at a time, and to its end unless something is wrong.
    pub fn read(reader: impl Read, options: ReadOptions<'_>) -> Result<Self, ReadError> {
        let failed = Cell::new(false);
        let mut source = Source { reader, failed: &failed };
        let mut start = Vec::with_capacity(GZIP_MAGIC.len());
        source.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut start)?;
        let is_gzip = start == GZIP_MAGIC;
        let whole = start.as_slice().chain(source);
        let draft = Draft::new(options.watermark_property);
        let read =
            if is_gzip { read_json(bounded(decompress(whole)), &draft) } else { read_json(bounded(whole), &draft) };
        match read {
            Ok(()) => Ok(draft.finish()?),
            Err(error) if error.classify() == Category::Io => Err(stream_error(error.into(), failed.get())),
            Err(error) => Err(format_error(&draft, &error).into()),
        }
    }
}

fn read_json(json: impl Read, draft: &Draft<'_>) -> Result<(), serde_json::Error> {
    let mut json = serde_json::Deserializer::from_reader(json);
    draft.read(&mut json)?;
    json.end()
}

/// Whose fault an error of the stream is: the source's, or what the stream holds.
fn stream_error(error: io::Error, source_failed: bool) -> ReadError {
    if source_failed {
        return error.into();
    }
    let (kind, words) = match error.downcast::<FormatError>() {
        Ok(error) => return error.into(),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            (FormatErrorKind::Truncated, "the file is truncated: its gzip stream has no end".to_owned())
        }
        Err(error) => (FormatErrorKind::NotJson, format!("the file is no sound gzip stream: {error}")),
    };
    FormatError::new(kind, words).into()
}

fn format_error(draft: &Draft<'_>, error: &serde_json::Error) -> FormatError {
    if let Some(problem) = draft.problem() {
        return problem;
    }
    let (kind, problem) = match error.classify() {
        Category::Eof if error.line() == 1 && error.column() == 0 => {
            (FormatErrorKind::Truncated, "the file is empty".to_owned())
        }
        Category::Eof => (FormatErrorKind::Truncated, format!("the file is truncated: {error}")),
        Category::Data => (FormatErrorKind::WrongValue, error.to_string()),
        Category::Syntax | Category::Io => (FormatErrorKind::NotJson, format!("the file is not JSON: {error}")),
    };
    FormatError::new(kind, shorten(&problem, MAX_PROBLEM_CHARS))
}

#[cfg(test)]
mod tests;
