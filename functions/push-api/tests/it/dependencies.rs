//! Declare, list, explain, undeclare.

use lakebell_testkit::Op;
use serde_json::{Value, json};

use crate::support::{Api, Change, ORDERS, ORDERS_PATH, PROJECT, TARGETS, body, golden, target};

#[tokio::test]
async fn a_target_is_declared_once() {
    let api = Api::with_orders().await;
    golden("target-declared", &api.post(TARGETS, &target("dwd", 4711)).await);
    golden("target-declared-again", &api.post(TARGETS, &target("dwd", 4711)).await);
    let mut altered = target("dwd", 4711);
    altered["enabledFlag"] = json!(0);
    let response = api.post(TARGETS, &altered).await;
    assert_eq!((response.status_code, &body(&response)["evaluation"]["verdict"]), (201, &json!("DISABLED")));
}

#[tokio::test]
async fn targets_are_listed_with_their_verdicts() {
    let api = Api::with_orders().await;
    api.register("paimon://ods_db/payments", "payments").await;
    let both = json!({
        "name": "both",
        "workflowDefinitionName": "dwd trade",
        "groups": [
            {"name": "gmv", "dependencies": [{"asset": ORDERS}, {"asset": "paimon://ods_db/payments", "minSnapshotId": 3}]},
            {"name": "any", "advance": "any", "dependencies": [{"asset": ORDERS, "commitKinds": ["OVERWRITE"]}]},
        ],
    });
    assert_eq!(api.post(TARGETS, &both).await.status_code, 201);
    assert_eq!(api.post(TARGETS, &target("alone", 4711)).await.status_code, 201);
    golden("targets", &api.get(TARGETS).await);
    let first = body(&api.get(&format!("{TARGETS}?limit=1")).await);
    assert_eq!(first["items"][0]["name"], "alone");
    let second = body(&api.get(&format!("{TARGETS}?limit=1&after={}", first["next"].as_str().unwrap())).await);
    assert_eq!((&second["items"][0]["name"], &second["next"]), (&json!("both"), &Value::Null));
    assert_eq!(body(&api.get("/projects/8/asset-dependencies").await)["items"], json!([]));
}

#[tokio::test]
async fn why_is_answered_by_code_and_by_name() {
    let api = Api::with_orders().await;
    api.post(TARGETS, &target("dwd", 4711)).await;
    api.post(TARGETS, &target("dwd-too", 4711)).await;
    api.post(TARGETS, &target("123", 99)).await;
    let mut by_name = target("by-name", 1);
    by_name.as_object_mut().unwrap().remove("workflowDefinitionCode");
    by_name["workflowDefinitionName"] = json!("dwd trade");
    api.post(TARGETS, &by_name).await;
    golden("target-explained", &api.get(&format!("{TARGETS}/dwd")).await);
    let names = |path: &str| {
        let api = &api;
        let path = format!("{TARGETS}/{path}");
        async move {
            let found = body(&api.get(&path).await);
            found["items"].as_array().unwrap().iter().map(|item| item["name"].clone()).collect::<Vec<_>>()
        }
    };
    assert_eq!(names("4711").await, ["dwd", "dwd-too"]);
    assert_eq!(names("123").await, ["123"]);
    assert_eq!(names("dwd%20trade").await, ["by-name"]);
    golden("error-unknown-target", &api.get(&format!("{TARGETS}/nobody")).await);
    golden("error-unknown-workflow", &api.delete(&format!("{TARGETS}/5")).await);
}

#[tokio::test]
async fn an_asset_that_is_gone_blocks() {
    let api = Api::with_orders().await;
    api.post(TARGETS, &target("dwd", 4711)).await;
    api.delete(ORDERS_PATH).await;
    let found = body(&api.get(&format!("{TARGETS}/dwd")).await);
    assert_eq!(found["items"][0]["evaluation"]["verdict"], "BLOCKED_BY_UNKNOWN_ASSET");
}

#[tokio::test]
async fn targets_are_undeclared_by_name_and_by_workflow() {
    let api = Api::with_orders().await;
    for name in ["a", "b", "c"] {
        api.post(TARGETS, &target(name, if name == "c" { 2 } else { 1 })).await;
    }
    golden("target-deleted", &api.delete(&format!("{TARGETS}/1")).await);
    assert_eq!(api.delete(&format!("{TARGETS}/1")).await.status_code, 404);
    assert_eq!(api.delete(&format!("{TARGETS}/c")).await.status_code, 204);
    assert_eq!(body(&api.get(TARGETS).await)["items"], json!([]));
    assert_eq!(api.post(TARGETS, &target("a", 1)).await.status_code, 201);
}

#[tokio::test]
async fn why_by_name_is_one_read_of_the_target_and_one_of_its_members() {
    let api = Api::with_orders().await;
    assert_eq!(api.post(TARGETS, &target("dwd", 4711)).await.status_code, 201);
    api.world.tap.take_log();
    assert_eq!(body(&api.get(&format!("{TARGETS}/dwd")).await)["items"][0]["target"], "7/dwd");
    let calls: Vec<Op> = api.world.tap.take_log().into_iter().map(|call| call.op).collect();
    assert_eq!(calls, [Op::Get, Op::Get]);
    // A workflow's code needs a look through the registry: there may be several targets.
    assert_eq!(body(&api.get(&format!("{TARGETS}/4711")).await)["items"][0]["target"], "7/dwd");
    assert_eq!(api.get(&format!("{TARGETS}/other")).await.status_code, 404);
}

#[tokio::test]
async fn a_target_on_a_connection_that_is_not_declared_is_refused() {
    let api = Api::with_orders().await;
    let mut elsewhere = target("dwd", 4711);
    elsewhere["connection"] = json!("elsewhere");
    api.world.tap.take_log();
    golden("error-unknown-connection", &api.post(TARGETS, &elsewhere).await);
    assert_eq!(api.world.tap.total(), 1, "one read");
    api.delete("/connections/default").await;
    let none = api.post(TARGETS, &target("dwd", 4711)).await;
    assert_eq!((none.status_code, &body(&none)["field"]), (400, &json!("connection")));
    assert!(body(&none)["hint"].as_str().unwrap().ends_with("no connection is declared yet"));
    assert_eq!(body(&api.get(TARGETS).await)["items"], json!([]));
}

#[tokio::test]
async fn wrong_targets_name_the_field() {
    let api = Api::with_orders().await;
    let mut unknown = target("dwd", 1);
    unknown["groups"][0]["dependencies"][0]["asset"] = json!("paimon://ods_db/order");
    golden("error-unknown-dependency", &api.post(TARGETS, &unknown).await);
    let mut later = target("dwd", 1);
    later["groups"][0]["dependencies"][0]["partitionKey"] = json!("dt");
    golden("error-not-available", &api.post(TARGETS, &later).await);
    let mut misspelt = target("dwd", 1);
    misspelt["groups"][0]["dependencies"][0]["aliass"] = json!("x");
    golden("error-unknown-field", &api.post(TARGETS, &misspelt).await);

    let table: [(Change, &str); 11] = [
        (|spec| spec["groups"] = json!([]), "groups"),
        (|spec| spec["groups"][0]["dependencies"] = json!([]), "groups[0].dependencies"),
        (|spec| spec["partitionKey"] = json!("dt"), "partitionKey"),
        (|spec| spec["maxActive"] = json!(0), "maxActive"),
        (|spec| spec["enabledFlag"] = json!(2), "enabledFlag"),
        (|spec| spec["name"] = json!("a b"), "name"),
        (|spec| spec["workflowDefinitionCode"] = json!("1"), "workflowDefinitionCode"),
        (|spec| spec["workflowDefinitionCode"] = json!(0), "workflowDefinitionCode"),
        (|spec| spec["groups"][0]["advance"] = json!({"atLeast": 2}), "groups[0].advance.atLeast"),
        (
            |spec| spec["groups"][0]["dependencies"][0]["snapshotRequired"] = json!(false),
            "groups[0].dependencies[0].snapshotRequired",
        ),
        (
            |spec| spec["groups"][0]["dependencies"][0]["minSnapshotId"] = json!("x"),
            "groups[0].dependencies[0].minSnapshotId",
        ),
    ];
    for (change, field) in table {
        let mut spec = target("dwd", 1);
        change(&mut spec);
        let response = api.post(&format!("{PROJECT}/asset-dependencies"), &spec).await;
        assert_eq!((response.status_code, &body(&response)["field"]), (400, &json!(field)), "{response:?}");
    }
}

const PAYMENTS: &str = "paimon://ods_db/payments";

fn record(asset: &str, task: u64) -> Value {
    json!({"workflowDefinitionCode": 12345, "taskDefinitionCode": task, "assetKey": asset, "dependencyGroup": "trade"})
}

#[tokio::test]
async fn warnings_are_passed_on() {
    let api = Api::with_orders().await;
    let mut windows = target("windows", 4711);
    windows["groups"][0]["dependencies"][0]["every"] = json!({"period": "1d", "timeZone": "Asia/Shanghai"});
    golden("target-declared-with-warnings", &api.post(TARGETS, &windows).await);
}

#[tokio::test]
async fn records_of_the_rfc_are_targets() {
    let api = Api::with_orders().await;
    api.register(PAYMENTS, "payments").await;
    let condition =
        json!({"assetKey": ORDERS, "snapshotRequired": true, "qualityStatus": "PASSED", "schemaStatus": "COMPATIBLE"});
    let mut first = record(ORDERS, 100);
    first["conditionJson"] = condition;
    first["enabledFlag"] = json!(1);
    first["timeoutMinutes"] = json!(60);
    first["checkIntervalSeconds"] = json!(30);
    let mut second = record(PAYMENTS, 100);
    second["conditionJson"] = json!(json!({"snapshotRequired": true}).to_string());
    let mut off = record(ORDERS, 200);
    off["enabledFlag"] = json!(0);
    let list = json!([first, second, record(PAYMENTS, 200), off]);
    golden("records-declared", &api.post(TARGETS, &list).await);
    assert_eq!(api.post(TARGETS, &list).await.status_code, 200);
    golden("records-explained", &api.get(&format!("{TARGETS}/12345")).await);

    // One record is a whole target, too, and says what that takes away.
    let response = api.post(TARGETS, &record(ORDERS, 100)).await;
    let item = &body(&response)["items"][0];
    assert_eq!((response.status_code, &item["name"]), (201, &json!("workflow-12345-task-100")));
    let warning = item["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("it no longer depends on paimon://ods_db/payments: "), "{warning}");
}

#[tokio::test]
async fn wrong_records_name_the_record() {
    let api = Api::with_orders().await;
    let table: [(Change, &str); 9] = [
        (|list| list[1]["assetKey"] = json!("paimon://ods_db/order"), "[1].assetKey"),
        (|list| list[1]["assetKey"] = json!("orders"), "[1].assetKey"),
        (|list| list[1]["assetKey"] = json!(ORDERS), "[1].assetKey"),
        (|list| list[1]["partitionKey"] = json!("dt"), "[1].partitionKey"),
        (|list| list[1]["conditionJson"] = json!({"partitionKey": "dt"}), "[1].conditionJson.partitionKey"),
        (|list| list[1]["conditionJson"] = json!({"minSnapshotId": "x"}), "[1].conditionJson.minSnapshotId"),
        (|list| list[1]["dependencyGroup"] = json!("a b"), "[1].dependencyGroup"),
        (|list| list[1]["timeoutMinutes"] = json!(0), "[1].timeoutMinutes"),
        (|list| *list = json!([]), "body"),
    ];
    api.register(PAYMENTS, "payments").await;
    for (change, field) in table {
        let mut list = json!([record(ORDERS, 1), record(PAYMENTS, 1)]);
        change(&mut list);
        let response = api.post(TARGETS, &list).await;
        assert_eq!(&body(&response)["field"], &json!(field), "{response:?}");
    }
    let mut contradicting = json!([record(ORDERS, 1), record(PAYMENTS, 1)]);
    contradicting[0]["timeoutMinutes"] = json!(30);
    contradicting[1]["timeoutMinutes"] = json!(60);
    golden("error-contradicting-records", &api.post(TARGETS, &contradicting).await);
    let mut one = record(ORDERS, 1);
    one["conditionJson"] = json!({"partitionKey": "dt"});
    golden("error-not-available-in-a-record", &api.post(TARGETS, &one).await);
    one["conditionJson"] = json!({"every": {"period": "1d"}});
    assert_eq!(body(&api.post(TARGETS, &one).await)["field"], "conditionJson.every");
    let many: Vec<Value> = (1..=21).map(|task| record(ORDERS, task)).collect();
    assert_eq!(api.post(TARGETS, &json!(many)).await.status_code, 413);
    assert_eq!(body(&api.get(TARGETS).await)["items"], json!([]), "nothing was declared");
}
