//! Bad input through the gateway: refused with the status, the code, and the field that is wrong.

use reqwest::Method;
use serde_json::{Value, json};

use crate::scene;
use crate::support::{Answer, Scene, in_path};

/// An answer is a problem document that says what was wrong and with which trace.
fn assert_problem(answer: &Answer, status: u16, code: &str, field: Option<&str>, about: &str) {
    let body = &answer.body;
    assert_eq!((answer.status, body["code"].as_str()), (status, Some(code)), "{about}: {body}");
    assert_eq!(answer.headers["content-type"], "application/problem+json", "{about}");
    assert_eq!(body["field"].as_str(), field, "{about}: {body}");
    assert_eq!(body["status"], json!(status), "{about}");
    let members = ["type", "title", "detail", "traceId"];
    assert!(members.iter().all(|name| body[name].as_str().is_some_and(|text| !text.is_empty())), "{about}: {body}");
    assert!(body["type"].as_str().unwrap().ends_with(code), "{about}: {body}");
    if status == 400 {
        assert!(body["hint"].is_string(), "{about}: {body}");
    }
}

async fn assert_invalid(scene: &Scene, method: Method, path: &str, body: &Value, field: &str) {
    let answer = scene.call(method, path, Some(body)).await;
    assert_problem(&answer, 400, "INVALID", Some(field), &format!("{path} {body}"));
}

#[tokio::test]
async fn without_the_token_nothing_is_said() {
    let scene = scene!("token");
    let token = scene.local.api_token.clone();
    let wrong = [
        None,
        Some(String::new()),
        Some("Bearer".to_owned()),
        Some("Bearer wrong".to_owned()),
        Some(token.clone()),
        Some(format!("Basic {token}")),
        Some(format!("Bearer {token}x")),
    ];
    for authorization in &wrong {
        for path in [scene.path("/assets"), "/nowhere".to_owned(), "/connections".to_owned()] {
            let answer = scene.call_raw(Method::GET, &path, authorization.as_deref(), None).await;
            assert_problem(&answer, 401, "UNAUTHENTICATED", None, &format!("{path} {authorization:?}"));
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            assert!(!answer.body.to_string().contains(&token));
        }
    }
    let lower = format!("bearer {token}");
    scene.call_raw(Method::GET, &scene.path("/assets"), Some(&lower), None).await.ok();
}

#[tokio::test]
async fn routes_and_methods_that_are_not_there() {
    let scene = scene!("routes");
    for path in ["/", "/projects", "/nowhere", "/projects/7/tables", "/projects/7/assets/x/y/z"] {
        let answer = scene.call(Method::GET, path, None).await;
        assert!([403, 404].contains(&answer.status), "{path}: {answer:?}");
        if path != "/" {
            assert_problem(&answer, 404, "NO_SUCH_ROUTE", None, path);
        }
    }
    let patched = scene.call(Method::PATCH, "/connections/default", None).await;
    assert_problem(&patched, 405, "METHOD_NOT_ALLOWED", None, "PATCH");
    assert_eq!(patched.headers["allow"], "PUT, DELETE");
    for project in ["0", "-1", "x", "99999999999999999999"] {
        let answer = scene.call(Method::GET, &format!("/projects/{project}/assets"), None).await;
        assert_problem(&answer, 400, "INVALID", Some("projectCode"), project);
    }
}

#[tokio::test]
async fn what_is_not_there() {
    let scene = scene!("not-found");
    let key = in_path("paimon://no/body");
    for (method, rest) in [
        (Method::GET, format!("/assets/{key}/state")),
        (Method::DELETE, format!("/assets/{key}")),
        (Method::POST, format!("/assets/{key}/observe")),
        (Method::POST, format!("/assets/{key}/accept-rewrite")),
        (Method::GET, format!("/asset-events?assetKey={key}")),
    ] {
        let answer = scene.call(method, &scene.path(&rest), None).await;
        assert_problem(&answer, 404, "NOT_FOUND", Some("assetKey"), &rest);
    }
    for method in [Method::GET, Method::DELETE] {
        let answer = scene.call(method, &scene.path("/asset-dependencies/nobody"), None).await;
        assert_problem(&answer, 404, "NOT_FOUND", Some("target"), "target");
    }
    let answer = scene.get("/asset-trigger-history/00112233445566778899aabbccddeeff").await;
    assert_eq!((answer.status, &answer.body["code"]), (404, &json!("NOT_FOUND")), "{}", answer.body);
    let unknown = json!({
        "workflowDefinitionCode": 1, "connection": scene.connection().await,
        "groups": [{"dependencies": [{"asset": "paimon://no/body"}]}],
    });
    let answer = scene.post("/asset-dependencies", &unknown).await;
    let field = Some("groups[0].dependencies[0].asset");
    assert_problem(&answer, 404, "NOT_FOUND", field, "unknown asset");
}

#[tokio::test]
async fn wrong_assets() {
    let scene = scene!("bad-assets");
    let location = format!("s3://{}/e2e/{}/t", scene.local.bucket, scene.name);
    let path = scene.path("/assets");
    let long = format!("paimon://a/{}", "x".repeat(600));
    for (body, field) in [
        (json!({"key": "orders", "location": location}), "key"),
        (json!({"key": "mysql://a/b", "location": location}), "key"),
        (json!({"key": "paimon://a/b%zz", "location": location}), "key"),
        (json!({"key": "paimon://a//b", "location": location}), "key"),
        (json!({"key": long, "location": location}), "key"),
        (json!({"key": 5, "location": location}), "key"),
        (json!({"key": "paimon://a/b"}), "location"),
        (json!({"key": "paimon://a/b", "location": "/tmp/t"}), "location"),
        (json!({"key": "paimon://a/b", "location": "s3://lake/../t"}), "location"),
        (json!({"key": "paimon://a/b", "location": location, "trust": "anybody"}), "trust"),
        (json!({"key": "paimon://a/b", "location": location, "owner": "me"}), "owner"),
        (json!([]), "body"),
        (json!("x"), "body"),
    ] {
        assert_invalid(&scene, Method::POST, &path, &body, field).await;
    }
    for text in ["", "{", "no json", "[1,]"] {
        let token = format!("Bearer {}", scene.local.api_token);
        let answer = scene.call_raw(Method::POST, &path, Some(&token), Some(text.to_owned())).await;
        assert_problem(&answer, 400, "INVALID", Some("body"), text);
    }
    for malformed in ["orders", "mysql%3A%2F%2Fa%2Fb", "%FF"] {
        let answer = scene.get(&format!("/assets/{malformed}/state")).await;
        assert_problem(&answer, 400, "INVALID", Some("assetKey"), malformed);
    }
    assert_eq!(scene.get("/assets").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn what_is_taken() {
    let scene = scene!("taken");
    let (one, other) = (scene.table("one"), scene.table("other"));
    scene.register(&[&one]).await;
    let same_place = json!({"key": other.asset, "location": one.location()});
    let answer = scene.post("/assets", &same_place).await;
    assert_problem(&answer, 409, "CONFLICT", Some("location"), "two assets on one location");
    let moved = json!({"key": one.asset, "location": other.location()});
    let answer = scene.post("/assets", &moved).await;
    assert_problem(&answer, 409, "CONFLICT", Some("key"), "one asset at two locations");
    // Another project learns that it is taken, and nothing else.
    let path = format!("/projects/{}/assets", scene.project + 1_000_000);
    let spec = json!({"key": one.asset, "location": one.location()});
    let answer = scene.call(Method::POST, &path, Some(&spec)).await;
    assert_eq!((answer.status, &answer.body["code"]), (409, &json!("GRANT_REQUESTED")), "{}", answer.body);
    let said = answer.body.to_string();
    assert!(!said.contains(&one.asset), "{said}");
    assert!(!said.contains(&scene.project.to_string()), "{said}");
}

#[tokio::test]
async fn wrong_targets() {
    let scene = scene!("bad-targets");
    let table = scene.table("t");
    scene.register(&[&table]).await;
    let right = Scene::target(&scene.connection().await, "t", 1, &json!("all"), &[&table]);
    let with = |pointer: &str, value: Value| {
        let mut target = right.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        target.pointer_mut(parent).unwrap()[name] = value;
        target
    };
    let dependency = right["groups"][0]["dependencies"][0].clone();
    let place = "groups[0].dependencies[0]";
    for (body, field) in [
        (with("/groups", json!([])), "groups"),
        (with("/groups/0/dependencies", json!([])), "groups[0].dependencies"),
        (with("/groups/0/dependencies", json!(vec![dependency.clone(); 100])), "groups[0].dependencies"),
        (with("/groups/0/dependencies", json!([dependency, dependency])), "groups[0].dependencies[1].asset"),
        (with("/groups", json!(vec![right["groups"][0].clone(); 2])), "groups[1].name"),
        (with("/groups", json!(vec![right["groups"][0].clone(); 21])), "groups"),
        (with("/groups/0/advance", json!({"atLeast": 2})), "groups[0].advance.atLeast"),
        (with("/name", json!("no blanks")), "name"),
        (with("/enabledFlag", json!(2)), "enabledFlag"),
        (with("/workflowDefinitionCode", json!(0)), "workflowDefinitionCode"),
        (with("/workflowDefinitionCode", json!("1")), "workflowDefinitionCode"),
        (with("/workflowDefinitionName", json!("both")), "workflowDefinitionName"),
        (with("/coalesce", json!("sometimes")), "coalesce"),
        (with("/connection", json!("nobodys")), "connection"),
        (with("/colour", json!("red")), "colour"),
        (with("/groups/0/dependencies/0/asset", json!("t")), &format!("{place}.asset")),
        (with("/groups/0/dependencies/0/alias", json!("a-b")), &format!("{place}.alias")),
        (with("/groups/0/dependencies/0/minSnapshotId", json!("x")), &format!("{place}.minSnapshotId")),
        (with("/groups/0/dependencies/0/watermark", json!("now")), &format!("{place}.watermark")),
        (with("/groups/0/dependencies/0/commitKinds", json!([])), &format!("{place}.commitKinds")),
        (with("/groups/0/dependencies/0/snapshotRequired", json!(false)), &format!("{place}.snapshotRequired")),
    ] {
        assert_invalid(&scene, Method::POST, &scene.path("/asset-dependencies"), &body, field).await;
    }
    assert_eq!(scene.get("/asset-dependencies").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn wrong_events() {
    let scene = scene!("bad-events");
    let table = scene.table("t");
    scene.register(&[&table]).await;
    let event = |change: &dyn Fn(&mut Value)| {
        let mut event = json!({
            "specversion": "1.0", "id": "1", "source": "e2e", "type": "io.lakebell.snapshot.committed.v1",
            "data": {"asset": table.asset},
        });
        change(&mut event);
        event
    };
    for (body, field) in [
        (event(&|event| event["specversion"] = json!("0.3")), "specversion"),
        (event(&|event| event["id"] = json!("")), "id"),
        (event(&|event| event["source"] = json!(null)), "source"),
        (event(&|event| event["type"] = json!("io.lake-events.snapshot.committed.v1")), "type"),
        (event(&|event| event["type"] = json!("io.lakebell.quality.check.passed.v1")), "data.check"),
        (event(&|event| event["time"] = json!("yesterday")), "time"),
        (event(&|event| event["data"] = json!({})), "data.asset"),
        (event(&|event| event["data"]["asset"] = json!("orders")), "data.asset"),
        (event(&|event| event["data"]["rows"] = json!(1)), "data.rows"),
        (event(&|event| event["Loud"] = json!("x")), "Loud"),
    ] {
        assert_invalid(&scene, Method::POST, &scene.path("/asset-events"), &body, field).await;
    }
    let many = json!(vec![event(&|_| ()); 501]);
    let answer = scene.post("/asset-events", &many).await;
    assert_problem(&answer, 413, "TOO_LARGE", None, "501 events");
    assert_eq!(scene.post("/asset-events", &json!([])).await.ok()["items"], json!([]));
    let answer = scene.push(&event(&|event| event["data"] = json!({"asset": "paimon://no/body"}))).await;
    assert_eq!(answer["outcome"], "unknown", "{answer}");
}

#[tokio::test]
async fn bodies_and_lists_are_bounded() {
    let scene = scene!("bounds");
    let large = json!({"key": "x".repeat(1024 * 1024), "location": "s3://lake/t"});
    let answer = scene.post("/assets", &large).await;
    assert_problem(&answer, 413, "TOO_LARGE", None, "a body over one MiB");
    let long = json!({"key": "x".repeat(9_000), "location": "s3://lake/t"});
    assert_invalid(&scene, Method::POST, &scene.path("/assets"), &long, "body").await;
    let deep: Value = serde_json::from_str(&format!("{}{}", "[".repeat(40), "]".repeat(40))).unwrap();
    assert_invalid(&scene, Method::POST, &scene.path("/asset-events"), &deep, "body").await;

    for query in ["limit=0", "limit=201", "limit=x", "after=%21%21"] {
        let field = query.split('=').next();
        for list in ["/assets", "/asset-dependencies", "/asset-trigger-history"] {
            let answer = scene.get(&format!("{list}?{query}")).await;
            assert_problem(&answer, 400, "INVALID", field, &format!("{list}?{query}"));
        }
    }
    let answer = scene.get("/asset-trigger-history?state=FAILED").await;
    assert_problem(&answer, 400, "INVALID", Some("state"), "a misspelt filter");
    let answer = scene.get("/asset-trigger-history?status=DONE").await;
    assert_problem(&answer, 400, "INVALID", Some("status"), "an unknown status");
    assert_problem(&scene.get("/asset-events").await, 400, "INVALID", Some("assetKey"), "no asset");
}

#[tokio::test]
async fn wrong_connections_and_warehouses() {
    let scene = scene!("bad-settings");
    let path = format!("/connections/c-{}", scene.project);
    for (body, field) in [
        (json!({"url": "ftp://x", "tokenSecret": "s"}), "url"),
        (json!({"url": "https://user:password@x", "tokenSecret": "s"}), "url"),
        (json!({"url": "https://x/dolphinscheduler"}), "tokenSecret"),
        (json!({"url": "https://x/dolphinscheduler", "tokenSecret": "a secret"}), "tokenSecret"),
        (json!({"url": "https://x/dolphinscheduler", "tokenSecret": "s", "token": "t"}), "token"),
        (json!({"url": "https://x/dolphinscheduler", "tokenSecret": "s", "version": "2"}), "version"),
    ] {
        assert_invalid(&scene, Method::PUT, &path, &body, field).await;
    }
    for (body, field) in [
        (json!({"location": "s3://lake/w"}), "format"),
        (json!({"location": "s3://lake/w", "format": "orc"}), "format"),
        (json!({"location": "lake", "format": "paimon"}), "location"),
    ] {
        assert_invalid(&scene, Method::PUT, "/warehouses", &body, field).await;
    }
    assert_problem(&scene.call(Method::DELETE, "/warehouses", None).await, 400, "INVALID", Some("location"), "delete");
    let name = scene.call(Method::DELETE, "/connections/a%20b", None).await;
    assert_problem(&name, 400, "INVALID", Some("name"), "a name with a blank");
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let scene = scene!("pages");
    let tables: Vec<_> = (0..7).map(|at| scene.table(&format!("t{at}"))).collect();
    scene.register(&tables.iter().collect::<Vec<_>>()).await;
    let connection = scene.connection().await;
    for (at, table) in tables.iter().enumerate() {
        let code = 1 + i64::try_from(at).unwrap();
        scene.declare(&Scene::target(&connection, &format!("w{at}"), code, &json!("all"), &[table])).await;
    }
    for (list, name) in [("/assets", "key"), ("/asset-dependencies", "name")] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = scene.get(&format!("{list}?limit=3{after}")).await.ok();
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= 3 && !items.is_empty(), "{page}");
            seen.extend(items.iter().map(|item| item[name].as_str().unwrap().to_owned()));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert_eq!(seen.len(), 7, "{list}: {seen:?}");
        assert!(seen.is_sorted(), "{list}: {seen:?}");
    }
}
