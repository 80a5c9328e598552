//! What a target needs from before its declaration: where it begins, and the commits from there on.
//!
//! All that can be refused is read before anything is written.

use std::collections::BTreeMap;

use lakebell_domain::commit::Commit;
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::event::Source;
use lakebell_domain::ids::{AssetId, GroupName, TraceId};
use lakebell_domain::state::{AssetState, Totals};
use lakebell_domain::target::{Conditions, StartFrom, Target, ordinal_of};
use lakebell_domain::version::{Ordinal, Position};

use super::{pointers, snapshots};
use crate::observe::{self, Hint, Look};
use crate::ports::Ports;
use crate::records::AssetHead;
use crate::{EngineError, ErrorKind};

/// The heads as a declaration read them, and what it begins with.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The heads of the members.
    pub(super) heads: BTreeMap<AssetId, AssetHead>,
    /// Where the named snapshot stands, of each asset with a new member.
    pub(super) starts: BTreeMap<AssetId, Ordinal>,
    /// For assets whose commits are asked for from before: from where on, and those that storage has.
    commits: BTreeMap<AssetId, (Position, Vec<Commit>)>,
}

impl Past {
    /// What had been counted of an asset where a new member begins, as far as the commits after that were
    /// read.
    pub(super) fn totals(&self, asset: AssetId, state: &AssetState, begins: Option<Position>) -> Option<Totals> {
        let (_, commits) = self.commits.get(&asset)?;
        let mut totals = state.totals;
        let later = commits.iter().filter(|commit| begins.is_none_or(|begins| commit.ordinal > begins.ordinal));
        for commit in later.filter(|commit| commit.changes_data != Some(false)) {
            totals.data = totals.data.saturating_sub(1);
            totals.empty = totals.empty.saturating_sub(u64::from(commit.delta_records == Some(0)));
            totals.rows = totals.rows.saturating_sub(commit.delta_records.unwrap_or(0));
        }
        Some(totals)
    }

    /// Sees to it that the commits that are asked for have events that are kept.
    pub(super) async fn keep(&self, ports: &Ports, trace: &TraceId) -> Result<(), EngineError> {
        for (asset, (beyond, commits)) in &self.commits {
            let Some(head) = self.heads.get(asset) else { continue };
            let kept = observe::keep_past(ports, *asset, head, *beyond, commits, trace).await;
            kept.map_err(|error| error.with("asset", &head.key))?;
        }
        Ok(())
    }
}

/// A target about to be written.
pub(super) struct Ask<'a> {
    pub(super) target: &'a Target,
    /// Where its new members begin; `None` for those that are taken in.
    pub(super) start: Option<&'a StartFrom>,
    /// Whether a group has this member already.
    pub(super) has: &'a (dyn Fn(&GroupName, AssetId) -> bool + Sync),
    /// Whether the commits of a group's member are kept already.
    pub(super) is_kept: &'a (dyn Fn(&GroupName, AssetId) -> bool + Sync),
}

impl Ask<'_> {
    fn members(&self) -> impl Iterator<Item = (&GroupName, AssetId, &Conditions)> {
        let groups = self.target.groups.iter();
        groups.flat_map(|group| group.members.iter().map(|member| (&group.name, member.asset, &member.conditions)))
    }

    fn is_new(&self, asset: AssetId) -> bool {
        self.members().any(|(group, member, _)| member == asset && !(self.has)(group, asset))
    }

    /// Whether a new member counts commits, so that what was counted where it begins has to be known.
    fn counts(&self, asset: AssetId) -> bool {
        let counts =
            |conditions: &Conditions| conditions.min_new_snapshots > 1 || conditions.min_delta_records.is_some();
        let is_later = matches!(self.start, Some(StartFrom::Snapshot(_) | StartFrom::Current));
        is_later
            && self
                .members()
                .any(|(group, member, conditions)| member == asset && counts(conditions) && !(self.has)(group, asset))
    }

    /// Reads the heads, and of storage what is asked for of it. `cursor` says where the members begin.
    ///
    /// Errors: `Invalid` for a snapshot that is not there and for too many commits; `Conflict` where a table
    /// cannot be read that is to begin before now.
    pub(super) async fn read(
        &self,
        ports: &Ports,
        trace: &TraceId,
        cursor: impl Fn(&Past) -> TargetCursor + Send,
    ) -> Result<Past, EngineError> {
        let mut past = Past { heads: self.heads(ports, trace).await?, ..Past::default() };
        if let Some(StartFrom::Snapshot(id)) = self.start {
            for (asset, head) in past.heads.iter().filter(|(asset, _)| self.is_new(**asset)) {
                past.starts.insert(*asset, snapshots::start(ports, *asset, head, id).await?);
            }
        }
        let begins = cursor(&past);
        for (asset, head) in &past.heads {
            let Some(state) = head.live_state().filter(|state| state.baseline.is_some()) else { continue };
            let first = Position::start_of(state.epoch);
            let counts = self.counts(*asset);
            let wanted = self.members().filter(|(group, member, _)| {
                let is_kept = !self.target.needs_history() || (self.is_kept)(group, *asset);
                *member == *asset && (!is_kept || (counts && !(self.has)(group, *asset)))
            });
            let places = wanted.filter_map(|(group, ..)| Some(begins.at(group, *asset)?.position().unwrap_or(first)));
            let Some(beyond) = places.map(|place| place.max(first)).min() else { continue };
            let commits = match self.start {
                Some(_) => {
                    observe::past(ports, *asset, head, beyond).await.map_err(|error| error.with("asset", &head.key))?
                }
                // Of a table that is taken in, what its first read took counts, and no more.
                None => Vec::new(),
            };
            past.commits.insert(*asset, (beyond, commits));
        }
        Ok(past)
    }

    /// The heads of the members. Tables that were never read and are to begin before now are read: without a
    /// first read there is no place to go back from.
    async fn heads(&self, ports: &Ports, trace: &TraceId) -> Result<BTreeMap<AssetId, AssetHead>, EngineError> {
        let mut heads = pointers::heads(ports, self.target).await?;
        for (asset, head) in heads.iter_mut().filter(|(asset, _)| self.is_new(**asset)) {
            let needs_a_read = match self.start {
                None | Some(StartFrom::Now) => false,
                Some(StartFrom::Current) => true,
                Some(StartFrom::Earliest) => self.target.needs_history(),
                Some(StartFrom::Snapshot(id)) => {
                    self.target.needs_history() || ordinal_of(head.key.format(), id).is_none()
                }
            };
            if !needs_a_read || head.live_state().is_none_or(|state| state.baseline.is_some()) {
                continue;
            }
            let hint = Hint { asset: *asset, look: Look::Whole, source: Source::Poll, trace: trace.clone() };
            *head = observe::observe(ports, &hint).await?.head.value;
            if head.state.baseline.is_none() {
                let trouble = head.state.trouble.as_ref();
                let why = trouble.map_or("its files say nothing yet", |trouble| trouble.detail.as_str());
                let message = format!("{} has not been read, so what lies before now is not known: {why}", head.key);
                return Err(EngineError::new(ErrorKind::Conflict, message).with("field", "startFrom"));
            }
        }
        Ok(heads)
    }
}
