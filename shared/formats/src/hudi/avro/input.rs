//! The bytes of a block, decoded value by value.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::DeflateDecoder;

use super::schema::{Node, Schema};
use super::{broken, truncated};
use crate::error::{FormatError, FormatErrorKind};
use crate::json::shorten;

/// How deep values may be nested. Hudi's commit metadata goes to 6.
const MAX_DEPTH: u32 = 64;
/// Values that may be decoded before the first byte is read. More than four for each byte that was
/// read is no real file: arrays of nulls, which take no bytes, would otherwise never end.
const FREE_VALUES: u64 = 1 << 16;

/// How much of a block may be read.
pub(in crate::hudi) struct Budget {
    /// Most bytes after decompression.
    pub(in crate::hudi) max_bytes: u64,
}

enum Source<'a> {
    Plain(&'a [u8]),
    Deflated(BufReader<DeflateDecoder<&'a [u8]>>),
}

/// A block of records that is read from front to back.
pub(in crate::hudi) struct Input<'a> {
    source: Source<'a>,
    max_bytes: u64,
    bytes: u64,
    values: u64,
    depth: u32,
}

impl<'a> Input<'a> {
    pub(in crate::hudi) const fn plain(bytes: &'a [u8], budget: &Budget) -> Self {
        Self { source: Source::Plain(bytes), max_bytes: budget.max_bytes, bytes: 0, values: 0, depth: 0 }
    }

    pub(super) fn deflated(bytes: &'a [u8], budget: &Budget) -> Self {
        let source = Source::Deflated(BufReader::new(DeflateDecoder::new(bytes)));
        Self { source, ..Self::plain(&[], budget) }
    }

    /// What was not read yet of a plain block; nothing of a compressed one.
    pub(super) const fn rest(&self) -> &'a [u8] {
        match &self.source {
            Source::Plain(rest) => rest,
            Source::Deflated(_) => &[],
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&mut self) -> Result<bool, FormatError> {
        match &mut self.source {
            Source::Plain(rest) => Ok(rest.is_empty()),
            Source::Deflated(reader) => reader.fill_buf().map(<[u8]>::is_empty).map_err(|error| read_error(&error)),
        }
    }

    fn count_bytes(&mut self, bytes: u64) -> Result<(), FormatError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= self.max_bytes {
            return Ok(());
        }
        let problem = format!("an Avro block has more than the {} bytes that are read", self.max_bytes);
        Err(FormatError::new(FormatErrorKind::TooLarge, problem))
    }

    fn byte(&mut self) -> Result<u8, FormatError> {
        self.count_bytes(1)?;
        match &mut self.source {
            Source::Plain(rest) => {
                let (first, others) = rest.split_first().ok_or_else(truncated)?;
                *rest = others;
                Ok(*first)
            }
            Source::Deflated(reader) => {
                let mut byte = [0];
                reader.read_exact(&mut byte).map_err(|error| read_error(&error))?;
                Ok(byte[0])
            }
        }
    }

    fn discard(&mut self, length: u64) -> Result<(), FormatError> {
        self.count_bytes(length)?;
        match &mut self.source {
            Source::Plain(rest) => {
                let length = usize::try_from(length).map_err(|_| truncated())?;
                *rest = rest.get(length..).ok_or_else(truncated)?;
                Ok(())
            }
            Source::Deflated(reader) => {
                let passed = io::copy(&mut reader.take(length), &mut io::sink()).map_err(|error| read_error(&error))?;
                if passed == length { Ok(()) } else { Err(truncated()) }
            }
        }
    }

    /// An `int` or `long`: base 128, low digits first, zigzag.
    pub(in crate::hudi) fn long(&mut self) -> Result<i64, FormatError> {
        let mut number: u64 = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
            }
        }
        Err(broken("an Avro number has more than 64 bits"))
    }

    /// A boolean: one byte, 0 or 1.
    pub(in crate::hudi) fn boolean(&mut self) -> Result<bool, FormatError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(broken(format!("an Avro boolean is {other}"))),
        }
    }

    fn length(&mut self) -> Result<u64, FormatError> {
        let length = self.long()?;
        u64::try_from(length).map_err(|_| broken(format!("an Avro text has {length} bytes")))
    }

    /// A text or bytes of at most `max_bytes`; more are an error.
    pub(in crate::hudi) fn bytes(&mut self, max_bytes: usize) -> Result<Vec<u8>, FormatError> {
        let length = self.length()?;
        if usize::try_from(length).is_ok_and(|length| length <= max_bytes) {
            return self.take(length);
        }
        let problem = format!("an Avro text has {length} bytes, at most {max_bytes} are read");
        Err(FormatError::new(FormatErrorKind::TooLarge, problem))
    }

    /// A text, of which the first `max_chars` characters are kept, with an ellipsis for the rest.
    pub(in crate::hudi) fn text(&mut self, max_chars: usize) -> Result<String, FormatError> {
        let length = self.length()?;
        let kept = length.min(max_chars as u64 * 4 + 4);
        let bytes = self.take(kept)?;
        self.discard(length - kept)?;
        Ok(shorten(&String::from_utf8_lossy(&bytes), max_chars))
    }

    /// Allocates by what is there, not by what is announced.
    fn take(&mut self, length: u64) -> Result<Vec<u8>, FormatError> {
        self.count_bytes(length)?;
        let taken = match &mut self.source {
            Source::Plain(rest) => {
                let length = usize::try_from(length).map_err(|_| truncated())?;
                let (taken, others) = rest.split_at_checked(length).ok_or_else(truncated)?;
                *rest = others;
                taken.to_vec()
            }
            Source::Deflated(reader) => {
                let mut taken = Vec::new();
                reader.take(length).read_to_end(&mut taken).map_err(|error| read_error(&error))?;
                taken
            }
        };
        if taken.len() as u64 == length { Ok(taken) } else { Err(truncated()) }
    }

    /// Goes through a union to the branch that was written.
    pub(in crate::hudi) fn resolve<'s>(&mut self, schema: &'s Schema, index: usize) -> Result<&'s Node, FormatError> {
        self.count_value()?;
        let Node::Union(branches) = schema.node(index) else { return Ok(schema.node(index)) };
        let branch = self.long()?;
        let chosen = usize::try_from(branch).ok().and_then(|branch| branches.get(branch));
        let node = schema.node(*chosen.ok_or_else(|| broken(format!("an Avro union has no branch {branch}")))?);
        if matches!(node, Node::Union(_)) { Err(broken("an Avro union holds a union")) } else { Ok(node) }
    }

    /// Reads an array or a map: `each` is called for every entry and must read the whole of it.
    pub(in crate::hudi) fn entries(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        self.enter()?;
        loop {
            let count = self.long()?;
            if count == 0 {
                self.depth -= 1;
                return Ok(());
            }
            if count < 0 {
                // A negative count is followed by the block's size in bytes, which helps to skip it.
                self.length()?;
            }
            for _ in 0..count.unsigned_abs() {
                self.count_value()?;
                each(self)?;
            }
        }
    }

    /// Reads a record: `each` is called for every field and must read the whole of it.
    pub(in crate::hudi) fn fields(
        &mut self,
        fields: &[(String, usize)],
        mut each: impl FnMut(&mut Self, &str, usize) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        self.enter()?;
        for (name, kind) in fields {
            each(self, name, *kind)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Passes over a value.
    pub(in crate::hudi) fn skip(&mut self, schema: &Schema, index: usize) -> Result<(), FormatError> {
        match self.resolve(schema, index)? {
            Node::Null => Ok(()),
            Node::Boolean => self.discard(1),
            Node::Float => self.discard(4),
            Node::Double => self.discard(8),
            Node::Long | Node::Enum(_) => self.long().map(drop),
            Node::Fixed(size) => self.discard(*size),
            Node::Bytes => {
                let length = self.length()?;
                self.discard(length)
            }
            Node::Array(items) => self.entries(|input| input.skip(schema, *items)),
            Node::Map(values) => self.entries(|input| {
                let key = input.length()?;
                input.discard(key)?;
                input.skip(schema, *values)
            }),
            Node::Record(fields) => self.fields(fields, |input, _, kind| input.skip(schema, kind)),
            Node::Union(_) | Node::Pending => Err(broken("the Avro schema is not complete")),
        }
    }

    fn count_value(&mut self) -> Result<(), FormatError> {
        self.values += 1;
        let allowed = FREE_VALUES + self.bytes.saturating_mul(4);
        if self.values <= allowed { Ok(()) } else { Err(broken("an Avro array has more values than bytes")) }
    }

    fn enter(&mut self) -> Result<(), FormatError> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH { Ok(()) } else { Err(broken("the Avro values are nested too deep")) }
    }
}

fn read_error(error: &io::Error) -> FormatError {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return truncated();
    }
    broken(format!("the Avro block cannot be decompressed: {error}"))
}
