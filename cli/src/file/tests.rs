use super::*;

fn refusal(text: &str) -> String {
    parse(Path::new("lakebell.yaml"), text).unwrap_err().to_text()
}

const START: &str = "project: 7\n";

#[test]
fn the_example_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/lakebell.yaml");
    let declared = read(&path).unwrap();
    assert_eq!((declared.assets.len(), declared.targets.len()), (4, 3));
    assert_eq!(declared.warehouses.len() + declared.connections.len(), 1);
}

#[test]
fn absent_fields_have_their_defaults() {
    let text = "project: 7\nwarehouses:\n  - {location: s3://lake/wh, format: paimon}\nassets:\ntargets:\n  - workflowDefinitionCode: 5\n    groups:\n      - dependencies: [{asset: paimon://db/t, minSnapshotId: 3}]\n  - {project: 8, workflowDefinitionName: w, enabledFlag: 0, groups: [{advance: {atLeast: 1}, dependencies: [{asset: paimon://db/t}]}]}\nconnections:\n  - {name: ds, url: http://ds, version: 3.1, tokenSecret: s}\n";
    let declared = parse(Path::new("x"), text).unwrap();
    assert_eq!(declared.warehouses[0].project, ProjectCode(7));
    let ids: Vec<String> = declared.targets.iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(ids, ["7/workflow-5", "8/workflow-w"]);
    assert_eq!(declared.targets[0].1.connection.as_str(), "default");
}

#[test]
fn an_unknown_field_is_refused_naming_the_allowed_ones() {
    let text = format!("{START}targets:\n  - name: a\n    worklowDefinitionCode: 5\n");
    let said = refusal(&text);
    assert!(said.contains("unknown field `worklowDefinitionCode`, expected one of project, name"), "{said}");
    assert!(said.contains("at     lakebell.yaml:4:5") && said.contains("field  targets[0]"), "{said}");
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
    assert!(parse(Path::new("x"), &format!("{START}assets:\n{asset}{branch}")).is_ok());
}

#[test]
fn a_wrong_type_and_broken_yaml_name_their_line() {
    let said = refusal("project: seven\n");
    assert!(said.contains("lakebell.yaml:1:10") && said.contains("field  project"), "{said}");
    assert!(refusal("project: 0\n").contains("0 is no project code"));
    assert!(refusal("project: 7\ntargets: [\n").contains("lakebell.yaml:2:"));
}
