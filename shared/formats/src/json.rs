//! Reading the fields of a JSON object that came from outside, with errors that name the field.

use serde_json::{Map, Value};

use crate::error::{FormatError, FormatErrorKind};

/// A JSON object, as it was read. Where a field comes twice, the last one counts.
pub(crate) struct Object(Map<String, Value>);

impl Object {
    /// Parses a whole file of at most `max_bytes` bytes.
    pub(crate) fn parse(bytes: &[u8], max_bytes: usize) -> Result<Self, FormatError> {
        if bytes.len() > max_bytes {
            let problem = format!("the file has {} bytes, at most {max_bytes} are read", bytes.len());
            return Err(FormatError::new(FormatErrorKind::TooLarge, problem));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(FormatError::new(FormatErrorKind::Truncated, "the file is empty"));
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(other) => {
                let problem = format!("the file holds {}, not a JSON object", kind_of(&other));
                Err(FormatError::new(FormatErrorKind::NotJson, problem))
            }
            Err(error) if error.is_eof() => {
                let problem =
                    format!("the file is truncated: it ends after {} bytes, inside the JSON object", bytes.len());
                Err(FormatError::new(FormatErrorKind::Truncated, problem))
            }
            Err(error) => Err(FormatError::new(FormatErrorKind::NotJson, format!("the file is not JSON: {error}"))),
        }
    }

    /// The raw value of a field; null counts as absent.
    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// A 64-bit integer, also where a writer put it into a string, as early writers did.
    pub(crate) fn long(&self, field: &str) -> Result<Option<i64>, FormatError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| wrong(field, value, "a 64-bit integer is needed"))
    }

    /// A text.
    pub(crate) fn text(&self, field: &str) -> Result<Option<String>, FormatError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(wrong(field, other, "a text is needed")),
        }
    }

    /// A number of a file: 0 or more, and required.
    pub(crate) fn required_id(&self, field: &str) -> Result<u64, FormatError> {
        let id = self.long(field)?.ok_or_else(|| missing(field))?;
        u64::try_from(id).map_err(|_| wrong(field, &Value::from(id), "it must not be negative"))
    }
}

pub(crate) fn missing(field: &str) -> FormatError {
    FormatError::new(FormatErrorKind::MissingField, format!("`{field}` is missing"))
}

pub(crate) fn wrong(field: &str, value: &Value, needed: &str) -> FormatError {
    let shown = shorten(&value.to_string(), 60);
    FormatError::new(FormatErrorKind::WrongValue, format!("`{field}` is {shown}; {needed}"))
}

/// At most `max_chars` characters of a text, with an ellipsis where something was left out.
pub(crate) fn shorten(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
