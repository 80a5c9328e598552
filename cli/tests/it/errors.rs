//! Errors, exit statuses, and where settings come from.

use std::fs;

use serde_json::{Value, json};

use crate::stub::Stub;
use crate::support::{lakebell_in, root, scratch};

#[test]
fn a_problem_is_shown_with_field_and_hint() {
    let stub = Stub::start();
    let problem = json!({
        "type": "https://lakebell.dev/errors/NOT_FOUND", "title": "Not found", "status": 404, "code": "NOT_FOUND",
        "detail": "paimon://d/t is not registered", "field": "asset", "hint": "the nearest one is paimon://d/u", "traceId": "abc",
    });
    stub.fix("GET /projects/7/assets/paimon%3A%2F%2Fd%2Ft/state", 404, problem);
    let run = stub.run(&["assets", "paimon://d/t"]);
    assert_eq!((run.status, run.out.as_str()), (1, ""));
    let expected = "error: paimon://d/t is not registered\n  field  asset\n  hint   the nearest one is paimon://d/u\n  code   NOT_FOUND\n  trace  abc\n";
    assert_eq!(run.err, expected);
    let run = stub.run(&["--json", "assets", "paimon://d/t"]);
    let error: Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!((&error["error"]["code"], &error["error"]["status"]), (&json!("NOT_FOUND"), &json!(404)));
}

#[test]
fn an_answer_that_is_no_problem_document_is_shown_as_it_is() {
    let stub = Stub::start();
    stub.fix("GET /projects/7/assets", 502, json!({ "message": "Internal server error" }));
    let run = stub.run(&["assets"]);
    assert!(
        run.err.contains("the API answered 502 Bad Gateway") && run.err.contains("Internal server error"),
        "{}",
        run.err
    );
}

#[test]
fn a_key_travels_encoded_once() {
    let stub = Stub::start();
    stub.run(&["observe", "paimon://d b/t%25?+é@x"]);
    let key = "paimon://d%20b/t%25%3F%2B%C3%A9@x";
    let encoded = key.replace('%', "%25").replace(':', "%3A").replace('/', "%2F").replace('@', "%40");
    assert_eq!(stub.calls(), [format!("POST /projects/7/assets/{encoded}/observe")]);
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    // Outside the project, below which a local deployment may run.
    let folder = std::env::temp_dir();
    for arguments in
        [&["assets", "orders"][..], &["triggers", "--status", "gone"], &["frobnicate"], &["--project", "-1", "assets"]]
    {
        let run = lakebell_in(&folder, arguments, &[]);
        assert_eq!(run.status, 2, "{arguments:?}: {}", run.err);
    }
    let run = lakebell_in(&folder, &["assets"], &[]);
    assert_eq!(run.status, 2);
    assert!(run.err.starts_with("error: where is the API?\n  hint   give --api URL"), "{}", run.err);
    let run = lakebell_in(&folder, &["assets", "--api", "http://x", "--token", "t"], &[]);
    assert!(run.err.starts_with("error: which project?"), "{}", run.err);
    let run = lakebell_in(&folder, &["connections", "--api", "x"], &[]);
    assert_eq!(run.status, 2);
}

#[test]
fn the_local_deployment_is_found_from_below() {
    let stub = Stub::start();
    let folder = scratch("local");
    fs::create_dir_all(folder.join(".lakebell")).unwrap();
    fs::create_dir_all(folder.join("deep/er")).unwrap();
    let local = json!({ "apiUrl": format!("{}/", stub.url), "apiToken": "stub-token", "port": 1 });
    fs::write(folder.join(".lakebell/local.json"), local.to_string()).unwrap();
    lakebell_in(&folder.join("deep/er"), &["assets", "--project", "7"], &[]).succeeded();
    // Its token is for its own API only.
    let run = lakebell_in(&folder, &["assets", "--project", "7", "--api", "http://127.0.0.1:1"], &[]);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("there is no token for http://127.0.0.1:1"), "{}", run.err);
}

#[test]
fn a_wrong_token_and_an_absent_api_say_what_to_do() {
    let stub = Stub::start();
    let run = lakebell_in(root(), &["assets", "--api", &stub.url, "--token", "wrong", "--project", "7"], &[]);
    assert_eq!(run.status, 1);
    assert!(run.err.contains("the token is not valid\n  hint   check --token"), "{}", run.err);
    let run = lakebell_in(root(), &["assets", "--api", "http://127.0.0.1:1", "--token", "t", "--project", "7"], &[]);
    assert_eq!(run.status, 1);
    assert!(
        run.err.contains("http://127.0.0.1:1 does not answer") && run.err.contains("cargo xtask up"),
        "{}",
        run.err
    );
}

#[test]
fn a_wrong_file_is_said_to_be_before_the_api_is_looked_up() {
    let folder = scratch("wrong-file");
    fs::write(folder.join("lakebell.yaml"), "project: 7\nasets: []\n").unwrap();
    let run = lakebell_in(&folder, &["apply"], &[]);
    assert_eq!(run.status, 1);
    assert!(run.err.contains("at     lakebell.yaml:2:1") && run.err.contains("unknown field `asets`"), "{}", run.err);
    let run = lakebell_in(&folder, &["apply", "-f", "absent.yaml", "--json"], &[]);
    assert!(
        serde_json::from_str::<Value>(&run.err).unwrap()["error"]["message"].as_str().unwrap().contains("absent.yaml")
    );
}
