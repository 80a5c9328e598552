//! Messages on SQS: two standard queues.

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
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
        let body = body_of(message)?;
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

    async fn send_batch(&self, messages: &[Message]) -> Result<(), EngineError> {
        let Some(first) = messages.first() else { return Ok(()) };
        let (url, where_set) = self.of(first);
        let mut batch = self.client.send_message_batch().queue_url(url);
        for (at, message) in messages.iter().enumerate() {
            let entry = SendMessageBatchRequestEntry::builder().id(format!("m{at}")).message_body(body_of(message)?);
            batch = batch.entries(entry.build().map_err(|error| {
                EngineError::new(ErrorKind::Defect, "a batch of messages could not be built").caused_by(error)
            })?);
        }
        let resource = format!("queue `{url}`");
        let doing = Doing { permission: "sqs:SendMessage", resource: &resource, where_set };
        let answer = batch.send().await.map_err(|error| engine_error(error, doing))?;
        match answer.failed.first() {
            None => Ok(()),
            Some(failed) => {
                let what =
                    format!("{} of {} messages were not taken by {resource}", answer.failed.len(), messages.len());
                Err(EngineError::new(ErrorKind::Unavailable, format!("{what}: {}", failed.code)))
            }
        }
    }
}

fn body_of(message: &Message) -> Result<String, EngineError> {
    serde_json::to_string(message)
        .map_err(|error| EngineError::new(ErrorKind::Defect, "a message could not be written as JSON").caused_by(error))
}
