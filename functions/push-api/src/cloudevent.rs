//! Pushed events: `CloudEvents` 1.0 in structured mode, one or a batch.

mod data;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use lakebell_decoders::{Entry, Node, catalogs, flink};
use lakebell_domain::Invalid;
use lakebell_domain::event::EventKind;
use lakebell_engine::push::{PUSHABLE, Pushed};
use serde_json::{Map, Value};

use self::data::Data;
use crate::body;
use crate::event::Request;
use crate::problem::{ApiError, Code};

/// Longest `id`.
const MAX_ID_BYTES: usize = 255;
/// Longest `source`, `subject`, `dataschema` and value of an extension.
const MAX_TEXT_BYTES: usize = 1_024;
/// The type of an event whose data is an event of a catalog.
const CATALOG_EVENT: &str = "io.lakebell.catalog.event.v1";
/// Most extension attributes.
const MAX_EXTENSIONS: usize = 32;

/// The attributes that the specification names; all others are extensions.
const ATTRIBUTES: [&str; 10] =
    ["specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data", "data_base64"];

/// The type of an event kind: `io.lakebell.snapshot.committed.v1`.
pub(crate) fn type_of(kind: EventKind) -> String {
    format!("io.lakebell.{}.v1", kind.as_str().to_ascii_lowercase().replace('_', "."))
}

/// The `id` of a document that may be no event.
pub(crate) fn id_of(document: &Value) -> Option<&str> {
    document.get("id").and_then(Value::as_str).filter(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES)
}

/// In which form a request says that it holds events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One event, in structured or binary mode.
    Single,
    /// A batch.
    Batch,
    /// It does not say.
    Either,
}

/// What the content type says. The batch form is looked for before the one that its name begins like.
pub(crate) fn mode(request: &Request) -> Mode {
    let content_type = request.header("content-type").unwrap_or_default().to_ascii_lowercase();
    match content_type.split(';').next().unwrap_or_default().trim() {
        "application/cloudevents-batch+json" => Mode::Batch,
        "application/cloudevents+json" => Mode::Single,
        _ if request.header("ce-specversion").is_some() => Mode::Single,
        _ => Mode::Either,
    }
}

/// Refuses what says of itself that it is no JSON. What says nothing is looked at.
///
/// Errors: `UNSUPPORTED_MEDIA_TYPE`.
pub(crate) fn check_content_type(request: &Request) -> Result<(), ApiError> {
    match request.header("content-type") {
        Some(content_type) if !is_json(content_type) && !content_type.trim().is_empty() => {
            let error = ApiError::new(Code::UnsupportedMediaType, "the content type is not one of JSON");
            Err(error.at("content-type").hint(
                "send application/cloudevents+json, application/cloudevents-batch+json, or application/json, in binary \
                 mode with ce- headers",
            ))
        }
        _ => Ok(()),
    }
}

/// An event in binary mode, its attributes in headers, as one in structured mode; `None` for a request
/// that is in no binary mode.
///
/// Errors: a body that is no JSON.
pub(crate) fn binary(request: &Request, body: &[u8]) -> Result<Option<Value>, ApiError> {
    let is_other = request.header("content-type").is_some_and(|text| text.to_ascii_lowercase().contains("cloudevents"));
    if is_other || request.header("ce-specversion").is_none() {
        return Ok(None);
    }
    let mut event = Map::new();
    for (name, value) in request.headers_below("ce-").take(MAX_EXTENSIONS + ATTRIBUTES.len()) {
        let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned();
        event.insert(name.to_owned(), Value::from(value));
    }
    if let Some(content_type) = request.header("content-type") {
        event.insert("datacontenttype".to_owned(), Value::from(content_type));
    }
    event.insert("data".to_owned(), body::read_any(body)?);
    Ok(Some(Value::Object(event)))
}

/// What a document of another writer's form comes to: an event of a catalog, bare or as the data of a
/// `CloudEvent`, or of Flink's catalog listener. `None` for events of Lakebell's own kinds.
pub(crate) fn foreign(document: &Value) -> Option<Result<Entry, Invalid>> {
    let node = Node::of(document);
    if let Some(catalog) = catalogs::whose(&node) {
        return Some(catalogs::decode(catalog, &node));
    }
    let kind = node.get("type").text().unwrap_or_default();
    if kind == CATALOG_EVENT {
        let data = node.get("data");
        let unknown = || Invalid::new("data", "it is no event of Polaris or Nessie", "send the event as it is");
        return Some(
            catalogs::whose(data)
                .ok_or_else(unknown)
                .and_then(|catalog| catalogs::decode(catalog, data).map_err(|refusal| refusal.within("data"))),
        );
    }
    flink::is_type(kind).then(|| {
        let attributes = document.as_object().cloned().unwrap_or_default();
        check_attributes(&attributes)?;
        let content = flink::decode(kind, &node)?;
        let named = |name: &str, most: usize| required(&attributes, name, most);
        Ok(Entry { source: named("source", MAX_TEXT_BYTES)?, id: named("id", MAX_ID_BYTES)?, content })
    })
}

/// Reads one event. `place` stands before the fields of errors: empty, or `[3]`.
///
/// Errors: `Invalid` with the field.
pub(crate) fn parse(document: Value, place: &str) -> Result<Pushed, ApiError> {
    let within = |invalid: Invalid| if place.is_empty() { invalid } else { invalid.within(place) };
    let Value::Object(mut attributes) = document else {
        let invalid = Invalid::new("", "it is no object", "send a CloudEvent in structured mode");
        return Err(within(invalid).into());
    };
    check_attributes(&attributes).map_err(within)?;
    let kind = kind(&attributes).map_err(within)?;
    let data = data(&mut attributes).map_err(within)?;
    let data_place = if place.is_empty() { "data".to_owned() } else { format!("{place}.data") };
    let data: Data = body::read_value(data, &data_place)?;
    let asset = data.asset().map_err(within)?;
    let (id, source) = (required(&attributes, "id", MAX_ID_BYTES), required(&attributes, "source", MAX_TEXT_BYTES));
    Ok(Pushed {
        id: id.map_err(within)?,
        source: source.map_err(within)?,
        kind,
        asset,
        time: time(&attributes).map_err(within)?,
        facts: data.facts().map_err(within)?,
    })
}

fn check_attributes(attributes: &Map<String, Value>) -> Result<(), Invalid> {
    if attributes.get("specversion").and_then(Value::as_str) != Some("1.0") {
        return Err(Invalid::new("specversion", "it is not 1.0", "send a CloudEvent of version \"1.0\""));
    }
    required(attributes, "id", MAX_ID_BYTES)?;
    required(attributes, "source", MAX_TEXT_BYTES)?;
    optional(attributes, "subject")?;
    optional(attributes, "dataschema")?;
    time(attributes)?;
    if let Some(content_type) = optional(attributes, "datacontenttype")?
        && !is_json(content_type)
    {
        return Err(Invalid::new("datacontenttype", "data is read as JSON only", "use application/json"));
    }
    let extensions = attributes.iter().filter(|(name, _)| !ATTRIBUTES.contains(&name.as_str()));
    let mut count = 0;
    for (name, value) in extensions {
        check_extension(name, value)?;
        count += 1;
    }
    if count > MAX_EXTENSIONS {
        let hint = format!("use at most {MAX_EXTENSIONS}");
        return Err(Invalid::new("", format!("it has {count} extension attributes"), hint));
    }
    Ok(())
}

fn time(attributes: &Map<String, Value>) -> Result<Option<Timestamp>, Invalid> {
    let parsed = optional(attributes, "time")?.map(str::parse::<Timestamp>).transpose();
    parsed.map_err(|_| Invalid::new("time", "it is no time", "write it by RFC 3339, as in 2026-01-15T10:04:12.345Z"))
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}

/// Extensions are let through and not kept.
fn check_extension(name: &str, value: &Value) -> Result<(), Invalid> {
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if !is_name {
        return Err(Invalid::new(
            name,
            "it is no attribute of CloudEvents 1.0 and no name of an extension",
            "name extensions with lower-case letters and digits, and put what the event says into `data`",
        ));
    }
    let is_simple = match value {
        Value::String(text) => text.len() <= MAX_TEXT_BYTES,
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    };
    if is_simple {
        return Ok(());
    }
    Err(Invalid::new(name, "an extension holds one short value", "put what the event says into `data`"))
}

fn required(attributes: &Map<String, Value>, name: &str, most: usize) -> Result<String, Invalid> {
    let text = attributes.get(name).and_then(Value::as_str).filter(|text| !text.is_empty() && text.len() <= most);
    let hint = format!("give a text of 1 to {most} bytes");
    text.map(str::to_owned).ok_or_else(|| Invalid::new(name, "it is missing, empty, too long or no text", hint))
}

fn optional<'a>(attributes: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Invalid> {
    match attributes.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= MAX_TEXT_BYTES => Ok(Some(text)),
        Some(_) => {
            let hint = format!("give a text of at most {MAX_TEXT_BYTES} bytes, or leave it out");
            Err(Invalid::new(name, "it is too long or no text", hint))
        }
    }
}

fn kind(attributes: &Map<String, Value>) -> Result<EventKind, Invalid> {
    let text = attributes.get("type").and_then(Value::as_str).unwrap_or_default();
    EventKind::ALL.into_iter().find(|kind| type_of(*kind) == text).ok_or_else(|| {
        let problem = if text.is_empty() {
            "it is missing or no text".to_owned()
        } else {
            let shown: String = text.chars().take(100).collect();
            format!("`{shown}` is no type of Lakebell")
        };
        let types: Vec<String> = PUSHABLE.into_iter().map(type_of).collect();
        Invalid::new("type", problem, format!("use one of {}", types.join(", ")))
    })
}

fn data(attributes: &mut Map<String, Value>) -> Result<Value, Invalid> {
    match (attributes.remove("data"), attributes.remove("data_base64")) {
        (Some(data), None) => Ok(data),
        (None, Some(Value::String(text))) => {
            let bytes = STANDARD.decode(text).ok();
            bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(|| {
                Invalid::new("data_base64", "it is no base64 of a JSON document", "send the JSON itself as `data`")
            })
        }
        (None, Some(_)) => Err(Invalid::new("data_base64", "it is no text", "send the JSON itself as `data`")),
        (Some(_), Some(_)) => Err(Invalid::new("data_base64", "it stands beside `data`", "give one of them")),
        (None, None) => {
            Err(Invalid::new("data", "it is missing", "give {\"asset\": \"paimon://db/table\"} or {\"location\": ...}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use lakebell_engine::push::Named;

    use super::*;

    fn event(change: impl FnOnce(&mut Map<String, Value>)) -> Result<Pushed, ApiError> {
        let mut event = json!({
            "specversion": "1.0", "id": "1", "source": "flink://prod/orders",
            "type": "io.lakebell.snapshot.committed.v1", "time": "2026-01-15T10:04:12.345Z",
            "datacontenttype": "application/json", "partitionkey": "x", "sequence": 7,
            "data": {"asset": "paimon://ods/orders", "snapshotId": 7},
        });
        change(event.as_object_mut().unwrap());
        parse(event, "")
    }

    fn put(name: &str, value: Value) -> Option<String> {
        event(|event| drop(event.insert(name.to_owned(), value))).err().map(|error| error.field().unwrap().to_owned())
    }

    #[test]
    fn a_full_event_is_read() {
        let pushed = event(|_| ()).unwrap();
        assert_eq!((pushed.id.as_str(), pushed.source.as_str()), ("1", "flink://prod/orders"));
        assert_eq!((pushed.kind, pushed.facts.snapshot_id.as_deref()), (EventKind::SnapshotCommitted, Some("7")));
        assert_eq!(pushed.asset, Named::Key("paimon://ods/orders".parse().unwrap()));
        let encoded = event(|event| {
            event.remove("data");
            event.insert("data_base64".into(), json!(STANDARD.encode(r#"{"location":"s3://lake/ods.db/orders"}"#)));
        });
        assert_eq!(encoded.unwrap().asset, Named::Location("s3://lake/ods.db/orders".parse().unwrap()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let long = "x".repeat(2_000);
        let table = [
            ("specversion", json!("0.3"), "specversion"),
            ("id", json!(""), "id"),
            ("id", json!(long), "id"),
            ("source", json!(5), "source"),
            ("type", json!("io.lake-events.snapshot.committed.v1"), "type"),
            ("type", json!(null), "type"),
            ("time", json!("15/01/2026"), "time"),
            ("datacontenttype", json!("application/xml"), "datacontenttype"),
            ("subject", json!({}), "subject"),
            ("tabular-id", json!("x"), "tabular-id"),
            ("Extra", json!("x"), "Extra"),
            ("extra", json!({}), "extra"),
            ("extra", json!(long), "extra"),
            ("data_base64", json!("e30="), "data_base64"),
            ("data", json!(null), "data"),
            ("data", json!({}), "data.asset"),
            ("data", json!({"asset": "orders"}), "data.asset"),
            ("data", json!({"asset": "paimon://a/b", "location": "s3://lake/x"}), "data.location"),
            ("data", json!({"asset": "paimon://a/b", "offset": 5}), "data.offset"),
            ("data", json!({"asset": "paimon://a/b", "watermark": "yesterday"}), "data.watermark"),
            ("data", json!({"asset": "paimon://a/b", "watermark": 1.5}), "data.watermark"),
            ("data", json!({"asset": "paimon://a/b", "severity": "fatal"}), "data.severity"),
            ("data", json!({"asset": "paimon://a/b", "runAt": "noon"}), "data.runAt"),
            ("data", json!({"asset": "paimon://a/b", "schemaId": "one"}), "data.schemaId"),
            ("data", json!({"asset": "paimon://a/b", "extra": [1]}), "data.extra"),
            ("data", json!({"asset": "paimon://a/b", "tag": ""}), "data.tag"),
            ("data", json!({"asset": "paimon://a/b", "snapshotId": long}), "data.snapshotId"),
        ];
        for (name, value, field) in table {
            assert_eq!(put(name, value.clone()).as_deref(), Some(field), "{name}: {value}");
        }
        assert_eq!(put("datacontenttype", json!("application/vnd.x+json; charset=utf-8")), None);
    }

    #[test]
    fn places_stand_before_fields() {
        let at = |document: Value| parse(document, "[3]").unwrap_err().field().map(str::to_owned);
        assert_eq!(at(json!(5)).as_deref(), Some("[3]"));
        assert_eq!(at(json!({})).as_deref(), Some("[3].specversion"));
        let inner = json!({"specversion": "1.0", "id": "1", "source": "s", "type": type_of(EventKind::TagCreated),
            "data": {"asset": 1}});
        assert_eq!(at(inner).as_deref(), Some("[3].data.asset"));
    }
}
