//! `why`, on what the real evaluator says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{AssetView, Evaluation, Inputs, evaluate};
use lakebell_domain::ids::{AssetId, ProjectCode};
use lakebell_domain::state::{AssetState, Baseline, Register, RewriteHold};
use lakebell_domain::target::{KnownAsset, TargetSpec};
use lakebell_domain::version::{Epoch, Fingerprint, Ordinal, Position, Version};
use serde_json::{Value, json};

use crate::stub::Stub;
use crate::support::golden;

const ORDERS: u128 = 1;
const PAYMENTS: u128 = 2;

fn version(ordinal: u64) -> Version {
    let position = Position { epoch: Epoch(0), ordinal: Ordinal(ordinal) };
    Version { position, fingerprint: Fingerprint("f".to_owned()), snapshot_id: ordinal.to_string() }
}

fn state(newest: u64) -> AssetState {
    let since: Timestamp = "2026-01-01T08:00:00Z".parse().unwrap();
    let data = Register { version: version(newest), count: newest, delta_records: 0, since };
    let baseline = Some(Baseline { version: Some(version(1)) });
    AssetState { table: Some(version(newest)), data: Some(data), baseline, ..AssetState::default() }
}

/// The evaluation of a target on orders and payments, with the cursor at snapshot 3 of both.
fn evaluation(groups: &Value, orders: Option<&AssetState>, payments: Option<&AssetState>) -> Evaluation {
    let spec: TargetSpec =
        serde_json::from_value(json!({ "name": "dwd", "workflowDefinitionCode": 5, "groups": groups })).unwrap();
    let find = |key: &lakebell_domain::asset::AssetKey| {
        let id = if key.table() == "orders" { ORDERS } else { PAYMENTS };
        Some(KnownAsset { id: AssetId::from_bits(id), epoch: Epoch(0) })
    };
    let target = spec.resolve(ProjectCode(7), 1, find).unwrap();
    let mut cursor = TargetCursor::default();
    for group in &target.groups {
        for member in &group.members {
            cursor.take(&group.name, member.asset, &version(3));
        }
    }
    let assets = BTreeMap::from([
        (AssetId::from_bits(ORDERS), AssetView { rev: 1, state: orders }),
        (AssetId::from_bits(PAYMENTS), AssetView { rev: 1, state: payments }),
    ]);
    evaluate(&Inputs { target: &target, cursor: &cursor, assets: &assets, open: None, failed: None })
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
