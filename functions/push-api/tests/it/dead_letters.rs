//! Messages that nobody tries any more are listed and put back.

use lakebell_engine::ports::dead_letters::DeadQueue;
use serde_json::json;

use crate::support::{Api, body, golden};

#[tokio::test]
async fn dead_letters_are_listed_and_put_back() {
    let api = Api::new();
    for message in 0..25 {
        api.dead_letters.lay(DeadQueue::Dispatch, format!("message {message}"));
    }
    api.dead_letters.lay(DeadQueue::Hints, "no JSON");
    golden("dead-letters", &api.get("/dead-letters").await);
    golden("dead-letters-drained", &api.post("/dead-letters/dispatch/drain", &json!({})).await);
    let back = api.dead_letters.put_back();
    assert_eq!(back.len(), 25, "those of another queue stay");
    assert_eq!(back[0], (DeadQueue::Dispatch, "message 0".to_owned()));
    let again = api.post("/dead-letters/dispatch/drain", &json!({})).await;
    assert_eq!((&body(&again)["putBack"], &body(&again)["isEmpty"]), (&json!(0), &json!(true)));
}

#[tokio::test]
async fn one_request_puts_back_a_thousand_at_most_and_says_that_there_are_more() {
    let api = Api::new();
    for message in 0..1_001 {
        api.dead_letters.lay(DeadQueue::Evaluate, format!("message {message}"));
    }
    let drained = api.post("/dead-letters/evaluate/drain", &json!({})).await;
    assert_eq!((&body(&drained)["putBack"], &body(&drained)["isEmpty"]), (&json!(1_000), &json!(false)));
}

#[tokio::test]
async fn a_queue_that_is_none_is_refused() {
    let refused = Api::new().post("/dead-letters/letters/drain", &json!({})).await;
    assert_eq!((refused.status_code, &body(&refused)["field"]), (400, &json!("queue")));
}
