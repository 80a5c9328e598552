//! What holds for any event.

use std::collections::BTreeSet;

use lakebell_commit_watcher::unwrap::{Finding, MAX_FINDINGS, Refused, unwrap_body, unwrap_event};
use lakebell_testkit::{Fault, Op};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{Function, batch, notification};

/// Words that lead into every corner of the unwrapper.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "Records",
        "s3",
        "bucket",
        "object",
        "name",
        "key",
        "eventName",
        "eventVersion",
        "eventSource",
        "aws:sqs",
        "aws:s3",
        "ObjectCreated:Put",
        "s3:TestEvent",
        "Event",
        "body",
        "Sns",
        "Message",
        "Type",
        "TopicArn",
        "Notification",
        "SubscriptionConfirmation",
        "detail-type",
        "source",
        "aws.s3",
        "Object Created",
        "detail",
        "requestPayload",
        "lakebell",
        "evaluate",
        "observe",
        "targets",
        "trace",
        "asset",
        "messageId",
        "eTag",
        "etag",
        "2.1",
        "3.0",
        "{}",
        "[]",
        "%",
        "a+b%2B",
        "%zz",
    ];
    prop_oneof![4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((word(), inner.clone()), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
            // A document as text: what makes layers.
            inner.prop_map(|value| Value::from(value.to_string())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_taken_apart(event in any_json()) {
        let findings = unwrap_event(&event);
        prop_assert!(!findings.is_empty() && findings.len() <= MAX_FINDINGS);
        prop_assert!(!unwrap_body(&event.to_string()).is_empty());
    }

    #[test]
    fn any_text_is_taken_apart(body in any::<String>()) {
        prop_assert!(!unwrap_body(&body).is_empty());
    }

    #[test]
    fn an_answer_names_only_messages_of_the_batch(
        event in any_json(),
        bodies in proptest::collection::vec((0..4_usize, any_json()), 0..6),
        faults in 0..4_usize,
    ) {
        let ids = ["m1", "m2", "m3", "m4"];
        let mut messages: Vec<(&str, Value)> = bodies.into_iter().map(|(id, body)| (ids[id], body)).collect();
        messages.push(("m5", notification(&["w/db.db/t/snapshot/snapshot-1"])));
        let known: BTreeSet<&str> = messages.iter().map(|(id, _)| *id).collect();
        let function = Function::new();
        for nth in 0..faults {
            function.world.tap.fault(Op::Get, nth + 1, Fault::Before(lakebell_engine::ErrorKind::Unavailable));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let again = runtime.block_on(function.handle(batch(&messages))).unwrap();
        prop_assert!(again.iter().all(|id| known.contains(id.as_str())), "{again:?}");
        prop_assert_eq!(again.iter().collect::<BTreeSet<_>>().len(), again.len());
        // Records without an id, and anything else: no id may be made up.
        let mut odd = batch(&messages);
        odd["Records"].as_array_mut().unwrap().push(json!({"eventSource": "aws:sqs", "messageId": "", "body": event}));
        if let Ok(again) = runtime.block_on(function.handle(odd)) {
            prop_assert!(again.iter().all(|id| known.contains(id.as_str())), "{again:?}");
        }
    }
}

#[test]
fn layers_are_bounded() {
    let mut event = notification(&["w/snapshot/snapshot-1"]);
    let mut layers = 1;
    while layers < 5 {
        let is_found = matches!(unwrap_event(&event)[..], [Finding::Object { .. }]);
        assert_eq!(is_found, layers <= 4, "{layers}");
        event = json!({"Type": "Notification", "TopicArn": "arn", "Message": event.to_string()});
        layers += 1;
    }
    assert_eq!(unwrap_event(&event), [Finding::Refused(Refused::TooDeep)]);
}

#[test]
fn findings_are_bounded() {
    let keys = vec!["w/snapshot/snapshot-1"; MAX_FINDINGS + 5];
    let findings = unwrap_event(&notification(&keys));
    assert_eq!(findings.len(), MAX_FINDINGS);
    assert_eq!(findings.last(), Some(&Finding::Refused(Refused::TooMany)));
    let deep = "[".repeat(100_000);
    assert_eq!(unwrap_body(&deep), [Finding::Refused(Refused::NotJson)]);
}
