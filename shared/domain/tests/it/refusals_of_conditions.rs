//! Conditions and policies that are refused at declaration: which field, what was wrong, what would be
//! right.

use lakebell_domain::target::TargetSpec;
use serde_json::{Value, json};

use crate::target_refusals::{dependency, one_group, resolve, spec};

#[allow(clippy::needless_pass_by_value)] // documents are written in place
fn with(mut document: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

fn member(fields: Value) -> Value {
    one_group(&[with(dependency("orders"), fields)])
}

#[track_caller]
fn refused(document: &Value, field: &str, problem: &str, hint: &str) {
    let invalid = resolve(document).expect_err("it was accepted");
    assert_eq!((invalid.field.as_str(), invalid.problem.as_str(), invalid.hint.as_str()), (field, problem, hint));
}

const DAY: fn() -> Value = || json!({ "period": "1d", "timeZone": "UTC" });

#[test]
fn conditions_that_contradict_each_other() {
    let says = "`false` says that no commit is needed, and another condition chooses commits";
    let counting = "counting (minNewSnapshots, minDeltaRecords) goes by commits that change data";
    let range = "a tag names one version, and counting (minNewSnapshots, minDeltaRecords) needs a range";
    let writer = "it goes by the newest commit of a writer, and another condition by another version";
    let window = "a window is completed by the watermark, and another condition chooses commits";
    let by = json!({ "include": ["etl*"] });
    let cases = [
        (json!({ "snapshotRequired": false, "tag": "d*", "minSnapshotId": 4 }), "snapshotRequired", says),
        (json!({ "snapshotRequired": false, "tag": "d*", "commitKinds": ["APPEND"] }), "snapshotRequired", says),
        (json!({ "checks": ["rows"] }), "checks", "there is no `qualityStatus` that they would be for"),
        (json!({ "onFailedVersion": "block" }), "onFailedVersion", "there is no `qualityStatus` that it would be for"),
        (json!({ "minNewSnapshots": 2, "commitKinds": ["APPEND"] }), "commitKinds", counting),
        (json!({ "minDeltaRecords": 2, "tag": "d*" }), "tag", range),
        (
            json!({ "tag": "d*", "ignoreEmpty": true }),
            "ignoreEmpty",
            "a tag names one version, whatever its commit changed",
        ),
        (
            json!({ "every": DAY(), "optional": true }),
            "optional",
            "a member that may be absent cannot say that a window has ended",
        ),
        (
            json!({ "commitKinds": ["COMPACT"], "ignoreEmpty": true }),
            "ignoreEmpty",
            "it goes by commits that change data, and `commitKinds` chooses others",
        ),
        (json!({ "operations": by, "qualityStatus": "PASSED" }), "operations", writer),
        (json!({ "operations": by, "schemaStatus": "COMPATIBLE" }), "operations", writer),
        (json!({ "every": DAY(), "ignoreEmpty": true }), "every", window),
    ];
    for (fields, field, problem) in cases {
        let member = one_group(&[dependency("a"), with(dependency("orders"), fields)]);
        refused(&member, &format!("groups[0].dependencies[1].{field}"), problem, "leave one of them out");
    }
}

#[test]
fn numbers_and_lists_have_bounds() {
    let at = |field: &str| format!("groups[0].dependencies[0].{field}");
    for count in [0, 1_000_001] {
        let hint = "use 1 or leave it out for any new commit";
        refused(
            &member(json!({ "minNewSnapshots": count })),
            &at("minNewSnapshots"),
            "it must be from 1 to 1000000",
            hint,
        );
    }
    let rows = "leave it out for any number of rows";
    refused(&member(json!({ "minDeltaRecords": 0 })), &at("minDeltaRecords"), "it must be 1 or more", rows);
    let named = "name checks or suites as they report, or leave it out for all that have reported";
    for checks in [json!([]), json!([""]), json!(["x".repeat(129)])] {
        let document = member(json!({ "qualityStatus": "PASSED", "checks": checks }));
        refused(&document, &at("checks"), "it must name 1 to 24 checks of at most 128 bytes", named);
    }
    let patterns = "give 1 to 16 under `include` and `exclude`";
    refused(&member(json!({ "operations": {} })), &at("operations"), "it has 0 patterns", patterns);
}

#[test]
fn groups_that_could_never_start_or_start_too_early() {
    let optional = with(dependency("b"), json!({ "optional": true }));
    refused(
        &one_group(std::slice::from_ref(&optional)),
        "groups[0].dependencies",
        "every member is optional, so that nothing would ever start it",
        "leave `optional` out of at least one",
    );
    refused(
        &spec(&json!([{ "advance": { "atLeast": 2 }, "dependencies": [dependency("a"), optional] }])),
        "groups[0].advance.atLeast",
        "2 of 1 members that are not optional can never advance",
        "use a number from 1 to 1",
    );
    let day = with(dependency("a"), json!({ "every": DAY() }));
    refused(
        &spec(&json!([{ "advance": "any", "dependencies": [day, dependency("b")] }])),
        "groups[0].advance",
        "some members have windows, and the others could start it before a window has ended",
        "use `advance: all`, or give `every` to all members of the group or to none",
    );
}

#[test]
fn policies_that_contradict_each_other() {
    let good = member(json!({}));
    let cases = [
        (
            json!({ "maxActive": 0 }),
            "maxActive",
            "0 active instances would never start",
            "use 1 or more, or leave it out",
        ),
        (
            json!({ "settle": "2m" }),
            "settle",
            "a rewrite is held for a person",
            "use it with `onRewrite: follow`, or leave it out",
        ),
        (json!({ "timeoutMinutes": 0 }), "timeoutMinutes", "0 is no time to wait", "use 1 or more, or leave it out"),
        (
            json!({ "checkIntervalSeconds": 0 }),
            "checkIntervalSeconds",
            "0 is no time to wait",
            "use 1 or more, or leave it out",
        ),
        (
            json!({ "timeoutMinutes": 5, "deadline": { "within": "5m" } }),
            "timeoutMinutes",
            "it is another word for `deadline: {within: ...}`, and both are given",
            "give one of them",
        ),
        (json!({ "onDeadline": "fire" }), "onDeadline", "there is no deadline", "give a `deadline`, or leave it out"),
        (
            json!({ "startAs": "complement" }),
            "startAs",
            "group `default` has no windows, so that its triggers have no business date",
            "give a dependency of each group `every`, or use `startAs: start`",
        ),
        (
            json!({ "runWindow": { "from": "08:00", "to": "08:00", "timeZone": "UTC" } }),
            "runWindow",
            "it goes from 08:00 to 08:00 and never opens",
            "give two different times, or leave it out",
        ),
        (
            json!({
                "runWindow": { "from": "08:00", "to": "10:00", "timeZone": "UTC" },
                "notBefore": { "time": "10:00", "timeZone": "UTC" },
            }),
            "notBefore",
            "10:00 is after the run window ends at 10:00: it would never open",
            "use a time before the end of the run window, or leave one of them out",
        ),
    ];
    for (fields, field, problem, hint) in cases {
        refused(&with(good.clone(), fields), field, problem, hint);
    }
}

#[test]
fn each_goes_by_the_order_of_commits_alone() {
    let hint = "use `coalesce: newest`, or leave it out";
    let each = |document: Value, fields: Value| with(with(document, json!({ "coalesce": "each" })), fields);
    for (fields, field, what) in [
        (json!({ "watermark": "2026-01-01T00:00:00Z" }), "watermark", "a watermark"),
        (json!({ "maxLag": "1h" }), "maxLag", "`maxLag`"),
        (json!({ "every": DAY() }), "every", "a window"),
        (json!({ "qualityStatus": "PASSED" }), "qualityStatus", "a verdict"),
        (json!({ "schemaStatus": "COMPATIBLE" }), "schemaStatus", "a schema decision"),
        (json!({ "tag": "d*" }), "tag", "a tag"),
        (json!({ "backfill": "COMPLETED" }), "backfill", "a backfill"),
        (json!({ "cdcLagRecovered": true }), "cdcLagRecovered", "CDC lag"),
        (json!({ "minNewSnapshots": 2 }), "minNewSnapshots", "counting"),
        (json!({ "partition": "dt" }), "partition", "a partition"),
    ] {
        let problem = format!("{what} is not defined with `coalesce: each`");
        refused(&each(member(fields), json!({})), &format!("groups[0].dependencies[0].{field}"), &problem, hint);
    }
    for (fields, field, what) in [
        (json!({ "onFailed": "extend" }), "onFailed", "`extend`"),
        (json!({ "orAt": { "cron": "0 6 * * *", "timeZone": "UTC" } }), "orAt", "`orAt`"),
        (json!({ "deadline": { "within": "1h" }, "onDeadline": "fire" }), "onDeadline", "`fire`"),
    ] {
        let problem = format!("{what} is not defined with `coalesce: each`");
        refused(&each(member(json!({})), fields), field, &problem, hint);
    }
}

#[test]
fn each_pairs_all_members_and_knows_them_all() {
    let hint = "use `coalesce: newest`, or leave it out";
    let each = |groups: Value| with(spec(&groups), json!({ "coalesce": "each" }));
    let problem = |what: &str| format!("{what} is not defined with `coalesce: each`");
    for advance in [json!("any"), json!({ "atLeast": 1 })] {
        let document = each(json!([{ "advance": advance, "dependencies": [dependency("a"), dependency("b")] }]));
        refused(&document, "groups[0].advance", &problem("an `advance` other than all"), hint);
    }
    let optional = with(dependency("b"), json!({ "optional": true }));
    let document = each(json!([{ "dependencies": [dependency("a"), optional] }]));
    refused(&document, "groups[0].dependencies[1].optional", &problem("an optional member"), hint);
    let prefix = json!({ "asset": "paimon://ods/orders_*" });
    let document = each(json!([{ "advance": "all", "dependencies": [prefix] }]));
    refused(&document, "groups[0].dependencies[0].asset", &problem("a prefix"), hint);
}

#[test]
fn a_window_needs_a_time_zone_and_one_for_the_group() {
    let of = |every: Value| one_group(&[with(dependency("a"), json!({ "every": every }))]);
    let refusal = |document: Value| serde_json::from_value::<TargetSpec>(document).unwrap_err().to_string();
    let said = refusal(of(json!({ "period": "1d" })));
    assert!(said.contains("a window without a time zone has no beginning; name the zone"), "{said}");
    let said = refusal(of(json!({ "period": "1d", "timeZone": "Shanghai" })));
    assert!(said.contains("`Shanghai` is no time zone"), "{said}");
    let elsewhere = with(dependency("b"), json!({ "every": { "period": "1d", "timeZone": "Asia/Shanghai" } }));
    let day = with(dependency("a"), json!({ "every": DAY() }));
    refused(
        &one_group(&[day, elsewhere]),
        "groups[0].dependencies",
        "one member has windows of 1d in UTC and another of 1d in Asia/Shanghai",
        "use the same time zone for all windows of a group",
    );
}
