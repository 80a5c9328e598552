//! The ports against a local AWS: `LAKEBELL_LOCAL=.lakebell/local.json cargo test -p lakebell-aws`.
//!
//! Each test makes what it needs under a name of its own and removes it at the end.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};
use aws_sdk_s3::primitives::ByteStream;
use lakebell_aws::dead_letters::QueueUrls;
use lakebell_aws::{AwsPorts, DynamoItems, S3Storage, Settings, SqsDeadLetters, SqsQueue, SystemRandom};
use lakebell_domain::ids::{AssetId, AttemptId, ConnectionName, TraceId, TriggerKey};
use lakebell_engine::ports::dead_letters::{DeadLetters, DeadQueue};
use lakebell_engine::ports::items::{Draft, ItemStore, Key, Write, Written};
use lakebell_engine::ports::queue::{Message, Queue};
use lakebell_engine::ports::scheduler::ConnectionSpec;
use lakebell_engine::ports::storage::{Listing, TableStorage};
use lakebell_engine::ports::time::Random;
use lakebell_engine::{ErrorKind, layout};
use lakebell_testkit::contract::{item_store_contract, no_lost_update};
use lakebell_testkit::storage_contract;
use tokio::task::JoinSet;

use support::{Server, Step, dynamodb, emulator};

fn unique(what: &str) -> String {
    format!("lakebell-{what}-{:012x}", SystemRandom.bits() & 0xffff_ffff_ffff)
}

fn sdk(endpoint: &str) -> SdkConfig {
    SdkConfig::builder()
        .http_client(lakebell_aws::config::https_client())
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("test", "test", None, None, "test")))
        .build()
}

fn s3(endpoint: &str) -> aws_sdk_s3::Client {
    let config = aws_sdk_s3::config::Builder::from(&sdk(endpoint)).force_path_style(true).build();
    aws_sdk_s3::Client::from_conf(config)
}

/// A table as infra/template.yaml makes it.
async fn make_table(client: &aws_sdk_dynamodb::Client) -> String {
    let name = unique("items");
    let key = |attribute: &str, kind: KeyType| {
        KeySchemaElement::builder().attribute_name(attribute).key_type(kind).build().unwrap()
    };
    let index = |name: &str| {
        GlobalSecondaryIndex::builder()
            .index_name(name)
            .key_schema(key(&format!("{name}_pk"), KeyType::Hash))
            .key_schema(key(&format!("{name}_sk"), KeyType::Range))
            .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build())
            .build()
            .unwrap()
    };
    let mut request = client
        .create_table()
        .table_name(&name)
        .billing_mode(BillingMode::PayPerRequest)
        .key_schema(key("pk", KeyType::Hash))
        .key_schema(key("sk", KeyType::Range))
        .global_secondary_indexes(index("sweep"))
        .global_secondary_indexes(index("history"));
    for attribute in ["pk", "sk", "sweep_pk", "sweep_sk", "history_pk", "history_sk"] {
        let text = AttributeDefinition::builder().attribute_name(attribute).attribute_type(ScalarAttributeType::S);
        request = request.attribute_definitions(text.build().unwrap());
    }
    request.send().await.unwrap();
    name
}

async fn remove_table(client: &aws_sdk_dynamodb::Client, name: &str) {
    client.delete_table().table_name(name).send().await.unwrap();
}

#[tokio::test]
async fn dynamodb_keeps_the_contract() {
    let Some(endpoint) = emulator("the contract of the item store") else { return };
    let client = dynamodb(&endpoint);
    let table = make_table(&client).await;
    item_store_contract(&DynamoItems::new(client.clone(), &table)).await;
    remove_table(&client, &table).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_writers_lose_no_update() {
    let Some(endpoint) = emulator("64 writers on one item") else { return };
    let client = dynamodb(&endpoint);
    let table = make_table(&client).await;
    let (lost, contentions) = no_lost_update(Arc::new(DynamoItems::new(client.clone(), &table)), 64, 2).await;
    println!("128 updates by 64 writers: {lost} lost conditions, {contentions} contentions");
    assert!(lost > 0, "the writers did meet");
    remove_table(&client, &table).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_with_lost_answers_lose_no_update() {
    let Some(endpoint) = emulator("writers with lost answers") else { return };
    let client = dynamodb(&endpoint);
    let table = make_table(&client).await;
    let upstream = endpoint.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut script = vec![Step::Pass; 20];
    for _ in 0..20 {
        script.extend([Step::LoseAnswer, Step::Pass, Step::Break, Step::Pass, Step::Answer(500, "{}".to_owned())]);
    }
    let server = Server::start(Some(upstream), script).await;
    no_lost_update(Arc::new(DynamoItems::new(server.dynamodb(), &table)), 8, 5).await;
    remove_table(&client, &table).await;
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_recognised() {
    let Some(endpoint) = emulator("a lost answer") else { return };
    let client = dynamodb(&endpoint);
    let table = make_table(&client).await;
    let upstream = endpoint.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let server = Server::start(Some(upstream), vec![Step::LoseAnswer]).await;
    let items = DynamoItems::new(server.dynamodb(), &table);
    let create = |sk: &str| Write::Create(Draft::new(Key::new("A#1", sk), "{}".to_owned()));
    let mine = AttemptId::new("mine").unwrap();

    // A plain write fails on itself and shows the attempt.
    let Written::Lost(lost) = items.write(&[create("0")], &mine).await.unwrap() else { panic!("it had landed") };
    assert_eq!(lost[0].existing.as_ref().unwrap().attempt, mine);

    // A transaction is recognised by its token.
    server.then(&[Step::LoseAnswer]);
    let written = items.write(&[create("1"), create("2")], &mine).await.unwrap();
    assert_eq!(written, Written::Done);
    assert_eq!(server.requests().len(), 4);
    remove_table(&client, &table).await;
}

#[tokio::test]
async fn a_missing_table_is_named() {
    let Some(endpoint) = emulator("a missing table") else { return };
    let items = DynamoItems::new(dynamodb(&endpoint), "lakebell-no-such-table");
    let error = items.get(&[Key::new("p", "s")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("lakebell-no-such-table"), "{error}");
}

#[tokio::test]
async fn s3_is_read_listed_and_bounded() {
    let Some(endpoint) = emulator("storage on S3") else { return };
    let client = s3(&endpoint);
    let storage = S3Storage::new(client.clone());
    let bucket = unique("lake");
    client.create_bucket().bucket(&bucket).send().await.unwrap();
    let keys = ["db/t=1 ä/snapshot/snapshot-1", "db/t=1 ä/snapshot/snapshot-2", "db/t=1 ä/LATEST", "db/u/x", "e"];
    for key in keys {
        let body = ByteStream::from(key.as_bytes().to_vec());
        client.put_object().bucket(&bucket).key(key).body(body).send().await.unwrap();
    }

    let object = storage.get(&bucket, keys[0], 1000).await.unwrap().unwrap();
    assert_eq!(object.bytes, keys[0].as_bytes());
    assert!(!object.etag.is_empty() && !object.etag.contains('"'));
    assert_eq!(storage.get(&bucket, "db/none", 10).await.unwrap(), None);
    let large = storage.get(&bucket, keys[0], 5).await.unwrap_err();
    assert_eq!(large.kind(), ErrorKind::Damaged);

    let listed = storage.list(&bucket, Listing::below("db/t=1 ä/", 10)).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), [keys[2], keys[0], keys[1]]);
    assert_eq!(listed[1].etag, object.etag, "a listing shows the tag that a read shows");
    assert_eq!(storage.list(&bucket, Listing::below("db/", 2)).await.unwrap().len(), 2);
    assert_eq!(storage.folders(&bucket, "db/", None, 10).await.unwrap(), ["t=1 ä", "u"]);
    assert_eq!(storage.folders(&bucket, "db/", None, 1).await.unwrap(), ["t=1 ä"]);

    let error = storage.get("lakebell-no-such-bucket", "k", 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("lakebell-no-such-bucket"), "{error}");
    for key in keys {
        client.delete_object().bucket(&bucket).key(key).send().await.unwrap();
    }
    client.delete_bucket().bucket(&bucket).send().await.unwrap();
}

#[tokio::test]
async fn s3_keeps_the_contract_of_storage() {
    let Some(endpoint) = emulator("the contract of storage") else { return };
    let client = s3(&endpoint);
    let bucket = unique("lake");
    client.create_bucket().bucket(&bucket).send().await.unwrap();
    for key in storage_contract::OBJECTS {
        let body = ByteStream::from(key.as_bytes().to_vec());
        client.put_object().bucket(&bucket).key(key).body(body).send().await.unwrap();
    }
    storage_contract::check(&S3Storage::new(client), &bucket).await;
}

#[tokio::test]
async fn s3_lists_over_several_pages() {
    let Some(endpoint) = emulator("long listings on S3") else { return };
    let client = s3(&endpoint);
    let storage = S3Storage::new(client.clone());
    let bucket = unique("lake");
    client.create_bucket().bucket(&bucket).send().await.unwrap();
    let mut puts = JoinSet::new();
    for putter in 0..15 {
        let (client, bucket) = (client.clone(), bucket.clone());
        puts.spawn(async move {
            for n in (0..1005).skip(putter).step_by(15) {
                let put = client.put_object().bucket(&bucket).key(format!("t/{n:05}/x"));
                put.body(ByteStream::from_static(b"x")).send().await.unwrap();
            }
        });
    }
    puts.join_all().await;
    let listed = storage.list(&bucket, Listing::below("t/", 5000)).await.unwrap();
    assert_eq!((listed.len(), listed[1004].key.as_str()), (1005, "t/01004/x"));
    assert_eq!(storage.list(&bucket, Listing::below("t/", 1002)).await.unwrap().len(), 1002);
    let folders = storage.folders(&bucket, "t/", None, 5000).await.unwrap();
    assert_eq!((folders.len(), folders[1004].as_str()), (1005, "01004"));
}

#[tokio::test]
async fn messages_go_to_their_queues() {
    let Some(endpoint) = emulator("queues on SQS") else { return };
    let client = aws_sdk_sqs::Client::new(&sdk(&endpoint));
    let mut urls = Vec::new();
    for what in ["dispatch", "evaluate"] {
        let made = client.create_queue().queue_name(unique(what)).send().await.unwrap();
        urls.push(made.queue_url().unwrap().to_owned());
    }
    let queue = SqsQueue::new(client.clone(), &urls[0], &urls[1]);
    let trace = TraceId::new("trace").unwrap();
    let target: lakebell_domain::ids::TargetId = "1/gmv".parse().unwrap();
    let trigger = TriggerKey::new("ab".repeat(16)).unwrap();
    let dispatch = Message::Dispatch { target: target.clone(), trigger, attempt: 1, trace: trace.clone() };
    let evaluate = Message::Evaluate { targets: vec![target], trace: trace.clone() };
    let observe = Message::Observe { asset: AssetId::from_bits(1), is_again: false, trace };
    for message in [&dispatch, &evaluate, &observe] {
        queue.send(message).await.unwrap();
    }
    assert_eq!(received(&client, &urls[0], 1).await, [dispatch]);
    assert_eq!(received(&client, &urls[1], 2).await, [evaluate.clone(), observe.clone()]);
    queue.send_batch(&[evaluate.clone(), observe.clone()]).await.unwrap();
    assert_eq!(received(&client, &urls[1], 2).await, [evaluate, observe.clone()]);
    queue.send_batch(&[]).await.unwrap();

    for url in &urls {
        client.delete_queue().queue_url(url).send().await.unwrap();
    }
    let error = queue.send(&observe).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("LAKEBELL_EVALUATE_QUEUE_URL"), "{error}");
    let error = queue.send_batch(std::slice::from_ref(&observe)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn dead_letters_are_put_back_where_they_came_from() {
    let Some(endpoint) = emulator("dead letters on SQS") else { return };
    let client = aws_sdk_sqs::Client::new(&sdk(&endpoint));
    let mut urls = Vec::new();
    for what in ["queue", "dead"] {
        let made = client.create_queue().queue_name(unique(what)).send().await.unwrap();
        urls.push(made.queue_url().unwrap().to_owned());
    }
    let pair = QueueUrls { queue: urls[0].clone(), dead: urls[1].clone() };
    let letters = SqsDeadLetters::new(client.clone(), pair.clone(), pair.clone(), pair);
    let trace = TraceId::new("trace").unwrap();
    let observe = |bits| Message::Observe { asset: AssetId::from_bits(bits), is_again: false, trace: trace.clone() };
    let sent: Vec<Message> = (0..12).map(observe).collect();
    for message in &sent {
        let body = serde_json::to_string(message).unwrap();
        client.send_message().queue_url(&urls[1]).message_body(body).send().await.unwrap();
    }
    assert_eq!(letters.count(DeadQueue::Evaluate).await.unwrap(), 12);
    let mut put_back = Vec::new();
    while put_back.last() != Some(&0) {
        put_back.push(letters.put_back(DeadQueue::Evaluate).await.unwrap());
    }
    assert_eq!((put_back[0], put_back.iter().sum::<usize>()), (10, 12), "ten at a time: {put_back:?}");
    assert_eq!(letters.count(DeadQueue::Evaluate).await.unwrap(), 0);
    let mut back = received(&client, &urls[0], 12).await;
    back.sort_by_key(|message| sent.iter().position(|known| known == message));
    assert_eq!(back, sent);

    client.delete_queue().queue_url(&urls[1]).send().await.unwrap();
    for failed in [letters.count(DeadQueue::Hints).await.map(|_| 0), letters.put_back(DeadQueue::Hints).await] {
        let error = failed.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("LAKEBELL_HINTS_DEAD_LETTERS_URL"), "{error}");
    }
    client.delete_queue().queue_url(&urls[0]).send().await.unwrap();
}

async fn received(client: &aws_sdk_sqs::Client, url: &str, expected: usize) -> Vec<Message> {
    let mut found: Vec<Message> = Vec::new();
    for _ in 0..50 {
        let answer = client.receive_message().queue_url(url).max_number_of_messages(10).send().await.unwrap();
        for message in answer.messages() {
            let receipt = message.receipt_handle().unwrap();
            client.delete_message().queue_url(url).receipt_handle(receipt).send().await.unwrap();
            found.push(serde_json::from_str(message.body().unwrap()).unwrap());
        }
        if found.len() >= expected {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    found.sort_by_key(|message| matches!(message, Message::Observe { .. }));
    found
}

#[tokio::test]
async fn a_connection_and_its_token_are_read() {
    let Some(endpoint) = emulator("connections and secrets") else { return };
    let sdk = sdk(&endpoint);
    let client = dynamodb(&endpoint);
    let secrets = aws_sdk_secretsmanager::Client::new(&sdk);
    let (table, secret) = (make_table(&client).await, unique("token"));
    secrets.create_secret().name(&secret).secret_string("first").send().await.unwrap();

    let settings = Settings {
        table: table.clone(),
        dispatch_queue_url: format!("{endpoint}/000000000000/none"),
        evaluate_queue_url: format!("{endpoint}/000000000000/none"),
        dead_letters: None,
        api_token_secret: Some(secret.clone()),
        notice_bus: None,
        signing_secret: None,
        gateway_checks_signers: false,
        api_token_rate: None,
    };
    let ports = AwsPorts::new(settings, &sdk);
    ports.warm().await;
    let name = ConnectionName::new("main").unwrap();
    let connections = ports.connections();
    assert_eq!(connections.connection(&name).await.unwrap(), None);
    let spec = serde_json::json!({"name": "main", "url": "http://ds:12345/dolphinscheduler", "tokenSecret": secret});
    let spec: ConnectionSpec = serde_json::from_value(spec).unwrap();
    let draft = Draft::new(layout::connection(&name), serde_json::to_string(&spec).unwrap());
    let attempt = AttemptId::new("a").unwrap();
    assert_eq!(ports.ports().items.write(&[Write::Create(draft)], &attempt).await.unwrap(), Written::Done);
    assert_eq!(connections.connection(&name).await.unwrap().as_ref(), Some(&spec));

    assert_eq!(connections.token(&spec, false).await.unwrap(), "first");
    let second = r#"{"token":"second"}"#;
    secrets.put_secret_value().secret_id(&secret).secret_string(second).send().await.unwrap();
    assert_eq!(connections.token(&spec, false).await.unwrap(), "first", "kept for a while");
    assert_eq!(connections.token(&spec, true).await.unwrap(), "second");
    assert_eq!(ports.api_token(false).await.unwrap(), "second");

    let gone = ConnectionSpec { token_secret: "lakebell-no-such-secret".to_owned(), ..spec };
    let error = connections.token(&gone, false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("lakebell-no-such-secret"), "{error}");
    secrets.delete_secret().secret_id(&secret).force_delete_without_recovery(true).send().await.unwrap();
    remove_table(&client, &table).await;
}
