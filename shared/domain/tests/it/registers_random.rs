//! Registers under any sequence of evidence.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lakebell_domain::commit::{Commit, CommitKind, Millis};
use lakebell_domain::event::Outcome;
use lakebell_domain::state::{
    AssetState, BackfillStatus, CheckResult, Evidence, Gap, Hole, MAX_BACKFILLS, MAX_KINDS, MAX_TAGS, QualityVerdict,
    SchemaDetail, SchemaStatus, Severity, TagEntry, Trouble, TroubleCode, Verdict,
};
use lakebell_domain::version::{Fingerprint, Ordinal};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::{at, commit, mark, position, sighting, tag, version};

fn a_commit() -> impl Strategy<Value = Commit> {
    let kind = prop_oneof![
        6 => select(vec!["APPEND", "OVERWRITE", "COMPACT", "ANALYZE", "NEW"]).prop_map(str::to_owned),
        1 => "K[0-9]{2}",
    ];
    let watermark = proptest::option::of(prop_oneof![3 => 0_i64..50, 1 => Just(i64::MIN)]);
    (0_u64..40, 0..3, kind, watermark, proptest::option::of(0_i64..4)).prop_map(
        |(ordinal, print, kind, watermark, schema_id)| Commit {
            fingerprint: Fingerprint::from(if print == 0 { "other".to_owned() } else { format!("fp-{ordinal}") }),
            watermark: watermark.map(Millis),
            schema_id,
            ..commit(ordinal, &kind)
        },
    )
}

fn a_verdict() -> impl Strategy<Value = Verdict> {
    let result = select(vec![CheckResult::Passed, CheckResult::Failed, CheckResult::Errored]);
    let severity = select(vec![Severity::Warn, Severity::Error]);
    (0_u64..40, 0..4, 0..5, result, severity, 0_i64..4).prop_map(|(ordinal, print, check, result, severity, run)| {
        Verdict {
            ordinal: Ordinal(ordinal),
            fingerprint: match print {
                0 => Some(Fingerprint::from("other")),
                1 => Some(Fingerprint::from(format!("fp-{ordinal}"))),
                _ => None,
            },
            check: format!("check-{check}"),
            result,
            severity,
            run,
        }
    })
}

fn a_tag() -> impl Strategy<Value = TagEntry> {
    (0_u32..2, 0_u64..40).prop_map(|(epoch, ordinal)| tag(epoch, ordinal))
}

fn any_evidence() -> impl Strategy<Value = Evidence> {
    let schema = select(vec![SchemaStatus::Compatible, SchemaStatus::Rejected, SchemaStatus::PendingApproval]);
    let backfill = select(vec![BackfillStatus::Running, BackfillStatus::Completed]);
    let code = select(vec![TroubleCode::Unreadable, TroubleCode::Damaged]);
    prop_oneof![
        12 => a_commit().prop_map(|commit| Evidence::Commit(Box::new(commit))),
        1 => proptest::collection::vec(a_commit(), 0..3).prop_map(Evidence::FirstRead),
        1 => (0_u64..40, 0_u64..5).prop_map(|(first, more)| {
            let (first, last) = (Ordinal(first), Ordinal(first + more));
            Evidence::Expired(Gap { first, last, at: at(0), cause: "expired".to_owned() })
        }),
        1 => (0_u64..40).prop_map(|n| Evidence::Hole(Hole { ordinal: Ordinal(n), first_seen: at(0) })),
        1 => (0_u64..3, 0_i64..200).prop_map(|(n, second)| Evidence::RewriteSighted(sighting(&version(0, n), at(second)))),
        1 => Just(Evidence::RewriteWithdrawn),
        1 => proptest::collection::vec(a_commit(), 0..4).prop_map(Evidence::RewriteAccepted),
        3 => (0..90, a_tag()).prop_map(|(n, entry)| Evidence::TagCreated(format!("tag-{n}"), entry)),
        1 => (0..90).prop_map(|n| Evidence::TagDeleted(format!("tag-{n}"))),
        4 => (a_verdict(), any::<bool>()).prop_map(|(verdict, known)| {
            let about = known.then(|| mark(0, verdict.ordinal.0));
            Evidence::Check(verdict, about)
        }),
        1 => (0_i64..3).prop_map(|id| Evidence::SchemaRead(SchemaDetail { schema_id: id, text: None })),
        2 => (0_i64..60, schema).prop_map(|(id, status)| Evidence::SchemaDecided(id, status)),
        2 => (0..30, backfill).prop_map(|(n, status)| Evidence::Backfill(format!("backfill-{n}"), status)),
        1 => prop_oneof![(0_i64..50).prop_map(Millis), Just(Millis(i64::MIN))].prop_map(Evidence::WatermarkPushed),
        1 => Just(Evidence::CdcLagRecovered),
        1 => (code, 0_i64..100).prop_map(|(code, second)| {
            Evidence::Trouble(Trouble { code, detail: format!("at {second}"), since: at(second) })
        }),
        1 => Just(Evidence::Readable),
    ]
}

/// What a step must keep, whatever the evidence was.
fn check_step(before: &AssetState, evidence: &Evidence, after: &AssetState) -> Result<(), TestCaseError> {
    prop_assert!(after.position() >= before.position(), "went back from {} to {}", before.position(), after.position());
    prop_assert!(after.epoch >= before.epoch);
    prop_assert!(after.epoch == before.epoch || matches!(evidence, Evidence::RewriteAccepted(_)));
    if after.epoch == before.epoch {
        let at = |state: &AssetState| state.watermark.as_ref().map(|watermark| watermark.at);
        prop_assert!(at(after) >= at(before), "the watermark fell");
        prop_assert!(after.data.as_ref().map(|data| data.count) >= before.data.as_ref().map(|data| data.count));
        prop_assert!(after.cdc_lag_recovered_at >= before.cdc_lag_recovered_at);
        for (kind, register) in &before.kinds {
            prop_assert!(after.kinds[kind].mark.version.position >= register.mark.version.position, "{kind} went back");
        }
    } else {
        prop_assert_eq!(after.finished_backfill(), None, "a backfill that ended before counts in a new epoch");
        prop_assert!(after.backfills.keys().eq(before.backfills.keys()), "a new epoch forgot a backfill");
    }
    for (id, backfill) in &before.backfills {
        let absorbed = backfill.status != BackfillStatus::Completed
            || after.backfills.get(id).is_none_or(|after| after.status == BackfillStatus::Completed);
        prop_assert!(absorbed, "backfill {id} began again");
    }
    if before.hold.is_some() && !matches!(evidence, Evidence::RewriteAccepted(_)) {
        prop_assert_eq!(after.position(), before.position(), "advanced while held");
    }
    prop_assert!(after.watermark.as_ref().is_none_or(|watermark| watermark.at.0 != i64::MIN));
    Ok(())
}

/// What is true of every state.
fn check_state(state: &AssetState) -> Result<(), TestCaseError> {
    let registers = state.kinds.values().chain(&state.data);
    for version in registers.map(|register| &register.mark.version).chain(&state.table) {
        prop_assert_eq!(version.position.epoch, state.epoch, "a register of another epoch");
        prop_assert!(version.position <= state.position());
    }
    prop_assert!(state.kinds.len() <= MAX_KINDS);
    prop_assert!(state.tags.len() <= MAX_TAGS);
    prop_assert!(state.backfills.len() <= MAX_BACKFILLS);
    prop_assert!(state.schema.decisions.len() <= 32);
    let json = serde_json::to_value(state).unwrap();
    prop_assert!(json["quality"]["versions"].as_array().unwrap().len() <= 16);
    prop_assert!(json["quality"]["parked"].as_array().unwrap().len() <= 16);
    prop_assert_eq!(&serde_json::from_value::<AssetState>(json).unwrap(), state, "lost in storage");
    Ok(())
}

proptest! {
    #[test]
    fn registers_move_forward_and_stay_bounded(all in proptest::collection::vec(any_evidence(), 1..150)) {
        let mut state = AssetState::default();
        for (evidence, second) in all.iter().zip(0..) {
            let after = state.apply(evidence, at(second));
            check_step(&state, evidence, &after.state)?;
            // told again, at once or later: nothing new
            for later in [0, 5] {
                let again = after.state.apply(evidence, at(second + later));
                if later > 0 && *evidence == Evidence::CdcLagRecovered {
                    continue; // it carries no time of its own: whoever passes it on tells repeats apart
                }
                prop_assert_eq!(&again.state, &after.state, "the second {:?} changed something", evidence);
                prop_assert_ne!(&again.outcome, &Outcome::Advanced, "the second {:?} claims to advance", evidence);
            }
            if after.state == state {
                prop_assert_ne!(&after.outcome, &Outcome::Advanced, "{:?} changed nothing", evidence);
                prop_assert_ne!(&after.outcome, &Outcome::Maintenance);
            }
            state = after.state;
        }
        check_state(&state)?;
    }

    /// Commits in any order, any number of times: registers are what the running maximum saw.
    #[test]
    fn registers_are_what_the_accepted_commits_say(all in proptest::collection::vec(a_commit(), 1..80)) {
        let mut state = AssetState::default().apply(&Evidence::FirstRead(Vec::new()), at(0)).state;
        let mut accepted: Vec<Commit> = Vec::new();
        for commit in all {
            let outcome = state.apply(&Evidence::Commit(Box::new(commit.clone())), at(1));
            let newest = accepted.last();
            let is_next = newest.is_none_or(|newest| commit.ordinal > newest.ordinal);
            let is_known = newest.is_some_and(|newest| {
                (newest.ordinal, &newest.fingerprint) == (commit.ordinal, &commit.fingerprint)
            });
            let word = outcome.outcome.as_str();
            prop_assert_eq!(is_next, matches!(word, "advanced" | "maintenance"));
            prop_assert_eq!(is_known, word == "duplicate");
            if is_next {
                accepted.push(commit);
            }
            state = outcome.state;
        }
        let data: Vec<&Commit> = accepted.iter().filter(|commit| commit.changes_data != Some(false)).collect();
        let ordinal = |register: Option<&lakebell_domain::state::Register>| register.map(|r| r.mark.version.position.ordinal);
        prop_assert_eq!(ordinal(state.data.as_ref()), data.last().map(|commit| commit.ordinal));
        prop_assert_eq!(state.data.as_ref().map_or(0, |data| data.count), data.len() as u64);
        let watermarks = accepted.iter().filter_map(|commit| commit.watermark).filter(|at| at.0 != i64::MIN);
        prop_assert_eq!(state.watermark.as_ref().map(|watermark| watermark.at), watermarks.max());
        let kinds: BTreeSet<&CommitKind> = accepted.iter().map(|commit| &commit.kind).collect();
        prop_assert!(kinds.len() > MAX_KINDS || kinds.into_iter().eq(state.kinds.keys()));
        for (kind, register) in state.kinds.iter().filter(|_| state.kinds.len() < MAX_KINDS) {
            let mine: Vec<&Commit> = accepted.iter().filter(|commit| commit.kind == *kind).collect();
            prop_assert_eq!(Some(register.mark.version.position.ordinal), mine.last().map(|commit| commit.ordinal));
            prop_assert_eq!(register.count, mine.len() as u64);
            prop_assert_eq!(register.delta_records, mine.iter().filter_map(|commit| commit.delta_records).sum::<i64>());
        }
    }

    /// Verdicts against a plain list of everything that was said: few enough for the bounds not to matter.
    #[test]
    fn verdicts_are_what_the_latest_runs_say(
        steps in proptest::collection::vec(prop_oneof![
            1 => Just(None),
            2 => (a_verdict(), 1_u64..9).prop_map(|(verdict, n)| Some(Verdict { ordinal: Ordinal(n), ..verdict })),
        ], 1..40),
        required in proptest::collection::btree_set(0..5, 0..3),
    ) {
        let required: Vec<String> = required.into_iter().map(|n| format!("check-{n}")).collect();
        let (mut state, mut newest, mut parked) = (AssetState::default(), 0, BTreeSet::new());
        let mut said: Vec<Verdict> = Vec::new();
        for (step, second) in steps.into_iter().zip(0..) {
            let evidence = match step {
                None => {
                    newest += 1;
                    Evidence::Commit(Box::new(commit(newest, "APPEND")))
                }
                Some(verdict) => {
                    let known = verdict.ordinal.0 <= newest;
                    parked.extend((!known).then(|| format!("{verdict:?}")));
                    said.push(verdict.clone());
                    Evidence::Check(verdict.clone(), known.then(|| mark(0, verdict.ordinal.0)))
                }
            };
            state = state.apply(&evidence, at(second)).state;
        }
        if parked.len() > 16 {
            return Ok(()); // the oldest was evicted
        }
        for ordinal in 1..=newest {
            prop_assert_eq!(
                state.quality.verdict(position(0, ordinal), &required),
                verdict_by_hand(&said, ordinal, &required),
                "of version {}", ordinal
            );
        }
    }
}

/// The rules of docs/concepts.md, one by one.
fn verdict_by_hand(said: &[Verdict], ordinal: u64, required: &[String]) -> QualityVerdict {
    let print = Fingerprint::from(format!("fp-{ordinal}"));
    let about = said.iter().filter(|verdict| {
        verdict.ordinal.0 == ordinal && verdict.fingerprint.as_ref().is_none_or(|given| *given == print)
    });
    let mut latest: BTreeMap<&str, &Verdict> = BTreeMap::new();
    for verdict in about {
        let known = latest.get(verdict.check.as_str());
        let is_graver = |known: &&&Verdict| known.run == verdict.run && gravity(known) < gravity(verdict);
        if known.is_none_or(|known| known.run < verdict.run) || known.as_ref().is_some_and(is_graver) {
            latest.insert(&verdict.check, verdict);
        }
    }
    if latest.values().any(|run| run.result == CheckResult::Failed && run.severity == Severity::Error) {
        return QualityVerdict::Failed;
    }
    let asked: Vec<&str> = if required.is_empty() {
        latest.keys().copied().collect()
    } else {
        required.iter().map(String::as_str).collect()
    };
    let passed = |name: &&str| latest.get(name).is_some_and(|run| run.result != CheckResult::Errored);
    if !asked.is_empty() && asked.iter().all(passed) { QualityVerdict::Passed } else { QualityVerdict::Unknown }
}

fn gravity(verdict: &Verdict) -> u8 {
    match (verdict.result, verdict.severity) {
        (CheckResult::Failed, Severity::Error) => 3,
        (CheckResult::Errored, _) => 2,
        (CheckResult::Failed, Severity::Warn) => 1,
        (CheckResult::Passed, _) => 0,
    }
}

/// The time of an evidence is the caller's: a clock that stands still or goes back moves nothing back.
#[test]
fn a_clock_that_goes_back_moves_no_version_back() {
    let seconds = [100, 50, 0];
    let mut state = AssetState::default();
    for (second, ordinal) in seconds.into_iter().zip(1..) {
        let before: (_, Option<Timestamp>) = (state.position(), state.cdc_lag_recovered_at);
        state = state.apply(&Evidence::Commit(Box::new(commit(ordinal, "APPEND"))), at(second)).state;
        state = state.apply(&Evidence::CdcLagRecovered, at(second)).state;
        assert!(state.position() > before.0 && state.cdc_lag_recovered_at >= before.1);
    }
}
