//! Reads from DynamoDB: strongly consistent, but for the indexes.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use lakebell_engine::ports::items::{Index, Item, Key, Page, Range};
use lakebell_engine::{EngineError, ErrorKind};

use super::codec::{index_names, item, key, key_attributes, text};
use super::{DynamoItems, pause};
use crate::failure::engine_error;

/// Keys of one request, by the API reference of `BatchGetItem`.
const MOST_KEYS: usize = 100;
/// How often what was left unprocessed is asked for again without any progress.
const UNPROCESSED_RETRIES: u32 = 6;
/// The longest first pause after keys were left unprocessed.
const UNPROCESSED_PAUSE: Duration = Duration::from_millis(50);

impl DynamoItems {
    /// One item.
    pub(super) async fn get_one(&self, key: &Key) -> Result<Option<Item>, EngineError> {
        let request =
            self.client.get_item().table_name(&self.table).set_key(Some(key_attributes(key))).consistent_read(true);
        let answer = request.send().await.map_err(|error| engine_error(error, self.doing("dynamodb:GetItem")))?;
        answer.item().map(item).transpose()
    }

    /// Many items, by the hundred. Keys that the table leaves unprocessed are asked for again.
    pub(super) async fn get_many(&self, keys: &[Key]) -> Result<Vec<Item>, EngineError> {
        let mut keys: Vec<&Key> = keys.iter().collect();
        keys.sort();
        keys.dedup();
        let mut found = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(MOST_KEYS) {
            self.get_chunk(chunk, &mut found).await?;
        }
        Ok(found)
    }

    async fn get_chunk(&self, keys: &[&Key], found: &mut Vec<Item>) -> Result<(), EngineError> {
        let mut wanted: Vec<HashMap<String, AttributeValue>> = keys.iter().map(|key| key_attributes(key)).collect();
        let mut stalled = 0;
        while !wanted.is_empty() {
            let asked = wanted.len();
            let request = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(true).build();
            let request = request.map_err(|error| {
                EngineError::new(ErrorKind::Defect, "a read of many items could not be put together").caused_by(error)
            })?;
            let request = self.client.batch_get_item().request_items(&self.table, request);
            let answer =
                request.send().await.map_err(|error| engine_error(error, self.doing("dynamodb:BatchGetItem")))?;
            for items in answer.responses.unwrap_or_default().into_values() {
                for attributes in &items {
                    found.push(item(attributes)?);
                }
            }
            // One table was asked, under its name or its ARN.
            let left = answer.unprocessed_keys.unwrap_or_default().into_values().next();
            wanted = left.map(|left| left.keys).unwrap_or_default();
            if wanted.is_empty() {
                break;
            }
            stalled = if wanted.len() < asked { 1 } else { stalled + 1 };
            if stalled > UNPROCESSED_RETRIES {
                let message = format!("{} left {} keys unread, again and again", self.shown, wanted.len());
                return Err(EngineError::new(ErrorKind::Unavailable, message));
            }
            pause(UNPROCESSED_PAUSE, stalled).await;
        }
        Ok(())
    }

    /// A range of one partition. The token of the next page is the last sort key of this one.
    pub(super) async fn query_range(
        &self,
        range: &Range,
        limit: Option<usize>,
        after: Option<&str>,
    ) -> Result<Page<Item>, EngineError> {
        if range.from > range.to {
            let error = EngineError::new(ErrorKind::Defect, "a range must not end before it begins");
            return Err(error.with("from", &range.from).with("to", &range.to));
        }
        // A key attribute is never compared with an empty string: DynamoDB rejects that.
        let condition =
            if range.from.is_empty() { "pk = :pk AND sk <= :to" } else { "pk = :pk AND sk BETWEEN :from AND :to" };
        let from = (!range.from.is_empty()).then(|| text(&range.from));
        let mut values = HashMap::from([(":pk".to_owned(), text(&range.pk)), (":to".to_owned(), text(&range.to))]);
        values.extend(from.map(|from| (":from".to_owned(), from)));
        let start = after.map(|sk| key_attributes(&Key::new(&range.pk, sk)));
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression(condition)
            .set_expression_attribute_values(Some(values))
            .set_exclusive_start_key(start)
            .set_limit(limit.map(checked_limit).transpose()?);
        let answer = request.send().await.map_err(|error| engine_error(error, self.doing("dynamodb:Query")))?;
        let next = answer.last_evaluated_key().map(key).transpose()?.map(|last| last.sk);
        Ok(Page { found: answer.items().iter().map(item).collect::<Result<_, _>>()?, next })
    }

    /// Keys in an index. The token of the next page is a JSON array of the last place and key.
    pub(super) async fn query_index(
        &self,
        index: Index,
        pk: &str,
        up_to: Option<&str>,
        backwards: bool,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Page<Key>, EngineError> {
        let (name, pk_name, sk_name) = index_names(index);
        let mut values = HashMap::from([(":pk".to_owned(), text(pk))]);
        let condition = match up_to {
            None => format!("{pk_name} = :pk"),
            Some(up_to) => {
                values.insert(":to".to_owned(), text(up_to));
                format!("{pk_name} = :pk AND {sk_name} <= :to")
            }
        };
        let start = after.map(place).transpose()?.map(|(sk, key)| {
            let mut start = key_attributes(&key);
            start.insert(pk_name.to_owned(), text(pk));
            start.insert(sk_name.to_owned(), text(sk));
            start
        });
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(name)
            .key_condition_expression(condition)
            .set_expression_attribute_values(Some(values))
            .scan_index_forward(!backwards)
            .set_exclusive_start_key(start)
            .limit(checked_limit(limit)?);
        let answer = request.send().await.map_err(|error| engine_error(error, self.doing("dynamodb:Query")))?;
        let found = answer.items().iter().map(key).collect::<Result<_, _>>()?;
        let next = match answer.last_evaluated_key() {
            None => None,
            Some(last) => {
                let Key { pk, sk } = key(last)?;
                let at = last.get(sk_name).and_then(|at| at.as_s().ok()).map(String::as_str).unwrap_or_default();
                Some(serde_json::json!([at, pk, sk]).to_string())
            }
        };
        Ok(Page { found, next })
    }
}

/// The place in an index that a token names.
fn place(token: &str) -> Result<(String, Key), EngineError> {
    let (at, pk, sk): (String, String, String) = serde_json::from_str(token).map_err(|error| {
        EngineError::new(ErrorKind::Invalid, "the page token is not one that a look-up returned").caused_by(error)
    })?;
    Ok((at, Key::new(pk, sk)))
}

fn checked_limit(limit: usize) -> Result<i32, EngineError> {
    match limit {
        0 => Err(EngineError::new(ErrorKind::Defect, "a limit must be at least 1")),
        limit => Ok(i32::try_from(limit).unwrap_or(i32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_a_place() {
        let token = serde_json::json!(["2", "p", "s"]).to_string();
        assert_eq!(place(&token).unwrap(), ("2".to_owned(), Key::new("p", "s")));
        assert_eq!(place("2").unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn limits_are_checked() {
        assert_eq!(checked_limit(0).unwrap_err().kind(), ErrorKind::Defect);
        assert_eq!(checked_limit(usize::MAX).unwrap(), i32::MAX);
    }
}
