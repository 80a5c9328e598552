//! Schema decisions, backfills, CDC lag, watermarks, hints and lineage.

use std::time::Duration;

use lakebell_domain::commit::Millis;
use lakebell_domain::event::{EventKind, Outcome, PushedEvidence};
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::state::{BackfillStatus, SchemaStatus};
use lakebell_engine::ErrorKind;
use lakebell_engine::push::{Facts, PUSHABLE};
use serde_json::json;

use super::{asks, ignored, reason};
use crate::support::{BUCKET, Deployment};

impl Deployment {
    /// Commits under a schema, and delivers the notification.
    async fn commit_under(&mut self, schema: i64) {
        let id = self.table("a").commit("APPEND", 0);
        let object = self.tables["a"].key(id);
        let body = format!(
            r#"{{"version":3,"id":{id},"schemaId":{schema},"uuid":"s{id}","commitUser":"job","commitIdentifier":{id},"commitKind":"APPEND","timeMillis":1767225600000,"totalRecordCount":{id},"deltaRecordCount":1}}"#
        );
        self.world.storage.put(BUCKET, &object, body);
        self.notify("a", id).await;
    }

    async fn decided(&self, kind: EventKind, id: &str, schema: i64) -> Outcome {
        self.push(kind, id, Facts { schema_id: Some(schema), ..Facts::default() }).await
    }

    async fn backfill(&self, kind: EventKind, push: &str, id: &str) -> Outcome {
        self.push(kind, push, Facts { backfill_id: Some(id.to_owned()), ..Facts::default() }).await
    }

    async fn watermark(&self, push: &str, at: i64) -> Outcome {
        let facts = Facts { watermark: Some(Millis(at)), ..Facts::default() };
        self.push(EventKind::WatermarkAdvanced, push, facts).await
    }
}

#[tokio::test]
async fn a_new_schema_waits_for_its_approval() {
    let mut d = Deployment::with(&["a"]).await;
    d.set("a", &json!({"schemaApproval": "required"})).await;
    d.declare(&asks(&json!({"schemaStatus": "COMPATIBLE"}))).await;
    d.commit_under(0).await;
    d.commit_under(1).await;
    assert_eq!(d.head("a").state.schema.status_of(1), SchemaStatus::PendingApproval);
    assert_eq!(d.why("t").await.verdict, Verdict::BlockedBySchema);
    assert_eq!(d.decided(EventKind::SchemaChangeRejected, "1", 1).await, Outcome::Advanced);
    assert_eq!(d.why("t").await.verdict, Verdict::BlockedBySchema);
    assert_eq!(d.decided(EventKind::SchemaChangeApproved, "2", 1).await, Outcome::Advanced);
    assert_eq!(d.started().await.last().map(String::as_str), Some("a(-,2]"));
    assert_eq!(d.decided(EventKind::SchemaChangeApproved, "2", 1).await, Outcome::Duplicate);
    assert_eq!(d.decided(EventKind::SchemaChangeApproved, "3", 1).await, Outcome::Duplicate, "said before");
    assert_eq!(d.decided(EventKind::SchemaChangeRejected, "1", 1).await, Outcome::Duplicate, "delivered once more");
    assert_eq!(d.head("a").state.schema.status_of(1), SchemaStatus::Compatible);
    let events = d.events_of(EventKind::SchemaChangeRejected).await;
    let rejected = PushedEvidence::Schema { schema_id: 1, status: SchemaStatus::Rejected };
    assert_eq!(events[0].evidence, Some(rejected));
}

#[tokio::test]
async fn the_first_schema_of_a_table_registered_while_empty_needs_approval_only_where_the_asset_asks() {
    for (settings, waits) in [(json!({}), false), (json!({"schemaApproval": "required"}), true)] {
        let mut d = Deployment::with(&["a"]).await;
        d.set("a", &settings).await;
        d.declare(&asks(&json!({"schemaStatus": "COMPATIBLE"}))).await;
        assert_eq!(d.why("t").await.verdict, Verdict::Waiting, "no schema yet, and no commit");
        d.commit_under(4).await;
        if waits {
            let why = d.why("t").await;
            assert_eq!(why.reason.unwrap().code, ReasonCode::SchemaPending);
            assert_eq!(d.decided(EventKind::SchemaChangeApproved, "1", 4).await, Outcome::Advanced);
        }
        assert_eq!(d.started().await, ["a(-,1]"]);
        d.commit_under(5).await;
        let expected = if waits { ReasonCode::SchemaPending } else { ReasonCode::SchemaUndecided };
        assert_eq!(d.why("t").await.reason.unwrap().code, expected, "a second schema is a change");
    }
}

#[tokio::test]
async fn a_schema_may_be_approved_before_the_first_commit_of_an_empty_table() {
    let mut d = Deployment::with(&["a"]).await;
    d.set("a", &json!({"schemaApproval": "required"})).await;
    d.declare(&asks(&json!({"schemaStatus": "COMPATIBLE"}))).await;
    assert_eq!(d.decided(EventKind::SchemaChangeApproved, "1", 0).await, Outcome::Advanced);
    d.commit_under(0).await;
    assert_eq!(d.started().await, ["a(-,1]"]);
}

#[tokio::test]
async fn a_backfill_holds_what_depends_and_its_end_starts_once_over_the_range() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&asks(&json!({}))).await;
    // The notification of a commit from before was lost: it is none of the backfill's.
    d.table("a").commit("APPEND", 1);
    assert_eq!(d.backfill(EventKind::BackfillStarted, "1", "b").await, Outcome::Advanced);
    assert_eq!(d.head("a").state.backfills["b"].from.ordinal.0, 1);
    d.run_dispatcher().await;
    let before = d.triggers("t").len();
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    assert_eq!(d.why("t").await.verdict, Verdict::BlockedByBackfill);
    assert_eq!(d.backfill(EventKind::BackfillCompleted, "2", "b").await, Outcome::Advanced);
    let started = d.started().await;
    assert_eq!((started.len(), started.last().map(|took| took.ends_with(",3]"))), (before + 1, Some(true)));
    for (kind, push, meant) in [
        (EventKind::BackfillCompleted, "2", Outcome::Duplicate),
        (EventKind::BackfillCompleted, "3", Outcome::Duplicate),
        (EventKind::BackfillStarted, "4", Outcome::Superseded),
        (EventKind::BackfillStarted, "1", Outcome::Duplicate),
    ] {
        assert_eq!(d.backfill(kind, push, "b").await, meant, "{kind} {push}");
    }
    assert_eq!(d.head("a").state.backfills["b"].status, BackfillStatus::Completed);
}

#[tokio::test]
async fn the_end_of_a_backfill_counts_whatever_came_first() {
    let d = Deployment::with(&["a"]).await;
    assert_eq!(d.backfill(EventKind::BackfillCompleted, "2", "b").await, Outcome::Advanced);
    assert_eq!(d.backfill(EventKind::BackfillStarted, "1", "b").await, Outcome::Superseded);
    assert!(!d.head("a").state.backfills["b"].is_running());
}

#[tokio::test]
async fn recovered_lag_starts_once_for_each_time_that_it_is_told() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    d.declare(&asks(&json!({"snapshotRequired": false, "cdcLagRecovered": true}))).await;
    assert!(d.started().await.is_empty());
    for (push, count) in [("1", 1), ("1", 1), ("2", 2), ("1", 2), ("2", 2)] {
        d.world.clock.advance(Duration::from_secs(5));
        let outcome = d.push(EventKind::CdcLagRecovered, push, Facts::default()).await;
        assert_eq!(d.started().await.len(), count, "{push}: {outcome:?}");
    }
    assert_eq!(d.events_of(EventKind::CdcLagRecovered).await.len(), 2);
}

#[tokio::test]
async fn a_pushed_watermark_counts_only_where_the_asset_says_so() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&asks(&json!({"watermark": "2026-01-01T10:00:00Z"}))).await;
    d.commit("a", "APPEND").await;
    let ten = 1_767_261_600_000;
    let refused = d.watermark("1", ten).await;
    assert!(reason(&refused).contains("watermarkFrom"), "{refused:?}");
    assert_eq!(d.head("a").state.watermark, None);
    d.set("a", &json!({"watermarkFrom": "push"})).await;
    // What was refused may be told again.
    assert_eq!(d.watermark("1", ten).await, Outcome::Advanced);
    assert_eq!(d.started().await, ["a(-,1]"]);
    assert_eq!(d.watermark("1", ten).await, Outcome::Duplicate);
    assert_eq!(d.watermark("2", ten - 1).await, Outcome::Superseded);
    assert!(matches!(d.watermark("3", i64::MIN).await, Outcome::Ignored(_)));
    // A watermark in a commit is not the asset's any more.
    let id = d.table("a").commit_with("APPEND", 1, &format!(r#""watermark":{}"#, ten + 1));
    d.notify("a", id).await;
    assert_eq!(d.head("a").state.watermark.unwrap().at, Millis(ten));
    let commits = d.events_of(EventKind::SnapshotCommitted).await;
    assert!(commits.iter().all(|event| event.commit.as_ref().is_none_or(|commit| commit.watermark.is_none())));
    let kept = d.events_of(EventKind::WatermarkAdvanced).await;
    assert_eq!(kept.len(), 3);
    let advanced = kept.iter().find(|event| event.outcome == Outcome::Advanced).unwrap();
    assert_eq!(advanced.evidence, Some(PushedEvidence::Watermark { at: Millis(ten) }));
}

#[tokio::test]
async fn hints_are_confirmed_by_storage_or_kept_with_the_reason() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit_under(0).await;
    let facts = Facts { tag: Some("daily".to_owned()), schema_id: Some(4), ..Facts::default() };
    let schema = d.push(EventKind::SchemaChanged, "1", facts.clone()).await;
    assert!(reason(&schema).contains("schema 4"), "{schema:?}");
    let rewritten = d.push(EventKind::HistoryRewritten, "2", facts.clone()).await;
    assert!(reason(&rewritten).contains("agrees"), "{rewritten:?}");
    assert_eq!(d.push(EventKind::TagDeleted, "3", facts.clone()).await, Outcome::Duplicate, "it was never there");
    let tag = d.push(EventKind::TagCreated, "4", facts).await;
    assert!(reason(&tag).contains("daily"), "{tag:?}");
    let seen = Facts { schema_id: Some(0), ..Facts::default() };
    assert_eq!(d.push(EventKind::SchemaChanged, "5", seen).await, Outcome::Duplicate);
    let error = d.try_push(EventKind::TagDeleted, "6", Facts::default()).await.unwrap_err();
    assert_eq!(error.about("field"), Some("data.tag"));
}

#[tokio::test]
async fn lineage_is_kept_and_changes_no_register() {
    let d = Deployment::with(&["a"]).await;
    let before = d.head("a");
    let kinds = [
        EventKind::TableCreated,
        EventKind::TableAltered,
        EventKind::TableRenamed,
        EventKind::TableDropped,
        EventKind::JobStatusChanged,
    ];
    for kind in kinds {
        let extra = [("purge".to_owned(), json!(false))].into();
        let facts = Facts { status: Some("FINISHED".to_owned()), extra, ..Facts::default() };
        assert_eq!(d.push(kind, "1", facts.clone()).await, ignored("kept for lineage; it changes no register"));
        assert_eq!(d.push(kind, "1", facts).await, Outcome::Duplicate);
        assert_eq!(d.events_of(kind).await[0].extra["purge"], json!(false));
    }
    assert_eq!(d.head("a"), before);
    let error = d.try_push(EventKind::JobStatusChanged, "2", Facts::default()).await.unwrap_err();
    assert_eq!(error.about("field"), Some("data.status"));
}

#[tokio::test]
async fn every_kind_can_be_pushed_and_says_what_it_lacks() {
    let d = Deployment::with(&["a"]).await;
    for kind in EventKind::ALL {
        let error = d.try_push(kind, "1", Facts::default()).await.err();
        let field = error.as_ref().and_then(|error| error.about("field"));
        let expected = match kind {
            EventKind::PartitionDone => Some("data.partition"),
            EventKind::TagCreated | EventKind::TagDeleted => Some("data.tag"),
            EventKind::QualityCheckPassed | EventKind::QualityCheckFailed | EventKind::QualityCheckErrored => {
                Some("data.check")
            }
            EventKind::SchemaChangeApproved | EventKind::SchemaChangeRejected => Some("data.schemaId"),
            EventKind::BackfillStarted | EventKind::BackfillCompleted => Some("data.backfillId"),
            EventKind::WatermarkAdvanced => Some("data.watermark"),
            EventKind::JobStatusChanged => Some("data.status"),
            _ => None,
        };
        assert_eq!(field, expected, "{kind}");
        assert!(PUSHABLE.contains(&kind));
        assert!(error.is_none_or(|error| error.kind() == ErrorKind::Invalid));
    }
    let long = Facts { backfill_id: Some("b".repeat(129)), ..Facts::default() };
    let error = d.try_push(EventKind::BackfillStarted, "1", long).await.unwrap_err();
    assert_eq!(error.about("field"), Some("data.backfillId"));
}
