use super::*;

fn records(list: Value) -> Vec<DependencyRecord> {
    serde_json::from_value(list).unwrap()
}

fn refused(list: Value) -> (String, String) {
    let invalid = gather(&records(list)).unwrap_err();
    (invalid.field, invalid.problem)
}

fn record(asset: &str, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    let mut record = json!({"workflowDefinitionCode": 12345, "taskDefinitionCode": 100, "assetKey": asset});
    for (key, value) in more {
        record[key] = value;
    }
    record
}

const ORDERS: &str = "paimon://ods_db/orders";
const PAYMENTS: &str = "paimon://lake/ods_db/payments";

#[test]
fn the_records_of_a_workflow_and_task_are_one_target() {
    let condition =
        json!({"assetKey": ORDERS, "snapshotRequired": true, "qualityStatus": "PASSED", "schemaStatus": "COMPATIBLE"});
    let text = json!({"assetKey": PAYMENTS, "watermark": 1_726_012_799_000_i64, "timeoutMinutes": 30}).to_string();
    let list = records(json!([
        record(ORDERS, json!({"dependencyGroup": "trade", "conditionJson": condition, "enabledFlag": 1})),
        record(ORDERS, json!({"taskDefinitionCode": null})),
        record(PAYMENTS, json!({"dependencyGroup": "trade", "conditionJson": text, "checkIntervalSeconds": 60})),
        record(ORDERS, json!({"dependencyGroup": "alone"})),
    ]));
    let gathered = gather(&list).unwrap();
    let names: Vec<String> = gathered.iter().map(|target| target.spec.target_name().unwrap().to_string()).collect();
    assert_eq!(names, ["workflow-12345-task-100", "workflow-12345"]);
    assert_eq!(
        serde_json::to_value(&gathered[0].spec).unwrap(),
        json!({
            "connection": "default",
            "workflowDefinitionCode": 12345,
            "taskDefinitionCode": 100,
            "timeoutMinutes": 30,
            "checkIntervalSeconds": 60,
            "groups": [
                {"name": "trade", "dependencies": [
                    {"asset": ORDERS, "qualityStatus": "PASSED", "schemaStatus": "COMPATIBLE"},
                    {"asset": PAYMENTS, "watermark": "2024-09-10T23:59:59Z"},
                ]},
                {"name": "alone", "dependencies": [{"asset": ORDERS}]},
            ],
        })
    );
    assert_eq!(gathered[0].field("groups[0].dependencies[1].watermark"), "[2].conditionJson.watermark");
    assert_eq!(gathered[0].field("groups[1].dependencies[0].asset"), "[3].assetKey");
    assert_eq!(gathered[0].field("checkIntervalSeconds"), "[2].checkIntervalSeconds");
    assert_eq!(gathered[1].field("workflowDefinitionCode"), "[1].workflowDefinitionCode");
}

#[test]
fn a_record_that_is_off_is_left_out_and_all_of_them_switch_the_target_off() {
    let off = json!({"enabledFlag": 0});
    let gathered = gather(&records(json!([record(ORDERS, json!({})), record(PAYMENTS, off.clone())]))).unwrap();
    assert_eq!((gathered[0].spec.enabled_flag, gathered[0].spec.groups[0].dependencies.len()), (1, 1));
    assert_eq!(
        gathered[0].notes,
        [format!("record [1] is off (enabledFlag 0): group `default` does not wait for {PAYMENTS}")]
    );
    let gathered = gather(&records(json!([record(ORDERS, off.clone()), record(PAYMENTS, off)]))).unwrap();
    assert_eq!((gathered[0].spec.enabled_flag, gathered[0].spec.groups[0].dependencies.len()), (0, 2));
    assert_eq!(gathered[0].notes, Vec::<String>::new());
}

#[test]
fn records_that_contradict_each_other_are_refused_with_both_places() {
    let timeouts =
        json!([record(ORDERS, json!({"timeoutMinutes": 30})), record(PAYMENTS, json!({"timeoutMinutes": 60}))]);
    let expected = "it is 60 here, and record [0] says 30 for the same target";
    assert_eq!(refused(timeouts), ("[1].timeoutMinutes".to_owned(), expected.to_owned()));
    let inside =
        json!([record(ORDERS, json!({"checkIntervalSeconds": 5, "conditionJson": {"checkIntervalSeconds": 6}}))]);
    assert!(refused(inside).1.contains("the record says 5"));
    let twice = json!([record(ORDERS, json!({})), record("paimon://ods%5Fdb/orders", json!({}))]);
    let (field, problem) = refused(twice);
    assert_eq!(field, "[1].assetKey");
    assert!(problem.starts_with("record [0] has paimon://ods_db/orders in group `default`"), "{problem}");
    let elsewhere = json!([record(ORDERS, json!({"conditionJson": {"assetKey": PAYMENTS}}))]);
    assert_eq!(refused(elsewhere).0, "[0].conditionJson.assetKey");
}

#[test]
fn a_wrong_record_names_the_key() {
    let condition =
        |condition: Value| json!([record(ORDERS, json!({})), record(PAYMENTS, json!({"conditionJson": condition}))]);
    let table = [
        (condition(json!({"partitionKey": "dt=1"})), "partitionKey", "`partitionKey` is not known"),
        (condition(json!({"qualitystatus": "PASSED"})), "qualitystatus", "`qualitystatus` is not known"),
        (condition(json!({"qualityStatus": "FAILED"})), "qualityStatus", "unknown variant `FAILED`"),
        (condition(json!({"every": {"period": "1d"}})), "every", "a window without a time zone"),
        (condition(json!({"asset": ORDERS})), "asset", "the RFC's name for it is `assetKey`"),
        (condition(json!({"watermark": 9_000_000_000_000_000_000_i64})), "watermark", "is no time"),
        (condition(json!({"timeoutMinutes": "x"})), "timeoutMinutes", "is no whole number"),
        (condition(json!({"snapshotRequired": false})), "snapshotRequired", "leaves nothing that could start it"),
        (condition(json!("[]")), "", "its text is no JSON object"),
        (condition(json!("{")), "", "its text is no JSON: "),
        (condition(json!(5)), "", "it is no object"),
    ];
    for (list, key, problem) in table {
        let found = refused(list);
        let field = if key.is_empty() { "[1].conditionJson".to_owned() } else { format!("[1].conditionJson.{key}") };
        assert_eq!(found.0, field, "{found:?}");
        assert!(found.1.contains(problem), "{found:?}");
    }
    assert_eq!(refused(json!([record(ORDERS, json!({"enabledFlag": 2}))])).0, "[0].enabledFlag");
    assert_eq!(refused(json!([record(ORDERS, json!({"taskDefinitionCode": 0}))])).0, "[0].taskDefinitionCode");
    assert_eq!(refused(json!([record(ORDERS, json!({"timeoutMinutes": 0}))])).0, "[0].timeoutMinutes");
    let optional = json!([record(ORDERS, json!({"conditionJson": {"optional": true}}))]);
    assert_eq!(refused(optional).0, "[0].conditionJson");
}
