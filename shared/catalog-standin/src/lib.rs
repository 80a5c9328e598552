//! A stand-in for catalogs of Iceberg tables, for tests. It is no catalog: it answers where a table's
//! metadata file is, as a test tells it, and in the ways that real ones fail.
//!
//! It follows Iceberg's REST protocol (`/v1/config`, `/v1/oauth/tokens`, `LoadTable`), the `GetTable`
//! of AWS Glue, and `GetSecretValue` of Secrets Manager, so that one address is all that the adapters
//! of a test need. What passes against it still has to be tried against a real catalog.

mod aws;
mod rest;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What happens to one request about a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is answered with this status and nothing else.
    Status(u16),
    /// It is answered with this text, as a success.
    Body(String),
    /// The answer comes after this time.
    Slow(Duration),
    /// The answer's metadata is so many bytes larger than the table's, and comes before the place of
    /// the file.
    Huge(usize),
}

/// What the catalog holds.
#[derive(Debug, Default)]
struct World {
    /// By namespace, its levels separated by dots, and name.
    tables: BTreeMap<(String, String), String>,
    /// What stands before `namespaces` in paths.
    prefix: String,
    /// Id and secret of the client that tokens are given to; anybody may ask without.
    client: Option<(String, String)>,
    /// How long a token is good for, as the answer says.
    expires_in: Option<u64>,
    /// The only token that is taken, besides those that were given.
    bearer: Option<String>,
    given: u32,
    /// Tokens up to this one have expired.
    expired: u32,
    secrets: BTreeMap<String, String>,
    faults: VecDeque<Fault>,
    requests: Vec<String>,
}

/// State that the routes share.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<World>>);

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stand-in that runs. Dropping it stops it.
pub struct CatalogStandin {
    address: SocketAddr,
    shared: Shared,
    serving: JoinHandle<()>,
}

impl CatalogStandin {
    /// Starts one on a free port of 127.0.0.1, which everybody may ask.
    ///
    /// Errors: the system's, where no port can be had.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Shared::default();
        let router = Router::new()
            .merge(rest::routes())
            .merge(aws::routes())
            .layer(middleware::from_fn_with_state(shared.clone(), log))
            .with_state(shared.clone());
        let serving = tokio::spawn(async move {
            // It ends with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, serving })
    }

    /// Its address: the base URL of the REST catalog, and the endpoint of AWS.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Moves the pointer of a table; dots separate the levels of a namespace.
    pub fn point(&self, namespace: &str, table: &str, metadata_file: &str) {
        let name = (namespace.to_owned(), table.to_owned());
        self.shared.world().tables.insert(name, metadata_file.to_owned());
    }

    /// Paths have this before `namespaces`, as `/v1/config` says.
    pub fn set_prefix(&self, prefix: &str) {
        prefix.clone_into(&mut self.shared.world().prefix);
    }

    /// From now on only a token that this client was given is taken; it is said to be good for so many
    /// seconds, where that is said.
    pub fn require_client(&self, id: &str, secret: &str, expires_in: Option<u64>) {
        let mut world = self.shared.world();
        world.client = Some((id.to_owned(), secret.to_owned()));
        world.expires_in = expires_in;
    }

    /// From now on only this token is taken.
    pub fn require_bearer(&self, token: &str) {
        self.shared.world().bearer = Some(token.to_owned());
    }

    /// Every token that was given so far is refused from now on.
    pub fn expire_tokens(&self) {
        let mut world = self.shared.world();
        world.expired = world.given;
    }

    /// Keeps a secret of Secrets Manager.
    pub fn secret(&self, name: &str, text: &str) {
        self.shared.world().secrets.insert(name.to_owned(), text.to_owned());
    }

    /// The next request about a table goes wrong; several go wrong in their order.
    pub fn fault(&self, fault: Fault) {
        self.shared.world().faults.push_back(fault);
    }

    /// Ends every fault.
    pub fn heal(&self) {
        self.shared.world().faults.clear();
    }

    /// The requests since the last time: method and path with query, `POST /#GetTable` for AWS.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.world().requests)
    }
}

impl Drop for CatalogStandin {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn log(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let target = request.headers().get("x-amz-target").and_then(|value| value.to_str().ok());
    let operation = target.and_then(|target| target.rsplit('.').next()).map(|name| format!("#{name}"));
    let line = format!("{} {}{}", request.method(), request.uri(), operation.unwrap_or_default());
    shared.world().requests.push(line);
    next.run(request).await
}

/// The next fault, and what it makes of the answer. A slow one is waited out here.
async fn fault(shared: &Shared) -> Result<usize, Response> {
    let fault = shared.world().faults.pop_front();
    match fault {
        None => Ok(0),
        Some(Fault::Huge(bytes)) => Ok(bytes),
        Some(Fault::Slow(time)) => {
            tokio::time::sleep(time).await;
            Ok(0)
        }
        Some(Fault::Status(status)) => {
            Err(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response())
        }
        Some(Fault::Body(body)) => Err(body.into_response()),
    }
}
