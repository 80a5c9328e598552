//! The command line against the API's own handler, over ports in memory: both sides mean the same.

use std::future::Future;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::{fs, io, thread};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use lakebell_aws::Metrics;
use lakebell_engine::EngineError;
use lakebell_push_api::event::GatewayEvent;
use lakebell_push_api::{Context, Sensors, Tokens, handler};
use lakebell_testkit::World;
use serde_json::{Value, json};

use crate::support::{Run, lakebell_in, root, scratch};

struct FixedToken;

impl Tokens for FixedToken {
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>> {
        Box::pin(async { Ok("token".to_owned()) })
    }
}

/// An API on a port of its own over tables in memory; gives its URL.
fn serve(world: &World) -> String {
    let metrics = Metrics::new("Lakebell", Arc::new(world.clock.clone()), io::sink());
    let mut context = Context::new(world.quiet_ports(), Arc::new(FixedToken), metrics);
    context.sensors = Sensors { places: 0, pause: Arc::new(world.clock.clone()) };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(context);
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    url
}

/// What a gateway does: the request as an event, and the event's answer as a response.
async fn answer(State(context): State<Context>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let authorization = headers.get("authorization").map(|value| value.to_str().unwrap());
    let event: GatewayEvent = serde_json::from_value(json!({
        "rawPath": uri.path(),
        "rawQueryString": uri.query().unwrap_or_default(),
        "headers": { "authorization": authorization },
        "requestContext": { "http": { "method": method.as_str() } },
        "body": String::from_utf8(body.to_vec()).unwrap(),
    }))
    .unwrap();
    let answer = Box::pin(handler::handle(event, &context)).await;
    (StatusCode::from_u16(answer.status_code).unwrap(), answer.body).into_response()
}

#[test]
fn a_file_is_applied_explained_and_pruned() {
    let world = World::new(1);
    let table = root().join("fixtures/paimon/watermarks/table");
    for name in ["orders", "payments"] {
        world.storage.load("lake", &format!("ods/{name}/"), &table).unwrap();
    }
    let url = serve(&world);
    let folder = scratch("real-api");
    let environment = [("LAKEBELL_API_URL", url.as_str()), ("LAKEBELL_API_TOKEN", "token"), ("LAKEBELL_PROJECT", "7")];
    let run = |arguments: &[&str]| -> Run { lakebell_in(&folder, arguments, &environment) };
    let file = "project: 7\nconnections:\n  - {name: default, url: http://ds, tokenSecret: s}\n\
        warehouses:\n  - {location: s3://lake/warehouse, format: paimon}\n\
        assets:\n  - {key: paimon://ods/orders, location: s3://lake/ods/orders}\n  - {key: paimon://ods/payments, location: s3://lake/ods/payments, schemaApproval: required}\n\
        targets:\n  - name: dwd\n    workflowDefinitionCode: 5\n    groups:\n      - dependencies: [{asset: paimon://ods/orders}, {asset: paimon://ods/payments}]\n";
    fs::write(folder.join("lakebell.yaml"), file).unwrap();

    let first = run(&["apply", "--json"]).succeeded().json();
    assert_eq!(first["summary"]["create"], 5, "{first}");
    let again = run(&["apply", "--json"]).succeeded().json();
    assert_eq!((&again["summary"]["same"], &again["summary"]["change"]), (&json!(5), &json!(0)), "{again}");

    let records = r#"[{"workflowDefinitionCode": 9, "assetKey": "paimon://ods/orders",
        "conditionJson": {"every": {"period": "1d", "timeZone": "UTC"}}}]"#;
    fs::write(folder.join("records.json"), records).unwrap();
    let said = run(&["apply", "-f", "records.json"]).succeeded().out;
    assert!(said.contains("fires when orders (each window of 1d in UTC) has advanced"), "{said}");
    assert!(run(&["why", "9"]).succeeded().out.contains("WINDOW_OPEN"));
    run(&["delete", "target", "9"]).succeeded();

    for target in ["dwd", "5"] {
        let said = run(&["why", target]).succeeded().out;
        assert!(said.starts_with("7/dwd  WAITING\n") && said.contains("NO_NEW_VERSION"), "{said}");
    }
    let asset = run(&["assets", "paimon://ods/orders"]).succeeded().out;
    assert!(asset.contains("newest      snapshot "), "{asset}");
    assert!(run(&["observe", "paimon://ods/orders"]).succeeded().out.contains("newest"));
    assert_eq!(
        run(&["events", "paimon://ods/orders", "--limit", "1", "--json"]).succeeded().json()["items"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(run(&["triggers", "--json"]).succeeded().json(), json!({ "items": [] }));
    let absent = run(&["assets", "paimon://ods/order"]);
    assert!(absent.err.contains("hint   the nearest registered ones are paimon://ods/orders"), "{}", absent.err);

    let paused = run(&["pause", "dwd", "--by", "ana"]).succeeded().out;
    assert!(paused.contains("paused by ana") && paused.contains("lakebell resume dwd"), "{paused}");
    assert!(run(&["resume", "dwd"]).succeeded().out.starts_with("7/dwd goes on.\n"));
    let nobody = "0123456789abcdef0123456789abcdef";
    for arguments in [&["redrive", nobody][..], &["skip", nobody], &["decide", nobody, "absent"]] {
        let refused = run(arguments);
        assert!(refused.status == 1 && refused.err.contains("there is no trigger"), "{}", refused.err);
    }
    assert_eq!(run(&["redrive", "--all"]).succeeded().out, "No trigger has failed.\n");
    assert_eq!(run(&["unregistered", "--json"]).succeeded().json(), json!({ "items": [] }));

    assert!(run(&["grants", "give", "paimon://ods/orders", "--to", "8"]).succeeded().out.contains("may read"));
    assert!(run(&["grants", "list"]).succeeded().out.contains("given"));
    assert!(run(&["grants", "take-back", "paimon://ods/orders", "--from", "8"]).succeeded().out.contains("blocked"));
    assert_eq!(run(&["grants", "list", "--json"]).succeeded().json(), json!({ "items": [] }));
    let made = run(&["tokens", "create", "flink", "--rights", "read,declare"]).succeeded().out;
    assert!(made.contains("lakebell_") && made.contains("It is not shown again."), "{made}");
    let made = run(&["tokens", "create", "ops", "--rights", "read", "--life", "7", "--json"]).succeeded().json();
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let as_it = [("LAKEBELL_API_URL", url.as_str()), ("LAKEBELL_API_TOKEN", token), ("LAKEBELL_PROJECT", "7")];
    assert!(lakebell_in(&folder, &["assets"], &as_it).succeeded().out.contains("paimon://ods/orders"));
    let refused = lakebell_in(&folder, &["pause", "dwd"], &as_it);
    assert!(refused.status == 1 && refused.err.contains("`operate`"), "{}", refused.err);
    assert!(run(&["tokens", "rotate", id, "--overlap", "1"]).succeeded().out.contains("good for 1 hours"));
    assert!(run(&["tokens", "list"]).succeeded().out.contains("read,declare"));
    assert!(run(&["tokens", "revoke", id]).succeeded().out.contains("is revoked"));
    assert!(run(&["tokens", "list"]).succeeded().out.contains("revoked"));

    fs::write(folder.join("lakebell.yaml"), "project: 7\n").unwrap();
    let pruned = run(&["apply", "--prune", "--json"]).succeeded().json();
    assert_eq!(pruned["summary"]["delete"], 3, "{pruned}");
    let left: Value = run(&["assets", "--json"]).succeeded().json();
    assert_eq!(left, json!({ "items": [] }));
    run(&["delete", "connection", "default"]).succeeded();
    run(&["delete", "warehouse", "s3://lake/warehouse"]).succeeded();
}

#[test]
fn a_format_that_is_left_to_the_table_is_recognised_once() {
    let world = World::new(1);
    for (format, case, place) in [
        ("delta", "catalog-managed", "ods/orders"),
        ("hudi", "cow-layout-2", "wh/ods/h"),
        ("iceberg", "rollback", "wh/ods/i"),
    ] {
        let table = root().join("fixtures").join(format).join(case).join("table");
        world.storage.load("lake", &format!("{place}/"), &table).unwrap();
    }
    let url = serve(&world);
    let folder = scratch("real-api-auto");
    let environment = [("LAKEBELL_API_URL", url.as_str()), ("LAKEBELL_API_TOKEN", "token"), ("LAKEBELL_PROJECT", "7")];
    let run = |arguments: &[&str]| -> Run { lakebell_in(&folder, arguments, &environment) };
    let file = "project: 7\nconnections:\n  - {name: default, url: http://ds, tokenSecret: s}\n\
        warehouses:\n  - {location: s3://lake/wh, format: auto}\n\
        assets:\n  - {key: auto://ods/orders, location: s3://lake/ods/orders, bindVerdict: latest}\n\
        targets:\n  - name: dwd\n    workflowDefinitionCode: 5\n    groups:\n      - dependencies: [{asset: delta://ods/orders}, {asset: hudi://ods/h}]\n";
    fs::write(folder.join("lakebell.yaml"), file).unwrap();
    assert_eq!(run(&["apply", "--json"]).succeeded().json()["summary"]["create"], 4);
    let again = run(&["apply", "--prune", "--json"]).succeeded().json();
    assert_eq!((&again["summary"]["same"], &again["summary"]["delete"]), (&json!(4), &json!(0)), "{again}");
    let listed = run(&["assets", "--json"]).succeeded().json();
    let keys: Vec<&str> = listed["items"].as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["delta://ods/orders", "hudi://ods/h", "iceberg://ods/i"]);

    // What the table demands is told wherever it matters.
    for arguments in [["assets", "delta://ods/orders"], ["why", "dwd"]] {
        let said = run(&arguments).succeeded().out;
        assert_eq!(said.matches("the table is catalog-managed").count(), 1, "{said}");
    }

    fs::write(folder.join("lakebell.yaml"), file.replace("bindVerdict: latest", "bindVerdict: strict")).unwrap();
    let changed = run(&["apply", "--json"]).succeeded().json();
    assert_eq!((&changed["summary"]["change"], &changed["summary"]["create"]), (&json!(1), &json!(0)), "{changed}");
    let nowhere = file
        .replace("auto://ods/orders, location: s3://lake/ods/orders", "auto://ods/new, location: s3://lake/ods/new");
    fs::write(folder.join("lakebell.yaml"), nowhere).unwrap();
    let refused = run(&["apply"]);
    let said = format!("{}{}", refused.out, refused.err);
    assert!(refused.status != 0 && said.contains("no table lies at s3://lake/ods/new yet"), "{said}");
}
