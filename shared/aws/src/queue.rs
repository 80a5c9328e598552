//! Messages on SQS: two standard queues.

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use lakebell_engine::ports::queue::{MAX_DELAY_SECONDS, Message, Queue};
use lakebell_engine::{EngineError, ErrorKind};

use crate::failure::{Doing, engine_error};

/// [`Queue`] on two SQS queues: one leads to the dispatcher, the other to the watcher.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    client: Client,
    dispatch_url: String,
    evaluate_url: String,
}

impl SqsQueue {
    /// Queues with these URLs.
    pub fn new(client: Client, dispatch_url: impl Into<String>, evaluate_url: impl Into<String>) -> Self {
        Self { client, dispatch_url: dispatch_url.into(), evaluate_url: evaluate_url.into() }
    }

    /// The queue of a message and the variable that names it.
    fn of(&self, message: &Message) -> (&str, &'static str) {
        if message.is_for_dispatcher() {
            (&self.dispatch_url, "LAKEBELL_DISPATCH_QUEUE_URL")
        } else {
            (&self.evaluate_url, "LAKEBELL_EVALUATE_QUEUE_URL")
        }
    }
}

#[async_trait]
impl Queue for SqsQueue {
    async fn send(&self, message: &Message) -> Result<(), EngineError> {
        self.send_later(message, 0).await
    }

    async fn send_later(&self, message: &Message, seconds: u32) -> Result<(), EngineError> {
        let (url, where_set) = self.of(message);
        let body = serde_json::to_string(message).map_err(|error| {
            EngineError::new(ErrorKind::Defect, "a message could not be written as JSON").caused_by(error)
        })?;
        let resource = format!("queue `{url}`");
        let delay = i32::try_from(seconds.min(MAX_DELAY_SECONDS)).ok().filter(|seconds| *seconds > 0);
        let doing = Doing { permission: "sqs:SendMessage", resource: &resource, where_set };
        self.client
            .send_message()
            .queue_url(url)
            .message_body(body)
            .set_delay_seconds(delay)
            .send()
            .await
            .map_err(|error| engine_error(error, doing))?;
        Ok(())
    }
}
