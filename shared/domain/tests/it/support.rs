//! Values that many tests need.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_domain::asset::{AssetKey, Format};
use lakebell_domain::commit::{Commit, CommitKind, Millis};
use lakebell_domain::cursor::Taken;
use lakebell_domain::evaluation::{ClaimPlan, Evaluation, Inputs, evaluate, evaluate_to_claim};
use lakebell_domain::ids::{AssetId, GroupName};
use lakebell_domain::policy::Policies;
use lakebell_domain::state::{AssetState, Evidence, Mark, RewriteHold, TagEntry, Totals};
use lakebell_domain::target::{Advance, Conditions, Group, Member, Target, WorkflowRef};
use lakebell_domain::version::{Epoch, Fingerprint, Ordinal, Position, Version};

/// Seconds after a fixed moment.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

pub(crate) fn asset_id(n: u128) -> AssetId {
    AssetId::from_bits(n + 1)
}

pub(crate) fn asset_key(table: &str) -> AssetKey {
    AssetKey::new(Format::Paimon, None, "ods", table, None).unwrap()
}

pub(crate) fn group_name(name: &str) -> GroupName {
    name.parse().unwrap()
}

pub(crate) fn position(epoch: u32, ordinal: u64) -> Position {
    Position { epoch: Epoch(epoch), ordinal: Ordinal(ordinal) }
}

/// The version that [`commit`] makes at this place.
pub(crate) fn version(epoch: u32, ordinal: u64) -> Version {
    Version {
        position: position(epoch, ordinal),
        fingerprint: Fingerprint::from(format!("fp-{ordinal}")),
        snapshot_id: ordinal.to_string().into(),
    }
}

/// A commit as a reader of Paimon would see it.
pub(crate) fn commit(ordinal: u64, kind: &str) -> Commit {
    Commit {
        ordinal: Ordinal(ordinal),
        fingerprint: Fingerprint::from(format!("fp-{ordinal}")),
        snapshot_id: ordinal.to_string(),
        parent_id: None,
        kind: CommitKind(kind.to_owned()),
        changes_data: match kind {
            "APPEND" | "OVERWRITE" => Some(true),
            "COMPACT" | "ANALYZE" => Some(false),
            _ => None,
        },
        watermark: None,
        committed_at: None,
        schema_id: None,
        total_records: None,
        delta_records: Some(1),
        tags: Vec::new(),
        extra: BTreeMap::new(),
    }
}

pub(crate) fn with_watermark(ordinal: u64, kind: &str, watermark: i64) -> Commit {
    Commit { watermark: Some(Millis(watermark)), ..commit(ordinal, kind) }
}

pub(crate) fn evidence(commit: Commit) -> Evidence {
    Evidence::Commit(Box::new(commit))
}

/// The state after a first read of an empty table and these pieces of evidence, a second apart.
pub(crate) fn state_of(all: impl IntoIterator<Item = Evidence>) -> AssetState {
    let start = AssetState::default().apply(&Evidence::FirstRead(Vec::new()), at(0)).state;
    all.into_iter().zip(1..).fold(start, |state, (evidence, second)| state.apply(&evidence, at(second)).state)
}

pub(crate) fn sighting(withdrawn: &Version, first_seen: Timestamp) -> RewriteHold {
    RewriteHold {
        evidence: format!("snapshot {} is gone", withdrawn.snapshot_id),
        withdrawn: Some(withdrawn.clone()),
        storage_newest: Some((Ordinal(3), Fingerprint::from("other"))),
        first_seen,
        confirmed_at: None,
    }
}

/// A member that any commit that changes data advances.
pub(crate) fn member(asset: u128) -> Member {
    let table = format!("t{asset}");
    Member {
        asset: asset_id(asset),
        key: asset_key(&table),
        alias: table.parse().unwrap(),
        conditions: Conditions::default(),
    }
}

pub(crate) fn group(name: &str, advance: Advance, members: Vec<Member>) -> Group {
    Group { name: group_name(name), advance, independent: false, members, prefixes: Vec::new() }
}

pub(crate) fn target(groups: Vec<Group>) -> Target {
    Target {
        id: "7/daily".parse().unwrap(),
        generation: 1,
        connection: "default".parse().unwrap(),
        workflow: WorkflowRef::Name("daily".to_owned()),
        start_at: None,
        groups,
        enabled: true,
        invalid: None,
        policies: Policies::default(),
        allows_self_loop: false,
    }
}

/// The facts of the version that [`commit`] makes at this place.
pub(crate) fn mark(epoch: u32, ordinal: u64) -> Mark {
    Mark {
        version: version(epoch, ordinal),
        kind: CommitKind("APPEND".to_owned()),
        is_data: true,
        is_empty: false,
        schema_id: None,
        totals: Totals::default(),
        since: at(0),
    }
}

/// A cursor that stands at this place.
pub(crate) fn taken(epoch: u32, ordinal: u64) -> Taken {
    Taken { version: Some(version(epoch, ordinal)), ..Taken::default() }
}

/// A tag of the version that [`commit`] makes at this place.
pub(crate) fn tag(epoch: u32, ordinal: u64) -> TagEntry {
    let version = version(epoch, ordinal);
    TagEntry {
        position: version.position,
        fingerprint: version.fingerprint,
        snapshot_id: version.snapshot_id.to_string(),
        schema_id: None,
        kind: None,
    }
}

/// A verdict and the claim that would succeed.
#[derive(Debug, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub(crate) struct Judged {
    pub(crate) evaluation: Evaluation,
    #[serde(skip)]
    pub(crate) plan: Option<ClaimPlan>,
}

impl std::ops::Deref for Judged {
    type Target = Evaluation;

    fn deref(&self) -> &Evaluation {
        &self.evaluation
    }
}

/// Evaluates to a claim; the verdict alone is the same.
pub(crate) fn judge(inputs: &Inputs<'_>) -> Judged {
    let (evaluation, plan) = evaluate_to_claim(inputs);
    let mut alone = evaluate(inputs);
    alone.takes.clone_from(&evaluation.takes);
    assert_eq!(evaluation, alone);
    Judged { evaluation, plan }
}
