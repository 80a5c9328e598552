//! Tokens: how they are shown, how long they are good, what a check costs.

use jiff::SignedDuration;
use lakebell_domain::access::Right;
use lakebell_domain::ids::ProjectCode;
use lakebell_engine::access::{self, Carried};
use lakebell_engine::push::PUSHABLE;
use lakebell_push_api::event::GatewayResponse;
use serde_json::{Value, json};

use crate::support::{Api, ORDERS, body, cloud_event, logged, rest_event};

const PROJECT: Option<ProjectCode> = Some(ProjectCode(7));

async fn with(api: &Api, name: &str, value: &str) -> GatewayResponse {
    let mut event = rest_event("GET", "/projects/7/assets", None);
    event["headers"] = json!({name: value});
    api.raw(event).await
}

async fn shows(api: &Api, token: &str) -> u16 {
    with(api, "X-Api-Key", token).await.status_code
}

fn id_of(token: &str) -> lakebell_domain::ids::TokenId {
    token.split('_').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_token_is_taken_from_each_header_that_clients_can_set() {
    let api = Api::new();
    let token = api.make_token(PROJECT, &[Right::Read], Carried::Header).await;
    for (name, value) in [
        ("Authorization", format!("Bearer {token}")),
        ("x-api-key", token.clone()),
        ("HUDI-CALLBACK-KEY", format!(" {token} ")),
    ] {
        assert_eq!(with(&api, name, &value).await.status_code, 200, "{name}");
    }
    for wrong in
        [&token[..token.len() - 1], &token.replace("lakebell_", ""), &format!("{token}0"), &token.to_uppercase()]
    {
        assert_eq!(shows(&api, wrong).await, 401);
    }
    // Another secret under a good id.
    let other = api.make_token(PROJECT, &[Right::Read], Carried::Header).await;
    let forged = format!("lakebell_{}_{}", id_of(&token), other.rsplit('_').next().unwrap());
    assert_eq!(shows(&api, &forged).await, 401);
    assert!(!logged().contains(&token[30..]), "a token is in the log");
}

#[tokio::test]
async fn a_warm_check_costs_no_call() {
    let api = Api::new();
    let token = api.make_token(PROJECT, &[Right::Read], Carried::Header).await;
    let unknown = "lakebell_0123456789abcdef_".to_owned() + &"0".repeat(64);
    assert_eq!((shows(&api, &token).await, shows(&api, &unknown).await), (200, 401));
    let calls = |api: &Api| api.world.tap.total();
    let listing = {
        let before = calls(&api);
        assert_eq!(shows(&api, "s3cret-token").await, 200);
        calls(&api) - before
    };
    let before = calls(&api);
    for _ in 0..10 {
        assert_eq!(shows(&api, &token).await, 200);
        assert_eq!(shows(&api, &unknown).await, 401);
    }
    assert_eq!(calls(&api) - before, 10 * listing);
}

#[tokio::test]
async fn tokens_end_when_they_should() {
    let api = Api::new();
    let ports = api.world.quiet_ports();
    let token = api.make_token(PROJECT, &[Right::Read], Carried::Header).await;
    assert_eq!(shows(&api, &token).await, 200);
    // Revoked: what is remembered is used for a minute at most.
    access::revoke(&ports, PROJECT, &id_of(&token)).await.unwrap();
    api.wait(60);
    assert_eq!(shows(&api, &token).await, 401);
    // Expired: to the second, remembered or not.
    let token = api.make_token(PROJECT, &[Right::Read], Carried::Header).await;
    api.wait(90 * 86_400 - 1);
    assert_eq!(shows(&api, &token).await, 200);
    api.wait(1);
    assert_eq!(shows(&api, &token).await, 401);
}

#[tokio::test]
async fn a_rotated_secret_is_good_for_the_overlap() {
    let api = Api::new();
    let ports = api.world.quiet_ports();
    let old = api.make_token(PROJECT, &[Right::Read], Carried::Header).await;
    assert_eq!(shows(&api, &old).await, 200);
    let made = access::rotate(&ports, PROJECT, &id_of(&old), 24).await.unwrap();
    let new = made.text.unwrap().reveal();
    assert_eq!((id_of(&new), made.token.generation), (id_of(&old), 2));
    // What says no is asked again after five seconds.
    api.wait(5);
    assert_eq!((shows(&api, &new).await, shows(&api, &old).await), (200, 200));
    api.wait(24 * 3_600 - 6);
    assert_eq!(shows(&api, &old).await, 200);
    api.wait(2);
    assert_eq!((shows(&api, &new).await, shows(&api, &old).await), (200, 401));
    let term = made.token.expires_at.duration_since(made.token.created_at);
    assert_eq!(term, SignedDuration::from_hours(90 * 24), "the term begins again");
}

#[tokio::test]
async fn a_path_token_pushes_for_its_project() {
    let api = Api::with_orders().await;
    let ports = api.world.quiet_ports();
    let token = api.make_token(PROJECT, &[Right::Evidence], Carried::Path).await;
    let foreign = api.make_token(Some(ProjectCode(8)), &[Right::Evidence], Carried::Path).await;
    let push = async |token: &str, id: &str| {
        let event = cloud_event(id, "cdc.lag.recovered", &json!({"asset": ORDERS}));
        let mut request = rest_event("POST", &format!("/w/{token}/asset-events"), Some(&event.to_string()));
        request["headers"] = json!({"Content-Type": "application/cloudevents+json"});
        let answer = api.raw(request).await;
        api.work().await;
        (answer.status_code, body(&answer))
    };
    let outcome = async |project: u8, said: &serde_json::Value| {
        let path = format!("/projects/{project}/asset-events/{}", said["receipt"].as_str().unwrap());
        body(&api.get(&path).await)["outcomes"][0]["outcome"].clone()
    };
    let (status, said) = push(&token, "1").await;
    assert_eq!((status, outcome(7, &said).await), (202, json!("advanced")), "{said}");
    // Another project's asset is as unknown as one that is not registered.
    let (status, said) = push(&foreign, "2").await;
    assert_eq!((status, outcome(8, &said).await), (202, json!("unknown")), "{said}");
    access::revoke(&ports, PROJECT, &id_of(&token)).await.unwrap();
    api.wait(60);
    assert_eq!(push(&token, "3").await.0, 401);
    assert!(!logged().contains(&token[30..]), "a token is in the log");
}

/// Also by the deployment's token: the project of the path is who speaks.
#[tokio::test]
async fn nobody_speaks_for_another_project_s_asset() {
    let api = Api::with_orders().await;
    let before = body(&api.get(&format!("{}/state", crate::support::ORDERS_PATH)).await);
    for kind in PUSHABLE {
        let word = kind.as_str().to_lowercase().replace('_', ".");
        let data = json!({"asset": ORDERS, "tag": "t", "check": "c", "schemaId": 0, "backfillId": "b", "watermark": 5,
            "partition": "dt=1", "status": "s", "snapshotId": "1"});
        let event = cloud_event(&word, &word, &data);
        let answer = body(&api.post("/projects/8/asset-events", &event).await);
        assert_eq!(answer["outcome"], "unknown", "{word}: {answer}");
    }
    let state = body(&api.get(&format!("{}/state", crate::support::ORDERS_PATH)).await);
    assert_eq!(state["rev"], before["rev"]);
}

#[tokio::test]
async fn strangers_are_slowed_down() {
    let api = Api::new();
    let mut limited = 0;
    for n in 0..150 {
        let token = format!("lakebell_{n:016x}_{}", "0".repeat(64));
        limited += usize::from(with(&api, "x-api-key", &token).await.status_code == 503);
    }
    assert_eq!(limited, 50);
    assert_eq!(api.world.tap.total(), 100);
    // Those who are known are not.
    assert_eq!(api.get("/projects/7/assets").await.status_code, 200);
}

#[tokio::test]
async fn a_token_has_its_rate() {
    let api = Api::limited();
    let token = api.make_token(PROJECT, &[Right::Read], Carried::Header).await;
    for _ in 0..200 {
        assert_eq!(shows(&api, &token).await, 200);
    }
    let answer = with(&api, "x-api-key", &token).await;
    assert_eq!((answer.status_code, body(&answer)["limit"].as_u64()), (503, Some(100)));
    assert_eq!(answer.headers["retry-after"], "2");
    crate::support::golden("error-rate-limited", &answer);
    let other = api.make_token(PROJECT, &[Right::Read], Carried::Header).await;
    assert_eq!(shows(&api, &other).await, 200, "another token has its own");
    api.wait(1);
    assert_eq!(shows(&api, &token).await, 200);
}

#[tokio::test]
async fn tokens_are_made_listed_rotated_and_revoked() {
    let api = Api::new();
    let asked = json!({"name": "flink prod", "rights": ["evidence", "read"], "lifeDays": 30});
    let made = api.post("/projects/7/tokens", &asked).await;
    crate::support::golden("token-made", &made);
    let made = body(&made);
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    assert_eq!(shows(&api, token).await, 200);
    let rotated = api.post(&format!("/projects/7/tokens/{id}/rotate"), &json!({"overlapHours": 0})).await;
    crate::support::golden("token-rotated", &rotated);
    let new = body(&rotated)["token"].as_str().unwrap().to_owned();
    assert_eq!((shows(&api, &new).await, shows(&api, token).await), (200, 401));
    api.post("/tokens", &json!({"name": "ops", "rights": ["admin"]})).await;
    let listed = api.get("/projects/7/tokens").await;
    crate::support::golden("tokens", &listed);
    assert_eq!(body(&api.get("/tokens").await)["items"].as_array().map(Vec::len), Some(2));
    for path in ["/projects/8/tokens", "/projects/8/tokens/0123456789abcdef"] {
        assert!(!api.get(path).await.body.contains(id));
    }
    // Another project's token is not there, whether it is or not.
    let absent = api.delete(&format!("/projects/8/tokens/{id}")).await;
    crate::support::golden("error-unknown-token", &absent);
    assert_eq!(api.delete(&format!("/projects/7/tokens/{id}")).await.status_code, 204);
    assert_eq!(api.delete(&format!("/projects/7/tokens/{id}")).await.status_code, 204);
    assert_eq!(shows(&api, &new).await, 401);
    assert_eq!(body(&api.get("/projects/7/tokens").await)["items"][0]["standing"], "revoked");
    let ended = api.post(&format!("/projects/7/tokens/{id}/rotate"), &json!({})).await;
    assert_eq!(ended.status_code, 409);
    assert!(!logged().contains(&new[30..]) && !logged().contains(&token[30..]), "a token is in the log");
}

#[tokio::test]
async fn wrong_tokens_are_not_made() {
    let api = Api::new();
    let table = [
        (json!({"rights": ["read"]}), "name"),
        (json!({"name": " ", "rights": ["read"]}), "name"),
        (json!({"name": "x", "rights": []}), "rights"),
        (json!({"name": "x", "rights": ["write"]}), "rights[0]"),
        (json!({"name": "x", "rights": ["read"], "lifeDays": 0}), "lifeDays"),
        (json!({"name": "x", "rights": ["read"], "lifeDays": 731}), "lifeDays"),
        (json!({"name": "x", "rights": ["read"], "carried": "path"}), "rights"),
        (json!({"name": "x", "rights": ["read"], "carried": "principal"}), "principal"),
        (json!({"name": "x", "rights": ["read"], "principal": "arn:aws:iam::123456789012:role/x"}), "principal"),
        (json!({"name": "x", "rights": ["read"], "carried": "principal", "principal": "ana"}), "principal"),
    ];
    for (asked, field) in table {
        let answer = api.post("/projects/7/tokens", &asked).await;
        assert_eq!((answer.status_code, &body(&answer)["field"]), (400, &json!(field)), "{asked}: {answer:?}");
    }
    let deployment = json!({"name": "x", "rights": ["evidence"], "carried": "path"});
    assert_eq!(body(&api.post("/tokens", &deployment).await)["field"], "carried");
    assert_eq!(
        body(&api.post("/projects/7/tokens/0123456789abcdef/rotate", &json!({"overlapHours": 721})).await)["field"],
        "overlapHours"
    );
}

#[tokio::test]
async fn no_token_makes_one_that_may_do_more() {
    let api = Api::new();
    let admin = api.make_token(PROJECT, &[Right::Admin, Right::Read], Carried::Header).await;
    let post = async |path: &str, asked: Value| {
        let mut event = rest_event("POST", path, Some(&asked.to_string()));
        event["headers"] = json!({"X-Api-Key": admin});
        api.raw(event).await
    };
    assert_eq!(post("/projects/7/tokens", json!({"name": "x", "rights": ["read"]})).await.status_code, 201);
    assert_eq!(post("/projects/7/tokens", json!({"name": "x", "rights": ["evidence"]})).await.status_code, 403);
    for path in ["/projects/8/tokens", "/tokens"] {
        assert_eq!(post(path, json!({"name": "x", "rights": ["read"]})).await.status_code, 403, "{path}");
    }
    // Nor does it get at the secret of one.
    let strong = api.make_token(PROJECT, &[Right::Operate], Carried::Header).await;
    let rotated = post(&format!("/projects/7/tokens/{}/rotate", id_of(&strong)), json!({})).await;
    assert_eq!(rotated.status_code, 403);
}

#[tokio::test]
async fn a_principal_that_the_gateway_knows_needs_no_token() {
    let api = Api::new();
    let role = "arn:aws:iam::123456789012:role/writer";
    let asked = json!({"name": "writer", "rights": ["read"], "carried": "principal", "principal": role});
    let made = api.post("/projects/7/tokens", &asked).await;
    crate::support::golden("token-of-principal", &made);
    assert_eq!(api.post("/projects/7/tokens", &asked).await.status_code, 409);
    let signed = |arn: &str| {
        let mut event = rest_event("GET", "/projects/7/assets", None);
        event["headers"] = json!({"Authorization": "AWS4-HMAC-SHA256 Credential=x"});
        event["requestContext"]["identity"] = json!({"userArn": arn});
        event
    };
    let session = "arn:aws:sts::123456789012:assumed-role/writer/i-0abc";
    for (arn, status) in
        [(role, 200), (session, 200), ("arn:aws:iam::123456789012:role/other", 401), ("x", 401), ("", 401)]
    {
        assert_eq!(api.raw(signed(arn)).await.status_code, status, "{arn}");
    }
    // A gateway that checks nobody says nothing about who it is.
    let open = Api::limited();
    open.post("/projects/7/tokens", &asked).await;
    assert_eq!(open.raw(signed(role)).await.status_code, 401);
    let id = body(&made)["id"].as_str().unwrap().to_owned();
    assert_eq!(api.post(&format!("/projects/7/tokens/{id}/rotate"), &json!({})).await.status_code, 409);
    api.delete(&format!("/projects/7/tokens/{id}")).await;
    assert_eq!(api.raw(signed(role)).await.status_code, 401);
    assert_eq!(api.post("/projects/7/tokens", &asked).await.status_code, 201, "a new one under the same id");
}

#[tokio::test]
async fn each_write_has_one_line_of_audit() {
    let api = Api::with_orders().await;
    let token = api.make_token(PROJECT, &[Right::Operate, Right::Read], Carried::Header).await;
    let secret = "payload-that-nobody-logs";
    let send = async |method: &str, path: &str, payload: Value| {
        let mut event = rest_event(method, path, Some(&payload.to_string()));
        event["headers"] = json!({"X-Api-Key": token});
        api.raw(event).await
    };
    send("GET", "/projects/7/assets", Value::Null).await;
    send("PUT", "/projects/7/switch", json!({"on": false, "by": secret})).await;
    send("POST", "/projects/7/asset-dependencies/none/pause", json!({})).await;
    send("POST", "/projects/7/asset-dependencies", json!({"x": secret})).await;
    send("PUT", "/switch", json!({"on": false})).await;
    let text = logged();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let audit: Vec<Value> = lines
        .iter()
        .filter(|line| line["fields"]["audit"] == true && line["fields"]["token"] == id_of(&token).as_str())
        .map(|line| {
            let fields = &line["fields"];
            assert!(line["span"]["traceId"].is_string(), "{line}");
            json!([fields["operation"], fields["subject"], fields["status"], fields["code"]])
        })
        .collect();
    assert_eq!(
        audit,
        [
            json!(["setProjectSwitch", "p=7", 200, null]),
            json!(["pauseTarget", "p=7 target=none", 404, "NOT_FOUND"]),
            json!(["declareDependencies", "p=7", 403, "FORBIDDEN"]),
            json!(["setGlobalSwitch", "", 403, "FORBIDDEN"]),
        ],
        "{text}"
    );
}
