//! How each release reads `startParams` and where it keeps them.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use serde_json::{Map, Value, json};

use crate::Profile;
use crate::world::command_type;

/// How times are written, without a zone.
pub(crate) const TIME: &str = "%Y-%m-%d %H:%M:%S";

/// What a release makes of the text of `startParams`. Text that it cannot read is dropped without
/// an error, as the real server does: the start still succeeds.
pub(crate) fn read(profile: Profile, text: Option<&str>) -> BTreeMap<String, String> {
    let Some(parsed) = text.and_then(|text| serde_json::from_str::<Value>(text).ok()) else { return BTreeMap::new() };
    match parsed {
        Value::Object(map) if profile.says_workflow() || map.values().all(is_scalar) => {
            map.into_iter().map(|(name, value)| (name, plain(&value))).collect()
        }
        Value::Array(list) if profile.says_workflow() => list
            .iter()
            .filter_map(|property| Some((property.get("prop")?.as_str()?.to_owned(), plain(property.get("value")?))))
            .collect(),
        _ => BTreeMap::new(),
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The times of `scheduleTime` for a backfill, as far as they are given as a list. A range has none
/// here, because it is expanded with a cron and no definition of the stand-in has one.
pub(crate) fn backfill_times(schedule_time: &str) -> Vec<DateTime> {
    let Ok(schedule) = serde_json::from_str::<Value>(schedule_time) else { return Vec::new() };
    let list = schedule.get("complementScheduleDateList").and_then(Value::as_str).unwrap_or_default();
    list.split(',').filter_map(|time| DateTime::strptime(TIME, time.trim()).ok()).collect()
}

/// The `commandParam` that goes with the parameters: JSON inside JSON in 3.1 and 3.2, a list of
/// properties from 3.3 on. A backfill keeps its times there, too.
pub(crate) fn command_param(
    profile: Profile,
    params: &BTreeMap<String, String>,
    start_nodes: &str,
    backfill: &[DateTime],
) -> String {
    let mut param = Map::new();
    let times: Vec<String> = backfill.iter().map(|time| time.strftime(TIME).to_string()).collect();
    if profile.says_workflow() {
        param.insert("commandType".to_owned(), json!(command_type(backfill.first().copied())));
        if !times.is_empty() {
            param.insert("backfillTimeList".to_owned(), json!(times));
        }
        param.insert("startNodes".to_owned(), json!(node_list(start_nodes)));
        param.insert("commandParams".to_owned(), properties(params));
        param.insert("timeZone".to_owned(), json!("UTC"));
    } else {
        if !start_nodes.is_empty() {
            param.insert("StartNodeList".to_owned(), json!(start_nodes));
        }
        if !times.is_empty() {
            param.insert("complementScheduleDateList".to_owned(), json!(times.join(",")));
        }
        if !params.is_empty() {
            param.insert("StartParams".to_owned(), json!(json!(params).to_string()));
        }
    }
    Value::Object(param).to_string()
}

/// The `globalParams` of an instance. In 3.1 and 3.2 start parameters that the definition does not
/// declare may be absent from them, so there they are left out.
pub(crate) fn global_params(profile: Profile, params: &BTreeMap<String, String>) -> String {
    if profile.says_workflow() { properties(params).to_string() } else { "[]".to_owned() }
}

fn properties(params: &BTreeMap<String, String>) -> Value {
    params
        .iter()
        .map(|(name, value)| json!({"prop": name, "direct": "IN", "type": "VARCHAR", "value": value}))
        .collect()
}

fn node_list(nodes: &str) -> Vec<i64> {
    nodes.split(',').filter_map(|node| node.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_and_malformed_parameters_vanish_without_an_error() {
        for text in ["{", "[1]", "null", "\"x\"", ""] {
            assert!(read(Profile::V3_1, Some(text)).is_empty(), "{text}");
            assert!(read(Profile::V3_3, Some(text)).is_empty(), "{text}");
        }
        assert!(read(Profile::V3_2, Some(r#"{"a":{"b":1}}"#)).is_empty());
        assert_eq!(read(Profile::V3_2, Some(r#"{"a":1,"b":"x"}"#)).len(), 2);
    }

    #[test]
    fn a_list_of_properties_is_read_from_3_3_on() {
        let text = r#"[{"prop":"a","direct":"IN","type":"VARCHAR","value":"1"}]"#;
        assert!(read(Profile::V3_2, Some(text)).is_empty());
        assert_eq!(read(Profile::V3_4, Some(text)).get("a").map(String::as_str), Some("1"));
    }

    #[test]
    fn the_parameters_are_json_inside_json_before_3_3() {
        let params = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
        let outer: Value = serde_json::from_str(&command_param(Profile::V3_1, &params, "", &[])).unwrap();
        assert_eq!(outer["StartParams"], json!(r#"{"k":"v"}"#));
        let outer: Value = serde_json::from_str(&command_param(Profile::V3_3, &params, "7", &[])).unwrap();
        assert_eq!(outer["commandParams"][0]["prop"], json!("k"));
        assert_eq!(outer["startNodes"], json!([7]));
    }

    #[test]
    fn the_times_of_a_backfill_are_read_from_a_list() {
        let times = backfill_times(r#"{"complementScheduleDateList":"2026-01-02 00:00:00,2026-01-03 12:00:00"}"#);
        assert_eq!(
            times,
            [jiff::civil::date(2026, 1, 2).at(0, 0, 0, 0), jiff::civil::date(2026, 1, 3).at(12, 0, 0, 0)]
        );
        for text in ["", "{}", "2026-01-02 00:00:00", r#"{"complementStartDate":"2026-01-02 00:00:00"}"#] {
            assert!(backfill_times(text).is_empty(), "{text}");
        }
        let outer: Value = serde_json::from_str(&command_param(Profile::V3_2, &BTreeMap::new(), "", &times)).unwrap();
        assert_eq!(outer["complementScheduleDateList"], json!("2026-01-02 00:00:00,2026-01-03 12:00:00"));
    }
}
