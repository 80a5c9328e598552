//! The stand-in's own promises that the client does not touch: control routes, command lines, and
//! answers that only other callers see.

use lakebell_engine::ports::scheduler::StartOutcome;
use lakebell_scheduler_standin::{Config, Profile, Standin};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::support::{Bench, PATIENCE, PROJECT, TOKEN};

async fn control(bench: &Bench, path: &str, body: Value) -> (u16, String) {
    let request = reqwest::Client::new().post(format!("{}/{path}", bench.standin.control_url()));
    let request = request.header("token", TOKEN).header(CONTENT_TYPE, "application/json").body(body.to_string());
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn form(bench: &Bench, path: &str, form: &[(&str, &str)]) -> Value {
    let url = format!("{}/{path}", bench.standin.base_url());
    let response = reqwest::Client::new().post(url).header("token", TOKEN).form(form).send().await.unwrap();
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

async fn get(bench: &Bench, path: &str, token: &str) -> (u16, String) {
    let url = format!("{}/{path}", bench.standin.base_url());
    let response = reqwest::Client::new().get(url).header("token", token).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn a_command_line_runs_with_the_parameters_and_its_exit_code_decides() {
    for profile in Profile::RELEASES {
        for (exit, state) in [(0, "SUCCESS"), (3, "FAILURE")] {
            let bench = Bench::new(profile).await;
            let script = format!("echo $LAKEBELL_TRIGGER_KEY $LAKEBELL_ORDERS_TO $LAKEBELL_INSTANCE_ID; exit {exit}");
            let declared = json!({"project": PROJECT.0, "name": "dwd_trade", "command": ["sh", "-c", script]});
            assert_eq!(control(&bench, "definitions", declared).await.0, 200);
            assert!(matches!(bench.start("ff01").await, StartOutcome::Started { .. }), "{profile}");
            let id = bench.instances_of("ff01")[0].0;
            let ended = bench.standin.wait_until(PATIENCE, |world| world.instances[&id].has_ended()).await;
            assert!(ended, "{profile}");
            bench.standin.look(|world| {
                assert_eq!(world.instances[&id].state, state);
                assert_eq!(world.instances[&id].log, format!("ff01 17 {id}\n"));
                assert_eq!(world.instances[&id].exit_code, Some(exit));
            });
        }
    }
}

#[tokio::test]
async fn the_control_routes_ask_for_the_token_and_refuse_what_they_do_not_know() {
    let bench = Bench::new(Profile::V3_3).await;
    let state = get(&bench, "_standin/state", TOKEN).await;
    assert_eq!(state.0, 200);
    assert!(state.1.contains("not Apache DolphinScheduler"));
    assert_eq!(get(&bench, "_standin/state", "no").await, (401, String::new()));
    assert_eq!(control(&bench, "faults", json!({"kind": "no-such-fault"})).await.0, 422);
    assert_eq!(control(&bench, "faults", json!({"kind": "html", "on": "list", "count": 2})).await.0, 200);
    assert_eq!(bench.standin.look(|world| world.faults.len()), 1);
}

#[tokio::test]
async fn delays_and_states_are_set_at_run_time() {
    let bench = Bench::new(Profile::V3_2).await;
    control(&bench, "settings", json!({"consume": "manual", "finish": "manual"})).await;
    bench.start("ff02").await;
    assert!(bench.instances_of("ff02").is_empty());
    control(&bench, "advance", json!({"what": "commands"})).await;
    let id = bench.instances_of("ff02")[0].0;
    control(&bench, "advance", json!({"what": "runs", "state": "FAILURE"})).await;
    assert_eq!(bench.standin.look(|world| world.instances[&id].state.clone()), "FAILURE");
    control(&bench, "advance", json!({"what": "instance", "id": id, "state": "RUNNING_EXECUTION"})).await;
    assert_eq!(bench.standin.look(|world| world.instances[&id].state.clone()), "RUNNING_EXECUTION");
    assert_eq!(control(&bench, "advance", json!({"what": "instance", "id": 99, "state": "STOP"})).await.0, 404);
    control(&bench, "settings", json!({"consume": 1, "finish": 1})).await;
    bench.start("ff03").await;
    let ended = bench.standin.wait_until(PATIENCE, |world| {
        world.instances_with("lakebell_trigger_key", "ff03").iter().any(|i| i.has_ended())
    });
    assert!(ended.await);
}

#[tokio::test]
async fn malformed_parameters_start_without_parameters_and_a_missing_time_does_not() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let noun = profile.noun();
        let path = format!("projects/{PROJECT}/executors/start-{noun}-instance");
        let (field, code) = (format!("{noun}DefinitionCode"), bench.workflow.to_string());
        let mut fields = vec![
            (field.as_str(), code.as_str()),
            ("failureStrategy", "END"),
            ("warningType", "NONE"),
            ("startParams", "{not json"),
        ];
        assert_eq!(form(&bench, &path, &fields).await["code"], 50014, "{profile}");
        fields.push(("scheduleTime", ""));
        assert_eq!(form(&bench, &path, &fields).await["code"], 0, "{profile}");
        assert_eq!(bench.standin.look(|world| world.instances.values().next().unwrap().params.len()), 0, "{profile}");
    }
}

#[tokio::test]
async fn another_versions_path_is_a_page_for_get_and_405_for_post() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let other = if profile.says_workflow() { "process" } else { "workflow" };
        let list = format!("projects/{PROJECT}/{other}-instances?pageNo=1&pageSize=1");
        let (status, body) = get(&bench, &list, TOKEN).await;
        assert_eq!(status, 200, "{profile}");
        assert!(body.starts_with("<!DOCTYPE html>"));
        let url = format!("{}/projects/{PROJECT}/executors/start-{other}-instance", bench.standin.base_url());
        let response = reqwest::Client::new().post(url).header("token", TOKEN).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 405, "{profile}");
    }
}

#[tokio::test]
async fn a_rerun_keeps_the_id() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.start("ff04").await;
        let id = bench.instances_of("ff04")[0].0.to_string();
        let field = format!("{}InstanceId", profile.noun());
        let path = format!("projects/{PROJECT}/executors/execute");
        let answer = form(&bench, &path, &[(&field, &id), ("executeType", "REPEAT_RUNNING")]).await;
        assert_eq!(answer["code"], 0, "{profile}");
        let runs = bench.standin.look(|world| world.instances.values().map(|i| i.run_times).collect::<Vec<_>>());
        assert_eq!(runs, [2], "{profile}");
        let refused = form(&bench, &path, &[(&field, &id), ("executeType", "STOP")]).await["code"].as_i64();
        let code = match profile {
            Profile::V3_1 => 50006,
            Profile::V3_2 => 50015,
            _ => 10000,
        };
        assert_eq!(refused, Some(code), "{profile}");
    }
}

#[tokio::test]
async fn the_state_is_kept_in_a_file() {
    let file = std::env::temp_dir().join(format!("lakebell-standin-{}.json", std::process::id()));
    let config = Config { state_file: Some(file.clone()), ..Config::new(Profile::V3_3, TOKEN) };
    let first = Standin::start(config.clone()).await.unwrap();
    let code = first.define(PROJECT.0, "kept");
    let written = async {
        while !std::fs::read_to_string(&file).unwrap_or_default().contains("\"kept\"") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.unwrap();
    first.stop();
    let second = Standin::start(config).await.unwrap();
    let kept = second.look(|world| world.definitions.get(&code).map(|definition| definition.name.clone()));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(kept.as_deref(), Some("kept"));
}
