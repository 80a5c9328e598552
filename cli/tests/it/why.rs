//! `why`, on what the real evaluator says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_domain::commit::{CommitKind, Millis};
use lakebell_domain::cursor::{Taken, TargetCursor};
use lakebell_domain::evaluation::{AssetView, Evaluation, Inputs, evaluate};
use lakebell_domain::event::EventKind;
use lakebell_domain::ids::{AssetId, ProjectCode};
use lakebell_domain::state::{
    AssetState, Baseline, Demands, Mark, Register, RewriteHold, Totals, WatermarkRegister, Writer,
};
use lakebell_domain::target::{KnownAsset, KnownAssets, TargetSpec};
use lakebell_domain::version::{Epoch, Fingerprint, Ordinal, Position, Version};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stub::Stub;
use crate::support::golden;

const ORDERS: u128 = 1;
const PAYMENTS: u128 = 2;
/// When everything is evaluated.
const NOW: &str = "2026-01-01T12:00:00Z";

fn version(ordinal: u64) -> Version {
    let position = Position { epoch: Epoch(0), ordinal: Ordinal(ordinal) };
    Version { position, fingerprint: Fingerprint::from("f"), snapshot_id: ordinal.to_string().into() }
}

fn state(newest: u64) -> AssetState {
    let since: Timestamp = "2026-01-01T08:00:00Z".parse().unwrap();
    let mark = Mark {
        version: version(newest),
        kind: CommitKind("APPEND".to_owned()),
        is_data: true,
        is_empty: false,
        schema_id: None,
        totals: Totals::default(),
        since,
    };
    let data = Register { mark, count: newest, delta_records: 0 };
    let baseline = Some(Baseline { version: Some(version(1)), totals: Totals::default(), watermark: None });
    AssetState { table: Some(version(newest)), data: Some(data), baseline, ..AssetState::default() }
}

/// The evaluation of a target on orders and payments, with the cursor at snapshot 3 of both.
fn evaluation(groups: &Value, orders: Option<&AssetState>, payments: Option<&AssetState>) -> Evaluation {
    evaluation_of(&json!({ "name": "dwd", "workflowDefinitionCode": 5, "groups": groups }), orders, payments)
}

fn evaluation_of(spec: &Value, orders: Option<&AssetState>, payments: Option<&AssetState>) -> Evaluation {
    let spec = TargetSpec::deserialize(spec).unwrap();
    let known = |id| KnownAsset { id: AssetId::from_bits(id), epoch: Epoch(0), snapshots: BTreeMap::new() };
    let by_key = [("paimon://d/orders", ORDERS), ("paimon://d/payments", PAYMENTS)];
    let by_key = by_key.into_iter().map(|(key, id)| (key.parse().unwrap(), known(id))).collect();
    let known = KnownAssets { by_key, ..KnownAssets::default() };
    let target = spec.resolve(ProjectCode(7), 1, &known).unwrap();
    let since = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut cursor = TargetCursor { since: Some(since), ..TargetCursor::default() };
    for group in &target.groups {
        for member in &group.members {
            let taken = Taken { version: Some(version(3)), ..Taken::default() };
            cursor.take(&group.name, member.asset, &taken);
        }
    }
    let assets = BTreeMap::from([
        (AssetId::from_bits(ORDERS), AssetView::of(1, orders)),
        (AssetId::from_bits(PAYMENTS), AssetView::of(1, payments)),
    ]);
    evaluate(&Inputs {
        target: &target,
        cursor: &cursor,
        assets: &assets,
        open: None,
        failed: None,
        switched_off: None,
        now: NOW.parse().unwrap(),
    })
}

fn both() -> Value {
    json!([{ "name": "both", "dependencies": [{ "asset": "paimon://d/orders" }, { "asset": "paimon://d/payments" }] }])
}

/// What `why dwd` prints for an evaluation.
fn why(evaluation: &Evaluation) -> String {
    let stub = Stub::start();
    let item = json!({ "definition": { "name": "dwd" }, "rule": evaluation.rule, "evaluation": evaluation });
    stub.fix("GET /projects/7/asset-dependencies/dwd", 200, json!({ "items": [item] }));
    stub.run(&["why", "dwd"]).succeeded().out
}

#[test]
fn ready() {
    golden("why-ready.txt", &why(&evaluation(&both(), Some(&state(5)), Some(&state(4)))));
}

#[test]
fn waiting() {
    golden("why-waiting.txt", &why(&evaluation(&both(), Some(&state(5)), Some(&state(3)))));
}

#[test]
fn a_member_whose_catalog_is_not_asked_says_so() {
    let without = AssetState { without_catalog: true, ..state(3) };
    let text = why(&evaluation(&both(), Some(&state(5)), Some(&without)));
    assert_eq!(text.matches("catalog").count(), 1, "{text}");
    assert!(text.contains("none is asked: what the metadata files say of each other decides"), "{text}");
}

#[test]
fn a_member_that_demands_what_is_not_understood_says_so() {
    let names: Vec<String> = (1..=12).map(|n| format!("feature{n:02}")).collect();
    let demanding = AssetState { demands: Demands::new(true, &names), ..state(3) };
    let text = why(&evaluation(&both(), Some(&state(5)), Some(&demanding)));
    assert!(text.contains("the table is catalog-managed"), "{text}");
    assert!(text.contains("feature08, 4 more") && !text.contains("feature09"), "{text}");
}

#[test]
fn blocked_by_rewrite() {
    let first_seen: Timestamp = "2026-01-01T09:00:00Z".parse().unwrap();
    let hold = RewriteHold {
        evidence: "snapshot 5 was recorded, and storage has another snapshot 5".to_owned(),
        withdrawn: Some(version(5)),
        storage_newest: None,
        first_seen,
        confirmed_at: Some(first_seen),
    };
    let rewritten = AssetState { hold: Some(hold), ..state(5) };
    golden("why-rewrite.txt", &why(&evaluation(&both(), Some(&rewritten), Some(&state(4)))));
}

#[test]
fn alternatives_and_an_asset_that_is_gone() {
    let groups = json!([
        { "name": "two-of-them", "advance": { "atLeast": 2 },
          "dependencies": [{ "asset": "paimon://d/orders" }, { "asset": "paimon://d/payments" }] },
        { "name": "payments", "dependencies": [{ "asset": "paimon://d/payments" }] },
    ]);
    golden("why-alternatives.txt", &why(&evaluation(&groups, Some(&state(5)), Some(&state(3)))));
    golden("why-unknown-asset.txt", &why(&evaluation(&groups, Some(&state(5)), None)));
}

#[test]
fn an_open_trigger_and_words_of_a_newer_api_are_shown() {
    let mut evaluation = serde_json::to_value(evaluation(&both(), Some(&state(5)), Some(&state(4)))).unwrap();
    evaluation["open"] = "0123456789abcdef0123456789abcdef".into();
    evaluation["verdict"] = "BLOCKED_BY_MOON".into();
    evaluation["reason"] =
        json!({ "code": "NEW_MOON", "expected": "light", "actual": "none", "unblock": "wait", "more": 1 });
    let stub = Stub::start();
    stub.fix(
        "GET /projects/7/asset-dependencies",
        200,
        json!({ "items": [{ "evaluation": evaluation }], "next": null }),
    );
    golden("why-newer-api.txt", &stub.run(&["why"]).succeeded().out);
}

#[test]
fn a_passed_deadline_and_the_next_window_are_shown() {
    let spec = json!({
        "name": "dwd", "workflowDefinitionCode": 5, "deadline": { "by": "09:00", "timeZone": "UTC" },
        "groups": [{ "dependencies": [{
            "asset": "paimon://d/orders", "snapshotRequired": false,
            "every": { "period": "1d", "timeZone": "Asia/Shanghai" },
        }] }],
    });
    let mut state = state(5);
    state.watermark = Some(WatermarkRegister {
        at: Millis(1_767_225_600_000),
        version: Some(version(5)),
        since: "2026-01-01T08:00:00Z".parse().unwrap(),
        first: Millis(1_767_225_600_000),
    });
    golden("why-timed-out.txt", &why(&evaluation_of(&spec, Some(&state), None)));
}

#[test]
fn who_wrote_what_was_refused_and_what_to_know_of_the_workflow_are_shown() {
    let at: Timestamp = "2026-01-01T08:00:00Z".parse().unwrap();
    let mut state = state(3);
    state.writer = Some(Writer { name: "flink-orders".to_owned(), at });
    state.refuse(EventKind::QualityCheckPassed, "snapshot 2 is behind the newest one", at);
    let mut evaluation = serde_json::to_value(evaluation(&both(), Some(&state), None)).unwrap();
    evaluation["open"] = "0123456789abcdef0123456789abcdef".into();
    evaluation["openTakes"] = json!([
        { "asset": "paimon://d/orders", "from": version(1), "to": version(3) },
        { "asset": "paimon://d/payments" },
    ]);
    let stub = Stub::start();
    let followed = json!({ "state": "FAILURE", "since": "2026-01-01T00:00:01Z", "endedAt": "2026-01-01T00:08:00Z" });
    let start = json!({ "trigger": "00ff", "claimedAt": "2026-01-01T00:00:00Z", "instance": 7, "followed": followed });
    let warnings = ["workflow 5 is offline: its triggers wait"];
    let item = json!({ "evaluation": evaluation, "warnings": warnings, "lastStart": start });
    stub.fix("GET /projects/7/asset-dependencies", 200, json!({ "items": [item], "next": null }));
    golden("why-writer.txt", &stub.run(&["why"]).succeeded().out);
}
