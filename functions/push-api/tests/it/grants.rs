//! Grants between projects: what another project sees without one, with one, and after it.

use serde_json::{Value, json};

use crate::support::{Api, ORDERS, body, cloud_event, golden, target};

const OF_OTHER: &str = "/projects/8/assets/paimon%3A%2F%2Fods_db%2Forders";
const GRANT: &str = "/projects/7/grants?assetKey=paimon%3A%2F%2Fods_db%2Forders&project=8";

async fn verdict(api: &Api, path: &str) -> (Value, Value) {
    let answer = body(&api.get(path).await);
    let evaluation = &answer["items"][0]["evaluation"];
    (evaluation["verdict"].clone(), evaluation["reason"]["code"].clone())
}

#[tokio::test]
async fn without_a_grant_an_asset_is_not_there() {
    let api = Api::with_orders().await;
    let absent = "/projects/8/assets/paimon%3A%2F%2Fods_db%2Fabsent";
    for path in ["/state", "/withdrawn", "/lineage"] {
        let told = |answer: Value| answer.to_string().replace("absent", "orders");
        let mut taken = body(&api.get(&format!("{OF_OTHER}{path}")).await);
        let mut free = body(&api.get(&format!("{absent}{path}")).await);
        (taken["traceId"], free["traceId"]) = (Value::Null, Value::Null);
        assert_eq!(told(taken), told(free), "{path}");
    }
    let declared = api.post("/projects/8/asset-dependencies", &target("dwd", 5)).await;
    assert_eq!(declared.status_code, 404);
    assert!(!declared.body.contains("nearest"), "{declared:?}");
    assert_eq!(body(&api.get("/projects/8/assets").await)["items"], json!([]));
    let by_prefix = json!({"name": "all", "workflowDefinitionCode": 5,
        "groups": [{"dependencies": [{"asset": "paimon://ods_db/ord*"}]}]});
    api.post("/projects/8/asset-dependencies", &by_prefix).await;
    let explained = api.get("/projects/8/asset-dependencies/all").await;
    assert!(!explained.body.contains("ods_db/orders"), "{explained:?}");
}

#[tokio::test]
async fn a_taken_place_becomes_a_request_that_reveals_nothing_else() {
    let api = Api::with_orders().await;
    let location = "s3://lake/warehouse/ods_db.db/orders";
    let asks = [
        json!({"key": ORDERS, "location": location}),
        json!({"key": "paimon://mine/orders", "location": location}),
        json!({"key": ORDERS, "location": "s3://lake/elsewhere/orders"}),
    ];
    let mut said = Vec::new();
    for ask in &asks {
        let mut answer = api.post("/projects/8/assets", ask).await;
        let mut problem = body(&answer);
        problem["traceId"] = Value::Null;
        answer.body = problem.to_string();
        said.push((answer.status_code, answer.body.clone()));
    }
    assert!(said.iter().all(|one| one == &said[0]), "{said:?}");
    assert!(!said[0].1.contains("ods_db") && !said[0].1.contains('7'), "{said:?}");
    golden("error-grant-requested", &api.post("/projects/8/assets", &asks[0]).await);
    golden("grants-asked", &api.get("/projects/7/grants").await);
    assert_eq!(body(&api.get("/projects/8/grants").await)["items"], json!([]));
}

#[tokio::test]
async fn with_a_grant_another_project_reads_and_depends() {
    let api = Api::with_orders().await;
    api.post("/projects/8/assets", &json!({"key": ORDERS, "location": "s3://lake/warehouse/ods_db.db/orders"})).await;
    golden("grant-given", &api.put("/projects/7/grants", &json!({"assetKey": ORDERS, "project": 8})).await);
    golden("grants-given", &api.get("/projects/7/grants").await);
    assert_eq!(api.get(&format!("{OF_OTHER}/state")).await.status_code, 200);
    assert_eq!(body(&api.get("/projects/8/assets").await)["items"][0]["key"], ORDERS);
    assert_eq!(api.post("/projects/8/asset-dependencies", &target("dwd", 5)).await.status_code, 201);
    assert_eq!(verdict(&api, "/projects/8/asset-dependencies/dwd").await.0, "WAITING");
    // It is still its owner's: others neither speak for it nor operate it.
    let refused = api.delete(OF_OTHER).await;
    assert_eq!((refused.status_code, &body(&refused)["code"]), (403, &json!("FORBIDDEN")));
    for verb in ["observe", "accept-rewrite"] {
        assert_eq!(api.post(&format!("{OF_OTHER}/{verb}"), &json!({})).await.status_code, 403, "{verb}");
    }
    let event = crate::support::cloud_event("1", "cdc.lag.recovered", &json!({"asset": ORDERS}));
    assert_eq!(body(&api.post("/projects/8/asset-events", &event).await)["outcome"], "unknown");
    // A commit starts the other project's target.
    api.load_orders();
    api.post(&format!("{}/observe", crate::support::ORDERS_PATH), &json!({})).await;
    assert_eq!(api.dispatched(), 1);
}

#[tokio::test]
async fn a_grant_that_is_taken_back_blocks_what_depends_on_it() {
    let api = Api::with_orders().await;
    let grant = json!({"assetKey": ORDERS, "project": 8});
    api.put("/projects/7/grants", &grant).await;
    api.post("/projects/8/asset-dependencies", &target("dwd", 5)).await;
    for _ in 0..2 {
        assert_eq!(api.delete(GRANT).await.status_code, 204);
    }
    assert_eq!(
        verdict(&api, "/projects/8/asset-dependencies/dwd").await,
        (json!("BLOCKED_BY_UNKNOWN_ASSET"), json!("ASSET_UNKNOWN"))
    );
    assert_eq!(api.get(&format!("{OF_OTHER}/state")).await.status_code, 404);
    api.load_orders();
    api.post(&format!("{}/observe", crate::support::ORDERS_PATH), &json!({})).await;
    assert_eq!(api.dispatched(), 0, "nothing is started on what may not be read");
    // Given again, nothing was lost meanwhile.
    api.put("/projects/7/grants", &grant).await;
    assert_eq!(api.dispatched(), 1);
}

#[tokio::test]
async fn only_its_owner_grants_an_asset() {
    let api = Api::with_orders().await;
    let give = async |path: &str, asked: Value| {
        let answer = api.put(path, &asked).await;
        (answer.status_code, body(&answer)["field"].clone())
    };
    assert_eq!(give("/projects/8/grants", json!({"assetKey": ORDERS, "project": 9})).await, (404, json!("assetKey")));
    assert_eq!(
        give("/projects/7/grants", json!({"assetKey": "paimon://ods_db/x", "project": 9})).await,
        (404, json!("assetKey"))
    );
    for project in [7, 0, -1] {
        assert_eq!(
            give("/projects/7/grants", json!({"assetKey": ORDERS, "project": project})).await,
            (400, json!("project"))
        );
    }
    for project in 100..132 {
        assert_eq!(give("/projects/7/grants", json!({"assetKey": ORDERS, "project": project})).await.0, 200);
    }
    assert_eq!(give("/projects/7/grants", json!({"assetKey": ORDERS, "project": 132})).await, (409, json!("project")));
    assert_eq!(give("/projects/7/grants", json!({"assetKey": ORDERS, "project": 131})).await.0, 200);
    for wrong in [
        "/projects/7/grants",
        "/projects/7/grants?assetKey=x&project=8",
        "/projects/7/grants?assetKey=paimon%3A%2F%2Fa%2Fb&project=x",
    ] {
        assert_eq!(api.delete(wrong).await.status_code, 400, "{wrong}");
    }
}

/// Settings do not take grants away, and who registers what was deregistered begins without any.
#[tokio::test]
async fn grants_outlive_settings_and_not_the_asset() {
    let api = Api::with_orders().await;
    api.put("/projects/7/grants", &json!({"assetKey": ORDERS, "project": 8})).await;
    let spec = json!({"key": ORDERS, "location": "s3://lake/warehouse/ods_db.db/orders", "schemaApproval": "required"});
    assert_eq!(api.post("/projects/7/assets", &spec).await.status_code, 200);
    assert_eq!(api.get(&format!("{OF_OTHER}/state")).await.status_code, 200);
    assert_eq!(api.delete(crate::support::ORDERS_PATH).await.status_code, 204);
    assert_eq!(api.post("/projects/7/assets", &spec).await.status_code, 201);
    assert_eq!(api.get(&format!("{OF_OTHER}/state")).await.status_code, 404);
}

/// Who registers a table after another project reads nothing of before.
#[tokio::test]
async fn a_new_owner_is_shown_nothing_of_the_former_one() {
    let api = Api::with_orders().await;
    let verdict = |id: &str, check: &str| {
        cloud_event(id, "quality.check.failed", &json!({"asset": ORDERS, "snapshotId": "2", "check": check}))
    };
    let refused = json!({"asset": ORDERS, "schemaId": 777});
    let of_before = [
        ("/projects/7/asset-events", verdict("1", "salary_check")),
        ("/projects/7/asset-events", cloud_event("2", "schema.changed", &refused)),
        (
            "/projects/7/asset-events",
            cloud_event("3", "backfill.completed", &json!({"asset": ORDERS, "backfillId": "salaries"})),
        ),
    ];
    for (path, event) in &of_before {
        assert_eq!(api.post(path, event).await.status_code, 202);
    }
    let listed =
        |project: u8| format!("/projects/{project}/asset-events?assetKey=paimon%3A%2F%2Fods_db%2Forders&limit=2");
    assert!(api.get(&listed(7)).await.body.contains("salar"));
    assert_eq!(api.delete("/projects/7/assets/paimon%3A%2F%2Fods_db%2Forders").await.status_code, 204);
    api.world.clock.advance(std::time::Duration::from_mins(1));
    let location = "s3://lake/warehouse/ods_db.db/orders";
    let registered = api.post("/projects/8/assets", &json!({"key": ORDERS, "location": location})).await;
    assert_eq!(registered.status_code, 201, "{}", registered.body);
    assert_eq!(api.post("/projects/8/asset-events", &verdict("4", "mine")).await.status_code, 202);
    let mut shown = String::new();
    let mut path = listed(8);
    loop {
        let page = body(&api.get(&path).await);
        shown += &page["items"].to_string();
        let Some(next) = page["next"].as_str() else { break };
        path = format!("{}&after={next}", listed(8));
    }
    assert!(shown.contains("mine") && shown.contains("SNAPSHOT_COMMITTED"), "{shown}");
    let state = api.get(&format!("{OF_OTHER}/state")).await.body;
    for leaked in ["salary_check", "777", "salaries"] {
        assert!(!shown.contains(leaked) && !state.contains(leaked), "{leaked}: {shown} {state}");
    }
    api.post("/projects/8/asset-dependencies", &target("own", 5)).await;
    let replayed = body(&api.get("/projects/8/asset-dependencies/own/replay").await);
    assert_eq!((&replayed["events"], &replayed["since"]), (&json!(2), &json!("2026-01-01T00:01:00Z")), "{replayed}");
}
