//! How large the head of an asset can grow: it is one item of a table, read and written each time.

use lakebell_domain::commit::{Commit, Millis};
use lakebell_domain::event::EventKind;
use lakebell_domain::state::{
    AssetState, BackfillStatus, CheckResult, Evidence, RewriteHold, SchemaDetail, SchemaStatus, TagEntry, Trouble,
    TroubleCode,
};
use lakebell_domain::version::{Epoch, Fingerprint, Ordinal, Version};

use crate::registers::check;
use crate::support::{at, commit};

/// How much of everything there is.
struct Scale {
    kinds: u64,
    tags: u64,
    backfills: usize,
    decisions: i64,
    checked_versions: u64,
    checks: usize,
    parked: u64,
}

/// What the fields of a head look like in life: uuids, snapshot ids of eight digits, names.
fn print(ordinal: u64) -> Fingerprint {
    Fingerprint::from(format!("5f1c7c1e-6d0b-4f0e-9b57-{ordinal:012}"))
}

fn head(scale: &Scale) -> AssetState {
    let mut state = AssetState { epoch: Epoch(3), ..AssetState::default() };
    let tell = |state: &mut AssetState, evidence: &Evidence| *state = state.apply(evidence, at(1)).state;
    tell(&mut state, &Evidence::FirstRead(Vec::new()));
    let first = 41_234_000;
    let parked =
        (0..scale.parked).map(|n| Evidence::Check(check(first + 900 + n, "row_count", CheckResult::Passed, RUN), None));
    parked.for_each(|evidence| tell(&mut state, &evidence));
    for n in 0..scale.kinds.max(scale.checked_versions) {
        let next = Commit {
            fingerprint: print(first + n),
            schema_id: Some(12),
            watermark: Some(Millis(1_790_000_000_000)),
            total_records: Some(9_876_543_210),
            delta_records: Some(1_234_567),
            extra: [("commit_user".to_owned(), format!("5f1c7c1e-6d0b-4f0e-9b57-{n:012}").into())].into(),
            ..commit(first + n, &format!("COMMIT_KIND_{}", n % scale.kinds))
        };
        tell(&mut state, &Evidence::Commit(Box::new(next)));
        let mark = state.kinds.values().map(|kind| kind.mark.clone()).max_by_key(|mark| mark.version.position).unwrap();
        for name in (0..scale.checks).filter(|_| n < scale.checked_versions) {
            let verdict = check(first + n, &format!("expect_column_{name:02}"), CheckResult::Passed, RUN);
            tell(&mut state, &Evidence::Check(verdict, Some(mark.clone())));
        }
    }
    let at_tag = |version: Version| TagEntry {
        position: version.position,
        fingerprint: version.fingerprint,
        snapshot_id: version.snapshot_id.to_string(),
        schema_id: None,
        kind: None,
    };
    for n in 0..scale.tags {
        let mut version = state.table.clone().unwrap();
        version.position.ordinal = Ordinal(first + n);
        tell(&mut state, &Evidence::TagCreated(format!("2026-11-{n:02}T00"), at_tag(version)));
    }
    for n in 0..scale.backfills {
        tell(&mut state, &Evidence::Backfill(format!("backfill-2026-11-{n:02}"), BackfillStatus::Completed));
    }
    for id in 0..scale.decisions {
        tell(&mut state, &Evidence::SchemaDecided(id, SchemaStatus::Compatible));
    }
    tell(&mut state, &Evidence::SchemaRead(SchemaDetail { schema_id: 12, text: Some("full-compaction".to_owned()) }));
    tell(&mut state, &Evidence::CdcLagRecovered);
    let refusal = "the table moved during the check: snapshot 41234999 was recorded at 2026-11-30T10:15:31.123Z";
    state.refuse(EventKind::QualityCheckErrored, refusal, at(1));
    let detail =
        "s3://lake/warehouse/ods.db/orders/snapshot/snapshot-41234999 is no JSON: line 1, column 17".to_owned();
    tell(&mut state, &Evidence::Trouble(Trouble { code: TroubleCode::Damaged, detail: detail.clone(), since: at(2) }));
    let withdrawn = state.table.clone();
    tell(
        &mut state,
        &Evidence::RewriteSighted(RewriteHold {
            evidence: detail,
            withdrawn,
            storage_newest: Some((Ordinal(first), print(first))),
            first_seen: at(2),
            confirmed_at: Some(at(99)),
        }),
    );
    state
}

const RUN: i64 = 1_790_000_000_123;

#[track_caller]
fn takes(what: &str, state: &AssetState, limit: usize) {
    let bytes = serde_json::to_string(state).unwrap().len();
    println!("{what}: {bytes} bytes as JSON");
    assert!(bytes < limit, "{what} takes {bytes} bytes");
}

/// A busy Paimon table, with every register in use and in trouble: its four kinds of commit, two
/// weeks of daily tags, one check on each of the last versions, some backfills and schemas.
#[test]
fn a_busy_head_stays_at_about_8_kilobytes() {
    let busy = Scale { kinds: 4, tags: 14, backfills: 4, decisions: 12, checked_versions: 16, checks: 1, parked: 2 };
    takes("a busy head", &head(&busy), 8_500);
}

/// A month of daily tags and five checks on each version: above the 8 kilobytes that are wished for.
#[test]
fn a_head_with_many_checks_and_tags_stays_below_16_kilobytes() {
    let many = Scale { kinds: 4, tags: 31, backfills: 8, decisions: 32, checked_versions: 16, checks: 5, parked: 5 };
    takes("a head with many checks and tags", &head(&many), 16 * 1024);
}

/// Every bounded map at its bound, under names of a usual length: far from what an item may hold.
#[test]
fn a_head_with_every_map_full_fits_an_item() {
    let full =
        Scale { kinds: 30, tags: 80, backfills: 20, decisions: 40, checked_versions: 30, checks: 40, parked: 20 };
    let state = head(&full);
    assert_eq!((state.kinds.len(), state.tags.len(), state.backfills.len()), (24, 48, 16));
    takes("a head with every map full", &state, 64 * 1024);
    for (name, part) in serde_json::to_value(&state).unwrap().as_object().unwrap() {
        println!("  {name}: {}", part.to_string().len());
    }
}
