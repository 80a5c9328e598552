//! Lineage, and targets that write what starts them.

use std::time::Duration;

use lakebell_domain::ids::{ProjectCode, TargetId};
use lakebell_domain::target::WorkflowRef;
use lakebell_engine::dispatch::Dispatcher;
use lakebell_engine::lineage::{self, Dataset, Direction, Flow, FoundLoop, Shown, StartedBy};
use lakebell_engine::ports::scheduler::{ExecutionType, Preflight};
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::push::Named;
use lakebell_engine::{ErrorKind, targets};
use lakebell_testkit::Op;
use serde_json::json;

use crate::support::{Deployment, PROJECT, key, spec, target_id, trace};

fn dataset(table: &str) -> Dataset {
    Dataset { name: format!("name of {table}"), named: vec![Named::Key(key(table))] }
}

fn flow(inputs: &[&str], outputs: &[&str], started_by: Option<StartedBy>) -> Flow {
    let side = |tables: &[&str]| tables.iter().map(|table| dataset(table)).collect();
    Flow { job: "spark/daily".to_owned(), inputs: side(inputs), outputs: side(outputs), started_by }
}

fn of_workflow(code: i64) -> StartedBy {
    StartedBy::Workflow(PROJECT, WorkflowRef::Code(code.to_string().parse().unwrap()))
}

impl Deployment {
    async fn flows(&self, flow: &Flow) -> Vec<FoundLoop> {
        lineage::record(&self.world.quiet_ports(), flow).await.unwrap()
    }

    async fn lineage(&self, table: &str) -> Shown {
        let both = [Direction::Upstream, Direction::Downstream];
        let asset = (self.ids[table], &key(table));
        lineage::show(&self.world.quiet_ports(), asset, &both, 8, PROJECT).await.unwrap()
    }

    async fn warnings(&self, name: &str) -> Vec<String> {
        targets::explain(&self.world.quiet_ports(), &[target_id(name)]).await.unwrap().remove(0).loops
    }
}

fn edges(shown: &Shown) -> Vec<String> {
    shown.edges.iter().map(|edge| format!("{} {} -> {} by {}", edge.steps, edge.from, edge.to, edge.via)).collect()
}

#[tokio::test]
async fn edges_are_shown_both_ways_over_several_steps() {
    let d = Deployment::with(&["a", "b", "c"]).await;
    d.flows(&flow(&["a", "elsewhere"], &["b"], None)).await;
    d.flows(&flow(&["b"], &["c"], None)).await;
    let expected = [
        "1 name of elsewhere -> paimon://ods_db/b by job spark/daily",
        "1 paimon://ods_db/a -> paimon://ods_db/b by job spark/daily",
        "1 paimon://ods_db/b -> paimon://ods_db/c by job spark/daily",
    ];
    assert_eq!(edges(&d.lineage("b").await), expected);
    let expected = [
        "1 paimon://ods_db/a -> paimon://ods_db/b by job spark/daily",
        "2 paimon://ods_db/b -> paimon://ods_db/c by job spark/daily",
    ];
    assert_eq!(edges(&d.lineage("a").await), expected);
    d.world.clock.advance(Duration::from_hours(31 * 24));
    assert_eq!(edges(&d.lineage("a").await), Vec::<String>::new(), "forgotten after 30 days");
}

#[tokio::test]
async fn tables_of_other_projects_are_not_told_of() {
    let d = Deployment::with(&["a", "b", "c"]).await;
    d.flows(&flow(&["a"], &["b"], None)).await;
    d.flows(&flow(&["b"], &["c"], None)).await;
    let both = [Direction::Upstream, Direction::Downstream];
    let asset = (d.ids["a"], &key("a"));
    let shown = lineage::show(&d.world.quiet_ports(), asset, &both, 8, ProjectCode(8)).await.unwrap();
    assert_eq!(edges(&shown), ["1 paimon://ods_db/a -> a table of another project by job spark/daily"]);
}

#[tokio::test]
async fn case_41_a_declaration_of_a_known_self_loop_is_refused() {
    let d = Deployment::with(&["a", "b"]).await;
    assert_eq!(d.flows(&flow(&["a"], &["b"], Some(of_workflow(11)))).await, [], "nobody depends on it yet");
    let mut looping = spec("t", &[("g", json!("all"), &["a", "b"])]);
    let before = d.world.items.dump().len();
    let refused = targets::declare(&d.world.quiet_ports(), PROJECT, &looping, &trace()).await.unwrap_err();
    assert_eq!((refused.kind(), refused.about("at")), (ErrorKind::SelfLoop, Some("groups[0].dependencies[1].asset")));
    assert!(refused.message().contains("allowSelfLoop: true"), "{refused}");
    assert_eq!(d.world.items.dump().len(), before, "nothing was written");
    looping.allow_self_loop = true;
    let declared = d.declare(&looping).await;
    assert!(declared.warnings.iter().any(|warning| warning.contains("paimon://ods_db/b, which starts it")));
    // Another workflow of the same project is none of it.
    d.declare(
        &serde_json::from_value(json!({"name": "other", "workflowDefinitionCode": 12,
        "groups": [{"dependencies": [{"asset": key("b")}]}]}))
        .unwrap(),
    )
    .await;
}

#[tokio::test]
async fn a_prefix_that_takes_in_an_output_is_refused_too() {
    let d = Deployment::with(&["a", "ods_x"]).await;
    d.flows(&flow(&[], &["ods_x"], Some(of_workflow(11)))).await;
    let spec = serde_json::from_value(json!({"name": "t", "workflowDefinitionCode": 11,
        "groups": [{"dependencies": [{"asset": "paimon://ods_db/ods_*"}]}]}))
    .unwrap();
    let refused = targets::declare(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SelfLoop);
}

#[tokio::test]
async fn a_self_loop_that_shows_later_is_told_once_and_stops_nothing() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("any"), &["a", "b"])])).await;
    d.commit("a", "APPEND").await;
    let trigger = d.run_dispatcher().await.remove(0);
    // The job names the trigger that its workflow was given, and not what it reads.
    let told = flow(&[], &["b"], Some(StartedBy::Trigger(trigger.key)));
    assert_eq!(d.flows(&told).await, [FoundLoop { target: target_id("t"), tables: vec![key("b")] }]);
    assert_eq!(d.flows(&told).await, [], "an alarm is raised once");
    let warnings = d.warnings("t").await;
    assert!(
        warnings[0].starts_with("self-loop: the workflow writes paimon://ods_db/b, which starts it"),
        "{warnings:?}"
    );
    // What starts the target counts as read.
    assert_eq!(edges(&d.lineage("a").await), ["1 paimon://ods_db/a -> paimon://ods_db/b by target 7/t"]);
    let targets = d.lineage("a").await.targets;
    assert_eq!(
        targets.iter().map(|target| target.asset.as_str()).collect::<Vec<_>>(),
        ["paimon://ods_db/a", "paimon://ods_db/b"]
    );
    assert_eq!((targets[0].writes.clone(), targets[0].warnings.len()), (vec![key("b")], 1));
    d.commit("b", "APPEND").await;
    d.run_dispatcher().await;
    d.assert_started("t", 2);
}

#[tokio::test]
async fn a_way_back_over_several_tables_is_told_once() {
    let d = Deployment::with(&["a", "b", "c", "d"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    let by_target: TargetId = target_id("t");
    assert_eq!(d.flows(&flow(&[], &["b"], Some(StartedBy::Target(by_target.clone())))).await, []);
    assert_eq!(d.flows(&flow(&["b"], &["c"], None)).await, []);
    assert_eq!(d.flows(&flow(&["d"], &["a"], None)).await, []);
    // This closes it: a -> b (the target) -> c -> a.
    let closing = flow(&["c"], &["a"], None);
    let tables = vec![key("b"), key("c"), key("a")];
    assert_eq!(d.flows(&closing).await, [FoundLoop { target: by_target, tables }]);
    assert_eq!(d.flows(&closing).await, []);
    let warnings = d.warnings("t").await;
    assert!(warnings[0].contains("paimon://ods_db/b -> paimon://ods_db/c -> paimon://ods_db/a"), "{warnings:?}");
}

#[tokio::test]
async fn a_loop_that_is_meant_is_shown_and_not_alarmed() {
    let d = Deployment::with(&["a", "b"]).await;
    let mut meant = spec("t", &[("g", json!("all"), &["a"])]);
    meant.allow_self_loop = true;
    d.declare(&meant).await;
    assert_eq!(d.flows(&flow(&["a"], &["a", "b"], Some(of_workflow(11)))).await, []);
    assert_eq!(d.flows(&flow(&["b"], &["a"], None)).await, []);
    assert!(d.warnings("t").await[0].ends_with("allowed by `allowSelfLoop`"));
}

#[tokio::test]
async fn a_flow_that_was_seen_a_short_while_ago_writes_nothing() {
    let d = Deployment::with(&["a", "b"]).await;
    let seen = flow(&["a"], &["b"], Some(of_workflow(11)));
    d.flows(&seen).await;
    d.world.tap.take_log();
    let ports = d.world.ports();
    lineage::record(&ports, &seen).await.unwrap();
    let calls: Vec<Op> = d.world.tap.take_log().into_iter().map(|call| call.op).collect();
    assert!(calls.iter().all(|op| *op == Op::Get), "{calls:?}");
    d.world.clock.advance(Duration::from_hours(7));
    lineage::record(&ports, &seen).await.unwrap();
    assert_eq!(d.world.tap.take_log().iter().filter(|call| call.op == Op::Write).count(), 2);
    let now = d.world.clock.now();
    assert_eq!(d.lineage("a").await.edges[0].last_seen, now);
}

#[tokio::test]
async fn a_trigger_that_nobody_knows_makes_it_a_job_like_any_other() {
    let d = Deployment::with(&["a", "b"]).await;
    let unknown = StartedBy::Trigger("0123456789abcdef0123456789abcdef".parse().unwrap());
    assert_eq!(d.flows(&flow(&["a"], &["b"], Some(unknown))).await, []);
    assert_eq!(edges(&d.lineage("a").await), ["1 paimon://ods_db/a -> paimon://ods_db/b by job spark/daily"]);
}

fn by_name() -> StartedBy {
    StartedBy::Workflow(PROJECT, WorkflowRef::Name("dwd_daily".to_owned()))
}

/// The scheduler says that workflow 11 is `dwd_daily`.
async fn asked(d: &Deployment) {
    let name = Some("dwd_daily".to_owned());
    let execution = ExecutionType::Parallel;
    d.scheduler.set_preflight(Some(Preflight::Startable { workflow: "11".parse().unwrap(), name, execution }));
    let dispatcher = Dispatcher { ports: d.world.ports(), scheduler: d.scheduler.clone() };
    dispatcher.advise(&target_id("t")).await.unwrap();
}

#[tokio::test]
async fn a_workflow_that_is_declared_by_its_code_is_the_one_that_writers_name() {
    let d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("any"), &["a", "b"])])).await;
    assert_eq!(d.flows(&flow(&["a"], &["b"], Some(by_name()))).await, [], "nobody has said that it is the same one");
    assert_eq!(d.warnings("t").await, Vec::<String>::new());
    asked(&d).await;
    let warnings = d.warnings("t").await;
    assert!(warnings[0].starts_with("self-loop: the workflow writes paimon://ods_db/b"), "{warnings:?}");
    // From now on it is seen at once.
    let found = d.flows(&flow(&["b"], &["a"], Some(by_name()))).await;
    assert_eq!((found[0].target.clone(), found[0].tables.clone()), (target_id("t"), vec![key("a")]));
    d.world.tap.take_log();
    asked(&d).await;
    let calls: Vec<Op> = d.world.tap.take_log().into_iter().map(|call| call.op).collect();
    assert_eq!(calls, [Op::Get, Op::Get, Op::Write], "the names are known");
    // A declaration of the same workflow by the other name is refused alike.
    let other = json!({"name": "u", "workflowDefinitionCode": 11, "groups": [{"name": "g",
        "dependencies": [{"asset": key("a")}]}]});
    let other = serde_json::from_value(other).unwrap();
    let refused = targets::declare(&d.world.quiet_ports(), PROJECT, &other, &trace()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SelfLoop);
}
