use serde_json::Value;

use super::*;

fn refusal(text: &str) -> String {
    parse(Path::new("lakebell.yaml"), text, None).unwrap_err().to_text()
}

const START: &str = "project: 7\n";

#[test]
fn the_example_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/lakebell.yaml");
    let declared = read(&path, None).unwrap();
    assert_eq!((declared.assets.len(), declared.targets.len()), (4, 3));
    assert_eq!(declared.warehouses.len() + declared.connections.len(), 1);
}

#[test]
fn absent_fields_have_their_defaults() {
    let text = "project: 7\nwarehouses:\n  - {location: s3://lake/wh, format: paimon}\nassets:\ntargets:\n  - workflowDefinitionCode: 5\n    groups:\n      - dependencies: [{asset: paimon://db/t, minSnapshotId: 3}]\n  - {project: 8, workflowDefinitionName: w, enabledFlag: 0, groups: [{advance: {atLeast: 1}, dependencies: [{asset: paimon://db/t}]}]}\nconnections:\n  - {name: ds, url: http://ds, version: 3.1, tokenSecret: s}\n";
    let declared = parse(Path::new("x"), text, None).unwrap();
    assert_eq!(declared.warehouses[0].project, ProjectCode(7));
    let ids: Vec<String> = declared.targets.iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(ids, ["7/workflow-5", "8/workflow-w"]);
    assert_eq!(declared.targets[0].1.connection.as_str(), "default");
}

#[test]
fn an_unknown_field_is_refused_naming_the_allowed_ones() {
    let text = format!("{START}targets:\n  - name: a\n    worklowDefinitionCode: 5\n");
    let said = refusal(&text);
    assert!(said.contains("unknown field `worklowDefinitionCode`, expected one of name, connection"), "{said}");
    assert!(said.contains("at     lakebell.yaml:4:5") && said.contains("field  targets[0]"), "{said}");
}

#[test]
fn an_unknown_condition_is_refused_where_it_stands() {
    let text = format!(
        "{START}targets:\n  - workflowDefinitionCode: 5\n    groups:\n      - dependencies:\n          - asset: paimon://d/t\n            partitionKey: dt\n"
    );
    let said = refusal(&text);
    assert!(said.contains("unknown field `partitionKey`, expected one of asset, alias"), "{said}");
    assert!(said.contains("lakebell.yaml:7:13") && said.contains("dependencies[0]"), "{said}");
}

/// Every key of a target and of its groups, none at its default.
pub(super) const EVERY_KEY: &str = "
  - name: full
    project: 8
    connection: ds
    workflowDefinitionName: w
    taskDefinitionCode: 3
    enabledFlag: 0
    coalesce: newest
    startFrom: 41
    onBackfill: ignore
    onRewrite: follow
    settle: 5m
    onFailed: hold
    onUndecided: assume-absent
    onResume: skip
    orAt: {cron: 0 6 * * *, timeZone: Asia/Shanghai}
    quietPeriod: 90s
    minInterval: 1h
    notBefore: {time: 06:30, timeZone: UTC}
    runWindow: {from: 22:00, to: 05:00, timeZone: UTC}
    maxActive: 2
    afterWorkflow: nightly
    deadline: {by: 07:00, timeZone: UTC}
    onDeadline: fire
    mode: shadow
    startAs: start
    allowSelfLoop: true
    checkIntervalSeconds: 30
    groups:
      - name: a
        advance: {atLeast: 1}
        independent: true
        dependencies:
          - asset: paimon://c/d/t
            alias: t
            minSnapshotId: 7
            watermark: 2024-09-10T23:59:59Z
            maxLag: 15m
            qualityStatus: PASSED
            checks: [rows, nulls]
            onFailedVersion: pass-over
            schemaStatus: COMPATIBLE
            tag: daily-*
            backfill: COMPLETED
            cdcLagRecovered: true
          - asset: paimon://d/u
            commitKinds: [APPEND]
            operations: {include: ['spark*'], exclude: [x]}
            optional: true
          - {asset: paimon://d/v, ignoreEmpty: true, minNewSnapshots: 3, minDeltaRecords: 100}
          - {asset: paimon://d/ods_*}
  - workflowDefinitionCode: 5
    timeoutMinutes: 30
    coalesce: each
    startFrom: current
    groups: [{dependencies: [{asset: paimon://d/t}]}]
  - workflowDefinitionCode: 6
    startAs: complement
    groups: [{dependencies: [{asset: paimon://d/t, snapshotRequired: false, every: {period: 1d, timeZone: Asia/Shanghai}}]}]
  - workflowDefinitionCode: 7
    groups:
      - dependencies:
          - asset: paimon://d/t
            partition: [dt, hour]
            join: dt
            fullSet: {key: hour, values: 00..23}
            horizon: 2d
            partitionFrom: done
";

#[test]
fn every_key_of_a_target_is_taken() {
    let declared = parse(Path::new("x"), &format!("{START}targets:{EVERY_KEY}"), None).unwrap();
    let (id, spec) = &declared.targets[0];
    assert_eq!(id.to_string(), "8/full");
    let read: Value = serde_json::to_value(spec).unwrap();
    // What is not at its default is written again, so nothing was dropped on the way.
    let text: Vec<Value> = serde_saphyr::from_str(EVERY_KEY).unwrap();
    for (key, _) in text[0].as_object().unwrap() {
        let is_default = key == "coalesce";
        assert_eq!(read.get(key).is_some(), !is_default && key != "project", "{key}: {read}");
    }
    let keys = |dependency: &Value| dependency.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for (at, dependency) in text[0]["groups"][0]["dependencies"].as_array().unwrap().iter().enumerate() {
        assert_eq!(keys(&read["groups"][0]["dependencies"][at]), keys(dependency));
    }
    assert_eq!((&read["startFrom"], &read["notBefore"]["time"]), (&Value::from("41"), &Value::from("06:30")));
    assert!(declared.targets[2].1.has_windows());
    let partitions = serde_json::to_value(&declared.targets[3].1.groups[0].dependencies[0]).unwrap();
    assert_eq!(partitions["fullSet"]["values"].as_array().map(Vec::len), Some(24), "{partitions}");
}

#[test]
fn what_the_domain_refuses_is_at_its_line() {
    let of = |target: &str| refusal(&format!("{START}targets:\n  - workflowDefinitionCode: 5\n{target}"));
    let group = "    groups: [{dependencies: [{asset: paimon://d/t}]}]\n";
    let table = [
        (format!("{group}    maxActive: 0\n"), "5:16", "targets[0].maxActive", "0 active instances"),
        (
            format!("{group}    coalesce: each\n    orAt: {{cron: 0 6 * * *, timeZone: UTC}}\n"),
            "6:11",
            "targets[0].orAt",
            "not defined with `coalesce: each`",
        ),
        (format!("{group}    orAt: {{cron: 0 6 * * *}}\n"), "5:11", "targets[0].orAt", "needs a time zone"),
        (format!("{group}    quietPeriod: 5 minuten\n"), "5:18", "targets[0].quietPeriod", "no length of time"),
        (
            "    groups:\n      - dependencies:\n          - asset: paimon://d/t\n            checks: [a]\n".to_owned(),
            "7:21",
            "targets[0].groups[0].dependencies[0].checks",
            "no `qualityStatus`",
        ),
        (
            "    groups:\n      - dependencies:\n          - asset: paimon://d/t\n            qualityStatus: OK\n"
                .to_owned(),
            "7:28",
            "dependencies[0].qualityStatus",
            "unknown variant",
        ),
    ];
    for (target, place, field, problem) in table {
        let said = of(&target);
        assert!(said.contains(problem) && said.contains(field), "{said}");
        assert!(said.contains(&format!("lakebell.yaml:{place}\n")), "{place}: {said}");
    }
}

#[test]
fn a_duplicate_key_is_refused() {
    let said = refusal("project: 7\nassets: []\nassets: []\n");
    assert_eq!(said.lines().next(), Some("duplicate mapping key: assets"));
    assert!(said.contains("lakebell.yaml:3:1"), "{said}");
}

#[test]
fn a_malformed_key_is_refused_where_it_stands() {
    let text = format!("{START}assets:\n  - key: ods.orders\n    location: s3://lake/orders\n");
    let said = refusal(&text);
    assert!(said.contains("`ods.orders` has no `://`"), "{said}");
    assert!(said.contains("lakebell.yaml:3:10") && said.contains("field  assets[0].key"), "{said}");
    assert!(said.contains("hint   write <format>://"), "{said}");
}

#[test]
fn a_group_without_members_is_refused_where_it_stands() {
    let text = format!(
        "{START}targets:\n  - workflowDefinitionCode: 5\n    groups:\n      - name: g\n        dependencies: []\n"
    );
    let said = refusal(&text);
    assert!(said.starts_with("the group has no members"), "{said}");
    assert!(said.contains("lakebell.yaml:6:23") && said.contains("targets[0].groups[0].dependencies"), "{said}");
}

#[test]
fn what_is_not_there_is_missed_around_its_place() {
    let said = refusal(&format!("{START}targets:\n  - groups: [{{dependencies: [{{asset: paimon://d/t}}]}}]\n"));
    assert!(said.contains("no workflow is named") && said.contains("lakebell.yaml:3:5"), "{said}");
    assert!(refusal("assets: []\n").contains("missing field `project`"));
    assert!(refusal("").contains("lakebell.yaml:1:1"));
}

#[test]
fn two_of_one_thing_are_refused() {
    let asset = "  - {key: paimon://d/t, location: s3://lake/t}\n";
    let said = refusal(&format!("{START}assets:\n{asset}{asset}"));
    assert!(said.contains("paimon://d/t is declared by assets[0] too") && said.contains("yaml:4:"), "{said}");
    let moved = "  - {key: paimon://d/u, location: s3a://lake//t/}\n";
    let said = refusal(&format!("{START}assets:\n{asset}{moved}"));
    assert!(said.contains("s3://lake/t is declared by assets[0] too"), "{said}");
    let branch = "  - {key: paimon://d/t@b, location: s3://lake/t}\n";
    assert!(parse(Path::new("x"), &format!("{START}assets:\n{asset}{branch}"), None).is_ok());
}

#[test]
fn a_wrong_type_and_broken_yaml_name_their_line() {
    let said = refusal("project: seven\n");
    assert!(said.contains("lakebell.yaml:1:10") && said.contains("field  project"), "{said}");
    assert!(refusal("project: 0\n").contains("0 is no project code"));
    assert!(refusal("project: 7\ntargets: [\n").contains("lakebell.yaml:2:"));
}
