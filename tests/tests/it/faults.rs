//! Faults of the scheduler, each on a stand-in of the test's own: a trigger ends, and has one instance.

use lakebell_scheduler_standin::{Fault, FaultKind, Operation, Profile};
use serde_json::{Value, json};

use crate::scene;
use crate::support::{PATIENCE, Scene, Scheduler, Table, until};

const TARGET: &str = "t";

/// A table, a scheduler, and a target that is ready with the table's next commit.
struct Stage {
    scene: Scene,
    scheduler: Scheduler,
    table: Table,
    workflow: i64,
}

impl Stage {
    async fn set(scene: Scene, profile: Profile) -> Self {
        let scheduler = scene.scheduler(profile).await;
        let table = scene.table(TARGET);
        scene.register(&[&table]).await;
        let workflow = scheduler.define(scene.project, TARGET);
        scene.declare(&Scene::target(&scheduler.connection, TARGET, workflow, &json!("all"), &[&table])).await;
        Self { scene, scheduler, table, workflow }
    }

    /// Waits until the trigger is at a step, and returns it.
    async fn is_at(&self, step: &str) -> Value {
        until(&format!("a trigger that is {step}"), PATIENCE, async || {
            let triggers = self.scene.triggers(TARGET).await;
            match triggers.first() {
                Some(newest) if newest["status"]["step"] == step => Ok(newest.clone()),
                _ => Err(triggers),
            }
        })
        .await
    }

    /// The trigger has started and there is exactly one instance of the workflow, which carries its key.
    fn assert_one_instance(&self, trigger: &Value, start_calls: u64) {
        assert_eq!(trigger["triggerStatus"], "SUCCESS", "{trigger:#}");
        let carrying = self.scheduler.instances_of(trigger);
        assert_eq!((carrying.len(), self.scheduler.instances(self.workflow)), (1, 1), "{trigger:#}");
        assert_eq!(self.scheduler.start_calls(), start_calls, "{trigger:#}");
        if !trigger["instance"].is_null() {
            assert_eq!(trigger["instance"], json!(carrying[0].id), "{trigger:#}");
        }
    }
}

/// The start takes effect and its answer does not say so: found, adopted, never tried again.
async fn adopted_after(scene: Scene, kind: FaultKind) {
    let mut stage = Stage::set(scene, Profile::V3_3).await;
    stage.scheduler.fault(Fault::of(kind));
    stage.table.append().await;
    let trigger = stage.scene.carried_to_its_end(TARGET).await;
    stage.assert_one_instance(&trigger, 1);
    assert!(!trigger["instance"].is_null(), "{trigger:#}");
    let arrows: Vec<&Value> = trigger["log"].as_array().unwrap().iter().map(|passage| &passage["arrow"]).collect();
    assert!(arrows.contains(&&json!("loseSight")) && arrows.contains(&&json!("adopt")), "{arrows:?}");
}

#[tokio::test]
async fn a_start_whose_connection_drops_after_it_took_effect_is_adopted() {
    let scene = scene!("drop-after");
    adopted_after(scene, FaultKind::DropAfterAccept).await;
}

#[tokio::test]
async fn a_start_that_answers_50014_with_a_timeout_after_it_took_effect_is_adopted() {
    let scene = scene!("timeout-after");
    adopted_after(scene, FaultKind::TimeoutAfterAccept).await;
}

#[tokio::test]
async fn a_start_that_answers_500_after_it_took_effect_is_adopted() {
    let scene = scene!("error-after");
    adopted_after(scene, FaultKind::ErrorAfterAccept).await;
}

#[tokio::test]
async fn a_start_that_hangs_after_it_took_effect_is_adopted() {
    // CASE 84.
    let scene = scene!("hang-after");
    adopted_after(scene, FaultKind::HangAfterAccept).await;
}

#[tokio::test]
async fn a_start_that_timed_out_without_effect_is_looked_for_twice_and_tried_again() {
    let scene = scene!("timeout-before");
    let mut stage = Stage::set(scene, Profile::V3_3).await;
    stage.scheduler.fault(Fault::of(FaultKind::TimeoutBeforeAccept));
    stage.table.append().await;
    let trigger = stage.scene.carried_to_its_end(TARGET).await;
    // The stand-in does not count the start that it answered by fault.
    stage.assert_one_instance(&trigger, 1);
    assert_eq!(trigger["attempt"], 2);
    let log = trigger["log"].as_array().unwrap();
    let checks = log.iter().filter(|passage| passage["arrow"] == "checkAgain").count();
    assert!(checks >= 2, "{trigger:#}");
    assert!(log.iter().any(|passage| passage["arrow"] == "proveAbsent"), "{trigger:#}");
}

#[tokio::test]
async fn without_a_master_it_waits_until_there_is_one() {
    let scene = scene!("no-master");
    let mut stage = Stage::set(scene, Profile::V3_3).await;
    stage.scheduler.change(|world| world.settings.masters = 0);
    stage.table.append().await;
    let waiting = stage.is_at("waiting").await;
    assert_eq!(waiting["status"]["reason"]["code"], "BACK_OFF", "{waiting:#}");
    assert_eq!(waiting["tries"], 0, "an outage uses up no try");
    stage.scheduler.change(|world| world.settings.masters = 1);
    let refused = stage.scheduler.start_calls();
    let trigger = stage.scene.carried_to_its_end(TARGET).await;
    stage.assert_one_instance(&trigger, refused + 1);
}

#[tokio::test]
async fn a_token_that_is_refused_everywhere_holds_the_start_until_it_is_restored() {
    let scene = scene!("401");
    let mut stage = Stage::set(scene, Profile::V3_3).await;
    stage.scheduler.fault(Fault::of(FaultKind::Unauthorized).on(Operation::Any).always());
    stage.table.append().await;
    stage.is_at("waiting").await;
    assert_eq!(stage.scheduler.start_calls(), 0);
    stage.scheduler.change(|world| world.faults.clear());
    let trigger = stage.scene.carried_through_time(TARGET).await;
    stage.assert_one_instance(&trigger, 1);
}

#[tokio::test]
async fn a_token_that_is_refused_for_the_start_alone_holds_it_too() {
    let scene = scene!("401-start");
    let mut stage = Stage::set(scene, Profile::V3_3).await;
    stage.scheduler.fault(Fault::of(FaultKind::Unauthorized));
    stage.table.append().await;
    let waiting = stage.is_at("waiting").await;
    assert_eq!(waiting["status"]["reason"]["code"], "CONNECTION_REFUSED", "{waiting:#}");
    let trigger = stage.scene.carried_through_time(TARGET).await;
    assert_eq!(trigger["tries"], 0, "{trigger:#}");
    assert_eq!(stage.scheduler.instances(stage.workflow), 1);
    assert_eq!(trigger["triggerStatus"], "SUCCESS");
}

#[tokio::test]
async fn an_offline_workflow_waits_and_starts_once_it_is_online() {
    let scene = scene!("offline");
    let mut stage = Stage::set(scene, Profile::V3_3).await;
    let workflow = stage.workflow;
    let online = |stage: &Stage, on| stage.scheduler.change(|w| w.definitions.get_mut(&workflow).unwrap().online = on);
    online(&stage, false);
    stage.table.append().await;
    let waiting = stage.is_at("waiting").await;
    assert_eq!(waiting["status"]["reason"]["code"], "OFFLINE", "{waiting:#}");
    let why = stage.scene.why(TARGET).await;
    assert_eq!((&why["open"], why["verdict"] == "READY"), (&waiting["key"], false), "{why:#}");
    // What comes meanwhile is taken along.
    stage.table.append().await;
    stage.scene.reaches(&stage.table, 2).await;
    online(&stage, true);
    let trigger = stage.scene.carried_through_time(TARGET).await;
    // It was online when it was looked at for the declaration, which is remembered for a minute: then one start is
    // sent and refused.
    let calls = stage.scheduler.start_calls();
    assert!(calls <= 2, "{calls} start calls");
    stage.assert_one_instance(&trigger, calls);
    assert_eq!(trigger["parameters"]["lakebell_t_to"], "2", "{trigger:#}");
    assert_eq!(trigger["parameters"]["lakebell_t_from"], "");
}

#[tokio::test]
async fn an_answer_without_data_is_a_start_all_the_same() {
    let scene = scene!("null-data");
    let mut stage = Stage::set(scene, Profile::V3_3).await;
    stage.scheduler.fault(Fault::of(FaultKind::NullData));
    stage.table.append().await;
    let trigger = stage.scene.carried_to_its_end(TARGET).await;
    stage.assert_one_instance(&trigger, 1);
}

#[tokio::test]
async fn a_rate_limit_is_waited_out() {
    let scene = scene!("429");
    let mut stage = Stage::set(scene, Profile::V3_3).await;
    stage.scheduler.fault(Fault::of(FaultKind::RateLimited));
    stage.table.append().await;
    let trigger = stage.scene.carried_to_its_end(TARGET).await;
    assert_eq!(trigger["triggerStatus"], "SUCCESS", "{trigger:#}");
    assert_eq!(stage.scheduler.instances_of(&trigger).len(), 1);
}

#[tokio::test]
async fn two_instances_of_one_start_are_reported_and_there_is_no_third() {
    // CASES 80 and 86: seen where an answer was lost and the scheduler was asked.
    let scene = scene!("two");
    let mut stage = Stage::set(scene, Profile::V3_3).await;
    stage.scheduler.fault(Fault::of(FaultKind::TwoInstances));
    stage.scheduler.fault(Fault::of(FaultKind::DropAfterAccept));
    stage.table.append().await;
    let trigger = stage.scene.carried_to_its_end(TARGET).await;
    assert_eq!(trigger["triggerStatus"], "SUCCESS", "{trigger:#}");
    let mut found: Vec<i64> = stage.scheduler.instances_of(&trigger).iter().map(|instance| instance.id).collect();
    found.sort_unstable();
    assert_eq!((found.len(), stage.scheduler.start_calls()), (2, 1));
    assert_eq!(json!(found), json!([trigger["instance"], trigger["extraInstances"][0]]), "{trigger:#}");
}

#[tokio::test]
async fn every_release_that_loses_an_answer_is_asked_in_its_own_spelling() {
    let scene = scene!("releases");
    let project = scene.project;
    let mut schedulers = Vec::new();
    let mut table = scene.table("shared");
    scene.register(&[&table]).await;
    for profile in Profile::RELEASES {
        let scheduler = scene.scheduler(profile).await;
        let name = format!("on-{}", profile.name());
        let workflow = scheduler.define(project, &name);
        scheduler.fault(Fault::of(FaultKind::DropAfterAccept));
        scene.declare(&Scene::target(&scheduler.connection, &name, workflow, &json!("all"), &[&table])).await;
        schedulers.push((scheduler, name, workflow));
    }
    table.append().await;
    for (scheduler, name, workflow) in &schedulers {
        let trigger = scene.carried_to_its_end(name).await;
        assert_eq!(trigger["triggerStatus"], "SUCCESS", "{trigger:#}");
        assert_eq!(trigger["instance"], json!(scheduler.instances_of(&trigger)[0].id), "{trigger:#}");
        assert_eq!((scheduler.start_calls(), scheduler.instances(*workflow)), (1, 1), "{name}");
    }
}
