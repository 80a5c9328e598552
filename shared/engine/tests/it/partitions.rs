//! Partitions: done by a push, joined, in full sets, and given up.

use std::time::Duration;

use lakebell_domain::asset::AssetKey;
use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::push::{self, Facts, Named, Pushed, Receipt};
use lakebell_engine::{operate, replay};
use serde_json::{Value, json};

use crate::support::{BUCKET, Deployment, PROJECT, key, target_id, trace};

/// The target `t` with one group of these dependencies.
async fn declare(d: &Deployment, dependencies: &Value) {
    let document = json!({
        "name": "t", "workflowDefinitionCode": 11, "groups": [{"name": "g", "dependencies": dependencies}],
    });
    d.declare(&serde_json::from_value(document).unwrap()).await;
}

fn by_day(table: &str) -> Value {
    json!({"asset": key(table), "partition": "dt", "join": "dt"})
}

impl Deployment {
    /// A writer says that a partition is done, at the table's newest commit.
    pub(crate) async fn partition_done(&self, table: &str, partition: &str) -> Outcome {
        done(self, table, partition, None).await
    }
}

async fn done(d: &Deployment, table: &str, partition: &str, snapshot: Option<u64>) -> Outcome {
    let asset: AssetKey = key(table);
    let pushed = Pushed {
        id: format!("{table}-{partition}-{snapshot:?}"),
        source: "writer".to_owned(),
        kind: EventKind::PartitionDone,
        time: None,
        asset: Named::Key(asset),
        facts: Facts {
            partition: Some(partition.to_owned()),
            snapshot_id: snapshot.map(|id| id.to_string()),
            ..Facts::default()
        },
    };
    match push::push(&d.world.quiet_ports(), &pushed, &trace()).await.unwrap().receipt {
        Receipt::Looked(outcome) => outcome,
        Receipt::UnknownAsset => panic!("the asset is registered"),
    }
}

/// The partition of each trigger, in the order of their claims.
fn started(d: &Deployment) -> Vec<String> {
    let mut triggers: Vec<_> = d.records().triggers.into_values().collect();
    triggers.sort_by_key(|trigger| trigger.claimed_at);
    triggers.iter().map(|trigger| trigger.partition.as_ref().map(ToString::to_string).unwrap_or_default()).collect()
}

async fn reason(d: &Deployment) -> (Verdict, ReasonCode, String) {
    let why = d.why("t").await;
    let reason = why.reason.unwrap();
    (why.verdict, reason.code, reason.actual)
}

#[tokio::test]
async fn hours_pair_only_with_their_like() {
    let mut d = Deployment::with(&["a", "b"]).await;
    let of = |table: &str| json!({"asset": key(table), "partition": ["dt", "hour"]});
    declare(&d, &json!([of("a"), of("b")])).await;
    assert_eq!(reason(&d).await.1, ReasonCode::NoNewPartition);
    d.commit("a", "APPEND").await;
    d.commit("b", "APPEND").await;
    assert_eq!(done(&d, "a", "dt=20240910/hour=05", None).await, Outcome::Advanced);
    assert_eq!(done(&d, "b", "dt=20240910/hour=06", None).await, Outcome::Advanced);
    d.run_dispatcher().await;
    assert_eq!(started(&d), Vec::<String>::new());
    assert_eq!(reason(&d).await.1, ReasonCode::PartitionMissing);
    d.world.clock.advance(Duration::from_secs(1));
    done(&d, "a", "dt=20240910/hour=06", None).await;
    d.run_dispatcher().await;
    d.world.clock.advance(Duration::from_secs(1));
    done(&d, "b", "dt=20240910/hour=05", None).await;
    d.run_dispatcher().await;
    assert_eq!(started(&d), ["dt=20240910/hour=06", "dt=20240910/hour=05"]);
    assert_eq!(done(&d, "b", "dt=20240910/hour=05", None).await, Outcome::Duplicate);
    d.run_dispatcher().await;
    d.assert_started("t", 2);
    let parameters = &d.scheduler.instances()[0].parameters;
    assert_eq!(parameters["lakebell_a_partition"], "dt=20240910/hour=06");
    let replayed = replay::of_declared(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    let found: Vec<_> = replayed.starts.iter().map(|start| start.partition.as_ref().unwrap().to_string()).collect();
    assert_eq!(found, started(&d));
}

#[tokio::test]
async fn case_79_a_partition_is_there_once_its_commit_is() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    declare(&d, &json!([by_day("a")])).await;
    let parked = done(&d, "a", "dt=1", Some(2)).await;
    assert!(matches!(&parked, Outcome::Ignored(why) if why.contains("parked")), "{parked:?}");
    assert!(started(&d).is_empty());
    d.commit("a", "COMPACT").await;
    assert!(started(&d).is_empty(), "a compaction writes no partition");
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(started(&d), ["dt=1"]);
}

#[tokio::test]
async fn a_full_set_lists_what_is_missing_and_is_given_up_after_its_horizon() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    let hours = json!({
        "asset": key("a"), "partition": ["dt", "hour"], "fullSet": {"key": "hour", "values": "00..03"}, "horizon": "6h",
    });
    declare(&d, &json!([hours])).await;
    for hour in ["00", "02", "03"] {
        done(&d, "a", &format!("dt=1/hour={hour}"), None).await;
    }
    let (verdict, code, actual) = reason(&d).await;
    assert_eq!(
        (verdict, code, actual.as_str()),
        (Verdict::BlockedBySnapshot, ReasonCode::PartitionMissing, "1 of hour missing: 01")
    );
    // A later day that is complete does not wait for it.
    for hour in ["00", "01", "02", "03"] {
        done(&d, "a", &format!("dt=2/hour={hour}"), None).await;
    }
    d.run_dispatcher().await;
    assert_eq!(started(&d), ["dt=2"]);
    assert_eq!(reason(&d).await.1, ReasonCode::PartitionMissing, "the day before is still waited for");
    d.world.clock.advance(Duration::from_hours(7));
    assert_eq!(reason(&d).await.1, ReasonCode::NoNewPartition, "and then it is not");
    d.world.clock.advance(Duration::from_secs(1));
    done(&d, "a", "dt=1/hour=01", None).await;
    d.run_dispatcher().await;
    assert_eq!(started(&d), ["dt=2", "dt=1"], "what becomes complete after all is taken");
}

#[tokio::test]
async fn partitions_mix_with_tables_that_have_none() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.commit("a", "APPEND").await;
    declare(&d, &json!([by_day("a"), {"asset": key("b")}])).await;
    done(&d, "a", "dt=1", None).await;
    assert_eq!(reason(&d).await.1, ReasonCode::NoVersionYet);
    d.commit("b", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(started(&d), ["dt=1"]);
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(1,1]", "b(-,1]"]);
}

#[tokio::test]
async fn what_was_complete_at_the_declaration_is_taken_and_so_is_what_a_person_passes_over() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    done(&d, "a", "dt=1", None).await;
    declare(&d, &json!([by_day("a")])).await;
    assert_eq!(reason(&d).await.1, ReasonCode::NoNewPartition);
    let ports = d.world.quiet_ports();
    operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
    done(&d, "a", "dt=2", None).await;
    operate::pass_over(&ports, &target_id("t"), None, &trace()).await.unwrap();
    operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
    done(&d, "a", "dt=3", None).await;
    d.run_dispatcher().await;
    assert_eq!(started(&d), ["dt=3"]);
}

#[test]
fn what_is_no_partition_is_refused_with_its_field() {
    for (dependency, field) in [
        (json!({"asset": key("a"), "join": "dt"}), "groups[0].dependencies[0].join"),
        (json!({"asset": key("a"), "partition": "dt", "join": "hour"}), "groups[0].dependencies[0].join"),
        (
            json!({"asset": key("a"), "partition": "dt", "fullSet": {"key": "hour", "values": "00..23"}}),
            "groups[0].dependencies[0].fullSet.key",
        ),
        (
            json!({"asset": key("a"), "partition": "dt", "commitKinds": ["APPEND"]}),
            "groups[0].dependencies[0].partition",
        ),
    ] {
        let document = json!({
            "name": "t", "workflowDefinitionCode": 11, "groups": [{"name": "g", "dependencies": [dependency]}],
        });
        let spec: lakebell_domain::target::TargetSpec = serde_json::from_value(document).unwrap();
        assert_eq!(spec.check().unwrap_err().field, field);
    }
    let two = json!({"name": "t", "workflowDefinitionCode": 11, "groups": [{"dependencies": [
        by_day("a"), {"asset": key("b"), "partition": ["dt", "hour"]},
    ]}]});
    let spec: lakebell_domain::target::TargetSpec = serde_json::from_value(two).unwrap();
    let refused = spec.check().unwrap_err();
    assert_eq!(
        (refused.field.as_str(), refused.problem.as_str()),
        ("groups[0].dependencies[1].join", "it is joined on dt, hour and dependencies[0] on dt")
    );
}

#[tokio::test]
async fn case_26_a_month_needs_all_weeks_that_touch_it() {
    let mut d = Deployment::with(&["months", "weeks"]).await;
    let of = |table: &str, period: &str| json!({"asset": key(table), "every": {"period": period, "timeZone": "UTC"}});
    let at = |text: &str| {
        let at: jiff::Timestamp = text.parse().unwrap();
        format!("\"watermark\":{}", at.as_millisecond())
    };
    let commit = async |d: &mut Deployment, table: &str, text: &str| {
        let id = d.table(table).commit_with("APPEND", 1, &at(text));
        d.notify(table, id).await;
        d.run_dispatcher().await;
    };
    for table in ["months", "weeks"] {
        commit(&mut d, table, "2026-03-03T00:00:00Z").await;
    }
    declare(&d, &json!([of("months", "1mo"), of("weeks", "1w")])).await;
    commit(&mut d, "months", "2026-04-01T00:00:00Z").await;
    // The last week of March ends on the sixth of April.
    commit(&mut d, "weeks", "2026-04-05T23:59:59Z").await;
    assert!(d.triggers("t").is_empty());
    assert!(d.why("t").await.reason.unwrap().expected.starts_with("watermark 2026-04-06T00:00:00Z"));
    commit(&mut d, "weeks", "2026-04-06T00:00:00Z").await;
    let window = d.triggers("t")[0].window.unwrap();
    assert_eq!(
        (window.start.to_string(), window.end.to_string()),
        ("2026-03-01T00:00:00Z".to_owned(), "2026-04-01T00:00:00Z".to_owned())
    );
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_delta_commit_names_the_partitions_that_it_touched() {
    let d = Deployment::with(&[]).await;
    let asset: AssetKey = "delta://ods_db/clicks".parse().unwrap();
    let location = format!("s3://{BUCKET}/wh/clicks");
    let commit = |version: u64, partition: &str, changes: bool| {
        let meta = r#"{"metaData":{"id":"t","format":{"provider":"parquet"},"schemaString":"{}","partitionColumns":["dt"],"configuration":{}}}"#;
        let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
        let first = if version == 0 { format!("{protocol}\n{meta}\n") } else { String::new() };
        let info = format!(r#"{{"commitInfo":{{"operation":"WRITE","txnId":"t-{version}"}}}}"#);
        let add = format!(
            r#"{{"add":{{"path":"p{version}","partitionValues":{{"dt":"{partition}"}},"size":1,"dataChange":{changes}}}}}"#
        );
        d.world.storage.put(
            BUCKET,
            &format!("wh/clicks/_delta_log/{version:020}.json"),
            format!("{info}\n{first}{add}\n"),
        );
    };
    d.world.storage.make_bucket(BUCKET);
    commit(0, "1", true);
    let spec = AssetSpec::new(asset.clone(), location.parse().unwrap());
    let registered = assets::register(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
    declare(&d, &json!([{"asset": asset, "partition": "dt", "partitionFrom": "commit"}])).await;
    let look = Message::Observe { asset: registered.id, is_again: false, trace: trace() };
    for (version, partition, changes) in [(1, "2", true), (2, "3", false), (3, "2", true)] {
        commit(version, partition, changes);
        d.carry(&look).await.unwrap();
        d.run_dispatcher().await;
    }
    assert_eq!(started(&d), ["dt=2"], "an optimisation touches none, and one that was taken is taken");
}

#[tokio::test]
async fn a_hudi_commit_names_the_partitions_that_it_touched_whichever_way_its_folders_are_named() {
    for (style, folder) in [("true", "dt="), ("false", "")] {
        let d = Deployment::with(&[]).await;
        let asset: AssetKey = "hudi://ods_db/clicks".parse().unwrap();
        d.world.storage.make_bucket(BUCKET);
        let put = |relative: &str, body: String| d.world.storage.put(BUCKET, &format!("wh/clicks/{relative}"), body);
        let commit = |at: u64, day: &str, operation: &str| {
            let stats = format!(r#"{{"{folder}{day}":[{{"numInserts":2}}]}}"#);
            let body = format!(r#"{{"operationType":"{operation}","partitionToWriteStats":{stats}}}"#);
            put(&format!(".hoodie/2026010100000{at}000.commit"), body);
        };
        put(
            ".hoodie/hoodie.properties",
            format!(
                "hoodie.table.name=clicks\nhoodie.table.version=6\nhoodie.table.partition.fields=dt\n\
                 hoodie.datasource.write.hive_style_partitioning={style}\n"
            ),
        );
        commit(0, "1", "INSERT");
        let spec = AssetSpec::new(asset.clone(), format!("s3://{BUCKET}/wh/clicks").parse().unwrap());
        let registered = assets::register(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
        declare(&d, &json!([{"asset": asset, "partition": "dt", "partitionFrom": "commit"}])).await;
        let look = Message::Observe { asset: registered.id, is_again: false, trace: trace() };
        for (at, day, operation) in [(1, "2", "UPSERT"), (2, "3", "CLUSTER"), (3, "2", "UPSERT")] {
            commit(at, day, operation);
            d.carry(&look).await.unwrap();
            d.run_dispatcher().await;
        }
        assert_eq!(started(&d), ["dt=2"], "clustering touches none, and one that was taken is taken");
    }
}

#[tokio::test]
async fn case_75_the_default_partition_is_one_like_any_other() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    declare(&d, &json!([by_day("a")])).await;
    assert_eq!(done(&d, "a", "dt=__DEFAULT_PARTITION__", None).await, Outcome::Advanced);
    d.run_dispatcher().await;
    assert_eq!(started(&d), ["dt=__DEFAULT_PARTITION__"]);
}

#[tokio::test]
async fn a_partition_that_one_alternative_took_is_taken_for_the_others() {
    for (is_independent, expected) in [(false, vec!["dt=1", "dt=2"]), (true, vec!["dt=1", "dt=1", "dt=2"])] {
        let mut d = Deployment::with(&["a", "b"]).await;
        let document = json!({"name": "t", "workflowDefinitionCode": 11, "groups": [
            {"name": "alone", "dependencies": [by_day("a")]},
            {"name": "pairs", "independent": is_independent, "dependencies": [by_day("a"), by_day("b")]},
        ]});
        d.declare(&serde_json::from_value(document).unwrap()).await;
        d.commit("a", "APPEND").await;
        d.commit("b", "APPEND").await;
        for (table, partition) in [("a", "dt=1"), ("b", "dt=1"), ("b", "dt=2"), ("a", "dt=2")] {
            d.world.clock.advance(Duration::from_secs(1));
            done(&d, table, partition, None).await;
            d.run_dispatcher().await;
        }
        assert_eq!(started(&d), expected, "independent: {is_independent}");
        let last = d.records().triggers.into_values().max_by_key(|trigger| trigger.claimed_at).unwrap();
        assert_eq!(last.groups.len(), 2, "what is ready in both at once is one start");
    }
}

/// A group remembers 400. What a table still names is among them, however low it sorts.
#[tokio::test]
async fn an_old_partition_that_comes_late_starts_once_and_keeps_no_other_waiting() {
    let mut d = Deployment::with(&["a"]).await;
    declare(&d, &json!([by_day("a")])).await;
    d.commit("a", "APPEND").await;
    let names: Vec<String> = (1_000..1_400).chain([1, 2_000, 2, 2_001]).map(|day| format!("dt={day:04}")).collect();
    for name in &names {
        d.world.clock.advance(Duration::from_secs(1));
        done(&d, "a", name, None).await;
        d.run_dispatcher().await;
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
    }
    assert_eq!(started(&d), names);
    let cursor = d.records().cursors.remove(&target_id("t")).unwrap();
    let taken = cursor.partitions.values().next().unwrap();
    assert_eq!(taken.len(), lakebell_domain::cursor::MAX_TAKEN_PARTITIONS);
    assert!(!taken.contains(&"dt=1000".parse().unwrap()), "what no table names goes first");
}
