//! Actions as DynamoDB's requests.

use std::collections::HashSet;

use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use lakebell_domain::ids::AttemptId;
use lakebell_engine::ports::items::{Draft, Key, Lost, Write};
use lakebell_engine::{EngineError, ErrorKind};

use super::DynamoItems;
use super::codec::{Attributes, attributes, key_attributes, number};
use super::outcome::{Try, cancelled, failed, lost_action};

/// Actions of one transaction, by the API reference of `TransactWriteItems`.
const MOST_ACTIONS: usize = 100;

const ABSENT: &str = "attribute_not_exists(pk)";
const PRESENT: &str = "attribute_exists(pk)";
const UNCHANGED: &str = "rev = :rev";
const RAISE: &str = "ADD rev :one";
const ALL_OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

/// Refuses what DynamoDB would refuse, and what a plain request would let pass.
pub(super) fn check(actions: &[Write]) -> Result<(), EngineError> {
    let defect = |message: String| Err(EngineError::new(ErrorKind::Defect, message));
    if actions.len() > MOST_ACTIONS {
        return defect(format!("{} actions are more than the {MOST_ACTIONS} of one transaction", actions.len()));
    }
    let mut seen = HashSet::new();
    match actions.iter().map(Write::key).find(|key| !seen.insert(*key)) {
        None => Ok(()),
        Some(Key { pk, sk }) => defect(format!("two actions of one transaction are about one item, {pk}|{sk}")),
    }
}

impl DynamoItems {
    /// One try of a write, never repeated by the SDK.
    pub(super) async fn one_try(&self, actions: &[Write], attempt: &AttemptId, token: &str) -> Try {
        match actions {
            [Write::Create(draft)] => self.put(draft, None, attempt).await,
            [Write::Replace(draft, rev)] => self.put(draft, Some(*rev), attempt).await,
            [Write::Bump(key)] => self.bump(key).await,
            [Write::Remove(key, rev)] => self.delete(key, *rev).await,
            [Write::Expect(key, rev)] => self.look(key, *rev).await,
            _ => self.transaction(actions, attempt, token).await,
        }
    }

    async fn put(&self, draft: &Draft, rev: Option<u64>, attempt: &AttemptId) -> Try {
        let request = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(attributes(draft, rev.map_or(1, |rev| rev + 1), attempt)))
            .return_values_on_condition_check_failure(ALL_OLD);
        let request = match rev {
            None => request.condition_expression(ABSENT),
            Some(rev) => request.condition_expression(UNCHANGED).expression_attribute_values(":rev", number(rev)),
        };
        match request.customize().config_override(once()).send().await {
            Ok(_) => Try::Done,
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(standing)) => lost(standing.item()),
                _ => failed(error, self.doing("dynamodb:PutItem")),
            },
        }
    }

    async fn bump(&self, key: &Key) -> Try {
        let request = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key_attributes(key)))
            .update_expression(RAISE)
            .condition_expression(PRESENT)
            .expression_attribute_values(":one", number(1))
            .return_values_on_condition_check_failure(ALL_OLD);
        match request.customize().config_override(once()).send().await {
            Ok(_) => Try::Done,
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(standing)) => lost(standing.item()),
                _ => failed(error, self.doing("dynamodb:UpdateItem")),
            },
        }
    }

    async fn delete(&self, key: &Key, rev: u64) -> Try {
        let request = self
            .client
            .delete_item()
            .table_name(&self.table)
            .set_key(Some(key_attributes(key)))
            .condition_expression(UNCHANGED)
            .expression_attribute_values(":rev", number(rev))
            .return_values_on_condition_check_failure(ALL_OLD);
        match request.customize().config_override(once()).send().await {
            Ok(_) => Try::Done,
            Err(error) => match error.as_service_error() {
                Some(DeleteItemError::ConditionalCheckFailedException(standing)) => lost(standing.item()),
                _ => failed(error, self.doing("dynamodb:DeleteItem")),
            },
        }
    }

    /// An expectation alone writes nothing: a consistent read answers it.
    async fn look(&self, key: &Key, rev: u64) -> Try {
        match self.get_one(key).await {
            Ok(Some(item)) if item.rev == rev => Try::Done,
            Ok(existing) => Try::Lost(vec![Lost { action: 0, existing }]),
            Err(error) => Try::Failed(error),
        }
    }

    async fn transaction(&self, actions: &[Write], attempt: &AttemptId, token: &str) -> Try {
        let items: Result<Vec<TransactWriteItem>, BuildError> =
            actions.iter().map(|action| self.action(action, attempt)).collect();
        let items = match items {
            Ok(items) => items,
            Err(error) => {
                let message = "a transaction could not be put together";
                return Try::Failed(EngineError::new(ErrorKind::Defect, message).caused_by(error));
            }
        };
        let request = self.client.transact_write_items().client_request_token(token).set_transact_items(Some(items));
        let doing = self.doing("dynamodb:PutItem, UpdateItem, DeleteItem and ConditionCheckItem");
        match request.customize().config_override(once()).send().await {
            Ok(_) => Try::Done,
            Err(error) => match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(why)) => {
                    cancelled(why.cancellation_reasons(), doing)
                }
                _ => failed(error, doing),
            },
        }
    }

    fn action(&self, action: &Write, attempt: &AttemptId) -> Result<TransactWriteItem, BuildError> {
        let table = &self.table;
        let built = TransactWriteItem::builder();
        Ok(match action {
            Write::Create(draft) => {
                let item = attributes(draft, 1, attempt);
                let put = Put::builder().table_name(table).set_item(Some(item)).condition_expression(ABSENT);
                built.put(put.return_values_on_condition_check_failure(ALL_OLD).build()?)
            }
            Write::Replace(draft, rev) => {
                let item = attributes(draft, rev + 1, attempt);
                let put = Put::builder().table_name(table).set_item(Some(item)).condition_expression(UNCHANGED);
                let put = put.expression_attribute_values(":rev", number(*rev));
                built.put(put.return_values_on_condition_check_failure(ALL_OLD).build()?)
            }
            Write::Bump(key) => {
                let update = Update::builder().table_name(table).set_key(Some(key_attributes(key)));
                let update = update.update_expression(RAISE).expression_attribute_values(":one", number(1));
                let update = update.condition_expression(PRESENT);
                built.update(update.return_values_on_condition_check_failure(ALL_OLD).build()?)
            }
            Write::Expect(key, rev) => {
                let check = ConditionCheck::builder().table_name(table).set_key(Some(key_attributes(key)));
                let check = check.condition_expression(UNCHANGED).expression_attribute_values(":rev", number(*rev));
                built.condition_check(check.return_values_on_condition_check_failure(ALL_OLD).build()?)
            }
            Write::Remove(key, rev) => {
                let delete = Delete::builder().table_name(table).set_key(Some(key_attributes(key)));
                let delete = delete.condition_expression(UNCHANGED).expression_attribute_values(":rev", number(*rev));
                built.delete(delete.return_values_on_condition_check_failure(ALL_OLD).build()?)
            }
        }
        .build())
    }
}

/// A single action whose condition failed.
fn lost(existing: Option<&Attributes>) -> Try {
    match lost_action(0, existing) {
        Ok(lost) => Try::Lost(vec![lost]),
        Err(damaged) => Try::Failed(damaged),
    }
}

/// The SDK sends the request once.
fn once() -> Builder {
    Builder::new().retry_config(RetryConfig::disabled())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dynamodb_would_refuse_is_refused_before() {
        let bump = |n: usize| Write::Bump(Key::new("p", n.to_string()));
        assert!(check(&[]).is_ok());
        assert!(check(&(0..100).map(bump).collect::<Vec<_>>()).is_ok());
        let many = check(&(0..101).map(bump).collect::<Vec<_>>()).unwrap_err();
        assert!(many.message().contains("101"), "{many}");
        let twice = check(&[bump(1), Write::Expect(Key::new("p", "1"), 1)]).unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::Defect);
    }
}
