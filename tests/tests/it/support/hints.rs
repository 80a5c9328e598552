//! Storage notifications, made by hand.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Scene, Table};

/// Messages that are sent side by side.
const SIDE_BY_SIDE: usize = 8;

/// How a notification may reach the hints queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// S3's own notification.
    S3,
    /// The same through SNS.
    Sns,
    /// `Object Created` of EventBridge.
    EventBridge,
}

impl Shape {
    pub(crate) const ALL: [Self; 3] = [Self::S3, Self::Sns, Self::EventBridge];

    /// The message that says that an object was created.
    pub(crate) fn message(self, bucket: &str, key: &str, etag: &str) -> String {
        match self {
            Self::S3 => s3_notification(bucket, key, etag).to_string(),
            Self::Sns => json!({
                "Type": "Notification", "MessageId": "0c9d7c1e-5c0f-5d6b-8b8e-2f1f4c9f7a10",
                "TopicArn": "arn:aws:sns:us-east-1:000000000000:lake", "Subject": "Amazon S3 Notification",
                "Message": s3_notification(bucket, key, etag).to_string(), "Timestamp": "2026-03-02T06:00:00.400Z",
            })
            .to_string(),
            Self::EventBridge => json!({
                "version": "0", "id": "5a1f8b1c-77a2-7d0e-3c15-9d0a1f6e2b44", "detail-type": "Object Created",
                "source": "aws.s3", "account": "000000000000", "time": "2026-03-02T06:00:00Z", "region": "us-east-1",
                "resources": [format!("arn:aws:s3:::{bucket}")],
                "detail": {
                    "version": "0", "bucket": {"name": bucket}, "object": {"key": key, "size": 1, "etag": etag},
                    "reason": "PutObject",
                },
            })
            .to_string(),
        }
    }

    /// The message about a snapshot of a table.
    pub(crate) async fn of(self, table: &Table, snapshot: u64) -> String {
        self.message(&table.bucket, &table.object(snapshot), &table.etag(snapshot).await)
    }
}

/// S3 form-encodes the key in its own notifications, and leaves slashes alone.
fn s3_notification(bucket: &str, key: &str, etag: &str) -> Value {
    let encoded: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
    json!({"Records": [{
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "us-east-1",
        "eventTime": "2026-03-02T06:00:00.250Z", "eventName": "ObjectCreated:Put",
        "s3": {
            "s3SchemaVersion": "1.0", "configurationId": "lakebell", "bucket": {"name": bucket},
            "object": {"key": encoded.replace("%2F", "/"), "size": 1, "eTag": etag, "sequencer": "0069A527100C4D2E7A"},
        },
    }]})
}

/// A batch as Lambda hands it to a function; the messages' ids are `m0`, `m1` and so on.
pub(crate) fn sqs_batch(bodies: &[String]) -> Value {
    let records: Vec<Value> = bodies
        .iter()
        .enumerate()
        .map(|(at, body)| {
            json!({
                "messageId": format!("m{at}"), "receiptHandle": "handle", "body": body, "attributes": {},
                "messageAttributes": {}, "eventSource": "aws:sqs", "awsRegion": "us-east-1",
                "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:hints",
            })
        })
        .collect();
    json!({"Records": records})
}

impl Scene {
    /// Sends messages, several side by side.
    pub(crate) async fn send_all(&self, queue: &str, bodies: Vec<String>) {
        let places = Arc::new(Semaphore::new(SIDE_BY_SIDE));
        let mut sending = JoinSet::new();
        for body in bodies {
            let send = self.sqs.send_message().queue_url(&self.local.queues[queue].url).message_body(body);
            let places = Arc::clone(&places);
            sending.spawn(async move {
                let _place = places.acquire().await.unwrap();
                send.send().await.unwrap();
            });
        }
        sending.join_all().await;
    }
}
