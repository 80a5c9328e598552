//! Events of one run of a job, in any order, each with a part of what is known.

use lakebell_decoders::openlineage;
use serde_json::Value;

use super::*;

const RUN: &str = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

fn dataset(table: &str, more: &Value) -> Value {
    let mut dataset = json!({"namespace": "s3://lake", "name": format!("wh/ods_db.db/{table}")});
    for (name, value) in more.as_object().unwrap() {
        dataset[name] = value.clone();
    }
    dataset
}

/// An event of a run, as an entry.
fn event(status: &str, minute: u32, inputs: &[Value], outputs: &[Value], run: &Value) -> Content {
    let document = json!({
        "eventType": status, "eventTime": format!("2026-01-15T10:{minute:02}:00Z"), "producer": "p",
        "run": {"runId": RUN, "facets": run}, "job": {"namespace": "flink", "name": "job"},
        "inputs": inputs, "outputs": outputs,
    });
    Content::Entry(Box::new(openlineage::decode(document.to_string().as_bytes()).expect("an event")))
}

fn checkpoint(minute: u32, completed: u64) -> Content {
    event("RUNNING", minute, &[], &[], &json!({"checkpoints": {"completed": completed}}))
}

impl Deployment {
    /// What became of an event: kind and outcome of each thing that it says.
    async fn of_run(&self, id: &str, content: Content) -> Vec<String> {
        self.accept(vec![self.letter(id, content)]).await;
        let became = self.work().await.into_iter();
        let kind = |became: &Became| became.kind.map_or_else(|| "-".to_owned(), |kind| kind.to_string());
        became.map(|became| format!("{} {}", kind(&became), became.outcome)).collect()
    }
}

#[tokio::test]
async fn an_end_without_tables_is_about_those_of_the_start() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["b"])])).await;
    let started =
        d.of_run("1", event("START", 1, &[dataset("a", &json!({}))], &[dataset("b", &json!({}))], &json!({})));
    assert_eq!(started.await, ["- lineage", "JOB_STATUS_CHANGED ignored"]);
    d.table("b").commit("APPEND", 1);
    let ended = d.of_run("2", event("COMPLETE", 2, &[], &[], &json!({}))).await;
    assert_eq!(ended, ["- lineage", "JOB_STATUS_CHANGED ignored", "SNAPSHOT_COMMITTED advanced"]);
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    let again = d.of_run("2", event("COMPLETE", 2, &[], &[], &json!({}))).await;
    assert_eq!(again, ["- lineage", "JOB_STATUS_CHANGED duplicate", "SNAPSHOT_COMMITTED duplicate"]);
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_start_that_comes_after_the_end_is_made_good() {
    let mut d = Deployment::with(&["b"]).await;
    d.table("b").commit("APPEND", 1);
    assert_eq!(d.of_run("1", event("COMPLETE", 2, &[], &[], &json!({}))).await, Vec::<String>::new());
    let late = d.of_run("2", event("START", 1, &[], &[dataset("b", &json!({}))], &json!({}))).await;
    let expected =
        ["- lineage", "JOB_STATUS_CHANGED ignored", "JOB_STATUS_CHANGED ignored", "SNAPSHOT_COMMITTED advanced"];
    assert_eq!(late, expected);
    let again = d.of_run("3", event("RUNNING", 1, &[], &[dataset("b", &json!({}))], &json!({}))).await;
    assert_eq!(again, ["- lineage"], "its end is told once");
}

#[tokio::test]
async fn a_checkpoint_is_a_hint_for_what_the_job_writes() {
    let mut d = Deployment::with(&["b"]).await;
    d.of_run("1", event("START", 1, &[], &[dataset("b", &json!({}))], &json!({}))).await;
    d.table("b").commit("APPEND", 1);
    assert_eq!(d.of_run("2", checkpoint(2, 1)).await, ["- lineage", "SNAPSHOT_COMMITTED advanced"]);
    assert_eq!(d.of_run("3", checkpoint(3, 1)).await, ["- lineage"], "none was completed since");
    d.table("b").commit("APPEND", 1);
    assert_eq!(d.of_run("4", checkpoint(4, 2)).await, ["- lineage", "SNAPSHOT_COMMITTED advanced"]);
    assert_eq!(d.of_run("5", checkpoint(3, 1)).await, ["- lineage"], "one that is late");
}

#[tokio::test]
async fn what_one_event_names_another_need_not() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.table("a").commit("APPEND", 1);
    d.table("b").commit("APPEND", 1);
    // The start has the symlink and what was read, a later event the commit, the end no more than names.
    let symlink = json!({"facets": {"symlinks": {"identifiers": [
        {"namespace": "hive://metastore:9083", "name": "ods.b", "type": "TABLE"}]}}});
    let read = json!({"facets": {"version": {"datasetVersion": "1"}}});
    d.of_run("1", event("START", 1, &[dataset("a", &read)], &[dataset("b", &symlink)], &json!({}))).await;
    let report = json!({"outputFacets": {"icebergCommitReport": {"snapshotId": 7}}});
    d.of_run("2", event("RUNNING", 2, &[], &[dataset("b", &report)], &json!({}))).await;
    let checked = json!({"inputFacets": {"dataQualityAssertions": {"assertions": [
        {"assertion": "not_null", "success": true}]}}});
    let end = event("COMPLETE", 3, &[dataset("a", &checked)], &[dataset("b", &json!({}))], &json!({}));
    let ended = d.of_run("3", end).await;
    let expected =
        ["- lineage", "JOB_STATUS_CHANGED ignored", "SNAPSHOT_COMMITTED ignored", "QUALITY_CHECK_PASSED advanced"];
    assert_eq!(ended, expected, "snapshot 7 is none of this table's, and the check is about what was read");
    let letter = inbox::find(&d.world.quiet_ports(), &inbox::receipt_of(Some(PROJECT), "a writer", "3")).await.unwrap();
    let Progress::Settled { became, .. } = letter.unwrap().value.progress else { panic!() };
    assert!(became[2].reason.as_deref().unwrap().starts_with("snapshot 7 is not visible"), "{became:?}");
    let aliases = inbox::aliases(&d.world.quiet_ports(), d.ids["b"]).await.unwrap().aliases;
    assert_eq!(aliases[0].name.to_string(), "hive://metastore:9083 ods.b");
}

#[tokio::test]
async fn a_run_that_failed_is_looked_at_and_a_drop_that_the_start_told_of_is_told_with_the_end() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.of_run("1", event("START", 1, &[], &[dataset("a", &json!({}))], &json!({}))).await;
    d.table("a").commit("APPEND", 1);
    let failed = d.of_run("2", event("FAIL", 2, &[], &[], &json!({}))).await;
    assert_eq!(failed, ["- lineage", "JOB_STATUS_CHANGED ignored", "SNAPSHOT_COMMITTED advanced"]);
    let d = Deployment::with(&["b"]).await;
    let dropped = json!({"facets": {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}});
    d.of_run("1", event("START", 1, &[], &[dataset("b", &dropped)], &json!({}))).await;
    let ended = d.of_run("2", event("COMPLETE", 2, &[], &[], &json!({}))).await;
    assert_eq!(ended, ["- lineage", "JOB_STATUS_CHANGED ignored", "TABLE_DROPPED ignored"]);
}

#[tokio::test]
async fn a_run_costs_a_read_for_each_event_and_a_write_where_something_is_new() {
    let d = Deployment::with(&["b"]).await;
    let run = |content| d.of_run("x", content);
    run(event("START", 1, &[], &[dataset("b", &json!({}))], &json!({}))).await;
    d.world.tap.take_log();
    d.of_run("y", checkpoint(2, 0)).await;
    let calls: Vec<Op> = d.world.tap.take_log().into_iter().map(|call| call.op).collect();
    let writes = calls.iter().filter(|op| **op == Op::Write).count();
    assert_eq!(writes, 2, "the letter, twice, and nothing of the run: {calls:?}");
    // Another project's run of the same id is another run.
    let named = ("a writer".to_owned(), "z".to_owned());
    let end = event("COMPLETE", 3, &[], &[], &json!({}));
    let letter = Letter::new(&d.world.quiet_ports(), Some(ProjectCode(8)), named, end, &trace());
    d.accept(vec![letter]).await;
    assert!(d.work().await.is_empty());
}
