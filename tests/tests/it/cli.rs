//! The command line against the deployment.

use std::fmt::Write as _;
use std::fs;

use lakebell_scheduler_standin::Profile;
use serde_json::{Value, json};

use crate::scene;
use crate::support::{Cli, Scene, Scheduler, Table};

/// What a test declares.
fn declaration(scene: &Scene, scheduler: &Scheduler, tables: &[&Table], targets: &[(&str, i64)]) -> String {
    let mut text = format!(
        "project: {}\nconnections:\n  - name: {}\n    url: {}\n    tokenSecret: {}\nassets:\n",
        scene.project,
        scheduler.connection,
        scheduler.base_url(),
        scene.local.connection_secret
    );
    for table in tables {
        let _ = write!(text, "  - key: {}\n    location: {}\n", table.asset, table.location());
    }
    text += "targets:\n";
    for (name, code) in targets {
        let _ = write!(text, "  - name: {name}\n    connection: {}\n", scheduler.connection);
        let _ = write!(text, "    workflowDefinitionCode: {code}\n    groups:\n      - dependencies:\n");
        for table in tables {
            let _ = writeln!(text, "          - asset: {}", table.asset);
        }
    }
    text
}

/// The actions of an `apply`, with how often each.
async fn apply(cli: &Cli<'_>, text: &str, more: &[&str]) -> Vec<(String, usize)> {
    fs::write(cli.folder.join("lakebell.yaml"), text).unwrap();
    let mut arguments = vec!["apply", "--json"];
    arguments.extend(more);
    let applied = cli.run(&arguments).await.succeeded().json();
    let mut actions: Vec<(String, usize)> = Vec::new();
    for step in applied["steps"].as_array().unwrap() {
        let action = step["action"].as_str().unwrap();
        match actions.iter_mut().find(|(known, _)| known == action) {
            Some((_, count)) => *count += 1,
            None => actions.push((action.to_owned(), 1)),
        }
    }
    actions
}

fn actions(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
    expected.iter().map(|(action, count)| ((*action).to_owned(), *count)).collect()
}

#[tokio::test]
async fn a_file_is_applied_once_and_pruned() {
    let scene = scene!("cli");
    let cli = Cli::new(&scene);
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let (mut a, mut b) = (scene.table("a"), scene.table("b"));
    let (one, two) = (scheduler.define(scene.project, "one"), scheduler.define(scene.project, "two"));
    let file = declaration(&scene, &scheduler, &[&a, &b], &[("one", one), ("two", two)]);

    // The connection was declared by the scene.
    let planned = apply(&cli, &file, &["--dry-run"]).await;
    assert_eq!(planned.iter().map(|(_, count)| count).sum::<usize>(), 5, "{planned:?}");
    assert_eq!(scene.get("/assets").await.ok()["items"], json!([]), "a dry run changes nothing");
    assert_eq!(apply(&cli, &file, &[]).await, planned);
    assert_eq!(apply(&cli, &file, &[]).await, actions(&[("same", 5)]));
    let text = cli.run(&["apply"]).await.succeeded().out;
    assert!(text.contains("0 to create, 0 to change, 5 the same, 0 to delete"), "{text}");

    a.append().await;
    scene.reaches(&a, 1).await;
    let why = cli.run(&["why", "one", "--json"]).await.succeeded().json();
    let evaluation = &why["items"][0]["evaluation"];
    assert_eq!((&evaluation["verdict"], &evaluation["reason"]["asset"]), (&json!("WAITING"), &json!(b.asset)), "{why}");
    let text = cli.run(&["why", "one"]).await.succeeded().out;
    assert!(text.contains("WAITING") && text.contains(&b.asset), "{text}");

    b.append().await;
    let (first, second) = (scene.ended("one").await, scene.ended("two").await);
    let listed = cli.run(&["triggers", "--json"]).await.succeeded().json();
    let keys: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["key"]).collect();
    assert!(keys.len() == 2 && keys.contains(&&first["key"]) && keys.contains(&&second["key"]), "{listed}");
    let shown = cli.run(&["trigger", first["key"].as_str().unwrap(), "--json"]).await.succeeded().json();
    assert_eq!(shown["instance"], first["instance"], "{shown}");
    let listed = cli.run(&["triggers", "--json", "--status", "failed"]).await.succeeded().json();
    assert_eq!(listed["items"], json!([]));
    let events = cli.run(&["events", &a.asset, "--json"]).await.succeeded().json();
    assert_eq!(events["items"][0]["outcome"], "advanced", "{events}");
    let assets = cli.run(&["assets", "--json"]).await.succeeded().json();
    assert_eq!(assets["items"].as_array().unwrap().len(), 2);

    // What is no longer in the file stays until --prune says that it may go.
    let smaller = declaration(&scene, &scheduler, &[&a], &[("one", one)]);
    let kept = apply(&cli, &smaller, &[]).await;
    assert!(kept.contains(&("keep".to_owned(), 2)), "{kept:?}");
    let pruned = apply(&cli, &smaller, &["--prune"]).await;
    assert!(pruned.contains(&("delete".to_owned(), 2)), "{pruned:?}");
    assert_eq!(apply(&cli, &smaller, &["--prune"]).await, actions(&[("same", 3)]));

    cli.run(&["delete", "target", "one"]).await.succeeded();
    cli.run(&["delete", "asset", &a.asset]).await.succeeded();
    assert_eq!(scene.get("/assets").await.ok()["items"], json!([]));
    assert_eq!(scene.get("/asset-dependencies").await.ok()["items"], json!([]));
    cli.run(&["delete", "connection", &scheduler.connection]).await.succeeded();
}

#[tokio::test]
async fn errors_say_where_and_what() {
    let scene = scene!("cli-errors");
    let cli = Cli::new(&scene);
    fs::write(cli.folder.join("lakebell.yaml"), "project: 7\nassets:\n  - key: orders\n    location: s3://lake/t\n")
        .unwrap();
    let run = cli.run(&["apply"]).await;
    assert_ne!(run.status, 0);
    assert!(run.err.contains("lakebell.yaml:3") && run.err.contains("no `://`"), "{}", run.err);
    let run = cli.run(&["assets", "paimon://no/body"]).await;
    assert_ne!(run.status, 0);
    assert!(run.err.contains("not registered"), "{}", run.err);
    let run = cli.run(&["--token", "wrong", "assets"]).await;
    assert_ne!(run.status, 0);
    assert!(!run.err.contains(&scene.local.api_token), "{}", run.err);
    let bucket = format!("s3://{}/e2e/{}", scene.local.bucket, scene.name);
    let run = cli.run(&["table", "inspect", &bucket]).await;
    assert_eq!(run.status, 1);
    assert!(run.err.contains("is no table"), "{}", run.err);
}
