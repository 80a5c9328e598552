//! The six scenarios of the RFC, each on the deployed functions: a snapshot, a window of event time, a
//! quality gate, a tag, an approved schema, and a backfill.

use jiff::Timestamp;
use lakebell_scheduler_standin::Profile;
use serde_json::{Value, json};

use crate::scene;
use crate::support::{PATIENCE, Scene, Scheduler, Table, until};

/// A table, and a target `t` on it with further conditions and policies.
struct Story {
    scene: Scene,
    scheduler: Scheduler,
    table: Table,
}

impl Story {
    async fn begin(scene: Scene, asset: &Value, conditions: &Value, policies: &Value) -> Self {
        let scheduler = scene.scheduler(Profile::V3_2).await;
        let workflow = scheduler.define(scene.project, "scenario");
        let mut table = scene.table("orders");
        let mut spec = json!({"key": table.asset, "location": table.location()});
        merge(&mut spec, asset);
        scene.post("/assets", &spec).await.expect(&[201]);
        table.append().await;
        scene.reaches(&table, 1).await;
        let mut target = Scene::target(&scheduler.connection, "t", workflow, &json!("all"), &[&table]);
        merge(&mut target["groups"][0]["dependencies"][0], conditions);
        merge(&mut target, policies);
        scene.declare(&target).await;
        Self { scene, scheduler, table }
    }

    /// Pushes one event about the table.
    async fn push(&self, kind: &str, id: &str, data: &Value) -> Value {
        let mut about = json!({"asset": self.table.asset});
        merge(&mut about, data);
        let event = json!({
            "specversion": "1.0", "id": format!("{}-{id}", self.scene.name), "source": "e2e",
            "type": format!("io.lakebell.{kind}.v1"), "time": Timestamp::now(), "data": about,
        });
        self.scene.push(&event).await
    }

    /// Waits until the leading reason of the target is this.
    async fn waits_for(&self, code: &str) -> Value {
        until(&format!("the reason {code}"), PATIENCE, async || {
            let why = self.scene.why("t").await;
            if why["reason"]["code"] == code { Ok(why) } else { Err(why) }
        })
        .await
    }

    /// Waits until so many triggers have started, and returns the newest.
    async fn started(&self, count: usize) -> Value {
        let triggers = until(&format!("{count} started triggers"), PATIENCE, async || {
            let triggers = self.scene.triggers("t").await;
            let started = triggers.iter().filter(|trigger| trigger["triggerStatus"] == "SUCCESS").count();
            if started == count { Ok(triggers) } else { Err((triggers, self.scene.why("t").await)) }
        })
        .await;
        assert_eq!(triggers.len(), count, "{triggers:#?}");
        assert_eq!(self.scheduler.start_calls(), count as u64, "each started once");
        triggers[0].clone()
    }
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().unwrap() {
        into[key] = value.clone();
    }
}

/// The bounds of a trigger's only range.
fn took(trigger: &Value) -> (Value, Value) {
    let range = &trigger["ranges"][0];
    (range["from"]["snapshotId"].clone(), range["to"]["snapshotId"].clone())
}

#[tokio::test]
async fn a_snapshot_starts_it_and_a_compaction_does_not() {
    let scene = scene!("snapshot");
    let mut story = Story::begin(scene, &json!({}), &json!({"minNewSnapshots": 2}), &json!({})).await;
    story.table.append().await;
    story.table.commit("COMPACT", 0).await;
    let why = story.waits_for("TOO_FEW_SNAPSHOTS").await;
    assert_eq!(why["reason"]["actual"], "1 since the last trigger");
    story.table.append().await;
    assert_eq!(took(&story.started(1).await), (json!("1"), json!("4")));
}

#[tokio::test]
async fn each_completed_window_starts_it_once_in_order() {
    let scene = scene!("window");
    let every = json!({"every": {"period": "1d", "timeZone": "Asia/Shanghai"}});
    let mut story = Story::begin(scene, &json!({}), &every, &json!({})).await;
    let at = |text: &str| json!({"watermark": text.parse::<Timestamp>().unwrap().as_millisecond()});
    story.table.commit_with("APPEND", 1, &at("2026-03-01T03:00:00Z")).await;
    story.waits_for("WINDOW_OPEN").await;
    // Two midnights of Shanghai are passed at once.
    story.table.commit_with("APPEND", 1, &at("2026-03-02T17:00:00Z")).await;
    story.started(2).await;
    let triggers = story.scene.triggers("t").await;
    let dates: Vec<&Value> = triggers.iter().map(|trigger| &trigger["parameters"]["lakebell_biz_date"]).collect();
    assert_eq!(dates, [&json!("2026-03-02"), &json!("2026-03-01")], "newest first");
    assert_eq!(triggers[1]["parameters"]["lakebell_window_end"], "2026-03-01T16:00:00Z");
    let ranges: Vec<_> = triggers.iter().map(took).collect();
    assert_eq!(ranges, [(json!("3"), json!("3")), (json!("1"), json!("3"))]);
}

#[tokio::test]
async fn a_version_starts_it_once_its_checks_have_passed() {
    let scene = scene!("quality");
    let gate = json!({"qualityStatus": "PASSED", "checks": ["rows"]});
    let mut story = Story::begin(scene, &json!({}), &gate, &json!({})).await;
    story.table.append().await;
    story.waits_for("QUALITY_UNKNOWN").await;
    story.push("quality.check.failed", "f2", &json!({"snapshotId": "2", "check": "rows"})).await;
    story.waits_for("QUALITY_FAILED").await;
    story.table.append().await;
    story.scene.reaches(&story.table, 3).await;
    story.push("quality.check.passed", "p3", &json!({"snapshotId": "3", "check": "rows"})).await;
    let trigger = story.started(1).await;
    assert_eq!(took(&trigger), (json!("1"), json!("3")));
    assert_eq!(trigger["ranges"][0]["failedVersions"][0]["snapshotId"], "2", "{trigger}");
    // Yesterday's PASSED does not release today's version; a verdict that comes first waits for it.
    story.push("quality.check.passed", "p4", &json!({"snapshotId": "4", "check": "rows"})).await;
    story.table.append().await;
    assert_eq!(took(&story.started(2).await), (json!("3"), json!("4")));
}

#[tokio::test]
async fn a_tag_starts_it_with_the_version_that_it_names() {
    let scene = scene!("tag");
    let mut story = Story::begin(scene, &json!({}), &json!({"tag": "daily-*"}), &json!({})).await;
    story.table.append().await;
    story.table.append().await;
    story.waits_for("TAG_MISSING").await;
    story.table.tag("hourly-03", 3).await;
    story.table.tag("daily-2026-03-01", 2).await;
    let trigger = story.started(1).await;
    assert_eq!(took(&trigger), (json!("1"), json!("2")), "not the newest: the tagged one");
    assert_eq!(trigger["parameters"]["lakebell_orders_tag"], "daily-2026-03-01");
}

#[tokio::test]
async fn a_new_schema_starts_nothing_until_it_is_approved() {
    let scene = scene!("schema");
    let asset = json!({"schemaApproval": "required"});
    let mut story = Story::begin(scene, &asset, &json!({"schemaStatus": "COMPATIBLE"}), &json!({})).await;
    story.table.append().await;
    // The table was registered before it had any schema, so that its first one waits as well.
    story.waits_for("SCHEMA_PENDING").await;
    story.push("schema.change.approved", "a0", &json!({"schemaId": 0})).await;
    story.started(1).await;
    story.table.commit_with("APPEND", 1, &json!({"schemaId": 1})).await;
    let why = story.waits_for("SCHEMA_PENDING").await;
    assert_eq!(why["verdict"], "BLOCKED_BY_SCHEMA");
    story.push("schema.change.rejected", "r", &json!({"schemaId": 1})).await;
    story.waits_for("SCHEMA_REJECTED").await;
    story.push("schema.change.approved", "a", &json!({"schemaId": 1})).await;
    assert_eq!(took(&story.started(2).await), (json!("2"), json!("3")));
}

#[tokio::test]
async fn a_backfill_is_one_start_when_it_has_finished() {
    let scene = scene!("backfill");
    let mut story = Story::begin(scene, &json!({}), &json!({}), &json!({"onBackfill": "hold"})).await;
    story.push("backfill.started", "b1", &json!({"backfillId": "2026-02"})).await;
    for _ in 0..3 {
        story.table.append().await;
    }
    story.scene.reaches(&story.table, 4).await;
    let why = story.waits_for("BACKFILL_RUNNING").await;
    assert_eq!(why["verdict"], "BLOCKED_BY_BACKFILL");
    assert!(story.scene.triggers("t").await.is_empty());
    story.push("backfill.completed", "b2", &json!({"backfillId": "2026-02"})).await;
    let trigger = story.started(1).await;
    assert_eq!(took(&trigger), (json!("1"), json!("4")));
    assert_eq!(trigger["parameters"]["lakebell_backfill"], "true");
}
