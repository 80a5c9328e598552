//! `audit` and `doctor`.

use serde_json::json;

use crate::stub::Stub;
use crate::support::golden;

const AUDIT: &str = "0123456789abcdef0123456789abcdef";

fn audited(findings: &serde_json::Value, is_clean: bool) -> serde_json::Value {
    json!({
        "id": AUDIT, "project": 7, "since": "2026-01-01T00:00:00Z", "askedAt": "2026-01-02T00:00:00Z",
        "result": {
            "isClean": is_clean, "triggers": 3, "instances": 4, "findings": findings, "moreFindings": 0,
            "notCompared": if is_clean { json!([]) } else {
                json!([{"connection": "default", "workflow": "5", "why": "HTTP_401: the token is refused"}])
            },
        },
    })
}

#[test]
fn an_audit_is_waited_for_and_its_exit_status_says_whether_it_is_clean() {
    let stub = Stub::start();
    let asked = json!({"id": AUDIT, "project": 7, "since": "2026-01-01T00:00:00Z", "askedAt": "2026-01-02T00:00:00Z"});
    stub.fix("POST /projects/7/audits", 202, asked);
    let read = format!("GET /projects/7/audits/{AUDIT}");
    stub.fix(&read, 200, audited(&json!([]), true));
    let run = stub.run(&["audit"]).succeeded();
    assert_eq!(
        run.out,
        "nothing that is wrong\nclean: 3 triggers since 2026-01-01T00:00:00Z, compared with 4 instances\n"
    );
    let findings = json!([
        {"kind": "extra", "detail": "a second instance of one trigger: stop it", "trigger": "00ff", "instance": 9},
        {"kind": "missing", "detail": "the scheduler shows no instance of it", "trigger": "00fe"},
    ]);
    stub.fix(&read, 200, audited(&findings, false));
    let run = stub.run(&["audit", "--since", "2026-01-01T00:00:00Z"]);
    assert_eq!(run.status, 1);
    golden("audit.txt", &run.out);
}

#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    let stub = Stub::start();
    let well = json!({"check": "timers", "status": "ok", "detail": "nothing is late"});
    stub.fix("GET /doctor", 200, json!({"version": env!("CARGO_PKG_VERSION"), "checks": [well]}));
    stub.run(&["doctor"]).succeeded();
    let bad = json!({
        "check": "connection", "subject": "default", "status": "bad", "detail": "HTTP_401: the token is refused",
        "todo": "put a new token into the connection's secret",
    });
    stub.fix("GET /doctor", 200, json!({"version": "0.0.0", "checks": [bad, well]}));
    let run = stub.run(&["doctor"]);
    assert_eq!(run.status, 1);
    golden("doctor.txt", &run.out.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}
