//! Tasks that wait inside a running workflow.

use lakebell_engine::ports::time::Clock as _;
use lakebell_push_api::event::GatewayResponse;
use serde_json::{Value, json};

use crate::operate::{commit, triggers};
use crate::support::{Api, TARGETS, body, golden, logged, target};

/// What DolphinScheduler's HTTP task looks for in the body.
const MARKER: &str = r#""sensor":"READY""#;

/// The target `dwd`, which task 456 waits for, with further keys.
pub(crate) async fn with_sensor(more: &Value) -> Api {
    let api = Api::with_orders().await;
    let mut spec = target("dwd", 4711);
    spec["taskDefinitionCode"] = json!(456);
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    assert_eq!(api.post(TARGETS, &spec).await.status_code, 201);
    api.world.queue.drain();
    api
}

async fn ask(api: &Api, body: &Value) -> GatewayResponse {
    api.post(&format!("{TARGETS}/dwd/sensor"), body).await
}

/// A poll as version 3.2 and later send it: every value is text.
fn poll(instance: &str) -> Value {
    json!({"workflowInstanceId": instance, "taskDefinitionCode": "456", "run": "1", "waitSeconds": "0"})
}

#[tokio::test]
async fn a_task_waits_goes_on_and_is_told_the_same_again() {
    let api = with_sensor(&json!({})).await;
    let waiting = ask(&api, &poll("31")).await;
    golden("sensor-waiting", &waiting);
    assert!(!waiting.body.contains(MARKER));
    commit(&api, 3).await;
    let ready = ask(&api, &poll("31")).await;
    golden("sensor-ready", &ready);
    assert!(ready.body.contains(MARKER), "compact, as the task looks for it: {}", ready.body);
    let again = ask(&api, &json!({"workflowInstanceId": 31})).await;
    golden("sensor-recorded", &again);
    assert_eq!(body(&ready)["parameters"], body(&again)["parameters"]);
    let other = ask(&api, &poll("32")).await;
    assert_eq!((body(&other)["sensor"].as_str(), other.body.contains(MARKER)), (Some("WAITING"), false));

    let trigger = &triggers(&api).await[0];
    assert_eq!((&trigger["triggerStatus"], &trigger["instance"]), (&json!("SUCCESS"), &json!(31)));
    assert_eq!(trigger["sensor"], json!({"task": 456, "takenBy": {"asker": {"workflowInstance": 31}, "run": 1}}));
    assert_eq!(api.dispatched(), 0);
    let answers: Vec<String> = api.metrics().into_iter().filter(|metric| metric.contains("sensor")).collect();
    let name = "lakehouse_asset_sensor_answered_total";
    let expected = ["waiting", "ready", "recorded", "waiting"].map(|word| format!("{name} {word}"));
    let mut expected = expected.to_vec();
    expected.insert(2, "lakehouse_asset_trigger_success_total sensor".to_owned());
    assert_eq!(answers, expected);
    assert!(
        logged()
            .lines()
            .any(|line| line.contains("a waiting task goes on") && line.contains("\"31\"") | line.contains(":31"))
    );
}

#[tokio::test]
async fn a_task_of_3_1_asks_with_a_token() {
    let api = with_sensor(&json!({})).await;
    commit(&api, 3).await;
    let ready = ask(&api, &json!({"token": "0a1b", "workflowInstanceId": "", "taskDefinitionCode": "456"})).await;
    assert_eq!(body(&ready)["sensor"], "READY");
    assert_eq!(body(&ask(&api, &json!({"token": "0a1c"})).await)["sensor"], "WAITING");
    assert_eq!(body(&ask(&api, &json!({"token": "0a1b"})).await)["recorded"], true);
}

#[tokio::test]
async fn a_passed_deadline_is_told() {
    let api = with_sensor(&json!({"timeoutMinutes": 5, "quietPeriod": "1h"})).await;
    commit(&api, 3).await;
    api.world.clock.advance(std::time::Duration::from_mins(6));
    golden("sensor-timed-out", &ask(&api, &poll("31")).await);
    assert!(api.metrics().contains(&"lakehouse_asset_sensor_answered_total timed_out".to_owned()));
}

#[tokio::test]
async fn a_shadow_says_that_it_is_one() {
    let api = with_sensor(&json!({"mode": "shadow"})).await;
    commit(&api, 3).await;
    let told = body(&ask(&api, &poll("31")).await);
    assert_eq!((&told["sensor"], &told["mode"]), (&json!("WAITING"), &json!("shadow")));
    assert_eq!(triggers(&api).await[0]["triggerStatus"], "SKIPPED");
}

#[tokio::test]
async fn a_poll_may_wait_and_beyond_the_places_it_does_not() {
    let api = with_sensor(&json!({})).await;
    let mut long = poll("31");
    long["waitSeconds"] = json!("20");
    let began = api.world.clock.now();
    assert_eq!(body(&ask(&api, &long).await)["sensor"], "WAITING");
    assert_eq!(api.world.clock.now().duration_since(began).as_secs(), 20);
    // Somebody holds every place.
    let until = json!({"until": api.world.clock.now() + jiff::SignedDuration::from_secs(60)}).to_string();
    for number in 0..3 {
        let key = lakebell_engine::layout::sensor_place(number);
        let place = api.world.items.dump().into_iter().find(|item| item.key.pk.starts_with("SP#")).unwrap();
        api.world.items.plant(lakebell_engine::ports::items::Item { key, doc: until.clone(), ..place });
    }
    let began = api.world.clock.now();
    let told = ask(&api, &long).await;
    assert_eq!((told.status_code, &body(&told)["sensor"]), (200, &json!("WAITING")));
    assert_eq!(api.world.clock.now(), began, "at once");
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused_with_what_would_be_right() {
    let api = with_sensor(&json!({})).await;
    golden("error-sensor-placeholder", &ask(&api, &poll("${system.workflow.instance.id}")).await);
    golden("error-sensor-task", &ask(&api, &json!({"workflowInstanceId": 31, "taskDefinitionCode": 9})).await);
    let table = [
        (json!({}), "workflowInstanceId"),
        (json!({"workflowInstanceId": "31", "token": "a"}), "token"),
        (json!({"workflowInstanceId": "-1"}), "workflowInstanceId"),
        (json!({"workflowInstanceId": "x"}), "workflowInstanceId"),
        (json!({"token": "a b"}), "token"),
        (json!({"token": "a".repeat(129)}), "token"),
        (json!({"workflowInstanceId": 31, "run": 0}), "run"),
        (json!({"workflowInstanceId": 31, "run": "4294967296"}), "run"),
        (json!({"workflowInstanceId": 31, "waitSeconds": 21}), "waitSeconds"),
        (json!({"workflowInstanceId": 31, "waitSeconds": "soon"}), "waitSeconds"),
        (json!({"workflowInstanceId": 31, "taskDefinitionCode": "0"}), "taskDefinitionCode"),
        (json!({"workflowInstanceId": true}), "workflowInstanceId"),
        (json!({"workflowInstanceId": 31, "wait": 5}), "wait"),
        (json!([]), "body"),
    ];
    for (asked, field) in table {
        let refused = ask(&api, &asked).await;
        assert_eq!((refused.status_code, &body(&refused)["field"]), (400, &json!(field)), "{asked}: {}", refused.body);
        assert!(body(&refused)["hint"].is_string(), "{asked}: {}", refused.body);
    }
    let unknown = api.post(&format!("{TARGETS}/nothing/sensor"), &poll("31")).await;
    golden("error-sensor-unknown-target", &unknown);
    assert_eq!(api.post(&format!("{TARGETS}/a%20b/sensor"), &poll("31")).await.status_code, 400);

    assert_eq!(api.post(TARGETS, &target("plain", 4711)).await.status_code, 201);
    let none = api.post(&format!("{TARGETS}/plain/sensor"), &poll("31")).await;
    golden("error-sensor-none", &none);
    assert!(triggers(&api).await.is_empty());
}

#[tokio::test]
async fn a_store_that_is_away_is_said_so_and_the_next_poll_gets_what_was_taken() {
    let api = with_sensor(&json!({})).await;
    commit(&api, 3).await;
    api.world.tap.fault(lakebell_testkit::Op::Write, 1, lakebell_testkit::Fault::LostAnswer);
    let lost = ask(&api, &poll("31")).await;
    assert_eq!((lost.status_code, &body(&lost)["code"]), (503, &json!("UNAVAILABLE")));
    let told = body(&ask(&api, &poll("31")).await);
    assert_eq!((&told["sensor"], &told["recorded"]), (&json!("READY"), &json!(true)));
    assert_eq!(triggers(&api).await.len(), 1);
}
