use std::time::Duration;

use lakebell_domain::event::Outcome;
use lakebell_domain::ids::TraceId;
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::state::TroubleCode;
use lakebell_engine::ErrorKind;
use lakebell_engine::observe;
use lakebell_engine::watch::{Created, Watched};
use serde_json::json;

use crate::support::{BUCKET, Deployment, key, spec, trace};

fn last_outcome(watched: &Watched) -> Outcome {
    watched.outcomes().pop().expect("an outcome").1
}

#[tokio::test]
async fn a_commit_that_changes_data_advances_and_compaction_is_maintenance() {
    let mut d = Deployment::with(&["a"]).await;
    assert_eq!(last_outcome(&d.commit("a", "APPEND").await), Outcome::Advanced);
    assert_eq!(last_outcome(&d.commit("a", "COMPACT").await), Outcome::Maintenance);
    let state = d.head("a").state;
    assert_eq!(state.table.unwrap().snapshot_id, "2");
    assert_eq!(state.data.unwrap().mark.version.snapshot_id, "1");
}

#[tokio::test]
async fn case_45_snapshots_delivered_9_then_8_then_9_end_at_9_once() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    for _ in 0..7 {
        d.table("a").commit("APPEND", 1);
    }
    d.notify("a", 7).await;
    d.run_dispatcher().await;
    d.table("a").commit("APPEND", 1);
    d.table("a").commit("APPEND", 1);
    d.notify("a", 9).await;
    d.notify("a", 8).await;
    assert_eq!(last_outcome(&d.notify("a", 9).await), Outcome::Duplicate);
    d.run_dispatcher().await;
    assert_eq!(d.head("a").state.table.unwrap().snapshot_id, "9");
    assert_eq!(Deployment::took(d.triggers("t").last().unwrap()), ["a(7,9]"]);
    d.assert_started("t", 2);
}

#[tokio::test]
async fn case_74_temporary_objects_and_data_files_are_no_commits() {
    let d = Deployment::with(&["a"]).await;
    for name in
        ["snapshot/.snapshot-7.6a0c.tmp", "snapshot/LATEST", "bucket-0/data-1.parquet", "dt=snapshot-7/x", "snapshot/"]
    {
        let created = Created { bucket: BUCKET.into(), key: format!("wh/ods_db.db/a/{name}"), etag: None };
        let watched = d.watcher.created(&created, &trace()).await.unwrap();
        assert!(matches!(watched, Watched::NotACommit), "{name}: {watched:?}");
    }
}

#[tokio::test]
async fn case_74_an_overwritten_snapshot_is_flagged_and_held() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
    }
    d.run_dispatcher().await;
    d.table("a").rollback_to(2);
    let id = d.table("a").commit("APPEND", 5);
    d.notify("a", id).await;
    let why = d.why("t").await;
    assert_eq!(why.verdict, Verdict::BlockedByRewrite);
    assert_eq!(why.reason.unwrap().code, ReasonCode::RewriteSuspected);
    assert_eq!(d.head("a").state.table.unwrap().snapshot_id, "3", "a held asset does not advance");
}

#[tokio::test]
async fn a_rollback_that_the_fast_path_would_hide_is_found_by_the_free_check() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..10 {
        d.commit("a", "APPEND").await;
    }
    // Rolled back to 5, then 6' to 12' with other counts, and only 12' is notified.
    d.table("a").rollback_to(5);
    for _ in 0..7 {
        d.table("a").commit("APPEND", 3);
    }
    d.notify("a", 12).await;
    assert!(d.head("a").state.hold.is_some());
}

#[tokio::test]
async fn a_rewrite_needs_two_reads_a_settle_time_apart_before_it_can_be_accepted() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
    }
    d.table("a").rollback_to(1);
    let id = d.table("a").commit("APPEND", 9);
    d.notify("a", id).await;
    let ports = d.world.quiet_ports();
    let too_early = observe::accept_rewrite(&ports, d.ids["a"], &trace()).await.unwrap_err();
    assert_eq!(too_early.kind(), ErrorKind::Conflict);
    d.notify("a", id).await;
    assert!(d.head("a").state.hold.unwrap().confirmed_at.is_none(), "seconds apart is not settled");
    d.world.clock.advance(Duration::from_secs(61));
    d.notify("a", id).await;
    assert!(d.head("a").state.hold.unwrap().confirmed_at.is_some());
    let observed = observe::accept_rewrite(&ports, d.ids["a"], &trace()).await.unwrap();
    assert_eq!(observed.head.value.state.epoch.0, 1);
    assert_eq!(observed.head.value.state.table.as_ref().unwrap().snapshot_id, "2");
    // Accepting counts as an advance: the range goes across the epochs.
    lakebell_engine::evaluate::evaluate_dependents(&ports, &observed, &trace()).await.unwrap();
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(d.triggers("t").last().unwrap()), ["a(3,2]"]);
    d.assert_started("t", 4);
}

#[tokio::test]
async fn a_half_done_rollback_that_goes_away_opens_no_epoch() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
    }
    let kept = d.world.storage.get_now(BUCKET, &d.tables["a"].key(3)).unwrap();
    d.world.storage.remove(BUCKET, &d.tables["a"].key(3));
    d.notify("a", 3).await;
    assert!(d.head("a").state.hold.is_some());
    d.world.storage.put(BUCKET, &d.tables["a"].key(3), kept);
    d.notify("a", 3).await;
    let state = d.head("a").state;
    assert!(state.hold.is_none());
    assert_eq!(state.epoch.0, 0);
}

#[tokio::test]
async fn case_71_expired_snapshots_are_a_recorded_gap_and_the_state_goes_on() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    for _ in 0..10 {
        d.commit("a", "APPEND").await;
    }
    d.run_dispatcher().await;
    for _ in 0..40 {
        d.table("a").commit("APPEND", 1);
    }
    d.table("a").expire_below(40);
    d.notify("a", 50).await;
    let state = d.head("a").state;
    assert_eq!(state.table.unwrap().snapshot_id, "50");
    let gap = state.gap.unwrap();
    assert_eq!((gap.first.0, gap.last.0), (11, 39));
    let before = d.triggers("t").len();
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), before, "one trigger over the whole range");
}

#[tokio::test]
async fn a_hole_is_no_expiry_and_is_waited_for() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    for _ in 0..4 {
        d.table("a").commit("APPEND", 1);
    }
    d.notify("a", 2).await;
    d.run_dispatcher().await;
    let third = d.world.storage.get_now(BUCKET, &d.tables["a"].key(3)).unwrap();
    d.world.storage.remove(BUCKET, &d.tables["a"].key(3));
    d.notify("a", 4).await;
    assert_eq!(d.head("a").state.table.unwrap().snapshot_id, "2");
    assert_eq!(d.why("t").await.reason.unwrap().code, ReasonCode::CommitMissing);
    d.world.storage.put(BUCKET, &d.tables["a"].key(3), third);
    d.notify("a", 4).await;
    assert_eq!(d.head("a").state.table.unwrap().snapshot_id, "4");
}

#[tokio::test]
async fn a_hole_becomes_a_gap_after_its_grace() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..4 {
        d.table("a").commit("APPEND", 1);
    }
    d.notify("a", 2).await;
    d.world.storage.remove(BUCKET, &d.tables["a"].key(3));
    d.notify("a", 4).await;
    d.world.clock.advance(Duration::from_secs(601));
    d.notify("a", 4).await;
    let state = d.head("a").state;
    assert_eq!(state.table.unwrap().snapshot_id, "4");
    assert_eq!(state.gap.unwrap().first.0, 3);
}

#[tokio::test]
async fn a_damaged_snapshot_stops_before_it_says_so_and_heals() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    let id = d.table("a").commit("APPEND", 1);
    let good = d.world.storage.get_now(BUCKET, &d.tables["a"].key(id)).unwrap();
    d.world.storage.put(BUCKET, &d.tables["a"].key(id), &good[..good.len() / 2]);
    d.notify("a", id).await;
    assert_eq!(d.head("a").state.trouble.as_ref().unwrap().code, TroubleCode::Damaged);
    let why = d.why("t").await;
    assert_eq!((why.verdict, why.reason.unwrap().code), (Verdict::BlockedBySnapshot, ReasonCode::CommitDamaged));
    d.world.storage.put(BUCKET, &d.tables["a"].key(id), good);
    d.notify("a", id).await;
    assert!(d.head("a").state.trouble.is_none());
    assert_eq!(d.triggers("t").len(), 2);
}

#[tokio::test]
async fn an_unreadable_location_is_recorded_and_nothing_else_is_affected() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    let id = d.table("a").commit("APPEND", 1);
    d.world.storage.refuse(BUCKET, "wh/ods_db.db/a/", ErrorKind::Denied);
    d.notify("a", id).await;
    assert_eq!(d.why("t").await.reason.unwrap().code, ReasonCode::LocationUnreadable);
    assert_eq!(last_outcome(&d.commit("b", "APPEND").await), Outcome::Advanced);
}

#[tokio::test]
async fn a_storage_that_is_away_makes_the_message_come_again() {
    let mut d = Deployment::with(&["a"]).await;
    let id = d.table("a").commit("APPEND", 1);
    d.world.storage.refuse(BUCKET, "wh/", ErrorKind::Unavailable);
    let error = d.try_notify("a", id).await.unwrap_err();
    assert!(error.retryable());
    d.world.storage.heal();
    assert_eq!(last_outcome(&d.notify("a", id).await), Outcome::Advanced);
}

#[tokio::test]
async fn a_table_that_nobody_registered_is_kept_as_seen() {
    let d = Deployment::with(&[]).await;
    let created = Created { bucket: BUCKET.into(), key: "x/y.db/z/snapshot/snapshot-1".into(), etag: None };
    let first = d.watcher.created(&created, &trace()).await.unwrap();
    assert!(matches!(first, Watched::UnknownTable { is_new: true, .. }));
    let again = d.watcher.created(&created, &trace()).await.unwrap();
    assert!(matches!(again, Watched::UnknownTable { is_new: false, .. }));
    let seen = lakebell_engine::assets::list_unregistered(&d.world.quiet_ports(), None).await.unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].location, "s3://lake/x/y.db/z");
}

#[tokio::test]
async fn a_table_of_a_warehouse_registers_itself_with_its_first_commit() {
    let d = Deployment::with(&[]).await;
    let warehouse =
        serde_json::from_value(json!({"location": "s3://lake/wh", "format": "paimon", "project": 7})).unwrap();
    d.world.storage.make_bucket(BUCKET);
    lakebell_engine::settings::put_warehouse(&d.world.quiet_ports(), &warehouse, &trace()).await.unwrap();
    let mut table = lakebell_testkit::PaimonTable::new(d.world.storage.clone(), BUCKET, "wh/ods_db.db/new");
    table.commit("APPEND", 1);
    let created = Created { bucket: BUCKET.into(), key: table.key(1), etag: None };
    let watched = d.watcher.created(&created, &trace()).await.unwrap();
    assert!(matches!(watched, Watched::Observed { .. }), "{watched:?}");
    let assets = lakebell_engine::assets::list(&d.world.quiet_ports(), None).await.unwrap();
    assert_eq!(assets[0].key, key("new"));
}

#[tokio::test]
async fn a_lost_race_repeats_the_storage_read() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    d.table("a").commit("APPEND", 1);
    // While the first observer is about to write snapshot 2, the table is rolled back, written
    // anew, and another observer records that.
    let other = d.world.quiet_ports();
    let asset = d.ids["a"];
    let storage = d.world.storage.clone();
    let (bucket, second) = (BUCKET.to_owned(), d.tables["a"].key(2));
    d.world.tap.before(lakebell_testkit::Op::Write, 1, move || async move {
        storage.put(
            &bucket,
            &second,
            r#"{"version":3,"id":2,"schemaId":0,"uuid":"other","commitKind":"APPEND","timeMillis":1,"totalRecordCount":2,"deltaRecordCount":1}"#,
        );
        let hint = observe::Hint {
            asset,
            look: observe::Look::Whole,
            source: lakebell_domain::event::Source::Poll,
            trace: TraceId::new("other").unwrap(),
        };
        observe::observe(&other, &hint).await.unwrap();
    });
    d.notify("a", 2).await;
    assert_eq!(d.head("a").state.table.unwrap().fingerprint.as_str(), "other");
}

#[tokio::test]
async fn a_watermark_never_goes_back_and_the_sentinel_is_none() {
    let mut d = Deployment::with(&["a"]).await;
    let id = d.table("a").commit_with("APPEND", 1, r#""watermark":-9223372036854775808"#);
    d.notify("a", id).await;
    assert!(d.head("a").state.watermark.is_none());
    let id = d.table("a").commit_with("APPEND", 1, r#""watermark":100"#);
    d.notify("a", id).await;
    d.commit("a", "APPEND").await;
    let id = d.table("a").commit_with("APPEND", 1, r#""watermark":50"#);
    d.notify("a", id).await;
    assert_eq!(d.head("a").state.watermark.unwrap().at.0, 100);
}

#[tokio::test]
async fn an_unknown_commit_kind_counts_as_data_and_is_reported() {
    let mut d = Deployment::with(&["a"]).await;
    assert_eq!(last_outcome(&d.commit("a", "FUTURE_KIND").await), Outcome::Advanced);
    let events = lakebell_engine::history::events(&d.world.quiet_ports(), d.ids["a"], 10, None).await.unwrap();
    assert_eq!(events.found[0].detail.as_deref(), Some("unknown commit kind, counted as data"));
}
