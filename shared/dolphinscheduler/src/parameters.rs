//! Finding the trigger key in what DolphinScheduler keeps of a start.
//!
//! Source: `PropertyUtils.java`, `ProcessServiceImpl.java` (3.1, 3.2) and the command handlers of
//! the line that became 3.3.

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

/// Looks into `commandParam` first and then, where those do not hold it, into `globalParams`.
pub(crate) fn carries(row: &Value, key: &str) -> Carries {
    match of_command(row.get("commandParam"), key) {
        Carries::This => Carries::This,
        other => match row.get("globalParams").and_then(decoded) {
            Some(globals) if has_property(&globals, key) => Carries::This,
            _ => other,
        },
    }
}

fn of_command(param: Option<&Value>, key: &str) -> Carries {
    let Some(param) = param.and_then(decoded) else { return Carries::Unknown };
    let Value::Object(param) = param else { return Carries::Unknown };
    // 3.1 and 3.2: a JSON text inside the JSON text.
    let nested = param.get("StartParams").filter(|value| !value.is_null()).map(decoded);
    // 3.3 and later: a list of properties.
    let listed = param.get("commandParams").filter(|value| !value.is_null()).map(decoded);
    if matches!(nested, Some(None)) || matches!(listed, Some(None)) {
        return Carries::Unknown;
    }
    let in_nested = nested.flatten().is_some_and(|map| map.get(KEY).and_then(Value::as_str) == Some(key));
    let in_listed = listed.flatten().is_some_and(|list| has_property(&list, key));
    if in_nested || in_listed { Carries::This } else { Carries::Another }
}

fn has_property(list: &Value, key: &str) -> bool {
    list.as_array().is_some_and(|list| {
        list.iter().any(|property| {
            property.get("prop").and_then(Value::as_str) == Some(KEY)
                && property.get("value").and_then(Value::as_str) == Some(key)
        })
    })
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
}
