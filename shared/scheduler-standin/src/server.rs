//! Starting and stopping the stand-in.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::api::{self, DropConnection};
use crate::shared::{App, Shared};
use crate::world::{Settings, World};
use crate::{Fault, Profile};

/// How to start a stand-in.
#[derive(Debug, Clone)]
pub struct Config {
    /// The release to stand in for.
    pub profile: Profile,
    /// The value of the `token` header that calls must carry.
    pub token: String,
    /// The TCP port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// Where the state is kept over restarts, as JSON; none: in memory only.
    pub state_file: Option<PathBuf>,
    /// Delays and the number of masters.
    pub settings: Settings,
}

impl Config {
    /// In memory, on a free port, with everything happening at once.
    pub fn new(profile: Profile, token: &str) -> Self {
        Self { profile, token: token.to_owned(), port: 0, state_file: None, settings: Settings::default() }
    }
}

/// Why the stand-in did not start.
#[derive(Debug, thiserror::Error)]
pub enum StandinError {
    /// The port is taken or may not be used.
    #[error("cannot listen on 127.0.0.1:{port}")]
    Listen {
        /// The port.
        port: u16,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The state file is there and cannot be read.
    #[error("cannot read the state file {file}: move it away to begin anew")]
    StateFile {
        /// Its path.
        file: PathBuf,
        /// What is wrong with it.
        #[source]
        source: std::io::Error,
    },
}

/// Starts stand-ins for DolphinScheduler. It is not DolphinScheduler.
#[derive(Debug)]
pub struct Standin;

impl Standin {
    /// Starts one inside this process.
    pub async fn start(config: Config) -> Result<Running, StandinError> {
        let world = load(&config)?;
        let app = Shared::new(world, config.token);
        app.resume();
        if let Some(file) = config.state_file {
            app.keep_file(file);
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, config.port));
        let listener =
            TcpListener::bind(address).await.map_err(|source| StandinError::Listen { port: config.port, source })?;
        let address = listener.local_addr().map_err(|source| StandinError::Listen { port: config.port, source })?;
        let router = api::router(&app, config.profile);
        let accepting = tokio::spawn(accept(listener, router, Arc::clone(&app)));
        Ok(Running { address, app, accepting })
    }
}

/// A stand-in that runs. Dropping it stops it.
pub struct Running {
    address: SocketAddr,
    app: App,
    accepting: JoinHandle<()>,
}

impl Running {
    /// The address that a connection of Lakebell is declared with, path included.
    pub fn base_url(&self) -> String {
        format!("http://{}/dolphinscheduler", self.address)
    }

    /// Where the control routes are.
    pub fn control_url(&self) -> String {
        format!("http://{}/_standin", self.address)
    }

    /// Looks at the state.
    pub fn look<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        self.app.read(look)
    }

    /// Changes the state directly, in tests.
    pub fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        self.app.change(change)
    }

    /// Declares a workflow without a command line and brings it online; its code.
    pub fn define(&self, project: i64, name: &str) -> i64 {
        self.app.change(|world| world.define(project, name))
    }

    /// Adds a fault.
    pub fn fault(&self, fault: Fault) {
        self.app.change(|world| world.faults.push(fault));
    }

    /// Lets masters consume every command that waits.
    pub fn consume_all(&self) {
        crate::control::consume_all(&self.app);
    }

    /// Waits until the state is as wanted; false when that took longer than `patience`.
    pub async fn wait_until(&self, patience: Duration, wanted: impl Fn(&World) -> bool) -> bool {
        let mut changes = self.app.watch();
        let waiting = async {
            while !self.app.read(&wanted) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(patience, waiting).await.is_ok()
    }

    /// Stops it: connections are closed, command lines are ended.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.accepting.abort();
        self.app.stop();
    }
}

fn load(config: &Config) -> Result<World, StandinError> {
    let fresh = || World::new(config.profile, config.settings.clone());
    let Some(file) = &config.state_file else { return Ok(fresh()) };
    let failed = |source| StandinError::StateFile { file: file.clone(), source };
    match std::fs::read(file) {
        Ok(bytes) => {
            let mut world: World = serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?;
            world.profile = config.profile;
            world.settings = config.settings.clone();
            Ok(world)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(fresh()),
        Err(error) => Err(failed(error)),
    }
}

async fn accept(listener: TcpListener, router: Router, app: App) {
    loop {
        // An accept that fails (too many open files) is tried again a little later.
        match listener.accept().await {
            Ok((stream, _)) => app.spawn(serve(stream, router.clone())),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Serves one connection. A service error makes hyper close it without an answer, which is how a
/// dropped connection is played.
async fn serve(stream: TcpStream, router: Router) {
    let service = TowerToHyperService::new(router);
    let dropping = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let answering = hyper::service::Service::call(&service, request);
        async move {
            let response: Result<Response, Infallible> = answering.await;
            match response {
                Ok(response) if response.extensions().get::<DropConnection>().is_some() => {
                    Err(std::io::Error::other("dropped by fault"))
                }
                Ok(response) => Ok(response),
                Err(never) => match never {},
            }
        }
    });
    // The peer's going away is its own business.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), dropping).await;
}
