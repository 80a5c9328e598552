//! What happened to a branch since the snapshot that is known, by the parents that snapshots name.

use std::collections::HashSet;

use super::metadata::{Metadata, Operation, Snapshot};

/// The snapshot of a branch that a reader knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    /// None: the table or the branch had no snapshot, or is read for the first time.
    Nothing,
    /// That one.
    Snapshot {
        /// Its id.
        id: i64,
        /// Its sequence number, where it is known and not 0. With it, a rewrite is told from a gap
        /// even after the snapshot itself has expired.
        sequence_number: Option<i64>,
    },
}

/// How a snapshot stands to a known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Descent {
    /// It is the known one.
    Same,
    /// It was made from the known one, by one or more commits.
    Descends,
    /// It was not made from the known one.
    Diverged,
    /// Snapshots between them have expired, and nothing tells.
    Unknown,
}

/// What happened to a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Movement {
    /// It is where it was.
    Unchanged,
    /// New snapshots were added after the known one.
    Advanced,
    /// It has moved on, and snapshots after the known one expired unread: a gap.
    PastGap,
    /// It is at a snapshot that was not made from the known one: a rollback, a replaced table or
    /// branch, a cherry-picked past.
    Rewritten,
    /// It was there, and is gone or has no snapshot any more.
    Gone,
}

/// The step of a branch from the known snapshot to the one it is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<'m> {
    /// What happened.
    pub movement: Movement,
    /// The id of the snapshot that the branch is at.
    pub head_id: Option<i64>,
    /// That snapshot, if the file lists it.
    pub head: Option<&'m Snapshot>,
    /// The snapshots on the branch's line that were not on the known one's, oldest first. After a
    /// rewrite whose known snapshot has expired, only the head.
    pub new: Vec<&'m Snapshot>,
    changes_data: Option<bool>,
}

impl Step<'_> {
    /// Whether the step changed what readers of the branch see; `None` where an operation is not
    /// known. It did if at least one new snapshot changed data, or if the branch is not at a
    /// descendant of the known snapshot.
    pub const fn changes_data(&self) -> Option<bool> {
        self.changes_data
    }
}

/// How a walk along parents ended.
#[derive(PartialEq, Eq)]
enum End {
    Reached,
    /// At a snapshot without a parent.
    Root,
    /// At a parent that the file does not list.
    Dangling,
}

impl Metadata {
    /// How a snapshot of this file stands to the known one.
    pub fn descends(&self, current_id: i64, known: Known) -> Descent {
        match known {
            Known::Nothing => Descent::Descends,
            Known::Snapshot { id, .. } if id == current_id => Descent::Same,
            Known::Snapshot { id, sequence_number } => {
                let (line, end) = self.walk(current_id, Some(id));
                self.descent(&line, &end, id, sequence_number)
            }
        }
    }

    /// What happened to a branch since the known snapshot.
    pub fn step(&self, branch: &str, known: Known) -> Step<'_> {
        let Some(head_id) = self.head(branch) else {
            let was_there = matches!(known, Known::Snapshot { .. });
            let movement = if was_there { Movement::Gone } else { Movement::Unchanged };
            return Step { movement, head_id: None, head: None, new: Vec::new(), changes_data: Some(was_there) };
        };
        let known_id = match known {
            Known::Nothing => None,
            Known::Snapshot { id, .. } => Some(id),
        };
        let (mut new, end) = self.walk(head_id, known_id);
        let descent = match known {
            Known::Nothing => Descent::Descends,
            Known::Snapshot { id, .. } if id == head_id => Descent::Same,
            Known::Snapshot { id, sequence_number } => self.descent(&new, &end, id, sequence_number),
        };
        let movement = match descent {
            Descent::Same => Movement::Unchanged,
            Descent::Descends => Movement::Advanced,
            Descent::Unknown => Movement::PastGap,
            Descent::Diverged => Movement::Rewritten,
        };
        if let (Movement::Rewritten, Some(known_id)) = (movement, known_id) {
            self.keep_only_new(&mut new, known_id);
        }
        new.reverse();
        let changes_data = self.changed(movement, &new);
        Step { movement, head_id: Some(head_id), head: self.snapshot(head_id), new, changes_data }
    }

    /// Whether a snapshot changed data; `None` where its operation is not known.
    ///
    /// A `replace` changes none, if it says so of a state that is there to compare: one whose parent
    /// the file does not list counts, because a first export may be called that. A provably empty
    /// commit changes none either.
    pub fn changes_data(&self, snapshot: &Snapshot) -> Option<bool> {
        if self.is_provably_empty(snapshot) {
            return Some(false);
        }
        match snapshot.operation {
            Some(Operation::Replace) => Some(self.parent(snapshot).is_none()),
            Some(Operation::Unknown(_)) => None,
            _ => Some(true),
        }
    }

    /// Whether the format itself proves that a snapshot changed nothing: its summary and its
    /// parent's both carry the totals of records, data files and delete files, with equal values,
    /// and no counter of things added, deleted or removed is above 0. Missing counters prove nothing.
    pub fn is_provably_empty(&self, snapshot: &Snapshot) -> bool {
        let totals = |of: &Snapshot| Some((of.total_records?, of.total_data_files?, of.total_delete_files?));
        let before = self.parent(snapshot).and_then(totals);
        !snapshot.counts_a_change && before.is_some() && before == totals(snapshot)
    }

    fn parent(&self, snapshot: &Snapshot) -> Option<&Snapshot> {
        self.snapshot(snapshot.parent_id?)
    }

    /// The snapshots from one back to another, which is left out, newest first.
    fn walk(&self, from: i64, until: Option<i64>) -> (Vec<&Snapshot>, End) {
        let mut line = Vec::new();
        let mut next = from;
        // Parents of a damaged file may go round in circles.
        while line.len() <= self.snapshots().len() {
            if until == Some(next) {
                return (line, End::Reached);
            }
            let Some(snapshot) = self.snapshot(next) else { return (line, End::Dangling) };
            line.push(snapshot);
            match snapshot.parent_id {
                Some(parent) => next = parent,
                None => return (line, End::Root),
            }
        }
        line.truncate(1);
        (line, End::Dangling)
    }

    fn descent(&self, line: &[&Snapshot], end: &End, known_id: i64, known_number: Option<i64>) -> Descent {
        let in_file = self.snapshot(known_id);
        match end {
            End::Reached => return Descent::Descends,
            End::Root if in_file.is_some() => return Descent::Diverged,
            // pyiceberg takes away the parent's id of a snapshot whose parent it expires, so that a
            // root may be none.
            End::Root | End::Dangling => {}
        }
        // What expired before the oldest of the line had a lower number than it.
        let known_number = known_number.or(in_file.map(|known| known.sequence_number)).filter(|number| *number > 0);
        let oldest = line.last().map(|oldest| oldest.sequence_number).filter(|number| *number > 0);
        let cannot_be_before = known_number.zip(oldest).is_some_and(|(known, oldest)| known >= oldest);
        if cannot_be_before { Descent::Diverged } else { Descent::Unknown }
    }

    fn keep_only_new(&self, line: &mut Vec<&Snapshot>, known_id: i64) {
        if self.snapshot(known_id).is_none() {
            line.truncate(1);
            return;
        }
        let known_line: HashSet<i64> = self.walk(known_id, None).0.iter().map(|snapshot| snapshot.id).collect();
        line.retain(|snapshot| !known_line.contains(&snapshot.id));
    }

    fn changed(&self, movement: Movement, new: &[&Snapshot]) -> Option<bool> {
        match movement {
            Movement::Unchanged => Some(false),
            Movement::Rewritten | Movement::Gone => Some(true),
            // The file does not list what the branch is at.
            Movement::Advanced | Movement::PastGap if new.is_empty() => None,
            Movement::Advanced | Movement::PastGap => {
                let (mut any, mut all_known) = (false, true);
                for snapshot in new {
                    match self.changes_data(snapshot) {
                        Some(changes) => any |= changes,
                        None => all_known = false,
                    }
                }
                if any || all_known { Some(any) } else { None }
            }
        }
    }
}

#[cfg(test)]
mod tests;
