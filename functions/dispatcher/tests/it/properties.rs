//! What holds for any event.

use std::collections::BTreeSet;

use lakebell_engine::ErrorKind;
use lakebell_testkit::{Fault, Op, StartFault};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Function, batch};

#[derive(Debug, Clone)]
enum Body {
    Order,
    Json(i64),
    Text(String),
}

fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![3 => Just(Body::Order), 1 => any::<i64>().prop_map(Body::Json), 1 => any::<String>().prop_map(Body::Text)]
}

proptest! {
    #[test]
    fn an_answer_names_only_messages_of_the_batch_and_one_trigger_starts_once(
        bodies in proptest::collection::vec((0..4_usize, any_body()), 0..8),
        faults in proptest::collection::vec((0..3_usize, 1..6_usize), 0..4),
        has_no_id in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut function = Function::new().await;
            let order = serde_json::to_value(function.commit().await.unwrap()).unwrap();
            for (kind, nth) in faults {
                match kind {
                    0 => function.world.tap.fault(Op::Write, nth, Fault::LostAnswer),
                    1 => function.world.tap.fault(Op::Get, nth, Fault::Before(ErrorKind::Unavailable)),
                    _ => function.scheduler.fault(StartFault::TakesEffectThenTimesOut),
                }
            }
            let ids = ["m1", "m2", "m3", "m4"];
            let body = |body| match body {
                Body::Order => order.clone(),
                Body::Json(number) => json!({ "number": number }),
                Body::Text(text) => Value::from(text),
            };
            let messages: Vec<(&str, Value)> = bodies.into_iter().map(|(id, one)| (ids[id], body(one))).collect();
            let known: BTreeSet<&str> = messages.iter().map(|(id, _)| *id).collect();
            let mut event = batch(&messages);
            if has_no_id {
                let odd = json!({"eventSource": "aws:sqs", "messageId": "", "body": order.to_string()});
                event["Records"].as_array_mut().unwrap().push(odd);
            }
            for _ in 0..3 {
                if let Ok(again) = function.handle(event.clone()).await {
                    prop_assert!(again.iter().all(|id| known.contains(id.as_str())), "{again:?}");
                    prop_assert_eq!(again.iter().collect::<BTreeSet<_>>().len(), again.len());
                } else {
                    prop_assert!(has_no_id);
                }
            }
            prop_assert!(function.scheduler.instances().len() <= 1);
            Ok(())
        })?;
    }
}
