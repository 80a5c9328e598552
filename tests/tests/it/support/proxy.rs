//! A **stand-in for a network and for services that fail**. It hands requests on to what lies behind it and breaks some
//! of them, by chance or as planned: before they have an effect, or after it, when only the answer is lost.
//!
//! It knows DynamoDB and SQS by their `X-Amz-Target`; everything else is DolphinScheduler.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use lakebell_testkit::SeededRandom;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

/// Larger than anything that Lakebell sends.
const MOST_BYTES: usize = 8 << 20;
/// How long an answer is held that nobody takes away.
const HELD: Duration = Duration::from_secs(30);

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Refused because there are too many.
    Throttle,
    /// An internal error, without effect.
    ErrorBefore,
    /// The connection is closed, without effect.
    ResetBefore,
    /// It takes a while.
    Delay,
    /// It takes effect, and the connection is closed instead of an answer.
    DropAnswer,
    /// It takes effect, and an internal error is answered.
    ErrorAfter,
    /// `BatchGetItem` alone: nothing is processed, and the answer says so.
    Unprocessed,
    /// `TransactWriteItems` alone: another transaction is under way.
    Conflict,
}

impl Fault {
    const ANY: [Self; 6] =
        [Self::Throttle, Self::ErrorBefore, Self::ResetBefore, Self::Delay, Self::DropAnswer, Self::ErrorAfter];

    /// One that an operation can have.
    fn draw(random: &SeededRandom, operation: &str) -> Self {
        let own = match operation {
            "DynamoDB.BatchGetItem" => Some(Self::Unprocessed),
            "DynamoDB.TransactWriteItems" => Some(Self::Conflict),
            _ => None,
        };
        let kinds: Vec<Self> = Self::ANY.into_iter().chain(own).collect();
        kinds[usize::try_from(random.below(kinds.len() as u64)).unwrap()]
    }
}

/// What is planned for a request.
enum Plan {
    /// It takes effect; its answer is held, and the sender told so.
    Hold(oneshot::Sender<()>),
    /// It waits until so many of its kind are there, or a moment has passed.
    Meet(usize, Arc<Semaphore>),
}

struct State {
    random: SeededRandom,
    /// Requests of a thousand that fail.
    per_mille: u64,
    plans: Vec<(String, Plan)>,
    met: BTreeMap<String, usize>,
    counts: BTreeMap<(String, Option<Fault>), u64>,
}

/// A running proxy. It ends with the test.
pub(crate) struct Proxy {
    state: Arc<Mutex<State>>,
    url: String,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    /// A proxy before `upstream` that breaks nothing yet.
    pub(crate) async fn start(upstream: &str, seed: u64) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            random: SeededRandom::new(seed),
            per_mille: 0,
            plans: Vec::new(),
            met: BTreeMap::new(),
            counts: BTreeMap::new(),
        }));
        let http = reqwest::Client::builder().timeout(Duration::from_mins(1)).build().unwrap();
        let through = Arc::new(Through { state: Arc::clone(&state), http, upstream: upstream.to_owned() });
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let through = Arc::clone(&through);
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let through = Arc::clone(&through);
                        async move { through.answer(request).await }
                    });
                    // A closed connection is what some faults are.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { state, url, task }
    }

    /// Its base URL, without a slash at the end.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// From now on so many requests of a thousand fail, in any way that they can.
    pub(crate) fn breaks(&self, per_mille: u64) {
        self.state.lock().unwrap().per_mille = per_mille;
    }

    /// Holds the answer of the next request whose operation contains this text, after it took effect; done once it did.
    pub(crate) fn hold(&self, operation: &str) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.state.lock().unwrap().plans.push((operation.to_owned(), Plan::Hold(sender)));
        receiver
    }

    /// Has the next requests with this operation wait for each other, so that all of them are on their way at once.
    pub(crate) fn meet(&self, operation: &str, count: usize) {
        let gate = Arc::new(Semaphore::new(0));
        self.state.lock().unwrap().plans.push((operation.to_owned(), Plan::Meet(count, gate)));
    }

    /// Forgets what is planned.
    pub(crate) fn forget_plans(&self) {
        self.state.lock().unwrap().plans.clear();
    }

    /// How many requests of an operation met.
    pub(crate) fn met(&self, operation: &str) -> usize {
        self.state.lock().unwrap().met.get(operation).copied().unwrap_or(0)
    }

    /// Requests handed on and broken, for the report.
    pub(crate) fn report(&self) -> String {
        let state = self.state.lock().unwrap();
        let of = |fault: &Option<Fault>| fault.map_or_else(|| "fine".to_owned(), |fault| format!("{fault:?}"));
        let lines =
            state.counts.iter().map(|((operation, fault), count)| format!("{operation} {}: {count}", of(fault)));
        lines.collect::<Vec<_>>().join(", ")
    }

    /// How many requests were broken.
    pub(crate) fn broken(&self) -> u64 {
        self.state.lock().unwrap().counts.iter().filter(|((_, fault), _)| fault.is_some()).map(|(_, count)| count).sum()
    }
}

/// The connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed as planned")]
struct Closed;

/// A way through to what lies behind.
struct Through {
    state: Arc<Mutex<State>>,
    http: reqwest::Client,
    upstream: String,
}

impl Through {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Closed> {
        let (head, body) = request.into_parts();
        let body = to_bytes(Body::new(body), MOST_BYTES).await.map_err(|_| Closed)?;
        let operation = operation_of(&head);
        let (plan, fault, pause) = self.decide(&operation);
        match plan {
            Some(Plan::Hold(reached)) => {
                let answer = self.hand_on(&head, body).await;
                let _ = reached.send(());
                tokio::time::sleep(HELD).await;
                return answer;
            }
            Some(Plan::Meet(count, gate)) => {
                let _ = tokio::time::timeout(Duration::from_secs(3), gate.acquire_many(u32::try_from(count).unwrap()))
                    .await;
            }
            None => {}
        }
        let is_dynamodb = operation.starts_with("DynamoDB");
        let is_aws = is_dynamodb || operation.starts_with("SQS");
        let internal = || {
            let of_aws = json!({"__type": "InternalServerError", "message": "injected"});
            let of_scheduler = json!({"code": 10_000, "msg": "injected", "failed": true, "data": null});
            json_answer(500, if is_aws { &of_aws } else { &of_scheduler })
        };
        match fault {
            None => self.hand_on(&head, body).await,
            Some(Fault::Throttle) if is_dynamodb => {
                let kind = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
                Ok(json_answer(400, &json!({"__type": kind, "message": "injected"})))
            }
            Some(Fault::Throttle) if is_aws => {
                Ok(json_answer(400, &json!({"__type": "com.amazonaws.sqs#RequestThrottled", "message": "injected"})))
            }
            Some(Fault::Throttle) => Ok(json_answer(429, &json!({"msg": "injected"}))),
            Some(Fault::ErrorBefore) => Ok(internal()),
            Some(Fault::ResetBefore) => Err(Closed),
            Some(Fault::Delay) => {
                tokio::time::sleep(pause).await;
                self.hand_on(&head, body).await
            }
            Some(Fault::DropAnswer) => self.hand_on(&head, body).await.and(Err(Closed)),
            Some(Fault::ErrorAfter) => self.hand_on(&head, body).await.map(|_| internal()),
            Some(Fault::Unprocessed) => {
                let asked: Value = serde_json::from_slice(&body).unwrap();
                Ok(json_answer(200, &json!({"Responses": {}, "UnprocessedKeys": asked["RequestItems"]})))
            }
            Some(Fault::Conflict) => {
                let asked: Value = serde_json::from_slice(&body).unwrap();
                let actions = asked["TransactItems"].as_array().map_or(1, Vec::len);
                let mut reasons = vec![json!({"Code": "None"}); actions];
                reasons[0] = json!({"Code": "TransactionConflict", "Message": "injected"});
                let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
                Ok(json_answer(400, &json!({"__type": kind, "message": "injected", "CancellationReasons": reasons})))
            }
        }
    }

    fn decide(&self, operation: &str) -> (Option<Plan>, Option<Fault>, Duration) {
        let mut state = self.state.lock().unwrap();
        let planned = state.plans.iter().position(|(wanted, _)| operation.contains(wanted.as_str()));
        let plan = planned.and_then(|at| match &state.plans[at].1 {
            Plan::Hold(_) => Some(state.plans.remove(at).1),
            Plan::Meet(count, gate) => {
                let (name, count, gate) = (state.plans[at].0.clone(), *count, Arc::clone(gate));
                let met = state.met.entry(name).or_default();
                *met += 1;
                if *met == count {
                    gate.add_permits(count * count);
                }
                // Who comes later waits for nobody.
                (*met <= count).then_some(Plan::Meet(count, gate))
            }
        });
        let is_broken = state.per_mille > 0 && state.random.below(1_000) < state.per_mille;
        let fault = is_broken.then(|| Fault::draw(&state.random, operation));
        let pause = Duration::from_millis(20 + state.random.below(1_500));
        *state.counts.entry((operation.to_owned(), fault)).or_default() += 1;
        (plan, fault, pause)
    }

    async fn hand_on(&self, head: &Parts, body: Bytes) -> Result<Response<Body>, Closed> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = self.http.request(head.method.clone(), format!("{}{path}", self.upstream)).body(body);
        let own = [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];
        for (name, value) in head.headers.iter().filter(|(name, _)| !own.contains(name)) {
            request = request.header(name, value);
        }
        let answer = request.send().await.map_err(|_| Closed)?;
        let mut response = Response::builder().status(answer.status());
        for (name, value) in answer.headers().iter().filter(|(name, _)| !own.contains(name)) {
            response = response.header(name, value);
        }
        let bytes = answer.bytes().await.map_err(|_| Closed)?;
        response.body(Body::from(bytes)).map_err(|_| Closed)
    }
}

/// `DynamoDB.Query`, `SQS.SendMessage`, or the last segment of a path.
fn operation_of(head: &Parts) -> String {
    let target = head.headers.get("x-amz-target").and_then(|value| value.to_str().ok());
    match target.and_then(|target| target.split_once('.')) {
        Some((service, operation)) if service.starts_with("DynamoDB") => format!("DynamoDB.{operation}"),
        Some((_, operation)) => format!("SQS.{operation}"),
        None => format!("scheduler {} {}", head.method, head.uri.path().rsplit('/').next().unwrap_or_default()),
    }
}

fn json_answer(status: u16, body: &Value) -> Response<Body> {
    let response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    response.header(CONTENT_TYPE, "application/x-amz-json-1.0").body(Body::from(body.to_string())).unwrap()
}
