//! The `OpenAPI` document, made of the routing table, the error codes and the types that bodies are
//! read into. It is kept as `schema/openapi.json`, which the function serves.
//!
//! `LAKEBELL_GOLDEN=rewrite cargo test -p lakebell-push-api openapi` writes it anew.

mod events;
mod parts;
mod shapes;

use std::collections::BTreeMap;

use lakebell_engine::ErrorKind;
use lakebell_push_api::Code;
use lakebell_push_api::routes::{Needs, ROUTES, Route};
use serde_json::{Map, Value, json};

use self::shapes::{Shape, shape};
use crate::support::{Api, workspace};

/// The codes of answers, by status: those that a route may answer with.
fn codes(is_write: bool) -> BTreeMap<u16, Vec<&'static str>> {
    let all = ErrorKind::ALL.into_iter().map(Code::Engine).chain(Code::OWN);
    let mut codes: BTreeMap<u16, Vec<&'static str>> = BTreeMap::new();
    for code in all {
        // The first stands in an event's own answer, the second belongs to paths, not to routes.
        if matches!(code, Code::UnknownAsset | Code::MethodNotAllowed) {
            continue;
        }
        let is_of_writes = matches!(code.status(), 409 | 413 | 415 | 422);
        if is_write || !is_of_writes {
            codes.entry(code.status()).or_default().push(code.as_str());
        }
    }
    codes
}

fn problem(status: u16, codes: &[&str]) -> Value {
    let pages: Vec<String> =
        codes.iter().map(|code| format!("[`{code}`](https://lakebell.dev/errors/{code})")).collect();
    let schema = json!({
        "allOf": [
            {"$ref": "#/components/schemas/Problem"},
            {"properties": {"status": {"const": status}, "code": {"enum": codes}}},
        ]
    });
    json!({"description": pages.join(", "), "content": {"application/problem+json": {"schema": schema}}})
}

fn response_name(is_write: bool, status: u16) -> String {
    format!("{}{status}", if is_write { "Write" } else { "Read" })
}

/// Every answer that is an error, of routes that read and of those that write.
fn problems() -> Value {
    let of = |is_write| {
        codes(is_write)
            .into_iter()
            .map(move |(status, codes)| (response_name(is_write, status), problem(status, &codes)))
    };
    Value::Object(of(false).chain(of(true)).collect())
}

/// The body of a golden file of the answers.
fn example(name: &str) -> Value {
    let file = workspace().join("functions/push-api/golden").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str::<Value>(&text).unwrap()["body"].take()
}

fn answers(route: &Route, shape: &Shape) -> Value {
    let mut answers = Map::new();
    for status in route.statuses {
        let answer = match (shape.answers.iter().find(|(known, _)| known == status), status) {
            (_, 204) => json!({"description": "Done"}),
            (Some((_, schema)), _) => {
                let mut content = json!({"schema": schema});
                if let Some(name) = shape.example.filter(|_| *status == route.statuses[0]) {
                    content["example"] = example(name);
                }
                json!({"description": "Done", "content": {"application/json": content}})
            }
            (None, _) => panic!("{} {} has no schema for its answer {status}", route.method, route.template),
        };
        answers.insert(status.to_string(), answer);
    }
    let is_write = route.method != "GET";
    for status in codes(is_write).into_keys() {
        let name = response_name(is_write, status);
        answers.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{name}")}));
    }
    Value::Object(answers)
}

/// `AssetState` for the operation `ReadAssetState` and so on: each route has its own id.
fn operation_id(route: &Route) -> String {
    let name = route.operation.name();
    let has_two = ROUTES.iter().filter(|other| other.operation == route.operation).count() > 1;
    if has_two && !route.is_of_project() { format!("{name}OfDeployment") } else { name }
}

fn security(route: &Route) -> Value {
    let right = match route.needs {
        Needs::PathToken(_) => return json!([]),
        Needs::AnyToken => vec![],
        Needs::Right(right) | Needs::Writer(right) => vec![right.as_str()],
    };
    json!([{"bearer": right}, {"apiKey": right}])
}

fn operation(route: &Route, schemas: &mut parts::Schemas) -> Value {
    let shape = shape(route.operation, schemas);
    let in_path = route.template.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path.map(parts::in_path).collect();
    parameters.extend(route.query.iter().map(|name| parts::in_query(name)));
    if route.is_write() {
        parameters.push(json!({"$ref": "#/components/parameters/IdempotencyKey"}));
    }
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": parameters,
        "responses": answers(route, &shape),
        "security": security(route),
    });
    if let Some(body) = shape.body {
        let sample = shapes::sample(route.operation);
        let described = |media: &&str| {
            let mut described = json!({"schema": body});
            // A batch is no structured event.
            if let Some(sample) = sample.as_ref().filter(|_| *media != "application/cloudevents+json") {
                described["example"] = sample.clone();
            }
            ((*media).to_owned(), described)
        };
        let media: Map<String, Value> = shape.media.iter().map(described).collect();
        operation["requestBody"] = json!({"required": shape.needs_body, "content": media});
    }
    operation
}

fn made() -> Value {
    let mut schemas = parts::Schemas::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES {
        let operation = operation(route, &mut schemas);
        paths.entry(route.template).or_default().insert(route.method.to_lowercase(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lakebell",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Starts DolphinScheduler workflows when lakehouse tables have new data.",
            "description": "Rights are named in the security of each operation. docs/api.md tells the rest.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A token: lakebell_<id>_<secret>"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "The same, bare"},
            },
            "parameters": {"IdempotencyKey": parts::idempotency_key()},
            "responses": problems(),
            "schemas": schemas.finish(),
        },
    })
}

fn text(document: &Value) -> String {
    format!("{document:#}\n")
}

#[test]
fn openapi_is_the_code_s() {
    let path = workspace().join("schema/openapi.json");
    let made = text(&made());
    if std::env::var("LAKEBELL_GOLDEN").as_deref() == Ok("rewrite") {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(made == kept, "{} differs; LAKEBELL_GOLDEN=rewrite writes it anew", path.display());
}

/// The schema of events by itself, with the samples that it must take and what it must not.
#[test]
fn the_schema_of_events_is_published() {
    let path = workspace().join("schema/events.schema.json");
    let published = events::published();
    let made = text(&published);
    if std::env::var("LAKEBELL_GOLDEN").as_deref() == Ok("rewrite") {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(made == kept, "{} differs; LAKEBELL_GOLDEN=rewrite writes it anew", path.display());
    let fits = |event: &Value| validate(&json!({}), &published, event);
    for sample in ["push-batch", "push-event", "push-evidence-batch", "push-verdict"] {
        let file = workspace().join("events/push-api").join(format!("{sample}.json"));
        let request: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let body = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
        fits(&body).unwrap_or_else(|error| panic!("{sample}: {error}"));
    }
    let event = |kind: &str, data: Value| json!({"specversion": "1.0", "id": "1", "source": "s", "type": format!("io.lakebell.{kind}.v1"), "data": data});
    let wrong = [
        event("snapshot.committed", json!({})),
        event("partition.done", json!({"asset": "paimon://a/b"})),
        event("quality.check.passed", json!({"asset": "paimon://a/b", "check": "c", "chekc": "d"})),
        event("table.truncated", json!({"asset": "paimon://a/b"})),
    ];
    for event in wrong {
        assert!(fits(&event).is_err(), "{event}");
    }
}

#[tokio::test]
async fn openapi_is_served() {
    let answer = Api::new().get("/openapi.json").await;
    let kept = std::fs::read_to_string(workspace().join("schema/openapi.json")).unwrap();
    assert_eq!((answer.status_code, answer.headers["content-type"].as_str()), (200, "application/json"));
    assert!(answer.body == kept || std::env::var_os("LAKEBELL_GOLDEN").is_some());
}

#[test]
fn openapi_has_every_route_code_and_parameter() {
    let document = made();
    let shown = text(&document);
    for route in ROUTES {
        let operation = &document["paths"][route.template][route.method.to_lowercase()];
        assert!(operation["operationId"].is_string(), "{} {}", route.method, route.template);
    }
    for code in ErrorKind::ALL.into_iter().map(Code::Engine).chain(Code::OWN) {
        assert!(shown.contains(&format!("\"{}\"", code.as_str())), "{}", code.as_str());
    }
    let mut ids: Vec<&str> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|methods| methods.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), count), (ROUTES.len(), ROUTES.len()));
}

/// The real answers that other tests keep are what the document says.
#[test]
fn openapi_describes_the_answers_that_are_given() {
    let document = made();
    let mut schemas = parts::Schemas::new();
    let mut checked = 0;
    for route in ROUTES {
        let shape = shape(route.operation, &mut schemas);
        for name in shape.example.iter().chain(shape.more_examples) {
            let file = workspace().join("functions/push-api/golden").join(format!("{name}.json"));
            let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
            let status = u16::try_from(kept["status"].as_u64().unwrap()).unwrap();
            let (_, schema) =
                shape.answers.iter().find(|(known, _)| *known == status).unwrap_or_else(|| panic!("{name}: {status}"));
            validate(&document, schema, &kept["body"]).unwrap_or_else(|error| panic!("{name}: {error}"));
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked}");
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for (media, body) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
                if body.get("example").is_some() {
                    validate(&document, &body["schema"], &body["example"])
                        .unwrap_or_else(|error| panic!("{method} {path} {media}: {error}"));
                }
            }
        }
    }
    let errors = std::fs::read_dir(workspace().join("functions/push-api/golden")).unwrap();
    for entry in errors {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("error-")) {
            let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let schema = json!({"$ref": "#/components/schemas/Problem"});
            if kept["status"].as_u64() > Some(399) {
                validate(&document, &schema, &kept["body"])
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            }
        }
    }
}

/// Says what a value has that the schema does not allow.
fn validate(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    const ID: &str = "https://lakebell.dev/check.json";
    let mut root = schema.clone();
    if document["components"].is_object() {
        root["components"] = document["components"].clone();
    }
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource(ID, root).map_err(|error| error.to_string())?;
    let index = compiler.compile(ID, &mut schemas).map_err(|error| format!("{error:#}"))?;
    schemas.validate(value, index).map_err(|error| format!("{error:#}"))
}
