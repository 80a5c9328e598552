//! Declarations that are accepted: defaults, names, rules in plain words, parameters that fit.

use std::collections::BTreeSet;

use lakebell_domain::ids::{GroupName, WorkflowCode};
use lakebell_domain::start_params::{MAX_BYTES, start_parameters};
use lakebell_domain::target::{Advance, TargetSpec, WorkflowRef};
use lakebell_domain::trigger::{Bounds, Distinct, Range, StartReason, trigger_key};
use lakebell_domain::version::{Fingerprint, Version};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{group, member, position, target};
use crate::target_refusals::{dependency, one_group, resolve, spec};

#[test]
fn what_is_left_out_has_a_default() {
    let target = resolve(&one_group(&[dependency("orders")])).unwrap();
    assert_eq!(target.id.to_string(), "7/workflow-11");
    assert_eq!((target.generation, target.enabled, target.start_at), (3, true, None));
    assert_eq!((target.connection.as_str(), target.workflow.clone()), ("default", WorkflowRef::Code(WorkflowCode(11))));
    let group = &target.groups[0];
    assert_eq!((group.name.as_str(), group.advance), ("default", Advance::All));
    let member = &group.members[0];
    assert_eq!(
        (member.alias.as_str(), &member.conditions.commit_kinds, &member.conditions.minimum),
        ("orders", &None, &None)
    );
}

#[test]
fn a_target_without_a_name_is_called_after_what_it_starts() {
    let name = |document| {
        let spec: TargetSpec = serde_json::from_value(document).unwrap();
        spec.target_name().unwrap().to_string()
    };
    assert_eq!(
        name(json!({ "workflowDefinitionCode": 11, "taskDefinitionCode": 5, "groups": [] })),
        "workflow-11-task-5"
    );
    assert_eq!(name(json!({ "workflowDefinitionName": "daily", "groups": [] })), "workflow-daily");
    assert_eq!(name(json!({ "name": "gmv", "workflowDefinitionName": "Tag 1", "groups": [] })), "gmv");
}

#[test]
fn a_minimum_is_looked_up_in_the_history_of_the_declaration() {
    for id in [json!(42), json!("42")] {
        let target = resolve(&one_group(&[json!({ "asset": "paimon://ods/orders", "minSnapshotId": id })])).unwrap();
        let minimum = target.groups[0].members[0].conditions.minimum.as_ref().unwrap();
        assert_eq!((minimum.snapshot_id.as_str(), minimum.epoch.0, minimum.ordinal.0), ("42", 2, 42));
    }
}

#[test]
fn one_asset_may_stand_in_several_groups_under_several_aliases() {
    let target = resolve(&spec(&json!([
        { "name": "a", "dependencies": [dependency("orders")] },
        { "name": "b", "dependencies": [{ "asset": "paimon://ods/twin", "alias": "o" }, dependency("payments")] },
    ])))
    .unwrap();
    assert_eq!(target.groups[0].members[0].asset, target.groups[1].members[0].asset);
    assert_eq!(target.assets().len(), 2);
}

#[test]
fn rules_read_as_sentences() {
    let members = |count: u128| (0..count).map(member).collect::<Vec<_>>();
    let rule = |advance, count| group("g", advance, members(count)).rule();
    assert_eq!(rule(Advance::All, 1), "fires when t0 has advanced since the last trigger");
    assert_eq!(rule(Advance::Any, 1), "fires when t0 has advanced since the last trigger");
    assert_eq!(rule(Advance::All, 2), "fires when BOTH t0 AND t1 have advanced since the last trigger");
    assert_eq!(rule(Advance::All, 3), "fires when ALL of t0, t1, t2 have advanced since the last trigger");
    assert_eq!(rule(Advance::Any, 2), "fires when ANY of t0, t1 has advanced since the last trigger");
    assert_eq!(
        rule(Advance::AtLeast(2), 3),
        "fires when AT LEAST 2 of t0, t1, t2 have advanced since the last trigger"
    );
    let both = target(vec![group("a", Advance::All, members(1)), group("b", Advance::All, members(2))]);
    assert_eq!(
        both.rule(),
        "fires when t0 has advanced since the last trigger, OR fires when BOTH t0 AND t1 have advanced since the last trigger"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is accepted fits, with the longest values that a format can bring.
    #[test]
    fn accepted_parameters_fit_the_scheduler(
        groups in proptest::collection::vec(("[a-zA-Z0-9_.-]{1,64}", 1_usize..60), 1..4),
        padding in 0_usize..50,
    ) {
        let declared: Vec<_> = groups.iter().enumerate().map(|(at, (name, count))| {
            let tables = (0..*count).map(|n| {
                json!({ "asset": format!("paimon://ods/g{at}n{n}"), "alias": format!("g{at}n{n}{}", "x".repeat(padding)) })
            });
            json!({ "name": name, "dependencies": tables.collect::<Vec<_>>() })
        }).collect();
        let document: TargetSpec = serde_json::from_value(spec(&json!(declared))).unwrap();
        prop_assume!(document.check().is_ok());
        let target = resolve(&spec(&json!(declared))).unwrap();
        let longest = Version {
            position: position(u32::MAX, u64::MAX),
            fingerprint: Fingerprint::from("f".repeat(64)),
            snapshot_id: "9".repeat(20).into(),
        };
        let bounds = Bounds { from: Some(longest.clone()), to: Some(longest) };
        let members = target.groups.iter().flat_map(|group| &group.members);
        let ranges: Vec<Range> = members.map(|member| Range {
            asset: member.asset,
            key: member.key.clone(),
            aliases: BTreeSet::from([member.alias.clone()]),
            bounds: bounds.clone(),
            watermark: Some(i64::MIN),
            partition: None,
            tag: Some("t".repeat(128)),
            failed_versions: Vec::new(),
            has_backfill: true,
            head_rev: 1,
        }).collect();
        let names: BTreeSet<GroupName> = target.groups.iter().map(|group| group.name.clone()).collect();
        let key = trigger_key(&Distinct {
            target: &target.id,
            generation: 1,
            groups: &names,
            ranges: &ranges,
            window: None,
            partition: None,
            tick: None,
            request: None,
            registers: &[],
        });
        let parameters = start_parameters(&key, StartReason::Deadline, &names, &ranges, None);
        prop_assert_eq!(parameters.len(), 8 + 6 * ranges.len(), "every parameter is always there");
        let bytes = serde_json::to_string(&parameters).unwrap().len();
        prop_assert!(bytes <= MAX_BYTES, "{bytes} bytes were accepted");
    }

    /// What is declared survives storage: the form that is written is read back as the same.
    #[test]
    fn a_declaration_survives_json(count in 1_usize..4, k in 1_usize..4, kinds in proptest::option::of("[A-Z]{1,8}"), flag in 0..2) {
        prop_assume!(k <= count);
        let tables: Vec<_> = (0..count).map(|n| json!({
            "asset": format!("paimon://ods/t{n}"),
            "minSnapshotId": n + 1,
            "commitKinds": kinds.as_ref().map(|kind| vec![kind]),
        })).collect();
        let document = json!({
            "workflowDefinitionName": "daily",
            "enabledFlag": flag,
            "groups": [{ "advance": { "atLeast": k }, "dependencies": tables }],
        });
        let spec: TargetSpec = serde_json::from_value(document.clone()).unwrap();
        let written = serde_json::to_value(&spec).unwrap();
        prop_assert_eq!(&serde_json::from_value::<TargetSpec>(written).unwrap(), &spec);
        let target = resolve(&document).unwrap();
        let stored = serde_json::to_string(&target).unwrap();
        prop_assert_eq!(serde_json::from_str::<lakebell_domain::target::Target>(&stored).unwrap(), target);
    }
}
