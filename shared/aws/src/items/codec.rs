//! Items as DynamoDB's attributes.
//!
//! `pk` S, `sk` S, `rev` N, `attempt` S, `doc` S (JSON), and where present `sweep_pk` and
//! `sweep_sk` S, `history_pk` and `history_sk` S, `ttl` N (seconds since 1970).

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use lakebell_domain::ids::AttemptId;
use lakebell_engine::ports::items::{Draft, Index, IndexEntry, Item, Key};
use lakebell_engine::{EngineError, ErrorKind};

/// An item as DynamoDB has it.
pub(super) type Attributes = HashMap<String, AttributeValue>;

/// The names of an index and of its two key attributes.
pub(super) const fn index_names(index: Index) -> (&'static str, &'static str, &'static str) {
    match index {
        Index::Sweep => ("sweep", "sweep_pk", "sweep_sk"),
        Index::History => ("history", "history_pk", "history_sk"),
    }
}

/// A string attribute.
pub(super) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

/// A revision as an attribute.
pub(super) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// The key attributes of an item.
pub(super) fn key_attributes(key: &Key) -> Attributes {
    HashMap::from([("pk".to_owned(), text(&key.pk)), ("sk".to_owned(), text(&key.sk))])
}

/// The attributes of an item to be written.
pub(super) fn attributes(draft: &Draft, rev: u64, attempt: &AttemptId) -> Attributes {
    let mut attributes = key_attributes(&draft.key);
    attributes.insert("rev".to_owned(), number(rev));
    attributes.insert("attempt".to_owned(), text(attempt.as_str()));
    attributes.insert("doc".to_owned(), text(&draft.doc));
    for (index, entry) in [(Index::Sweep, &draft.sweep), (Index::History, &draft.history)] {
        if let Some(entry) = entry {
            let (_, pk, sk) = index_names(index);
            attributes.insert(pk.to_owned(), text(&entry.pk));
            attributes.insert(sk.to_owned(), text(&entry.sk));
        }
    }
    if let Some(at) = draft.expires_at {
        // Seconds, rounded up: nothing is forgotten before its time.
        let seconds = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
        attributes.insert("ttl".to_owned(), AttributeValue::N(seconds.to_string()));
    }
    attributes
}

/// The item that attributes make. An item that Lakebell has not written is `Damaged`.
pub(super) fn item(attributes: &Attributes) -> Result<Item, EngineError> {
    let key = key(attributes)?;
    let damaged = |field: &'static str| {
        EngineError::new(ErrorKind::Damaged, format!("an item's attribute `{field}` is missing or malformed"))
            .with("item", format!("{}|{}", key.pk, key.sk))
    };
    let string = |field: &'static str| attributes.get(field).and_then(|value| value.as_s().ok()).cloned();
    let integer = |field: &'static str| attributes.get(field).and_then(|value| value.as_n().ok());
    let entry = |index: Index| {
        let (_, pk, sk) = index_names(index);
        Some(IndexEntry { pk: string(pk)?, sk: string(sk)? })
    };
    let expires_at = match integer("ttl") {
        None => None,
        Some(seconds) => {
            let at = seconds.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
            Some(at.ok_or_else(|| damaged("ttl"))?)
        }
    };
    Ok(Item {
        rev: integer("rev").and_then(|rev| rev.parse().ok()).ok_or_else(|| damaged("rev"))?,
        attempt: string("attempt").and_then(|id| AttemptId::new(id).ok()).ok_or_else(|| damaged("attempt"))?,
        doc: string("doc").ok_or_else(|| damaged("doc"))?,
        sweep: entry(Index::Sweep),
        history: entry(Index::History),
        expires_at,
        key,
    })
}

/// The key that attributes hold.
pub(super) fn key(attributes: &Attributes) -> Result<Key, EngineError> {
    let string = |field: &str| attributes.get(field).and_then(|value| value.as_s().ok());
    match (string("pk"), string("sk")) {
        (Some(pk), Some(sk)) => Ok(Key::new(pk, sk)),
        _ => Err(EngineError::new(ErrorKind::Damaged, "an item came without its key")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Draft {
        Draft {
            key: Key::new("T#1/gmv", "CUR"),
            doc: r#"{"a":1}"#.to_owned(),
            sweep: Some(IndexEntry { pk: "S#03".to_owned(), sk: "0001#T#1/gmv".to_owned() }),
            history: Some(IndexEntry { pk: "H#1".to_owned(), sk: "0002".to_owned() }),
            expires_at: Some(Timestamp::from_millisecond(1_500).unwrap()),
        }
    }

    #[test]
    fn an_item_comes_back_as_it_went() {
        let attempt = AttemptId::new("a1").unwrap();
        let attributes = attributes(&full(), 7, &attempt);
        let mut names: Vec<&str> = attributes.keys().map(String::as_str).collect();
        names.sort_unstable();
        let all = ["attempt", "doc", "history_pk", "history_sk", "pk", "rev", "sk", "sweep_pk", "sweep_sk", "ttl"];
        assert_eq!(names, all);
        assert_eq!(attributes["ttl"], AttributeValue::N("2".to_owned()), "rounded up to whole seconds");

        let item = item(&attributes).unwrap();
        assert_eq!((item.rev, item.attempt, item.doc), (7, attempt, full().doc));
        assert_eq!((item.key, item.sweep, item.history), (full().key, full().sweep, full().history));
        assert_eq!(item.expires_at, Timestamp::from_second(2).ok());
    }

    #[test]
    fn sparse_attributes_stay_away() {
        let bare = attributes(&Draft::new(Key::new("p", "s"), "{}".to_owned()), 1, &AttemptId::new("a").unwrap());
        assert_eq!(bare.len(), 5);
    }

    #[test]
    fn foreign_items_are_damaged() {
        let attempt = AttemptId::new("a1").unwrap();
        for field in ["pk", "rev", "attempt", "doc"] {
            let mut foreign = attributes(&full(), 7, &attempt);
            foreign.remove(field);
            assert_eq!(item(&foreign).unwrap_err().kind(), ErrorKind::Damaged, "without {field}");
        }
        let mut foreign = attributes(&full(), 7, &attempt);
        foreign.insert("ttl".to_owned(), AttributeValue::N("1e30".to_owned()));
        assert!(item(&foreign).unwrap_err().to_string().contains("ttl"));
    }
}
