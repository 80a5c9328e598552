//! The dead-letter queues on SQS.
//!
//! SQS can move such messages by itself (`StartMessageMoveTask`), in the background, so that whoever asked
//! for it is not told when it is done; and the local AWS has no such call to try it with. So they are moved
//! here, ten at a time.

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, QueueAttributeName, SendMessageBatchRequestEntry};
use lakebell_engine::ports::dead_letters::{DeadLetters, DeadQueue};
use lakebell_engine::ports::queue::MAX_BATCH;
use lakebell_engine::{EngineError, ErrorKind};

use crate::failure::{Doing, engine_error};

/// Seconds that a receive waits for a message: a short poll asks only some of SQS's servers, and an
/// empty answer of it says nothing.
const LOOKS_FOR: i32 = 1;

/// Where a queue's messages are, and where they end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueUrls {
    /// The queue.
    pub queue: String,
    /// The one behind it.
    pub dead: String,
}

/// [`DeadLetters`] on SQS.
#[derive(Debug, Clone)]
pub struct SqsDeadLetters {
    client: Client,
    hints: QueueUrls,
    evaluate: QueueUrls,
    dispatch: QueueUrls,
}

impl SqsDeadLetters {
    /// The queues behind these.
    pub const fn new(client: Client, hints: QueueUrls, evaluate: QueueUrls, dispatch: QueueUrls) -> Self {
        Self { client, hints, evaluate, dispatch }
    }

    const fn urls(&self, queue: DeadQueue) -> &QueueUrls {
        match queue {
            DeadQueue::Hints => &self.hints,
            DeadQueue::Evaluate => &self.evaluate,
            DeadQueue::Dispatch => &self.dispatch,
        }
    }
}

/// The variables that name a queue and the one behind it.
const fn variables(queue: DeadQueue) -> (&'static str, &'static str) {
    match queue {
        DeadQueue::Hints => ("LAKEBELL_HINTS_QUEUE_URL", "LAKEBELL_HINTS_DEAD_LETTERS_URL"),
        DeadQueue::Evaluate => ("LAKEBELL_EVALUATE_QUEUE_URL", "LAKEBELL_EVALUATE_DEAD_LETTERS_URL"),
        DeadQueue::Dispatch => ("LAKEBELL_DISPATCH_QUEUE_URL", "LAKEBELL_DISPATCH_DEAD_LETTERS_URL"),
    }
}

fn defect(error: impl std::error::Error + Send + Sync + 'static) -> EngineError {
    EngineError::new(ErrorKind::Defect, "a batch of messages could not be built").caused_by(error)
}

#[async_trait]
impl DeadLetters for SqsDeadLetters {
    async fn count(&self, queue: DeadQueue) -> Result<u64, EngineError> {
        let url = &self.urls(queue).dead;
        let resource = format!("queue `{url}`");
        let (_, where_set) = variables(queue);
        let doing = Doing { permission: "sqs:GetQueueAttributes", resource: &resource, where_set };
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let asked = self.client.get_queue_attributes().queue_url(url).attribute_names(name.clone()).send().await;
        let attributes = asked.map_err(|error| engine_error(error, doing))?.attributes.unwrap_or_default();
        Ok(attributes.get(&name).and_then(|text| text.parse().ok()).unwrap_or_default())
    }

    async fn put_back(&self, queue: DeadQueue) -> Result<usize, EngineError> {
        let QueueUrls { queue: to, dead } = self.urls(queue);
        let (source, target) = (format!("queue `{dead}`"), format!("queue `{to}`"));
        let (of_target, of_source) = variables(queue);
        let at_source = |permission| Doing { permission, resource: &source, where_set: of_source };
        let most = i32::try_from(MAX_BATCH).unwrap_or(1);
        let receive = self.client.receive_message().queue_url(dead).max_number_of_messages(most);
        let received = receive.wait_time_seconds(LOOKS_FOR).send().await;
        let messages = received
            .map_err(|error| engine_error(error, at_source("sqs:ReceiveMessage")))?
            .messages
            .unwrap_or_default();
        if messages.is_empty() {
            return Ok(0);
        }
        let mut sent = self.client.send_message_batch().queue_url(to);
        let mut taken = self.client.delete_message_batch().queue_url(dead);
        for (at, message) in messages.into_iter().enumerate() {
            let id = format!("m{at}");
            let body = message.body.unwrap_or_default();
            sent = sent
                .entries(SendMessageBatchRequestEntry::builder().id(&id).message_body(body).build().map_err(defect)?);
            let receipt = message.receipt_handle.unwrap_or_default();
            let gone = DeleteMessageBatchRequestEntry::builder().id(&id).receipt_handle(receipt);
            taken = taken.entries(gone.build().map_err(defect)?);
        }
        let doing = Doing { permission: "sqs:SendMessage", resource: &target, where_set: of_target };
        let answer = sent.send().await.map_err(|error| engine_error(error, doing))?;
        // Those that were not taken come into sight again, and stay.
        let is_sent = |id: &str| answer.successful.iter().any(|sent| sent.id == id);
        let gone: Vec<_> =
            taken.get_entries().clone().unwrap_or_default().into_iter().filter(|entry| is_sent(entry.id())).collect();
        let count = gone.len();
        if count == 0 {
            let message = format!("{target} took none of {} messages", answer.failed.len());
            return Err(EngineError::new(ErrorKind::Unavailable, message));
        }
        // One that is not deleted is put back once more, which is harmless.
        let deleted = self.client.delete_message_batch().queue_url(dead).set_entries(Some(gone)).send().await;
        deleted.map_err(|error| engine_error(error, at_source("sqs:DeleteMessage")))?;
        Ok(count)
    }
}
