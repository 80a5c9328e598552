//! A stub of the API: keeps what is declared in memory, evaluates nothing, and notes every call.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::support::{Run, lakebell_in, root};

/// The token that the stub takes.
const TOKEN: &str = "stub-token";
/// The project that its callers name.
pub(crate) const PROJECT: &str = "7";

/// What the stub holds.
#[derive(Default)]
struct World {
    /// Lists by their path, and in each the items by their name.
    lists: BTreeMap<String, BTreeMap<String, Value>>,
    /// Answers that stand whatever was declared, by method and path.
    fixed: BTreeMap<String, (u16, Value)>,
    calls: Vec<String>,
}

/// A running stub.
#[derive(Clone)]
pub(crate) struct Stub {
    pub(crate) url: String,
    world: Arc<Mutex<World>>,
}

impl Stub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let world = Arc::new(Mutex::new(World::default()));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&world));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        Self { url, world }
    }

    /// Fixes the answer to a method and path, as in `GET /connections`.
    pub(crate) fn fix(&self, call: &str, status: u16, body: Value) {
        self.world.lock().unwrap().fixed.insert(call.to_owned(), (status, body));
    }

    /// The calls since the last time, with their query and body.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.world.lock().unwrap().calls)
    }

    /// Those that may change something.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.calls().into_iter().filter(|call| !call.starts_with("GET")).collect()
    }

    /// Runs the binary against the stub.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let environment =
            [("LAKEBELL_API_URL", self.url.as_str()), ("LAKEBELL_API_TOKEN", TOKEN), ("LAKEBELL_PROJECT", PROJECT)];
        lakebell_in(root(), arguments, &environment)
    }
}

async fn answer(
    State(world): State<Arc<Mutex<World>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut world = world.lock().unwrap();
    let path = uri.path().strip_prefix("/v1").unwrap_or_default().to_owned();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut call = format!("{method} {path}");
    if let Some(query) = uri.query().filter(|query| *query != "limit=200") {
        call = format!("{call}?{query}");
    }
    if !body.is_null() {
        call = format!("{call} {body}");
    }
    world.calls.push(call);
    if headers.get(header::AUTHORIZATION).is_none_or(|value| value != format!("Bearer {TOKEN}").as_str()) {
        return reply(401, &json!({ "title": "Denied", "code": "DENIED", "detail": "the token is not valid" }));
    }
    let by_query = format!("{method} {path}?{}", uri.query().unwrap_or_default());
    for key in [by_query, format!("{method} {path}")] {
        if let Some((status, body)) = world.fixed.get(&key) {
            return reply(*status, body);
        }
    }
    world.change_or_list(&method, &path, &body)
}

impl World {
    fn change_or_list(&mut self, method: &Method, path: &str, body: &Value) -> Response {
        let (list, name) = match (method.as_str(), path.rsplit_once('/')) {
            ("PUT" | "DELETE", Some((list, name))) if !list.is_empty() => (list, decoded(name)),
            _ => (path, String::new()),
        };
        let items = self.lists.entry(list.to_owned()).or_default();
        match (method.as_str(), list.rsplit('/').next().unwrap_or_default()) {
            ("GET", _) => {
                let items: Vec<&Value> = items.values().collect();
                reply(200, &json!({ "items": items, "next": null }))
            }
            ("DELETE", _) => {
                items.remove(&name);
                StatusCode::NO_CONTENT.into_response()
            }
            ("PUT", "connections") => {
                let mut item = body.clone();
                item["name"] = name.as_str().into();
                items.insert(name, item);
                reply(200, &json!({}))
            }
            ("PUT", "warehouses") => {
                items.insert(body["location"].to_string(), body.clone());
                reply(200, &json!({ "registered": ["paimon://ods_db/found"], "known": 0, "refused": [] }))
            }
            ("POST", "assets") => {
                let key = body["key"].as_str().unwrap().to_owned();
                let item = json!({ "id": "0".repeat(32), "key": key, "project": 7, "location": body["location"] });
                items.insert(key, item.clone());
                reply(201, &item)
            }
            ("POST", "asset-dependencies") => {
                let of_records =
                    || format!("workflow-{}-task-{}", body["workflowDefinitionCode"], body["taskDefinitionCode"]);
                let name = body["name"].as_str().map_or_else(of_records, str::to_owned);
                let evaluation = json!({ "target": format!("7/{name}"), "verdict": "WAITING", "groups": [] });
                items.insert(name, json!({ "definition": body, "rule": "", "evaluation": evaluation }));
                reply(201, &json!({ "changed": true, "evaluation": evaluation }))
            }
            _ => {
                reply(404, &json!({ "title": "Not found", "code": "NOT_FOUND", "detail": format!("no route {path}") }))
            }
        }
    }
}

fn decoded(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment).decode_utf8().unwrap().into_owned()
}

fn reply(status: u16, body: &Value) -> Response {
    let kind = if status < 400 { "application/json" } else { "application/problem+json" };
    (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}
