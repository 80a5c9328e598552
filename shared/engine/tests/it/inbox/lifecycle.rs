//! A drop that a writer tells of closes nothing until storage agrees, and a schema waits where the asset asks.

use lakebell_decoders::Lifecycle;
use lakebell_domain::reason::Verdict;
use lakebell_domain::version::Epoch;
use lakebell_engine::observe;

use super::*;

fn dropped() -> Vec<Report> {
    vec![Report { table: table("a"), says: Says::Lifecycle(Lifecycle::Dropped), at: None }]
}

#[tokio::test]
async fn a_drop_closes_the_epoch_only_when_storage_agrees() {
    let mut d = Deployment::with(&["a"]).await;
    d.table("a").commit("APPEND", 1);
    d.sent("1", entry("1", vec![touched("a")])).await;
    assert_eq!(d.sent("2", entry("2", dropped())).await, ["ignored"]);
    let state = d.head("a").state;
    assert_eq!(
        (&state.hold, state.epoch, state.position().ordinal.0),
        (&None, Epoch(0), 1),
        "the files are still there"
    );

    d.table("a").drop_table();
    d.sent("3", entry("3", dropped())).await;
    let hold = d.head("a").state.hold.expect("storage agrees");
    assert_eq!(hold.confirmed_at, None, "one look is not enough");
    let ports = d.world.quiet_ports();
    observe::accept_rewrite(&ports, d.ids["a"], &trace()).await.unwrap_err();
    d.world.clock.advance(Duration::from_secs(61));
    d.sent("4", entry("4", dropped())).await;
    assert!(d.head("a").state.hold.unwrap().confirmed_at.is_some());
    observe::accept_rewrite(&ports, d.ids["a"], &trace()).await.unwrap();
    assert_eq!(d.head("a").state.epoch, Epoch(1));
}

#[tokio::test]
async fn a_schema_that_a_writer_changed_waits_for_approval_where_the_asset_asks_for_it() {
    let mut d = Deployment::with(&["a"]).await;
    d.table("a").commit("APPEND", 1);
    d.sent("1", entry("1", vec![touched("a")])).await;
    let spec: lakebell_engine::assets::AssetSpec = serde_json::from_value(json!({
        "key": key("a"), "location": "s3://lake/wh/ods_db.db/a", "schemaApproval": "required"}))
    .unwrap();
    lakebell_engine::assets::register(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
    let target = serde_json::from_value(json!({"name": "t", "workflowDefinitionCode": 11, "groups": [{"name": "g",
        "dependencies": [{"asset": key("a"), "schemaStatus": "COMPATIBLE"}]}]}))
    .unwrap();
    d.declare(&target).await;
    let id = d.table("a").commit("APPEND", 1);
    let object = d.tables["a"].key(id);
    let body = json!({"version": 3, "id": id, "schemaId": 1, "uuid": "s2", "commitUser": "job", "commitIdentifier": id,
        "commitKind": "APPEND", "timeMillis": 1_767_225_600_000_u64, "totalRecordCount": 2, "deltaRecordCount": 1});
    d.world.storage.put("lake", &object, body.to_string());
    let altered = vec![
        Report { table: table("a"), says: Says::SchemaChanged { schema: None }, at: None },
        Report { table: table("a"), says: Says::Lifecycle(Lifecycle::Altered), at: None },
    ];
    assert_eq!(d.sent("2", entry("2", altered)).await[0], "advanced", "the look has found the commit");
    assert_eq!(d.why("t").await.verdict, Verdict::BlockedBySchema);
    let approved = Pushed {
        id: "3".to_owned(),
        source: "steward".to_owned(),
        kind: EventKind::SchemaChangeApproved,
        asset: Named::Key(key("a")),
        time: None,
        facts: Facts { schema_id: Some(1), ..Facts::default() },
    };
    assert_eq!(d.sent("3", Content::Event(Box::new(approved))).await, ["advanced"]);
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}
