//! `cargo xtask up` and `down`: a local AWS with Lakebell deployed to it.
//!
//! Each runs on a port of its own and keeps its state under `.lakebell/<port>/`; `.lakebell/local.json` is a copy of
//! the latest one's description.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::failure::{During, Failure, Outcome};
use crate::package;
use crate::process::{self, Server};
use crate::progress::Progress;
use crate::venv::Venv;
use crate::workspace::Workspace;

const REGION: &str = "us-east-1";
const STACK: &str = "lakebell";
const STANDIN: &str = "lakebell-scheduler-standin";
const STANDIN_TOKEN: &str = "local-token";
const DESCRIPTION: &str = "local.json";

/// How S3 tells Lakebell of new objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Route {
    /// Through an EventBridge rule
    Eventbridge,
    /// Straight into the hints queue
    Sqs,
}

/// The scheduler that the dispatcher calls.
#[derive(Debug, Clone)]
pub(crate) enum Scheduler {
    /// The stand-in, with further arguments.
    Standin { profile: String, arguments: Vec<String> },
    /// One that runs already.
    At { url: String, token: String },
}

/// What to start.
#[derive(Debug, Clone)]
pub(crate) struct UpOptions {
    /// Port of the local AWS; 0 takes a free one.
    pub(crate) port: u16,
    /// The scheduler to start workflows in.
    pub(crate) scheduler: Scheduler,
    /// The notification route.
    pub(crate) route: Route,
}

/// A queue of the deployment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Queue {
    pub(crate) name: String,
    pub(crate) url: String,
}

/// What runs where: the content of `local.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Local {
    /// AWS endpoint.
    pub(crate) endpoint: String,
    pub(crate) region: String,
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
    /// Base URL of the API: a route is appended to it.
    pub(crate) api_url: String,
    /// Bearer token of the API.
    pub(crate) api_token: String,
    /// The lake bucket.
    pub(crate) bucket: String,
    pub(crate) table: String,
    /// `hints`, `evaluate`, `dispatch`, and each with `DeadLetters` behind it.
    pub(crate) queues: BTreeMap<String, Queue>,
    /// Function names: `commitWatcher`, `compensator`, `dispatcher`, `pushApi`.
    pub(crate) functions: BTreeMap<String, String>,
    /// The secret with the scheduler's token: the `tokenSecret` of a connection to it.
    pub(crate) connection_secret: String,
    /// How the names of connections' secrets begin.
    pub(crate) connection_secret_prefix: String,
    pub(crate) scheduler_url: String,
    pub(crate) scheduler_token: String,
    /// Whether that scheduler is the stand-in.
    pub(crate) scheduler_is_standin: bool,
    pub(crate) stack: String,
    pub(crate) port: u16,
    /// `aws`, and `scheduler` where the stand-in runs.
    pub(crate) pids: BTreeMap<String, u32>,
    /// Logs by the same names.
    pub(crate) logs: BTreeMap<String, PathBuf>,
}

impl Local {
    /// What the person at the terminal wants to know.
    pub(crate) fn summary(&self, workspace: &Workspace) -> String {
        let scheduler = if self.scheduler_is_standin { "stand-in" } else { "given" };
        format!(
            "AWS        {}  (region {}, keys test/test)\nAPI        {}\nAPI token  {}\nBucket     {}\nTable      {}\n\
             Scheduler  {}  ({scheduler})\nIn full    {}\nStop with  cargo xtask down --port {}",
            self.endpoint,
            self.region,
            self.api_url,
            self.api_token,
            self.bucket,
            self.table,
            self.scheduler_url,
            workspace.shown(&description(workspace, self.port)),
            self.port
        )
    }
}

/// What `localstack/deploy.py` prints.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deployed {
    outputs: BTreeMap<String, String>,
    api_token: String,
}

impl Deployed {
    fn output(&self, name: &str) -> Outcome<String> {
        self.outputs.get(name).cloned().ok_or_else(|| Failure::new(format!("the stack has no output {name}")))
    }
}

/// The description of the local AWS on a port.
pub(crate) fn description(workspace: &Workspace, port: u16) -> PathBuf {
    folder(workspace, port).join(DESCRIPTION)
}

fn folder(workspace: &Workspace, port: u16) -> PathBuf {
    workspace.state(port.to_string())
}

fn aws_server(workspace: &Workspace, port: u16) -> Server {
    Server { name: "aws", mark: "launch_ministack.py", folder: folder(workspace, port) }
}

fn scheduler_server(workspace: &Workspace, port: u16) -> Server {
    Server { name: "scheduler", mark: STANDIN, folder: folder(workspace, port) }
}

/// Build, start and deploy. One that runs on the port already is replaced; after a failure nothing is left running.
pub(crate) fn up(workspace: &Workspace, progress: &Progress, options: &UpOptions) -> Outcome<Local> {
    let (venv, packages) = build(workspace, progress, &options.scheduler)?;
    let port = if options.port == 0 { free_port()? } else { options.port };
    stop(workspace, progress, port)?;
    let outcome = start(workspace, progress, options, port, &venv, &packages);
    if outcome.is_err() {
        stop(workspace, progress, port)?;
    }
    outcome
}

/// The Python environment is made while cargo builds.
fn build(workspace: &Workspace, progress: &Progress, scheduler: &Scheduler) -> Outcome<(Venv, PathBuf)> {
    thread::scope(|scope| {
        let venv = scope.spawn(|| {
            progress.step("Python environment", || Venv::ensure(workspace, "venv", "localstack/requirements.txt"))
        });
        let packages = package::package(workspace, progress);
        if let (Ok(_), Scheduler::Standin { .. }) = (&packages, scheduler) {
            progress.step("building the scheduler stand-in", || {
                process::run(workspace.cargo().args(["build", "--locked", "--package", STANDIN]))
            })?;
        }
        let venv = venv.join().map_err(|_| Failure::new("the thread that makes the Python environment died"))?;
        Ok((venv?, packages?))
    })
}

fn start(
    workspace: &Workspace,
    progress: &Progress,
    options: &UpOptions,
    port: u16,
    venv: &Venv,
    packages: &PathBuf,
) -> Outcome<Local> {
    let mut pids = BTreeMap::new();
    let mut logs = BTreeMap::new();
    let aws = aws_server(workspace, port);
    let endpoint = format!("http://127.0.0.1:{port}");
    let pid = progress.step(&format!("local AWS on {endpoint}"), || start_aws(workspace, venv, &aws, port))?;
    pids.insert("aws".to_owned(), pid);
    logs.insert("aws".to_owned(), aws.log());

    let (scheduler_url, scheduler_token) = match &options.scheduler {
        Scheduler::At { url, token } => (url.clone(), token.clone()),
        Scheduler::Standin { profile, arguments } => {
            let server = scheduler_server(workspace, port);
            let (pid, url) =
                progress.step("scheduler stand-in", || start_standin(workspace, &server, profile, arguments))?;
            pids.insert("scheduler".to_owned(), pid);
            logs.insert("scheduler".to_owned(), server.log());
            (url, STANDIN_TOKEN.to_owned())
        }
    };

    let mut deploy = venv.script(&workspace.path("localstack/deploy.py"));
    deploy.args(["--endpoint", &endpoint, "--region", REGION, "--stack", STACK]);
    deploy.arg("--template").arg(workspace.path("infra/template.yaml")).arg("--packages").arg(packages);
    deploy.args(["CreateBucket=true".to_owned(), format!("NotificationRoute={}", options.route.parameter())]);
    deploy.arg("CatalogAccess=glue");
    deploy.args([format!("SchedulerUrl={scheduler_url}"), format!("SchedulerToken={scheduler_token}")]);
    // One program sends what many would: rates have tests of their own.
    deploy.arg("ApiTokenRate=10000");
    deploy.args([format!("Architecture={}", architecture()), format!("LogLevel={}", log_level())]);
    let printed = progress.step("deploying infra/template.yaml", || process::output(&mut deploy))?;
    let deployed: Deployed = serde_json::from_str(&printed).during("read what deploy.py printed")?;

    let api = (deployed.output("ApiId")?, deployed.output("ApiStage")?);
    let local = Local {
        api_url: format!("{endpoint}/restapis/{}/{}/_user_request_", api.0, api.1),
        endpoint,
        region: REGION.to_owned(),
        access_key_id: "test".to_owned(),
        secret_access_key: "test".to_owned(),
        api_token: deployed.api_token.clone(),
        bucket: deployed.output("BucketName")?,
        table: deployed.output("TableName")?,
        queues: queues(&deployed),
        functions: functions(&deployed)?,
        connection_secret: deployed.output("ConnectionSecretPrefix")? + "default",
        connection_secret_prefix: deployed.output("ConnectionSecretPrefix")?,
        scheduler_url,
        scheduler_token,
        scheduler_is_standin: matches!(options.scheduler, Scheduler::Standin { .. }),
        stack: STACK.to_owned(),
        port,
        pids,
        logs,
    };
    let json = serde_json::to_string_pretty(&local).during("write the description")?;
    for path in [description(workspace, port), workspace.state(DESCRIPTION)] {
        fs::write(&path, &json).during(format!("write {}", path.display()))?;
    }
    Ok(local)
}

impl Route {
    fn parameter(self) -> &'static str {
        match self {
            Self::Eventbridge => "eventbridge",
            Self::Sqs => "sqs",
        }
    }
}

/// The functions run as processes of this machine.
fn architecture() -> &'static str {
    if env::consts::ARCH == "aarch64" { "arm64" } else { "x86_64" }
}

fn log_level() -> String {
    env::var("LAKEBELL_LOG").unwrap_or_else(|_| "info".to_owned())
}

fn queues(deployed: &Deployed) -> BTreeMap<String, Queue> {
    let named = deployed.outputs.iter().filter_map(|(output, url)| {
        let name = output.strip_suffix("QueueUrl")?.replace("DeadLetter", "DeadLetters");
        let queue = Queue { name: url.rsplit('/').next()?.to_owned(), url: url.clone() };
        Some((lower_first(&name), queue))
    });
    named.collect()
}

fn functions(deployed: &Deployed) -> Outcome<BTreeMap<String, String>> {
    ["CommitWatcher", "Compensator", "Dispatcher", "PushApi"]
        .into_iter()
        .map(|function| Ok((lower_first(function), deployed.output(&format!("{function}Name"))?)))
        .collect()
}

fn lower_first(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_ascii_lowercase() + rest
}

/// Start MiniStack with nothing of this process's environment but what it needs: its functions inherit all it has, and
/// a variable that is missing on AWS must be missing here too.
fn start_aws(workspace: &Workspace, venv: &Venv, server: &Server, port: u16) -> Outcome<u32> {
    if answers(port, "/") {
        return Err(Failure::new(format!(
            "port {port} is used by a program that `cargo xtask up` did not start; give another with --port"
        )));
    }
    let temporary = server.folder.join("tmp");
    fs::create_dir_all(&temporary).during(format!("make {}", temporary.display()))?;
    let mut command = venv.script(&workspace.path("localstack/launch_ministack.py"));
    command.current_dir(&server.folder).env_clear();
    command.env("PATH", env::var_os("PATH").unwrap_or_default());
    command.env("HOME", &temporary).env("TMPDIR", &temporary).env("PYTHONUNBUFFERED", "1");
    command.env("GATEWAY_PORT", port.to_string()).env("BIND_HOST", "127.0.0.1").env("MINISTACK_HOST", "127.0.0.1");
    command.env("IOT_MTLS_ENABLED", "0").env("SFTP_ENABLED", "0");
    // Without it the functions get no endpoint.
    command.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"));
    let pid = server.start(&mut command)?;
    server.wait(Duration::from_secs(30), || answers(port, "/_ministack/ready").then_some(()))?;
    Ok(pid)
}

/// Its URL is the first line that it prints.
fn start_standin(workspace: &Workspace, server: &Server, profile: &str, more: &[String]) -> Outcome<(u32, String)> {
    let mut command = Command::new(workspace.target("debug").join(STANDIN));
    command.args(["--port", "0", "--profile", profile, "--token", STANDIN_TOKEN]).args(more);
    let pid = server.start(&mut command)?;
    let url = server.wait(Duration::from_secs(10), || {
        let printed = server.printed();
        let (first, _) = printed.split_once('\n')?;
        first.split_whitespace().find(|word| word.starts_with("http")).map(str::to_owned)
    })?;
    Ok((pid, url))
}

/// Whether something on the port answers a GET with a success, or, for `/`, at all.
fn answers(port: u16, path: &str) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut connection) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else { return false };
    if path == "/" {
        return true;
    }
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    let mut start = [0; 12];
    connection.set_read_timeout(Some(Duration::from_secs(5))).is_ok()
        && connection.write_all(request.as_bytes()).is_ok()
        && connection.read_exact(&mut start).is_ok()
        && start.ends_with(b" 200")
}

fn free_port() -> Outcome<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).during("find a free port")?;
    Ok(listener.local_addr().during("find a free port")?.port())
}

/// Stop the local AWS on `port`, all of them, or the one that was started last.
pub(crate) fn down(workspace: &Workspace, progress: &Progress, port: Option<u16>, all: bool) -> Outcome {
    let ports = match port {
        _ if all => known_ports(workspace),
        Some(port) => vec![port],
        None => latest(workspace).map(|local| local.port).into_iter().collect(),
    };
    let mut stopped = false;
    for port in ports {
        stopped |= stop(workspace, progress, port)?;
    }
    if !stopped {
        let running: Vec<_> = running_ports(workspace).iter().map(ToString::to_string).collect();
        let hint = if running.is_empty() { String::new() } else { format!("; on ports {}", running.join(", ")) };
        progress.say(&format!("nothing to stop{hint}"));
    }
    Ok(())
}

fn latest(workspace: &Workspace) -> Option<Local> {
    serde_json::from_slice(&fs::read(workspace.state(DESCRIPTION)).ok()?).ok()
}

fn known_ports(workspace: &Workspace) -> Vec<u16> {
    let entries = fs::read_dir(workspace.state("")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn running_ports(workspace: &Workspace) -> Vec<u16> {
    known_ports(workspace).into_iter().filter(|port| aws_server(workspace, *port).pid().is_some()).collect()
}

/// Stop both servers of a port and forget them; the logs stay. Says whether one was running.
fn stop(workspace: &Workspace, progress: &Progress, port: u16) -> Outcome<bool> {
    let scheduler = scheduler_server(workspace, port).stop()?;
    let stopped = aws_server(workspace, port).stop()? || scheduler;
    if stopped {
        progress.say(&format!("stopped the local AWS on port {port}"));
    }
    if latest(workspace).is_some_and(|local| local.port == port) {
        remove(&workspace.state(DESCRIPTION))?;
    }
    remove(&description(workspace, port))?;
    let temporary = folder(workspace, port).join("tmp");
    if temporary.exists() {
        fs::remove_dir_all(&temporary).during(format!("remove {}", temporary.display()))?;
    }
    Ok(stopped)
}

fn remove(file: &PathBuf) -> Outcome {
    if file.exists() {
        fs::remove_file(file).during(format!("remove {}", file.display()))?;
    }
    Ok(())
}
