//! Which metadata files are commits, told from what they say of each other.
//!
//! Each file names the files before it. So a file is on the chain if the next accepted file lists
//! it, or if its own list ends in the file accepted before; where two files name one parent, only a
//! file that was made from one of them decides, because a race's loser is never built upon.

mod graph;

use super::keys::file_name;
use super::metadata::Metadata;
use graph::{Graph, Side};

/// How many of a file's newest snapshots are kept to tell whether it was made from another file.
const RECENT_SNAPSHOTS: usize = 256;

/// What a metadata file says about its place on the chain: little, whatever the file's size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainLink {
    /// The file's name, the last segment of its key.
    pub name: String,
    /// The table's identity.
    pub table_uuid: Option<String>,
    /// The names of the files before it, oldest first.
    pub log: Vec<String>,
    /// The snapshot of `main`.
    pub head: Option<i64>,
    /// The newest snapshots that it lists.
    pub recent: Vec<i64>,
    /// The writer's clock. It orders nothing within one table, and tells only which of two tables
    /// that lay at one place came later.
    pub last_updated_ms: Option<i64>,
}

impl Metadata {
    /// What this file, of that name, key or URL, says about its place on the chain.
    pub fn link(&self, file: &str) -> ChainLink {
        let from = self.snapshots().len().saturating_sub(RECENT_SNAPSHOTS);
        ChainLink {
            name: file_name(file).to_owned(),
            table_uuid: self.table_uuid.as_ref().map(|uuid| uuid.to_ascii_lowercase()),
            log: self.log.iter().map(|entry| file_name(&entry.file).to_owned()).collect(),
            head: self.current_snapshot_id(),
            recent: self.snapshots()[from..].iter().map(|snapshot| snapshot.id).collect(),
            last_updated_ms: self.last_updated_ms,
        }
    }
}

/// What is known beforehand, by the name of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor<'a> {
    /// Nothing.
    None,
    /// A catalog points to this file: the chain ends there.
    Current(&'a str),
    /// This file was accepted before: the chain goes through it unless the files prove otherwise. It
    /// need not be there any more.
    Accepted(&'a str),
}

/// Which files are commits. Names, each in one list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    /// The files on the chain, in order. Where files between them are gone, they are left out.
    pub accepted: Vec<String>,
    /// Files that may be on the chain: two or more that follow one file, with nothing yet that was
    /// made from either; or files that the catalog has not named.
    pub pending: Vec<String>,
    /// Files that lost a race, or that nothing connects with the chain.
    pub orphans: Vec<String>,
    /// Files of another table that lay at the same place.
    pub foreign: Vec<String>,
    /// Whether the anchor is on the chain, directly or by name; true where there is none. An
    /// accepted file that is not on it lost a race after all, or belongs to a history or a table
    /// that was replaced, or is further back than the files remember.
    pub holds_anchor: bool,
}

/// Finds the chain among files of one folder.
pub fn resolve(links: &[ChainLink], anchor: Anchor<'_>) -> Chain {
    let Some(current) = of_current_table(links, anchor) else {
        return Chain { holds_anchor: anchor == Anchor::None, ..Chain::default() };
    };
    let table = table_of(current, links);
    let (own, foreign): (Vec<_>, Vec<_>) = links.iter().partition(|link| table_of(link, links) == table);
    let graph = Graph::new(&own);
    let line = match anchor {
        Anchor::Current(file) => graph.back_from(file_name(file)),
        Anchor::Accepted(file) => graph.forward(Some(file_name(file))),
        Anchor::None => graph.forward(None),
    };
    let mut chain = Chain {
        accepted: line.iter().filter(|name| graph.is_there(name)).map(|name| (*name).to_owned()).collect(),
        holds_anchor: match anchor {
            Anchor::None => true,
            Anchor::Current(file) => graph.is_there(file_name(file)),
            Anchor::Accepted(file) => line.contains(&file_name(file)),
        },
        foreign: names(&foreign),
        ..Chain::default()
    };
    for link in own.iter().filter(|link| !line.contains(&link.name.as_str())) {
        match graph.side(&link.name, &line, matches!(anchor, Anchor::Current(_))) {
            Side::Pending => chain.pending.push(link.name.clone()),
            Side::Lost => chain.orphans.push(link.name.clone()),
        }
    }
    chain.pending.sort();
    chain.orphans.sort();
    chain
}

fn names(links: &[&ChainLink]) -> Vec<String> {
    let mut names: Vec<_> = links.iter().map(|link| link.name.clone()).collect();
    names.sort();
    names
}

/// A file of the table that is there now: the one that the catalog points to, else the one written
/// last.
fn of_current_table<'a>(links: &'a [ChainLink], anchor: Anchor<'_>) -> Option<&'a ChainLink> {
    let pointed = match anchor {
        Anchor::Current(file) => links.iter().find(|link| link.name == file_name(file)),
        Anchor::Accepted(_) | Anchor::None => None,
    };
    pointed.or_else(|| links.iter().max_by_key(|link| (link.last_updated_ms, &link.name)))
}

/// The uuid of a file's table. A file of version 1 may have none; it belongs with the file that
/// names it, or with the only table there is.
fn table_of<'a>(link: &'a ChainLink, links: &'a [ChainLink]) -> Option<&'a str> {
    if let Some(uuid) = &link.table_uuid {
        return Some(uuid);
    }
    let naming = links.iter().filter(|other| other.log.contains(&link.name));
    let naming = naming.filter_map(|other| other.table_uuid.as_deref()).min();
    naming.or_else(|| {
        let mut uuids = links.iter().filter_map(|other| other.table_uuid.as_deref());
        let first = uuids.next()?;
        uuids.all(|uuid| uuid == first).then_some(first)
    })
}

#[cfg(test)]
mod tests;
