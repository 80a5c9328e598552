//! Which metadata files there are, which of them may be new, and reading them.

use std::io::{self, Read};

use lakebell_domain::state::TroubleCode;
use lakebell_formats::iceberg::{
    self, ChainLink, IcebergObjectKind, METADATA_PREFIX, Metadata, MetadataName, ReadOptions,
};
use lakebell_formats::{FormatError, ReadError};
use tokio::sync::mpsc;

use super::note::Note;
use super::pointer::Folder;
use crate::observe::table::{Stop, Table, damaged};
use crate::ports::storage::{Listed, Listing, Opened};
use crate::records::Ring;
use crate::{EngineError, ErrorKind};

/// Rows of one listing.
const MAX_ROWS: usize = 1_000;
/// Most rows that a first read lists.
const MAX_FIRST_ROWS: usize = 20_000;
/// How much older than its predecessor a file may look: stores count a large upload from its
/// beginning, and the two writers of a race write at about the same time.
const SLACK_SECONDS: i64 = 600;
/// Largest metadata file that is read, as it lies in the store. It is read as a stream.
const MAX_FILE_BYTES: u64 = iceberg::MAX_JSON_BYTES;
/// Pieces of a file that wait to be parsed.
const PIECES_AHEAD: usize = 8;

/// A metadata file's row in the listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) kind: MetadataName,
    /// The store's clock, in seconds since 1970.
    pub(super) modified: Option<i64>,
    pub(super) etag: String,
}

impl Row {
    /// The row of a file that no listing showed; `None` for a name that no metadata file has.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(Self { name: name.to_owned(), kind: kind_of(name)?, modified: None, etag: String::new() })
    }
}

/// A metadata file that was read.
pub(super) struct File {
    pub(super) name: String,
    pub(super) etag: String,
    pub(super) modified: Option<i64>,
    pub(super) link: ChainLink,
    pub(super) metadata: Metadata,
}

/// Metadata files that may be on the chain after the known one, those that come first on it first.
///
/// Numbered files lie in the order of their numbers, before nearly all of the manifests in the same
/// folder, so that one page after the known number shows what follows. A look at the whole table
/// reads one page from the start as well: numbers that begin again are there.
pub(super) async fn candidates(
    table: &Table<'_>,
    note: &Note,
    ring: &Ring,
    hinted: Option<&str>,
) -> Result<Vec<Row>, Stop> {
    let known = kind_of(&note.file);
    let list = async |listing: Listing<'_>| -> Result<(Vec<Row>, bool), Stop> {
        let listed = table.list(listing).await?;
        Ok((listed.iter().filter_map(row).collect(), listed.len() < MAX_ROWS))
    };
    let is_enough_after_known = hinted.is_some() && known.and_then(MetadataName::rising).is_some();
    let (mut rows, is_complete) = if is_enough_after_known {
        (Vec::new(), false)
    } else {
        list(Listing::folder(METADATA_PREFIX, MAX_ROWS)).await?
    };
    if !is_complete {
        if let Some(MetadataName::Numbered(number)) = known {
            for after in numbers_from(number) {
                rows.extend(list(Listing::folder(METADATA_PREFIX, MAX_ROWS).after(&after)).await?.0);
            }
        } else {
            rows.extend(list(Listing::below(&format!("{METADATA_PREFIX}v"), MAX_ROWS)).await?.0);
        }
    }
    if let Some(name) = hinted.filter(|name| !rows.iter().any(|row| row.name == **name))
        && let Some(row) = Row::named(name)
    {
        rows.push(row);
    }
    let is_accepted = |row: &Row| ring.versions.iter().any(|entry| entry.etag == row.etag);
    rows.retain(|row| {
        row.name != note.file
            && !note.lost.contains(&row.name)
            && !is_accepted(row)
            && (hinted == Some(row.name.as_str()) || may_follow(row, known, note))
    });
    rows.sort_by(|one, other| (one.kind.rising(), &one.name).cmp(&(other.kind.rising(), &other.name)));
    rows.dedup_by(|one, other| one.name == other.name);
    Ok(rows)
}

/// Every metadata file, the newest first; of a very large folder those that the listing reaches.
pub(super) async fn newest_first(table: &Table<'_>) -> Result<Vec<Row>, Stop> {
    let listed = table.list(Listing::folder(METADATA_PREFIX, MAX_FIRST_ROWS)).await?;
    let mut rows: Vec<Row> = listed.iter().filter_map(row).collect();
    rows.sort_by(|one, other| {
        (other.modified, other.kind.rising(), &other.name).cmp(&(one.modified, one.kind.rising(), &one.name))
    });
    Ok(rows)
}

/// Reads a file of a folder; `None` where it is gone. The watermark is that property of summaries.
pub(super) async fn read(
    table: &Table<'_>,
    folder: &Folder,
    row: &Row,
    watermark: Option<&str>,
) -> Result<Option<File>, Stop> {
    let key = format!("{}{}", folder.prefix, row.name);
    let Some(opened) = table.storage.open(&folder.bucket, &key).await? else { return Ok(None) };
    if opened.size > MAX_FILE_BYTES {
        let problem = format!("{key}: the file has {} bytes, at most {MAX_FILE_BYTES} are read", opened.size);
        return Err(Stop::Trouble(TroubleCode::Damaged, problem));
    }
    let etag = opened.etag.clone();
    let metadata = match parse(opened, watermark.unwrap_or(ReadOptions::WATERMARK_PROPERTY).to_owned()).await {
        Ok(metadata) => metadata,
        Err(Parsing::Format(error)) => return Err(damaged(&key, &error)),
        Err(Parsing::Store(error)) => return Err(error.into()),
    };
    let link = metadata.link(&row.name);
    Ok(Some(File { name: row.name.clone(), etag, modified: row.modified, link, metadata }))
}

/// Why a file could not be parsed.
enum Parsing {
    Format(FormatError),
    Store(EngineError),
}

/// Parses while the file comes, so that a large one is never in memory as a whole.
async fn parse(opened: Opened, watermark_property: String) -> Result<Metadata, Parsing> {
    let Opened { mut pieces, .. } = opened;
    let (sender, receiver) = mpsc::channel::<Vec<u8>>(PIECES_AHEAD);
    let parser = tokio::task::spawn_blocking(move || {
        let options = ReadOptions { watermark_property: &watermark_property };
        Metadata::read(Pipe { receiver, piece: Vec::new(), at: 0 }, options)
    });
    let mut broken = None;
    loop {
        match pieces.next().await {
            // The parser stops early where something is wrong.
            Ok(Some(piece)) => {
                if sender.send(piece).await.is_err() {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    drop(sender);
    let parsed = parser.await;
    if let Some(error) = broken {
        return Err(Parsing::Store(error));
    }
    match parsed {
        Ok(Ok(metadata)) => Ok(metadata),
        Ok(Err(ReadError::Format(error))) => Err(Parsing::Format(error)),
        Ok(Err(ReadError::Io(error))) => {
            Err(Parsing::Store(EngineError::new(ErrorKind::Unavailable, "a file broke off").caused_by(error)))
        }
        Err(error) => {
            Err(Parsing::Store(EngineError::new(ErrorKind::Defect, "the parser was aborted").caused_by(error)))
        }
    }
}

/// The reading end of the pieces, for a parser that waits for them.
struct Pipe {
    receiver: mpsc::Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            match self.receiver.blocking_recv() {
                Some(piece) => (self.piece, self.at) = (piece, 0),
                None => return Ok(0),
            }
        }
        let taken = buffer.len().min(self.piece.len() - self.at);
        buffer[..taken].copy_from_slice(&self.piece[self.at..self.at + taken]);
        self.at += taken;
        Ok(taken)
    }
}

pub(super) fn row(listed: &Listed) -> Option<Row> {
    let name = listed.key.strip_prefix(METADATA_PREFIX)?;
    let modified = listed.modified.map(jiff::Timestamp::as_second);
    Some(Row { name: name.to_owned(), kind: kind_of(name)?, modified, etag: listed.etag.clone() })
}

/// How a metadata file is named; `None` for everything that is none.
pub(super) fn kind_of(name: &str) -> Option<MetadataName> {
    match iceberg::classify(name)?.kind {
        IcebergObjectKind::Metadata(kind) if !name.contains('/') => Some(kind),
        _ => None,
    }
}

/// The number in a file's name that rises, where it has one.
pub(super) fn rising(name: &str) -> Option<u64> {
    kind_of(name)?.rising()
}

/// Whether a file may come after the known one, or stand beside it, as far as its row tells.
fn may_follow(row: &Row, known: Option<MetadataName>, note: &Note) -> bool {
    let numbers = known.and_then(MetadataName::rising).zip(row.kind.rising());
    let is_lower = numbers.is_some_and(|(known, number)| number < known);
    match note.modified.zip(row.modified) {
        // A lower number is new only where numbers began again.
        Some((known, modified)) => modified >= if is_lower { known } else { known - SLACK_SECONDS },
        None => !is_lower,
    }
}

/// Where the files of a number, and those of higher ones, begin. Numbers have five digits or more;
/// a longer one comes before a shorter one in the order of keys.
fn numbers_from(number: u64) -> Vec<String> {
    let digits = format!("{number:05}");
    let next_length = 10_u64.checked_pow(u32::try_from(digits.len()).unwrap_or(u32::MAX));
    let crosses = next_length.filter(|next| next - number <= MAX_ROWS as u64);
    std::iter::once(digits)
        .chain(crosses.map(|next| next.to_string()))
        .map(|it| format!("{METADATA_PREFIX}{it}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_begin_at_the_known_number() {
        assert_eq!(numbers_from(7), ["metadata/00007"]);
        assert_eq!(numbers_from(99_500), ["metadata/99500", "metadata/100000"]);
        assert_eq!(numbers_from(123_456), ["metadata/123456"]);
        assert_eq!(numbers_from(u64::MAX), [format!("metadata/{}", u64::MAX)]);
    }

    #[test]
    fn a_pipe_gives_what_it_gets() {
        let (sender, receiver) = mpsc::channel(4);
        for piece in ["ab", "", "cde"] {
            sender.try_send(piece.as_bytes().to_vec()).unwrap();
        }
        drop(sender);
        let mut text = String::new();
        Pipe { receiver, piece: Vec::new(), at: 0 }.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abcde");
    }
}
