//! What DynamoDB holds of a test's project, for the rules of the design.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use lakebell_domain::event::Event;
use lakebell_domain::ids::{AssetId, AttemptId, ProjectCode, TriggerKey};
use lakebell_engine::layout;
use lakebell_engine::ports::items::{Draft, Item, ItemStore, Key, Write, Written};
use lakebell_engine::rules::Records;
use serde_json::Value;

use super::Scene;

/// Every item of a table, by a consistent scan.
pub(super) async fn items_of(dynamodb: &aws_sdk_dynamodb::Client, table: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut pages = dynamodb.scan().table_name(table).consistent_read(true).into_paginator().items().send();
    while let Some(attributes) = pages.next().await {
        let attributes = attributes.unwrap();
        let text = |name: &str| attributes.get(name).and_then(|value| value.as_s().ok()).cloned();
        let rev = attributes.get("rev").and_then(|value: &AttributeValue| value.as_n().ok());
        let key = Key::new(text("pk").unwrap(), text("sk").unwrap());
        items.push(Item {
            rev: rev.and_then(|rev| rev.parse().ok()).unwrap_or_else(|| panic!("{key:?} has no revision")),
            attempt: AttemptId::new(text("attempt").unwrap()).unwrap(),
            doc: text("doc").unwrap(),
            sweep: None,
            history: None,
            expires_at: None,
            key,
        });
    }
    items
}

/// Moves the timer of a trigger to now, as if the time had passed: `change` puts that time where it belongs, or says
/// that nothing is to be done. Somebody else's write goes first.
pub(super) async fn time_has_come(
    items: &dyn ItemStore,
    key: &TriggerKey,
    change: impl FnOnce(&mut Value, Timestamp) -> bool,
) {
    let place = layout::trigger(key);
    let Some(item) = items.get(std::slice::from_ref(&place)).await.unwrap().pop() else { return };
    let mut doc: Value = serde_json::from_str(&item.doc).unwrap();
    let now = Timestamp::now();
    if !change(&mut doc, now) {
        return;
    }
    let draft = Draft {
        key: place,
        doc: doc.to_string(),
        sweep: Some(layout::trigger_timer(key, now)),
        history: item.history,
        expires_at: item.expires_at,
    };
    let attempt = AttemptId::new(format!("e2e-{}", now.as_nanosecond())).unwrap();
    let written = items.write(&[Write::Replace(draft, item.rev)], &attempt).await.unwrap();
    assert!(matches!(written, Written::Done | Written::Lost(_)));
}

impl Scene {
    /// Every kept event of an asset, by a consistent scan of the table.
    pub(crate) async fn kept_events(&self, asset: AssetId) -> Vec<Event> {
        let items = items_of(&self.dynamodb, &self.local.table).await;
        let partition = layout::asset(asset);
        let own = items.iter().filter(|item| item.key.pk == partition && item.key.sk.starts_with("E#"));
        own.map(|item| serde_json::from_str(&item.doc).unwrap()).collect()
    }

    /// Everything that is recorded of the test's project, by a consistent scan of the table.
    pub(crate) async fn records(&self) -> Records {
        let items = items_of(&self.dynamodb, &self.local.table).await;
        let mut records = Records::of(&items).unwrap();
        let own = ProjectCode(self.project);
        records.assets.retain(|_, head| head.project == own);
        records.definitions.retain(|target, _| target.project == own);
        records.cursors.retain(|target, _| target.project == own);
        records.triggers.retain(|_, trigger| trigger.target.project == own);
        let known: BTreeSet<_> = records.definitions.keys().collect();
        assert!(records.cursors.keys().all(|target| known.contains(target)));
        records
    }
}
