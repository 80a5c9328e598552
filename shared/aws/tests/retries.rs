//! What becomes of conflicts, throttling and missing answers, against a server with a script.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use lakebell_aws::DynamoItems;
use lakebell_domain::ids::AttemptId;
use lakebell_engine::ports::items::{Draft, ItemStore, Key, Range, Write, Written};
use lakebell_engine::{EngineError, ErrorKind};
use serde_json::Value;
use support::{Server, Step};

fn create(sk: &str) -> Write {
    Write::Create(Draft::new(Key::new("A#1", sk), "{}".to_owned()))
}

fn done() -> Step {
    Step::Answer(200, "{}".to_owned())
}

async fn write(server: &Server, actions: &[Write]) -> Result<Written, EngineError> {
    DynamoItems::new(server.dynamodb(), "t").write(actions, &AttemptId::new("a").unwrap()).await
}

async fn single(script: Vec<Step>) -> (Result<Written, EngineError>, Vec<String>) {
    let server = Server::start(None, script).await;
    (write(&server, &[create("0")]).await, server.requests())
}

async fn pair(script: Vec<Step>) -> (Result<Written, EngineError>, Vec<String>) {
    let server = Server::start(None, script).await;
    (write(&server, &[create("0"), create("1")]).await, server.requests())
}

fn tokens(requests: &[String]) -> Vec<String> {
    let token = |body: &String| {
        let body: Value = serde_json::from_str(body).unwrap();
        body["ClientRequestToken"].as_str().expect("a token").to_owned()
    };
    requests.iter().map(token).collect()
}

#[tokio::test]
async fn a_conflict_is_tried_four_times_more() {
    let conflict = Step::cancelled(&["None", "TransactionConflict"]);
    let (written, requests) =
        pair(vec![conflict.clone(), conflict.clone(), conflict.clone(), conflict.clone(), done()]).await;
    assert_eq!((written.unwrap(), requests.len()), (Written::Done, 5));
    let mut tokens = tokens(&requests);
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 5, "each try has a token of its own");

    let (written, requests) = pair(vec![conflict; 6]).await;
    assert_eq!((written.unwrap_err().kind(), requests.len()), (ErrorKind::Contention, 5));
}

#[tokio::test]
async fn a_plain_write_meets_transactions_too() {
    let conflict = Step::error("TransactionConflictException", "");
    let (written, requests) = single(vec![conflict.clone(), done()]).await;
    assert_eq!((written.unwrap(), requests.len()), (Written::Done, 2));
    let (written, _) = single(vec![conflict; 6]).await;
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Contention);
}

#[tokio::test]
async fn throttling_backs_off_and_gives_up() {
    for code in ["ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"] {
        let (written, requests) = single(vec![Step::error(code, ""), done()]).await;
        assert_eq!((written.unwrap(), requests.len()), (Written::Done, 2), "{code}");
    }
    let throttled = Step::cancelled(&["ThrottlingError", "TransactionConflict"]);
    let (written, requests) = pair(vec![throttled; 9]).await;
    let error = written.unwrap_err();
    assert_eq!((error.kind(), error.retryable(), requests.len()), (ErrorKind::Unavailable, true, 4));
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_with_the_same_token() {
    let (written, requests) = pair(vec![Step::Break, Step::Answer(500, "{}".to_owned()), done()]).await;
    assert_eq!(written.unwrap(), Written::Done);
    let tokens = tokens(&requests);
    assert!(tokens.len() == 3 && tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");

    let (written, requests) = pair(vec![Step::Break; 4]).await;
    assert_eq!((written.unwrap_err().kind(), requests.len()), (ErrorKind::Unavailable, 3));
}

#[tokio::test]
async fn contention_after_a_lost_answer_is_not_called_contention() {
    let mut script = vec![Step::Break];
    script.extend(vec![Step::cancelled(&["TransactionConflict", "None"]); 6]);
    let (written, _) = pair(script).await;
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Unavailable, "the first try may have landed");
}

#[tokio::test]
async fn a_transaction_in_progress_is_waited_for() {
    let (written, requests) = pair(vec![Step::Break, Step::error("TransactionInProgressException", ""), done()]).await;
    assert_eq!((written.unwrap(), requests.len()), (Written::Done, 3));
}

#[tokio::test]
async fn what_repeating_cannot_help_is_said_at_once() {
    let cases = [
        ("IdempotentParameterMismatchException", ErrorKind::Unavailable, "read back"),
        ("ValidationException", ErrorKind::Defect, "rejected"),
        ("ResourceNotFoundException", ErrorKind::NotFound, "check LAKEBELL_TABLE"),
        ("AccessDeniedException", ErrorKind::Denied, "allow it in the role"),
        ("ExpiredTokenException", ErrorKind::Denied, "allow it in the role"),
    ];
    for (code, kind, sentence) in cases {
        let (written, requests) = pair(vec![Step::error(code, ""); 2]).await;
        let error = written.unwrap_err();
        assert_eq!((error.kind(), requests.len()), (kind, 1), "{code}");
        assert!(error.message().contains(sentence), "{error}");
    }
}

#[tokio::test]
async fn a_failed_condition_shows_the_item_that_stands() {
    let standing = r#"{"pk":{"S":"A#1"},"sk":{"S":"0"},"rev":{"N":"3"},"attempt":{"S":"a"},"doc":{"S":"{}"}}"#;
    let failed = Step::error("ConditionalCheckFailedException", &format!(r#","Item":{standing}"#));
    // The first request landed, its answer was lost, and the second fails on the first.
    let (written, requests) = single(vec![Step::Break, failed]).await;
    let Written::Lost(lost) = written.unwrap() else { panic!("the condition failed") };
    assert_eq!((lost[0].existing.as_ref().unwrap().attempt.as_str(), requests.len()), ("a", 2));

    let reasons =
        format!(r#","CancellationReasons":[{{"Code":"None"}},{{"Code":"ConditionalCheckFailed","Item":{standing}}}]"#);
    let (written, _) = pair(vec![Step::error("TransactionCanceledException", &reasons)]).await;
    let Written::Lost(lost) = written.unwrap() else { panic!("the condition failed") };
    assert_eq!((lost[0].action, lost[0].existing.as_ref().unwrap().rev), (1, 3));
}

#[tokio::test]
async fn unprocessed_keys_are_finished() {
    let row = |sk: &str| {
        format!(
            r#"{{"pk":{{"S":"A#1"}},"sk":{{"S":"{sk}"}},"rev":{{"N":"1"}},"attempt":{{"S":"a"}},"doc":{{"S":"{{}}"}}}}"#
        )
    };
    let left = r#"{"t":{"Keys":[{"pk":{"S":"A#1"},"sk":{"S":"1"}}],"ConsistentRead":true}}"#;
    let first = format!(r#"{{"Responses":{{"t":[{}]}},"UnprocessedKeys":{left}}}"#, row("0"));
    let nothing = format!(r#"{{"Responses":{{"t":[]}},"UnprocessedKeys":{left}}}"#);
    let last = format!(r#"{{"Responses":{{"t":[{}]}},"UnprocessedKeys":{{}}}}"#, row("1"));
    let answer = |body: &String| Step::Answer(200, body.clone());
    let keys = [Key::new("A#1", "0"), Key::new("A#1", "1"), Key::new("A#1", "0")];

    let server = Server::start(None, vec![answer(&first), answer(&nothing), answer(&last)]).await;
    let found = DynamoItems::new(server.dynamodb(), "t").get(&keys).await.unwrap();
    assert_eq!(found.iter().map(|item| item.key.sk.as_str()).collect::<Vec<_>>(), ["0", "1"]);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|body| body.contains(r#""ConsistentRead":true"#)), "{requests:?}");
    assert!(!requests[1].contains(r#"{"S":"0"}"#), "only what was left is asked for again");

    let server = Server::start(None, vec![answer(&nothing); 20]).await;
    let error = DynamoItems::new(server.dynamodb(), "t").get(&keys).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(server.requests().len() < 10, "it gives up");
}

#[tokio::test]
async fn reads_are_repeated_by_the_sdk() {
    let server =
        Server::start(None, vec![Step::Break, Step::Answer(200, r#"{"Items":[],"Count":0}"#.to_owned())]).await;
    let page = DynamoItems::new(server.dynamodb(), "t").query(&Range::prefix("A#1", ""), None, None).await.unwrap();
    assert!(page.found.is_empty() && page.next.is_none());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn nothing_is_sent_for_nothing() {
    let (written, requests) = {
        let server = Server::start(None, Vec::new()).await;
        (write(&server, &[]).await, server.requests())
    };
    assert_eq!((written.unwrap(), requests.len()), (Written::Done, 0));
}
