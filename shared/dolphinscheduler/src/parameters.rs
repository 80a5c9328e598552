//! Finding the trigger key in what DolphinScheduler keeps of a start.
//!
//! Source: `PropertyUtils.java`, `ProcessServiceImpl.java` (3.1, 3.2) and the command handlers of
//! the line that became 3.3.

use lakebell_domain::ids::TriggerKey;
use lakebell_engine::ports::scheduler::CarriedKey;
use serde_json::Value;

/// The start parameter that carries the trigger key.
pub(crate) const KEY: &str = "lakebell_trigger_key";

/// What a row's parameters say about a trigger key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carries {
    /// They hold the key.
    This,
    /// They are known, and do not.
    Another,
    /// They are not known (yet), or cannot be read.
    Unknown,
}

/// What a row says about this trigger key.
pub(crate) fn carries(row: &Value, key: &str) -> Carries {
    let (keys, known) = keys(row);
    if keys.iter().any(|found| found == key) {
        Carries::This
    } else if known {
        Carries::Another
    } else {
        Carries::Unknown
    }
}

/// The trigger key that a row carries, whichever it is. A text that is none counts as no key.
pub(crate) fn carried(row: &Value) -> CarriedKey {
    let (keys, known) = keys(row);
    match keys.into_iter().find_map(|key| TriggerKey::new(&key).ok()) {
        Some(key) => CarriedKey::Trigger(key),
        None if known => CarriedKey::None,
        None => CarriedKey::Unknown,
    }
}

/// The trigger keys in a row's parameters (`commandParam` first, then `globalParams`), and whether
/// the absence of a key would mean anything: that takes a `commandParam` that can be read.
fn keys(row: &Value) -> (Vec<String>, bool) {
    let mut keys = Vec::new();
    let mut known = false;
    if let Some(Value::Object(param)) = row.get("commandParam").and_then(decoded) {
        let part = |name: &str| param.get(name).filter(|value| !value.is_null()).map(decoded);
        // 3.1 and 3.2: a JSON text inside the JSON text.
        let nested = part("StartParams");
        // 3.3 and later: a list of properties.
        let listed = part("commandParams");
        known = !matches!(nested, Some(None)) && !matches!(listed, Some(None));
        let nested = nested.flatten().and_then(|map| map.get(KEY)?.as_str().map(str::to_owned));
        keys.extend(nested);
        keys.extend(listed.flatten().as_ref().into_iter().flat_map(of_properties));
    }
    keys.extend(row.get("globalParams").and_then(decoded).as_ref().into_iter().flat_map(of_properties));
    (keys, known)
}

fn of_properties(list: &Value) -> impl Iterator<Item = String> {
    let is_key = |property: &&Value| property.get("prop").and_then(Value::as_str) == Some(KEY);
    let properties = list.as_array().map(Vec::as_slice).unwrap_or_default();
    properties.iter().filter(is_key).filter_map(|property| property.get("value")?.as_str().map(str::to_owned))
}

/// A value that is JSON, or JSON as text; `None` for null, an empty text and text that is no JSON.
fn decoded(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) => serde_json::from_str(text).ok().filter(|parsed: &Value| !parsed.is_null()),
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_key_is_found_in_every_form() {
        let nested = json!({"commandParam": r#"{"StartParams":"{\"lakebell_trigger_key\":\"k1\"}"}"#});
        let listed = json!({"commandParam": json!({"commandParams": [
            {"prop": "a", "value": "k1"}, {"prop": KEY, "direct": "IN", "type": "VARCHAR", "value": "k1"}
        ]}).to_string()});
        let objects = json!({"commandParam": {"commandParams": [{"prop": KEY, "value": "k1"}]}});
        let globals =
            json!({"commandParam": "{}", "globalParams": r#"[{"prop":"lakebell_trigger_key","value":"k1"}]"#});
        for row in [nested, listed, objects, globals] {
            assert_eq!(carries(&row, "k1"), Carries::This, "{row}");
            assert_eq!(carries(&row, "k2"), Carries::Another, "{row}");
            assert_eq!(carries(&row, "k"), Carries::Another, "part of a key is another key");
        }
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_not_absent() {
        let rows = [
            json!({}),
            json!({"commandParam": null}),
            json!({"commandParam": ""}),
            json!({"commandParam": "{"}),
            json!({"commandParam": "[]"}),
            json!({"commandParam": r#"{"StartParams":"{broken"}"#}),
            json!({"commandParam": null, "globalParams": "[]"}),
        ];
        for row in rows {
            assert_eq!(carries(&row, "k1"), Carries::Unknown, "{row}");
        }
        assert_eq!(carries(&json!({"commandParam": "{}"}), "k1"), Carries::Another);
        assert_eq!(carries(&json!({"commandParam": r#"{"commandParams":null}"#}), "k1"), Carries::Another);
    }

    #[test]
    fn whichever_key_is_carried_is_told() {
        let row = |key: &str| json!({"commandParam": json!({"commandParams": [{"prop": KEY, "value": key}]})});
        let key = TriggerKey::new("0123abcd").unwrap();
        assert_eq!(carried(&row("0123abcd")), CarriedKey::Trigger(key));
        assert_eq!(carried(&row("typed by hand")), CarriedKey::None);
        assert_eq!(carried(&json!({"commandParam": "{}"})), CarriedKey::None);
        assert_eq!(carried(&json!({"commandParam": null})), CarriedKey::Unknown);
    }
}
