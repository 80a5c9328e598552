//! Compressed and streamed input: what is taken in stays bounded whatever the bytes say.

use std::cell::Cell;
use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::MAX_JSON_BYTES;
use crate::error::{FormatError, FormatErrorKind};

/// What every gzip stream starts with. Names do not tell: some writers compress without saying so.
pub(super) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How much is asked for at once.
const CHUNK: usize = 64 << 10;
/// Longest text inside JSON. The longest real ones are schemas in table properties.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// How deep JSON may be nested. Schemas nest, by about three levels for each level of a type.
const MAX_DEPTH: usize = 1_000;

/// A decompressing reader.
pub(super) fn decompress<R: Read>(compressed: R) -> impl Read {
    MultiGzDecoder::new(BufReader::with_capacity(CHUNK, compressed))
}

/// A buffered reader of JSON whose size, nesting and texts are bounded.
pub(super) fn bounded<R: Read>(json: R) -> BufReader<Bounded<R>> {
    BufReader::with_capacity(CHUNK, Bounded { json, taken: 0, scan: Scan::default() })
}

/// Tells errors of the source, which are worth another try, from errors of what it holds.
pub(super) struct Source<'a, R> {
    pub(super) reader: R,
    pub(super) failed: &'a Cell<bool>,
}

impl<R: Read> Read for Source<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let taken = self.reader.read(buffer);
        if taken.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            self.failed.set(true);
        }
        taken
    }
}

/// Passes JSON on as long as it stays within bounds. A parser keeps open brackets and the text that
/// it is in, so that these must be bounded before it sees them: a megabyte of gzip can hold a
/// gigabyte of either.
pub(super) struct Bounded<R> {
    json: R,
    taken: u64,
    scan: Scan,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let taken = self.json.read(buffer)?;
        self.taken += taken as u64;
        let problem = if self.taken > MAX_JSON_BYTES {
            Some(format!("the file has more than {MAX_JSON_BYTES} bytes of JSON"))
        } else {
            self.scan.add(&buffer[..taken]).err()
        };
        match problem {
            Some(problem) => Err(io::Error::other(FormatError::new(FormatErrorKind::TooLarge, problem))),
            None => Ok(taken),
        }
    }
}

/// Where in JSON a byte is, as far as it takes to bound texts and nesting.
#[derive(Default)]
struct Scan {
    depth: usize,
    /// Bytes of the text that it is in.
    text: Option<usize>,
    /// Whether the byte before was a backslash that escapes the next one.
    escaped: bool,
}

impl Scan {
    fn add(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            let used = if self.text.is_some() { self.inside_text(bytes)? } else { self.between_texts(bytes)? };
            bytes = &bytes[used..];
        }
        Ok(())
    }

    fn inside_text(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let skipped = usize::from(std::mem::take(&mut self.escaped)).min(bytes.len());
        let (used, ended) = match memchr::memchr2(b'"', b'\\', &bytes[skipped..]) {
            Some(at) => {
                let place = skipped + at;
                self.escaped = bytes[place] == b'\\';
                (place + 1, bytes[place] == b'"')
            }
            None => (bytes.len(), false),
        };
        let length = self.text.unwrap_or_default() + used;
        if length > MAX_TEXT_BYTES {
            return Err(format!("the file holds a text of more than {MAX_TEXT_BYTES} bytes"));
        }
        self.text = if ended { None } else { Some(length) };
        Ok(used)
    }

    fn between_texts(&mut self, bytes: &[u8]) -> Result<usize, String> {
        for (place, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => {
                    self.text = Some(0);
                    return Ok(place + 1);
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if self.depth > MAX_DEPTH {
                return Err(format!("the file nests more than {MAX_DEPTH} levels deep"));
            }
        }
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests;
