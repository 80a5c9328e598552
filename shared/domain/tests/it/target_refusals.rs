//! Declarations that are refused: which field, what was wrong, what would be right.

use lakebell_domain::ids::{ProjectCode, TaskCode};
use std::collections::BTreeMap;

use lakebell_domain::target::{KnownAsset, KnownAssets, Target, TargetSpec};
use lakebell_domain::version::Epoch;
use lakebell_domain::{Invalid, asset::AssetKey};
use serde_json::{Value, json};

use crate::support::asset_id;

pub(crate) fn dependency(table: &str) -> Value {
    json!({ "asset": format!("paimon://ods/{table}") })
}

pub(crate) fn spec(groups: &Value) -> Value {
    json!({ "workflowDefinitionCode": 11, "groups": groups })
}

pub(crate) fn one_group(dependencies: &[Value]) -> Value {
    spec(&json!([{ "dependencies": dependencies }]))
}

/// Registered are all tables but `unknown`; `twin` is another name of `orders`.
pub(crate) fn find(key: &AssetKey) -> Option<KnownAsset> {
    let name = if key.table() == "twin" { "orders" } else { key.table() };
    let id = name
        .bytes()
        .chain(key.database().bytes())
        .fold(7, |sum: u128, byte| sum * 131 % 1_000_000_007 + u128::from(byte));
    (name != "unknown").then(|| KnownAsset { id: asset_id(id), epoch: Epoch(2), snapshots: BTreeMap::new() })
}

pub(crate) fn resolve(document: &Value) -> Result<Target, Invalid> {
    let spec: TargetSpec =
        serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{document}: {error}"));
    let dependencies = spec.groups.iter().flat_map(|group| &group.dependencies);
    let keys = dependencies.filter_map(|dependency| dependency.asset.key());
    let by_key = keys.filter_map(|key| Some((key.clone(), find(key)?))).collect();
    spec.resolve(ProjectCode(7), 3, &KnownAssets { by_key, ..KnownAssets::default() })
}

#[track_caller]
fn refused(document: &Value, field: &str, problem: &str, hint: &str) {
    let invalid = resolve(document).expect_err("it was accepted");
    assert_eq!((invalid.field.as_str(), invalid.problem.as_str(), invalid.hint.as_str()), (field, problem, hint));
    assert_eq!(invalid.to_string(), format!("{field}: {problem}; {hint}"));
}

fn with(mut document: Value, field: &str, value: Value) -> Value {
    document[field] = value;
    document
}

#[test]
fn the_workflow_is_named_once() {
    let good = one_group(&[dependency("orders")]);
    refused(
        &with(good.clone(), "workflowDefinitionName", json!("daily")),
        "workflowDefinitionName",
        "both a code and a name are given",
        "give either `workflowDefinitionCode` or `workflowDefinitionName`",
    );
    let by_name = |name: &str| {
        let mut document = with(good.clone(), "workflowDefinitionName", json!(name));
        document.as_object_mut().unwrap().remove("workflowDefinitionCode");
        document
    };
    let mut unnamed = good.clone();
    unnamed.as_object_mut().unwrap().remove("workflowDefinitionCode");
    let give = "give its positive code as `workflowDefinitionCode`, or its name as `workflowDefinitionName`";
    refused(&unnamed, "workflowDefinitionCode", "no workflow is named", give);
    for code in [0, -4] {
        let document = with(good.clone(), "workflowDefinitionCode", json!(code));
        refused(&document, "workflowDefinitionCode", &format!("{code} is no workflow definition code"), give);
    }
    let length = "use the workflow's name of 1 to 255 bytes";
    refused(&by_name(""), "workflowDefinitionName", "it has 0 bytes", length);
    refused(&by_name(&"x".repeat(256)), "workflowDefinitionName", "it has 256 bytes", length);
    refused(
        &by_name("Tägliche Umsätze"),
        "name",
        "no name can be derived from the workflow's name",
        "give the target a `name`",
    );
    assert!(resolve(&with(by_name("Tägliche Umsätze"), "name", json!("daily"))).is_ok());
}

#[test]
fn a_task_code_is_positive() {
    for code in [0, -1] {
        let document = with(one_group(&[dependency("orders")]), "taskDefinitionCode", json!(code));
        refused(
            &document,
            "taskDefinitionCode",
            &format!("{code} is no task definition code"),
            "use the positive number that DolphinScheduler shows, or leave it out",
        );
    }
}

#[test]
fn a_sensor_is_a_task_and_has_no_start_to_hold_back() {
    let document = with(one_group(&[dependency("orders")]), "startAs", json!("sensor"));
    refused(
        &document,
        "startAs",
        "a sensor is a task, and none is named",
        "give its `taskDefinitionCode`, or use `startAs: start`",
    );
    let of_task = with(one_group(&[dependency("orders")]), "taskDefinitionCode", json!(5));
    for (key, value) in [("maxActive", json!(2)), ("afterWorkflow", json!("daily"))] {
        let document = with(of_task.clone(), key, value);
        refused(
            &document,
            key,
            "the workflow of a sensor runs already when it asks",
            "leave it out, or use `startAs: start` to have the workflow started at the task",
        );
        assert!(resolve(&with(document, "startAs", json!("start"))).is_ok());
    }
    let sensor_of = |document: &Value| resolve(document).unwrap().sensor();
    assert_eq!(sensor_of(&of_task), Some(TaskCode(5)), "a named task waits");
    assert_eq!(sensor_of(&with(of_task.clone(), "startAs", json!("sensor"))), Some(TaskCode(5)));
    assert_eq!(sensor_of(&with(of_task, "startAs", json!("start"))), None);
    assert_eq!(sensor_of(&one_group(&[dependency("orders")])), None);
}

#[test]
fn a_flag_is_0_or_1() {
    let document = with(one_group(&[dependency("orders")]), "enabledFlag", json!(2));
    refused(&document, "enabledFlag", "2 is no flag", "use 0 or 1");
}

#[test]
fn there_are_groups_and_not_too_many_each_with_its_own_name() {
    refused(&spec(&json!([])), "groups", "there are 0", "declare 1 to 20 groups");
    let groups = |count: usize| -> Value {
        (0..count).map(|n| json!({ "name": format!("g{n}"), "dependencies": [dependency("orders")] })).collect()
    };
    refused(&spec(&groups(21)), "groups", "there are 21", "declare 1 to 20 groups");
    assert!(resolve(&spec(&groups(20))).is_ok());

    let group = json!({ "name": "a", "dependencies": [dependency("orders")] });
    let twice = spec(&json!([group, group]));
    refused(&twice, "groups[1].name", "two groups are named `a`", "give each its own name");
    let unnamed = json!({ "dependencies": [dependency("orders")] });
    refused(
        &spec(&json!([unnamed, unnamed])),
        "groups[1].name",
        "two groups are named `default`",
        "give each its own name",
    );
}

#[test]
fn a_group_has_members_and_not_too_many() {
    refused(&one_group(&[]), "groups[0].dependencies", "the group has no members", "declare 1 to 99 dependencies");
    let tables = |count: usize| -> Vec<Value> { (0..count).map(|n| dependency(&format!("t{n}"))).collect() };
    assert!(resolve(&one_group(&tables(99))).is_ok());
    refused(
        &one_group(&tables(100)),
        "groups[0].dependencies",
        "the group has 100 members",
        "declare 1 to 99 dependencies",
    );
    let eleven: Value = (0..11).map(|n| json!({ "name": format!("g{n}"), "dependencies": tables(91) })).collect();
    refused(&spec(&eleven), "groups", "they have 1001 dependencies together", "use at most 1000");
}

#[test]
fn at_least_is_within_the_group() {
    let group = |k: u64| {
        spec(&json!([
            { "name": "a", "dependencies": [dependency("orders")] },
            { "name": "b", "advance": { "atLeast": k }, "dependencies": [dependency("orders"), dependency("payments")] },
        ]))
    };
    assert!(resolve(&group(1)).is_ok() && resolve(&group(2)).is_ok());
    for k in [0, 3] {
        let problem = format!("{k} of 2 members can never advance");
        refused(&group(k), "groups[1].advance.atLeast", &problem, "use a number from 1 to 2");
    }
}

#[test]
fn conditions_that_can_never_hold_or_are_not_there_yet() {
    let member = |field: &str, value: Value| one_group(&[dependency("a"), with(dependency("orders"), field, value)]);
    refused(
        &member("snapshotRequired", json!(false)),
        "groups[0].dependencies[1].snapshotRequired",
        "`false` leaves nothing that could start it",
        "name a condition on another register (watermark, every, qualityStatus, schemaStatus, tag, backfill, \
         cdcLagRecovered), or use `true`",
    );
    let kinds = "name the kinds that count, as in [\"APPEND\"], or leave it out for those that change data";
    let many: Vec<String> = (0..17).map(|n| format!("K{n}")).collect();
    for value in [json!([]), json!(many)] {
        refused(
            &member("commitKinds", value),
            "groups[0].dependencies[1].commitKinds",
            "it must name between 1 and 16 kinds",
            kinds,
        );
    }
    for (value, shown) in [(json!(0), "0"), (json!("abc"), "abc"), (json!(""), ""), (json!("-3"), "-3")] {
        refused(
            &member("minSnapshotId", value),
            "groups[0].dependencies[1].minSnapshotId",
            &format!("`{shown}` is no Paimon snapshot id"),
            "use a positive whole number",
        );
    }
    let iceberg = json!({ "asset": "iceberg://ods/orders", "minSnapshotId": 8_744_736_658_442_914_487_u64 });
    refused(
        &one_group(&[iceberg]),
        "groups[0].dependencies[0].minSnapshotId",
        "no commit of this table's history is recorded as `8744736658442914487`",
        "name a snapshot that `lakebell events` lists, or leave it out",
    );
}

#[test]
fn an_asset_is_registered_and_once_in_a_group() {
    refused(
        &one_group(&[dependency("orders"), dependency("unknown")]),
        "groups[0].dependencies[1].asset",
        "`paimon://ods/unknown` is not registered",
        "register the asset first",
    );
    refused(
        &one_group(&[dependency("orders"), dependency("a"), dependency("orders")]),
        "groups[0].dependencies[2].asset",
        "`paimon://ods/orders` is in the group twice",
        "name each asset once in a group",
    );
    refused(
        &one_group(&[dependency("orders"), with(dependency("twin"), "alias", json!("orders_2"))]),
        "groups[0].dependencies[1].asset",
        "`paimon://ods/twin` is in the group twice",
        "name each asset once in a group",
    );
}

#[test]
fn an_alias_is_a_parameter_name_of_one_asset() {
    refused(
        &one_group(&[dependency("orders-latest")]),
        "groups[0].dependencies[0].alias",
        "`orders-latest` is no parameter name",
        "give the dependency an `alias` of letters, digits and `_`",
    );
    let aliased = with(dependency("orders-latest"), "alias", json!("orders_latest"));
    assert!(resolve(&one_group(&[aliased])).is_ok());

    let own = "give one of them an `alias` of its own";
    let derived = one_group(&[dependency("orders"), json!({ "asset": "paimon://dwd/orders" })]);
    refused(
        &derived,
        "groups[0].dependencies[1].alias",
        "`orders` would name both paimon://ods/orders and paimon://dwd/orders",
        own,
    );
    let over_groups = spec(&json!([
        { "name": "a", "dependencies": [dependency("orders")] },
        { "name": "b", "dependencies": [dependency("a"), with(dependency("payments"), "alias", json!("orders"))] },
    ]));
    refused(
        &over_groups,
        "groups[1].dependencies[1].alias",
        "`orders` would name both paimon://ods/orders and paimon://ods/payments",
        own,
    );
}

#[test]
fn parameters_that_could_outgrow_the_scheduler_are_refused() {
    let groups: Value = (0..3)
        .map(|group| {
            let tables: Vec<Value> = (0..60).map(|n| dependency(&format!("t{group}_{n}"))).collect();
            json!({ "name": format!("g{group}"), "dependencies": tables })
        })
        .collect();
    let invalid = resolve(&spec(&groups)).unwrap_err();
    assert_eq!(invalid.field, "groups");
    assert!(invalid.problem.starts_with("the start parameters could take "), "{invalid}");
    assert_eq!(invalid.hint, "use fewer or shorter aliases: at most 49152 bytes fit");
}

/// What serde refuses by itself: the message names the field and what would be right.
#[test]
fn documents_of_another_shape() {
    let good = one_group(&[dependency("orders")]);
    let member = |field: &str, value: Value| one_group(&[with(dependency("orders"), field, value)]);
    let group = |field: &str, value: Value| {
        spec(&json!([with(json!({ "dependencies": [dependency("orders")] }), field, value)]))
    };
    let cases = [
        (with(good.clone(), "workflowCode", json!(1)), "unknown field `workflowCode`, expected one of"),
        (group("advanced", json!("all")), "unknown field `advanced`, expected one of"),
        (member("minSnapshotID", json!(4)), "unknown field `minSnapshotID`, expected one of"),
        (group("advance", json!("some")), "unknown variant `some`, expected one of `all`, `any`, `atLeast`"),
        (group("advance", json!({ "atLeast": -1 })), "invalid value: integer `-1`"),
        (group("name", json!("a b")), "group name: `a b` is not a valid group name; use 1 to 64 letters"),
        (member("asset", json!("orders")), "asset key: `orders` has no `://`; write <format>://"),
        (member("alias", json!("a-b")), "alias: `a-b` is not a valid alias; use 1 to 64 letters, digits or `_`"),
        (with(good.clone(), "name", json!("")), "target name: `` is not a valid target name"),
        (with(good.clone(), "connection", json!("a/b")), "connection name: `a/b` is not a valid connection name"),
        (with(good.clone(), "enabledFlag", json!(-1)), "invalid value: integer `-1`, expected u8"),
        (json!({ "workflowDefinitionCode": 11 }), "missing field `groups`"),
        (spec(&json!([{ "name": "a" }])), "missing field `dependencies`"),
        (one_group(&[json!({ "alias": "a" })]), "missing field `asset`"),
    ];
    for (document, expected) in cases {
        let error = serde_json::from_value::<TargetSpec>(document.clone()).expect_err("it was accepted").to_string();
        assert!(error.contains(expected), "{document}: {error}");
    }
}
