//! Which triggers consumed versions that a rewrite withdrew.

use jiff::Timestamp;
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId, TriggerKey};
use lakebell_domain::state::RewriteHold;
use lakebell_domain::trigger::{StatusWord, Trigger};
use lakebell_domain::version::Version;
use serde::Serialize;

use crate::observe;
use crate::ports::Ports;
use crate::{EngineError, history};

/// Most triggers that one report looks at, the newest first, over all projects.
pub const MAX_LOOKED_AT: usize = 500;
/// Triggers of one read: keys of the index, then one batch.
const PAGE: usize = 100;

/// What a held rewrite withdrew, and from whom.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Withdrawn {
    /// The rewrite, while it is held.
    pub hold: Option<RewriteHold>,
    /// The triggers that took a withdrawn version, or may have, those of one project newest first.
    pub triggers: Vec<Consumed>,
    /// How many more there are of other projects, which are told to whoever may read those alone.
    pub of_others: usize,
    /// Whether every trigger of the projects concerned was looked at; the newest were.
    pub is_complete: bool,
}

/// A trigger that took a withdrawn version.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Consumed {
    /// The trigger.
    pub trigger: TriggerKey,
    /// Its target.
    pub target: TargetId,
    /// What became of it.
    pub trigger_status: StatusWord,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// The last version that was taken before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Version>,
    /// The last version that it took.
    pub to: Version,
    /// Whether that one was withdrawn for certain. It may have been, where storage does not show
    /// how far back the rewrite reaches.
    pub is_certain: bool,
}

/// The report on an asset for whoever may read one project, or all of them. It is computed from what is
/// recorded. Without a held rewrite it is empty.
///
/// Errors: `NotFound` where the asset is not registered.
pub async fn withdrawn(ports: &Ports, asset: AssetId, reader: Option<ProjectCode>) -> Result<Withdrawn, EngineError> {
    let (head, pointers) = observe::recorded(ports, asset).await?;
    let Some(hold) = head.value.state.hold.clone() else {
        return Ok(Withdrawn { hold: None, triggers: Vec::new(), of_others: 0, is_complete: true });
    };
    let mut of_others = 0;
    let mut triggers = Vec::new();
    let mut left = MAX_LOOKED_AT;
    let mut is_complete = true;
    let others = pointers.iter().map(|pointer| pointer.target.project);
    for project in projects(head.value.project, others) {
        let mut after: Option<String> = None;
        loop {
            if left == 0 {
                is_complete = false;
                break;
            }
            let page = history::triggers(ports, project, left.min(PAGE), after.as_deref()).await?;
            left = left.saturating_sub(page.found.len());
            let found = page.found.iter().filter_map(|trigger| consumed(&hold, asset, trigger));
            if reader.is_none_or(|reader| reader == project) {
                triggers.extend(found);
            } else {
                of_others += found.count();
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    Ok(Withdrawn { hold: Some(hold), triggers, of_others, is_complete })
}

/// The projects with targets on the asset, its own first. `0` owns no target.
fn projects(own: ProjectCode, others: impl IntoIterator<Item = ProjectCode>) -> Vec<ProjectCode> {
    let mut projects = vec![own];
    for project in others {
        if !projects.contains(&project) {
            projects.push(project);
        }
    }
    projects.retain(|project| *project != ProjectCode(0));
    projects
}

fn consumed(hold: &RewriteHold, asset: AssetId, trigger: &Trigger) -> Option<Consumed> {
    let range = trigger.ranges.iter().find(|range| range.asset == asset)?;
    let to = range.bounds.to.clone()?;
    let is_empty = range.bounds.from.as_ref() == Some(&to);
    let is_certain = if is_empty { None } else { is_withdrawn(hold, &to) }?;
    Some(Consumed {
        trigger: trigger.key.clone(),
        target: trigger.target.clone(),
        trigger_status: trigger.status().word(),
        claimed_at: trigger.claimed_at,
        from: range.bounds.from.clone(),
        to,
        is_certain,
    })
}

/// Whether a version was withdrawn: for certain, or perhaps. Withdrawn is the version that storage
/// contradicts and what is above it; where the newest one in storage is older, what is above that. A
/// range holds withdrawn versions exactly when its last one is.
fn is_withdrawn(hold: &RewriteHold, version: &Version) -> Option<bool> {
    let contradicted = hold.withdrawn.as_ref()?;
    let ordinal = version.position.ordinal;
    if version.position.epoch != contradicted.position.epoch {
        return None;
    }
    if ordinal >= contradicted.position.ordinal {
        return Some(true);
    }
    let Some((newest, fingerprint)) = &hold.storage_newest else { return Some(false) };
    (ordinal > *newest || (ordinal == *newest && version.fingerprint != *fingerprint)).then_some(true)
}

#[cfg(test)]
mod tests {
    use lakebell_domain::version::{Epoch, Fingerprint, Ordinal, Position};

    use super::*;

    fn version(epoch: u32, ordinal: u64, fingerprint: &str) -> Version {
        let position = Position { epoch: Epoch(epoch), ordinal: Ordinal(ordinal) };
        Version { position, fingerprint: Fingerprint::from(fingerprint), snapshot_id: ordinal.to_string().into() }
    }

    fn hold(withdrawn: Option<Version>, newest: Option<(u64, &str)>) -> RewriteHold {
        RewriteHold {
            evidence: "seen".to_owned(),
            withdrawn,
            storage_newest: newest.map(|(ordinal, print)| (Ordinal(ordinal), Fingerprint::from(print))),
            first_seen: Timestamp::UNIX_EPOCH,
            confirmed_at: None,
        }
    }

    #[test]
    fn what_is_withdrawn_by_each_kind_of_rewrite() {
        let (sure, perhaps) = (Some(true), Some(false));
        let rolled_back = hold(Some(version(1, 10, "a")), Some((7, "a")));
        let replaced = hold(Some(version(1, 5, "a")), Some((12, "b")));
        let created_anew = hold(Some(version(1, 10, "a")), Some((1, "b")));
        let unknown = hold(Some(version(1, 10, "a")), None);
        let table = [
            ("rolled back", &rolled_back, [(7, None), (8, sure), (10, sure)]),
            ("another one in the middle", &replaced, [(4, None), (5, sure), (9, sure)]),
            ("dropped and created", &created_anew, [(1, sure), (2, sure), (10, sure)]),
            ("who knows how far", &unknown, [(8, perhaps), (9, perhaps), (10, sure)]),
        ];
        for (what, hold, expected) in table {
            for (ordinal, is_expected) in expected {
                assert_eq!(is_withdrawn(hold, &version(1, ordinal, "a")), is_expected, "{what}: {ordinal}");
            }
            assert_eq!(is_withdrawn(hold, &version(0, 20, "a")), None, "{what}: an epoch before");
        }
        assert_eq!(is_withdrawn(&hold(None, Some((1, "b"))), &version(0, 5, "a")), None, "nothing was known");
    }

    #[test]
    fn each_project_is_read_once() {
        let all = projects(ProjectCode(0), [8, 7, 8].map(ProjectCode));
        assert_eq!(all, [ProjectCode(8), ProjectCode(7)]);
    }
}
