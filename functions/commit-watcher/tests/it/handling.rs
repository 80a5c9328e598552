//! From events to state, answers and counts.

use jiff::SignedDuration;
use lakebell_commit_watcher::unwrap::{Finding, Ignored, Refused, unwrap_event};
use lakebell_domain::version::Ordinal;
use lakebell_engine::ErrorKind;
use lakebell_engine::assets;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock;
use lakebell_testkit::{Fault, Op};
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json};

use crate::support::{BUCKET, Function, batch, event, notification};

const RECEIVED: &str = "lakehouse_asset_event_received_total";
const DEDUPLICATED: &str = "lakehouse_asset_event_deduplicated_total";
const INVALID: &str = "lakehouse_asset_event_invalid_total";
const UPDATED: &str = "lakehouse_asset_state_updated_total";
const READY: &str = "lakehouse_asset_dependency_ready_total";

#[tokio::test]
async fn a_batch_out_of_order_with_a_duplicate_moves_the_state_once_for_each_commit() {
    let function = Function::new();
    let (mut table, id) = function.table("ods_order_latest").await;
    function.target("dwd", &["ods_order_latest"]).await;
    table.commit("APPEND", 4);
    table.commit("APPEND", 4);
    let again = function.handle(event("sqs-s3-batch.json")).await.unwrap();
    assert!(again.is_empty());
    let head = assets::head(&function.world.quiet_ports(), id).await.unwrap().value;
    assert_eq!(head.state.position().ordinal, Ordinal(2));
    assert_eq!(head.state.gap, None);
    assert_eq!(function.counted(UPDATED, "outcome", "advanced"), 2);
    assert_eq!(function.counted(READY, "", ""), 1);
    // The second commit finds the first one's trigger sent a moment ago and leaves it at that.
    let sent = function.world.queue.drain();
    let [Message::Dispatch { trace, .. }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(trace.as_str().len(), 32);

    let again = function.handle(event("sqs-s3-batch.json")).await.unwrap();
    assert!(again.is_empty());
    assert_eq!(function.counted(UPDATED, "", ""), 2);
    assert_eq!(function.counted(DEDUPLICATED, "", ""), 2);
    assert_eq!(function.counted(RECEIVED, "source_type", "paimon"), 4);
}

#[tokio::test]
async fn one_object_in_two_messages_is_looked_at_once_and_both_come_again() {
    let function = Function::new();
    let (mut table, _) = function.table("orders").await;
    table.commit("APPEND", 1);
    let hint = notification(&[&table.key(1)]);
    let twice = batch(&[("m1", hint.clone()), ("m2", hint)]);
    function.world.tap.fault(Op::Read, 1, Fault::Before(ErrorKind::Unavailable));
    assert_eq!(function.handle(twice.clone()).await.unwrap(), ["m1", "m2"]);
    function.world.tap.take_log();
    assert!(function.handle(twice).await.unwrap().is_empty());
    assert_eq!(function.world.tap.count(Op::Write), 1);
    assert_eq!(function.world.tap.count(Op::Query), 1);
}

#[tokio::test]
async fn one_bad_message_does_not_hold_up_the_others() {
    let function = Function::new();
    let (mut one, _) = function.table("a").await;
    let (mut two, id) = function.table("b").await;
    one.commit("APPEND", 1);
    two.commit("APPEND", 1);
    function.world.storage.refuse(BUCKET, "warehouse/ods_db.db/a/", ErrorKind::Unavailable);
    let batch = batch(&[
        ("m1", notification(&[&one.key(1)])),
        ("m2", Value::from("no JSON at all")),
        ("m3", notification(&[&two.key(1)])),
        ("m4", json!({"specversion": "1.0"})),
        ("m5", json!({})),
        ("m6", json!({"Records": []})),
    ]);
    assert_eq!(function.handle(batch).await.unwrap(), ["m1", "m2"]);
    let head = assets::head(&function.world.quiet_ports(), id).await.unwrap().value;
    assert_eq!(head.state.position().ordinal, Ordinal(1));
    assert_eq!(function.counted(INVALID, "reason", "not_json"), 1);
    assert_eq!(function.counted(INVALID, "reason", "unknown_shape"), 1);
}

#[tokio::test]
async fn a_failure_that_no_later_try_helps_is_counted_and_done_with() {
    let function = Function::new();
    let (mut table, _) = function.table("orders").await;
    table.commit("APPEND", 1);
    function.world.tap.fault(Op::Query, 1, Fault::Before(ErrorKind::Damaged));
    let event = batch(&[("m1", notification(&[&table.key(1)]))]);
    assert!(function.handle(event).await.unwrap().is_empty());
    assert_eq!(function.counted(INVALID, "reason", "DAMAGED"), 1);
}

#[tokio::test]
async fn an_unknown_table_is_counted_and_no_failure() {
    let function = Function::new();
    for _ in 0..2 {
        assert!(function.handle(event("sqs-sns-s3.json")).await.unwrap().is_empty());
    }
    assert_eq!(function.counted(INVALID, "reason", "unknown_table"), 2);
    let seen = assets::list_unregistered(&function.world.quiet_ports(), None).await.unwrap();
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn an_event_without_a_queue_fails_as_a_whole_where_a_later_try_may_help() {
    let function = Function::new();
    let (mut table, _) = function.table("ods_order_latest").await;
    table.commit("APPEND", 1);
    for name in ["s3-direct.json", "sns-s3.json"] {
        function.world.tap.fault(Op::Read, 1, Fault::Before(ErrorKind::Unavailable));
        let failure = function.handle(event(name)).await.unwrap_err();
        assert_eq!(failure.to_string(), "1 messages have to come again; the log says why");
    }
    assert!(function.handle(event("s3-direct.json")).await.unwrap().is_empty());
    assert!(function.handle(Value::from("no JSON object")).await.unwrap().is_empty());
    assert_eq!(function.counted(INVALID, "reason", "unknown_shape"), 1);
}

#[tokio::test]
async fn a_message_without_an_id_fails_the_invocation_rather_than_being_lost() {
    let function = Function::new();
    let (mut table, _) = function.table("orders").await;
    table.commit("APPEND", 1);
    function.world.tap.fault(Op::Read, 1, Fault::Before(ErrorKind::Unavailable));
    let event = batch(&[("", notification(&[&table.key(1)]))]);
    assert!(function.handle(event).await.is_err());
}

#[tokio::test]
async fn a_message_of_lakebell_keeps_its_trace() {
    let function = Function::new();
    let (mut table, id) = function.table("orders").await;
    function.target("dwd", &["orders"]).await;
    table.commit("APPEND", 1);
    let observe = json!({"lakebell": "observe", "asset": id, "trace": "carried-along"});
    assert!(function.handle(batch(&[("m1", observe)])).await.unwrap().is_empty());
    let [Message::Dispatch { trace, .. }] = &function.world.queue.drain()[..] else { panic!("one message") };
    assert_eq!(trace.as_str(), "carried-along");

    // Nobody leased it for so long that its message may be lost: an evaluation sends it again.
    function.world.clock.advance(std::time::Duration::from_mins(1));
    let evaluate = json!({"lakebell": "evaluate", "targets": ["7/dwd"], "trace": "another"});
    assert!(function.handle(batch(&[("m2", evaluate)])).await.unwrap().is_empty());
    assert_eq!(function.world.queue.len(), 1);

    let gone = json!({"lakebell": "observe", "asset": "00000000000000000000000000000001", "trace": "t"});
    assert!(function.handle(batch(&[("m3", gone)])).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_finds_too_little_time_comes_again() {
    let function = Function::new();
    let (mut table, _) = function.table("orders").await;
    table.commit("APPEND", 1);
    let mut context = lambda_runtime::Context::default();
    let soon = function.world.clock.now() + SignedDuration::from_secs(2);
    context.deadline = u64::try_from(soon.as_millisecond()).unwrap();
    let event = batch(&[("m1", notification(&[&table.key(1)])), ("m2", json!({}))]);
    assert_eq!(function.handle_with(LambdaEvent::new(event, context)).await.unwrap(), ["m1"]);
}

#[test]
fn records_are_told_apart_by_name_and_major_version() {
    let record = |name: &str, version: &str| {
        let mut event = notification(&["w/snapshot/snapshot-1"]);
        event["Records"][0]["eventName"] = name.into();
        event["Records"][0]["eventVersion"] = version.into();
        unwrap_event(&event).remove(0)
    };
    for name in ["Put", "Post", "Copy", "CompleteMultipartUpload", "SomethingNew"] {
        for prefix in ["ObjectCreated:", "s3:ObjectCreated:"] {
            for version in ["2.0", "2.1", "2.9", "2"] {
                assert!(matches!(record(&format!("{prefix}{name}"), version), Finding::Object { .. }), "{name}");
            }
        }
    }
    assert_eq!(record("ObjectCreated:Put", "3.0"), Finding::Refused(Refused::UnknownVersion));
    for name in ["ObjectRemoved:Delete", "ObjectAnnotation:Put", "s3:Replication:Whatever", ""] {
        assert_eq!(record(name, "2.1"), Finding::Ignored(Ignored::NotCreated), "{name}");
    }
}

#[test]
fn quotes_around_entity_tags_go() {
    let mut event = notification(&["w/snapshot/snapshot-1"]);
    for (etag, expected) in [(json!("\"abc\""), Some("abc")), (json!("abc-2"), Some("abc-2")), (json!(""), None)] {
        event["Records"][0]["s3"]["object"]["eTag"] = etag;
        let [Finding::Object { created, .. }] = &unwrap_event(&event)[..] else { panic!("one object") };
        assert_eq!(created.etag.as_deref(), expected);
    }
}
