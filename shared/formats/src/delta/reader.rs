//! Reading a commit file as a stream, line by line, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::MAX_LINE_BYTES;
use super::action::{Action, CommitInfoFields, FileFields, Line, NAMES, Name, TxnFields};
use super::commit::{CommitInfo, DeltaCommit, FileTotals, MAX_PARTITIONS};
use super::metadata::Metadata;
use super::protocol::Protocol;
use crate::error::{FormatError, FormatErrorKind};
use crate::json::{shorten, wrong};
use lakebell_domain::digest::hex;

/// Most applications of `txn` actions that are kept. A commit has one, rarely a few.
const MAX_TXNS: usize = 64;
/// Most names of unknown actions that are told apart.
const MAX_UNKNOWN_ACTIONS: usize = 16;
/// Longest text that is kept, in characters.
const MAX_TEXT_CHARS: usize = 256;

/// Reads a commit file piece by piece, as it comes from a store.
///
/// Memory holds one line at most (only where a line is cut by the end of a piece) and what
/// [`DeltaCommit`] holds, whose size has a bound: a file of a gigabyte needs no more than a small
/// one. After an error the rest of the file means nothing and need not be read.
///
/// ```
/// use lakebell_formats::delta::CommitReader;
///
/// let mut reader = CommitReader::new(7);
/// reader.push(br#"{"commitInfo":{"timestamp":1700000000000,"operation":"WRITE"}}"#).unwrap();
/// reader.push(b"\n{\"add\":{\"path\":\"part-0\",\"data").unwrap();
/// reader.push(b"Change\":true}}").unwrap();
/// let commit = reader.finish().unwrap();
/// assert_eq!((commit.version, commit.changes_data()), (7, Some(true)));
/// ```
#[derive(Debug)]
pub struct CommitReader(Parser<NoFiles>);

impl CommitReader {
    /// A reader of the commit file of a version.
    pub fn new(version: u64) -> Self {
        Self(Parser::new(version, NoFiles))
    }

    /// Takes the next piece of the file.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), FormatError> {
        self.0.push(piece)
    }

    /// What the file said, once all of it was taken. An empty file is an error: a commit holds at
    /// least one action.
    pub fn finish(self) -> Result<DeltaCommit, FormatError> {
        self.0.finish().map(|(commit, NoFiles)| commit)
    }
}

/// Takes notice of each file that a commit adds or removes.
pub(super) trait FileSink {
    fn added(&mut self, file: &FileFields<'_>);
    fn removed(&mut self, file: &FileFields<'_>);
}

#[derive(Debug)]
struct NoFiles;

impl FileSink for NoFiles {
    fn added(&mut self, _: &FileFields<'_>) {}
    fn removed(&mut self, _: &FileFields<'_>) {}
}

/// The reader of commits, and of version 2 checkpoints in JSON, which are written the same way.
#[derive(Debug)]
pub(super) struct Parser<S> {
    /// The start of a line whose end has not come yet.
    cut_line: Vec<u8>,
    line_number: u64,
    tally: Tally,
    sink: S,
}

impl<S: FileSink> Parser<S> {
    pub(super) fn new(version: u64, sink: S) -> Self {
        Self { cut_line: Vec::new(), line_number: 0, tally: Tally::new(version), sink }
    }

    pub(super) fn push(&mut self, mut piece: &[u8]) -> Result<(), FormatError> {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            if self.cut_line.is_empty() {
                self.line(line)?;
            } else {
                self.keep(line)?;
                let whole = std::mem::take(&mut self.cut_line);
                self.line(&whole)?;
                self.cut_line = whole;
                self.cut_line.clear();
            }
            piece = rest;
        }
        self.keep(piece)
    }

    pub(super) fn finish(mut self) -> Result<(DeltaCommit, S), FormatError> {
        let last = std::mem::take(&mut self.cut_line);
        self.line(&last)?;
        if self.tally.first_line.is_none() {
            return Err(FormatError::new(FormatErrorKind::Truncated, "the file is empty"));
        }
        Ok((self.tally.into_commit(), self.sink))
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), FormatError> {
        if self.cut_line.len().saturating_add(piece.len()) > MAX_LINE_BYTES {
            return Err(self.too_long());
        }
        self.cut_line.extend_from_slice(piece);
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), FormatError> {
        if line.len() > MAX_LINE_BYTES {
            return Err(self.too_long());
        }
        self.line_number += 1;
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let Line(actions) = serde_json::from_slice(line).map_err(|error| self.refusal(&error))?;
        for (name, action) in actions {
            self.tally.count(name);
            let taken = self.tally.take(line, action, &mut self.sink);
            taken.map_err(|error| FormatError::new(error.kind, format!("line {}: {error}", self.line_number)))?;
        }
        if self.tally.first_line.is_none() {
            self.tally.first_line = Some(Sha256::digest(line).into());
        }
        Ok(())
    }

    fn too_long(&self) -> FormatError {
        let problem = format!("line {} is longer than the {MAX_LINE_BYTES} bytes that are read", self.line_number + 1);
        FormatError::new(FormatErrorKind::TooLarge, problem)
    }

    fn refusal(&self, error: &serde_json::Error) -> FormatError {
        let line = self.line_number;
        if error.is_eof() {
            return FormatError::new(
                FormatErrorKind::Truncated,
                format!("the file is truncated: it ends inside line {line}"),
            );
        }
        let problem = shorten(&error.to_string(), 160);
        if error.is_data() {
            return FormatError::new(FormatErrorKind::WrongValue, format!("line {line} is no action: {problem}"));
        }
        FormatError::new(FormatErrorKind::NotJson, format!("line {line} is not JSON: {problem}"))
    }
}

/// A digest of something that tells commits apart.
type Print = [u8; 32];

/// What the lines so far amount to.
#[derive(Debug, Default)]
struct Tally {
    version: u64,
    info: Option<CommitInfo>,
    metadata: Option<Metadata>,
    protocol: Option<Protocol>,
    known: [u64; NAMES.len()],
    unknown: BTreeMap<String, u64>,
    txns: BTreeMap<String, i64>,
    files: FileTotals,
    partitions: BTreeSet<String>,
    has_data_change: bool,
    has_unknown_change: bool,
    first_line: Option<Print>,
    info_line: Option<Print>,
    first_added: Option<Print>,
    first_removed: Option<Print>,
}

impl Tally {
    fn new(version: u64) -> Self {
        Self { version, ..Self::default() }
    }

    fn count(&mut self, name: Name) {
        match name {
            Name::Known(place) => self.known[place] += 1,
            Name::Unknown(name) => {
                if self.unknown.len() < MAX_UNKNOWN_ACTIONS || self.unknown.contains_key(&name) {
                    *self.unknown.entry(name).or_default() += 1;
                }
            }
        }
    }

    fn take(&mut self, line: &[u8], action: Action<'_>, sink: &mut impl FileSink) -> Result<(), FormatError> {
        match action {
            Action::CommitInfo(fields) => self.take_info(line, &fields),
            Action::Protocol(fields) => self.protocol = Some(Protocol::read(fields)?),
            Action::Metadata(fields) => self.metadata = Some(Metadata::read(&fields)?),
            Action::Add(file) => {
                self.files.added.count(file.records());
                self.files.added_deleted_rows = self.files.added_deleted_rows.saturating_add(file.deleted_rows());
                self.take_file(&file);
                self.first_added.get_or_insert_with(|| print_of(&file));
                sink.added(&file);
            }
            Action::Remove(file) => {
                self.files.removed.count(file.records());
                self.files.removed_deleted_rows = self.files.removed_deleted_rows.saturating_add(file.deleted_rows());
                self.take_file(&file);
                self.first_removed.get_or_insert_with(|| print_of(&file));
                sink.removed(&file);
            }
            Action::Txn(fields) => self.take_txn(&fields)?,
            Action::Known | Action::Other => {}
        }
        Ok(())
    }

    /// Where a commit says twice who it is, the first one counts.
    fn take_info(&mut self, line: &[u8], fields: &CommitInfoFields<'_>) {
        if self.info.is_some() {
            return;
        }
        let text = |text: Option<&str>| text.map(|text| shorten(text, MAX_TEXT_CHARS));
        self.info_line = Some(Sha256::digest(line).into());
        self.info = Some(CommitInfo {
            timestamp: fields.timestamp.int(),
            in_commit_timestamp: fields.in_commit_timestamp.int(),
            operation: text(fields.operation.text()),
            txn_id: text(fields.txn_id.text()),
            engine_info: text(fields.engine_info.text()),
            is_blind_append: fields.is_blind_append.bool(),
            read_version: fields.read_version.int(),
        });
    }

    fn take_file(&mut self, file: &FileFields<'_>) {
        match file.data_change.bool() {
            Some(changes) => self.has_data_change |= changes,
            None => self.has_unknown_change = true,
        }
        if let Some(partition) = file.partition().filter(|_| file.data_change.bool() != Some(false))
            && self.partitions.len() < MAX_PARTITIONS
            && !self.partitions.contains(partition)
        {
            self.partitions.insert(partition.to_owned());
        }
    }

    fn take_txn(&mut self, fields: &TxnFields<'_>) -> Result<(), FormatError> {
        let app = fields.app_id.text().map(|app| shorten(app, MAX_TEXT_CHARS));
        let (Some(app), Some(version)) = (app, fields.version.int()) else {
            return Err(wrong("txn", &Value::Null, "an appId and a version are needed"));
        };
        if self.txns.len() < MAX_TXNS || self.txns.contains_key(&app) {
            self.txns.insert(app, version);
        }
        Ok(())
    }

    fn into_commit(self) -> DeltaCommit {
        let digest = self.digest();
        let known = NAMES.iter().zip(self.known).filter(|(_, count)| *count > 0);
        let mut actions = self.unknown;
        actions.extend(known.map(|(name, count)| ((*name).to_owned(), count)));
        DeltaCommit {
            version: self.version,
            info: self.info,
            metadata: self.metadata,
            protocol: self.protocol,
            actions,
            txns: self.txns,
            files: self.files,
            partitions: self.partitions,
            has_data_change: self.has_data_change,
            has_unknown_change: self.has_unknown_change,
            digest,
        }
    }

    /// See [`DeltaCommit::fingerprint`]; recorded state holds these values.
    fn digest(&self) -> String {
        let table = self.metadata.as_ref().map(|metadata| Sha256::digest(metadata.id.as_bytes()).into());
        let parts = [
            ("commitInfo", self.info_line),
            ("add", self.first_added),
            ("remove", self.first_removed),
            ("metaData", table),
        ];
        let mut digest = Sha256::new_with_prefix(b"delta-commit-v1\n");
        let mut add = |name: &str, print: Print| {
            digest.update(name.as_bytes());
            digest.update(print);
        };
        for (name, print) in parts {
            if let Some(print) = print {
                add(name, print);
            }
        }
        match self.first_line {
            Some(first) if parts.iter().all(|(_, print)| print.is_none()) => add("line", first),
            _ => {}
        }
        hex(&digest.finalize()[..16])
    }
}

fn print_of(file: &FileFields<'_>) -> Print {
    Sha256::digest(file.identity().as_bytes()).into()
}

#[cfg(test)]
mod tests;
