//! The container: a header with the schema, then blocks of records.

use super::input::{Budget, Input};
use super::schema::Schema;
use super::{broken, truncated};
use crate::error::{FormatError, FormatErrorKind};
use crate::json::shorten;

/// What every Avro container starts with.
pub(in crate::hudi) const MAGIC: &[u8] = b"Obj\x01";

/// Longest key or value of the header, in bytes. The schema of commit metadata has about 3 KB.
const MAX_HEADER_VALUE: usize = 1 << 20;
/// Most entries of the header. Hudi's writers make one or two.
const MAX_HEADER_ENTRIES: usize = 100;
const SYNC_BYTES: usize = 16;

enum Codec {
    Null,
    Deflate,
}

/// Reads the first record of a container with `read`, which must read the whole record, and checks
/// that its block ends as it should. Further records are not looked at: Hudi's files hold one.
pub(in crate::hudi) fn read_record<T>(
    file: &[u8],
    budget: &Budget,
    read: impl FnOnce(&mut Input<'_>, &Schema) -> Result<T, FormatError>,
) -> Result<T, FormatError> {
    let content = file.strip_prefix(MAGIC).ok_or_else(|| broken("the file is no Avro container"))?;
    let mut rest = content;
    let (schema, codec) = header(&mut rest)?;
    let sync = take(&mut rest, SYNC_BYTES)?;
    let (records, block) = loop {
        if rest.is_empty() {
            return Err(FormatError::new(FormatErrorKind::Truncated, "the Avro file holds no record"));
        }
        let records = number(&mut rest)?;
        let size = number(&mut rest)?;
        let size = usize::try_from(size).map_err(|_| broken(format!("an Avro block has {size} bytes")))?;
        let block = take(&mut rest, size)?;
        if take(&mut rest, SYNC_BYTES)? != sync {
            return Err(broken("an Avro block does not end in the file's own marker"));
        }
        if records != 0 {
            break (records, block);
        }
    };
    if records < 0 {
        return Err(broken(format!("an Avro block has {records} records")));
    }
    let mut input = match codec {
        Codec::Null => Input::plain(block, budget),
        Codec::Deflate => Input::deflated(block, budget),
    };
    let record = read(&mut input, &schema)?;
    if records == 1 && !input.is_at_end()? {
        return Err(broken("an Avro block goes on after its last record"));
    }
    Ok(record)
}

fn header(rest: &mut &[u8]) -> Result<(Schema, Codec), FormatError> {
    let (mut schema, mut codec) = (None, Codec::Null);
    let mut entries = 0;
    let mut input = Input::plain(rest, &Budget { max_bytes: u64::MAX });
    input.entries(|input| {
        entries += 1;
        if entries > MAX_HEADER_ENTRIES {
            return Err(broken("the Avro header has more entries than any real one"));
        }
        let key = input.bytes(MAX_HEADER_VALUE)?;
        let value = input.bytes(MAX_HEADER_VALUE)?;
        match key.as_slice() {
            b"avro.schema" => schema = Some(Schema::parse(&value)?),
            b"avro.codec" => codec = codec_of(&value)?,
            _ => {}
        }
        Ok(())
    })?;
    *rest = input.rest();
    schema.map(|schema| (schema, codec)).ok_or_else(|| broken("the Avro header has no schema"))
}

fn codec_of(name: &[u8]) -> Result<Codec, FormatError> {
    match name {
        b"null" => Ok(Codec::Null),
        b"deflate" => Ok(Codec::Deflate),
        other => {
            let name = shorten(&String::from_utf8_lossy(other), 40);
            Err(broken(format!("the Avro codec `{name}` is not read, only null and deflate")))
        }
    }
}

fn number(rest: &mut &[u8]) -> Result<i64, FormatError> {
    let mut input = Input::plain(rest, &Budget { max_bytes: u64::MAX });
    let number = input.long()?;
    *rest = input.rest();
    Ok(number)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], FormatError> {
    let (taken, others) = rest.split_at_checked(length).ok_or_else(truncated)?;
    *rest = others;
    Ok(taken)
}
