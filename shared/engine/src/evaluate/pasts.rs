//! The commits that a verdict has to look at one by one.
//!
//! With `each` that is the oldest beyond a group's cursor that counts; with a filter the newest. Those
//! between that do not count may be any number, so the cursors note how far they were looked through:
//! a commit that does not count never will, until the definition is altered.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::cursor::{Looked, TargetCursor};
use lakebell_domain::evaluation::PastCommit;
use lakebell_domain::event::Event;
use lakebell_domain::ids::{AssetId, GroupName};
use lakebell_domain::policy::Coalesce;
use lakebell_domain::target::Conditions;
use lakebell_domain::version::{Epoch, Position};

use super::load::Loaded;
use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::Range;
use crate::store;

/// Commits of one read.
const PAGE: usize = 200;
/// Most commits of one asset that one evaluation looks at; the next one goes on from there.
const MAX_LOOKED_AT: usize = 5_000;
/// After how many commits that do not count it is noted how far they were looked through.
const NOTED_AFTER: usize = 100;

/// What was read.
pub(super) struct Pasts {
    /// The commits of each asset, oldest first.
    pub(super) histories: BTreeMap<AssetId, Vec<PastCommit>>,
    /// The cursors with how far it was looked, where that is to be noted.
    pub(super) cursor: Option<TargetCursor>,
}

/// What one group asks of an asset.
struct Asks<'a> {
    group: &'a GroupName,
    conditions: &'a Conditions,
    /// Only commits beyond this are looked at.
    beyond: Position,
    /// What was found before that.
    found: Option<Position>,
    /// What its next step takes, where a resume joins several.
    joined: Option<Position>,
    wanted: Wanted,
}

/// Which of the commits that count is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The oldest.
    Oldest,
    /// The newest.
    Newest,
    /// Every one, because a resume joins what came during the pause.
    All,
}

/// Reads the commits beyond the cursors of a target that looks at each.
pub(super) async fn read(ports: &Ports, target: &Loaded) -> Result<Pasts, EngineError> {
    let mut pasts = Pasts { histories: BTreeMap::new(), cursor: None };
    for asset in target.heads.keys() {
        let asks = asks(target, *asset);
        let Some(lowest) = asks.iter().map(|asks| asks.beyond).min() else { continue };
        let commits = beyond(ports, *asset, lowest, &asks).await?;
        for asks in &asks {
            if let Some(looked) = asks.looked(&commits) {
                let cursor = pasts.cursor.get_or_insert_with(|| target.cursor.value.clone());
                cursor.looked.entry(asks.group.clone()).or_default().insert(*asset, looked);
            }
        }
        // What is noted lies before what was read, or a resume joins more than was read.
        let is_read = |noted: Position| commits.iter().any(|past| past.mark.version.position == noted);
        let noted = asks.iter().flat_map(|asks| asks.found.into_iter().chain(asks.joined));
        let missing: BTreeSet<Position> = noted.filter(|noted| !is_read(*noted)).collect();
        let mut history = Vec::new();
        for noted in missing {
            history.extend(commits_of(ports, &layout::commits_at(*asset, noted), None, None).await?.0);
        }
        history.extend(commits);
        history.sort_by_key(|past| past.mark.version.position);
        pasts.histories.insert(*asset, history);
    }
    Ok(pasts)
}

fn asks(target: &Loaded, asset: AssetId) -> Vec<Asks<'_>> {
    let definition = &target.definition.value.target;
    let cursor = &target.cursor.value;
    let each = definition.policies.coalesce == Coalesce::Each;
    let baseline = target.heads.get(&asset).and_then(|head| head.value.state.baseline.as_ref()?.version.as_ref());
    let mut asks = Vec::new();
    for group in &definition.groups {
        let member = group.members.iter().find(|member| member.asset == asset);
        let Some(member) = member.filter(|member| each || member.conditions.needs_history()) else { continue };
        let taken = match cursor.at(&group.name, asset) {
            Some(taken) => taken.position(),
            None => baseline.map(|version| version.position),
        };
        let taken = taken.unwrap_or(Position::start_of(Epoch(0)));
        let looked = cursor.looked.get(&group.name).and_then(|looked| looked.get(&asset));
        asks.push(Asks {
            group: &group.name,
            conditions: &member.conditions,
            beyond: looked.map_or(taken, |looked| looked.up_to.max(taken)),
            joined: cursor.joins_up_to(&group.name, asset).filter(|joined| each && *joined > taken),
            found: looked.and_then(|looked| looked.found).filter(|found| *found > taken),
            wanted: match each {
                false => Wanted::Newest,
                true if cursor.paused.is_some() && member.conditions.needs_history() => Wanted::All,
                true => Wanted::Oldest,
            },
        });
    }
    asks
}

impl Asks<'_> {
    fn counts(&self, past: &PastCommit) -> bool {
        past.mark.version.position > self.beyond && past.counts_for(self.conditions)
    }

    /// Whether more commits would change nothing now.
    fn is_answered(&self, commits: &[PastCommit]) -> bool {
        self.wanted == Wanted::Oldest && commits.iter().any(|past| self.counts(past))
    }

    /// How far it was looked, where that is worth a note.
    fn looked(&self, commits: &[PastCommit]) -> Option<Looked> {
        let oldest = commits.iter().position(|past| self.counts(past));
        let (passed, found) = if self.wanted == Wanted::Newest {
            let newest = commits.iter().rev().find(|past| self.counts(past));
            (commits, newest.map(|past| past.mark.version.position).or(self.found))
        } else {
            (&commits[..oldest.unwrap_or(commits.len())], None)
        };
        let mut passed = passed.iter().map(|past| past.mark.version.position).filter(|at| *at > self.beyond);
        let up_to = passed.next_back()?;
        (passed.count() >= NOTED_AFTER).then_some(Looked { up_to, found })
    }
}

/// The commits beyond a place, until each group has what it asks for.
async fn beyond(
    ports: &Ports,
    asset: AssetId,
    lowest: Position,
    asks: &[Asks<'_>],
) -> Result<Vec<PastCommit>, EngineError> {
    let range = layout::commits_beyond(asset, lowest);
    let mut commits = Vec::new();
    let mut after = None;
    loop {
        let (found, next) = commits_of(ports, &range, Some(PAGE), after.as_deref()).await?;
        commits.extend(found);
        let is_enough = commits.len() >= MAX_LOOKED_AT || asks.iter().all(|asks| asks.is_answered(&commits));
        match next.filter(|_| !is_enough) {
            Some(next) => after = Some(next),
            None => return Ok(commits),
        }
    }
}

async fn commits_of(
    ports: &Ports,
    range: &Range,
    limit: Option<usize>,
    after: Option<&str>,
) -> Result<(Vec<PastCommit>, Option<String>), EngineError> {
    let page = ports.items.query(range, limit, after).await?;
    let mut commits = Vec::with_capacity(page.found.len());
    for item in &page.found {
        commits.extend(store::decode::<Event>(item)?.value.past_commit());
    }
    Ok((commits, page.next))
}
