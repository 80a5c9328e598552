//! Declare, list, explain, undeclare.

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
    later["groups"][0]["dependencies"][0]["watermark"] = json!("2026-01-01T00:00:00Z");
    golden("error-not-available", &api.post(TARGETS, &later).await);
    let mut misspelt = target("dwd", 1);
    misspelt["groups"][0]["dependencies"][0]["aliass"] = json!("x");
    golden("error-unknown-field", &api.post(TARGETS, &misspelt).await);

    let table: [(Change, &str); 10] = [
        (|spec| spec["groups"] = json!([]), "groups"),
        (|spec| spec["groups"][0]["dependencies"] = json!([]), "groups[0].dependencies"),
        (|spec| spec["coalesce"] = json!("each"), "coalesce"),
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
