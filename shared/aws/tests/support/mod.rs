//! A server between a client and AWS that answers by a script, and an emulator where there is one.

#![allow(dead_code, clippy::expect_used, clippy::unwrap_used, reason = "helpers of several tests")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{Credentials, Region};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to one request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// It is answered with this status and body and goes no further.
    Answer(u16, String),
    /// It goes through.
    Pass,
    /// It goes through and takes effect, and its answer is lost.
    LoseAnswer,
    /// The connection breaks before it goes through.
    Break,
}

impl Step {
    /// An error of DynamoDB, with more members of its body.
    pub(crate) fn error(code: &str, more: &str) -> Self {
        let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
        Self::Answer(400, format!(r#"{{"__type":"{kind}","message":"by the script"{more}}}"#))
    }

    /// A cancelled transaction with these reasons.
    pub(crate) fn cancelled(codes: &[&str]) -> Self {
        let reasons: Vec<String> = codes.iter().map(|code| format!(r#"{{"Code":"{code}"}}"#)).collect();
        Self::error("TransactionCanceledException", &format!(r#","CancellationReasons":[{}]"#, reasons.join(",")))
    }
}

/// A server that follows a script, one step for each request; then everything passes.
pub(crate) struct Server {
    pub(crate) url: String,
    script: Arc<Mutex<VecDeque<Step>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Without `upstream` (`host:port`) nothing can pass.
    pub(crate) async fn start(upstream: Option<String>, script: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let script = Arc::new(Mutex::new(VecDeque::from(script)));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let server = Self { url, script: script.clone(), requests: requests.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, upstream.clone(), script.clone(), requests.clone()));
            }
        });
        server
    }

    /// Adds steps.
    pub(crate) fn then(&self, steps: &[Step]) {
        self.script.lock().unwrap().extend(steps.iter().cloned());
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// A client of DynamoDB that talks to this server.
    pub(crate) fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        dynamodb(&self.url)
    }
}

/// A client of DynamoDB at an endpoint. Timeouts are short, so that a lost answer is soon noticed.
pub(crate) fn dynamodb(url: &str) -> aws_sdk_dynamodb::Client {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(std::time::Duration::from_secs(5)).build();
    let config = aws_sdk_dynamodb::Config::builder()
        .http_client(lakebell_aws::config::https_client())
        .behavior_version_latest()
        .endpoint_url(url)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .timeout_config(timeouts)
        .build();
    aws_sdk_dynamodb::Client::from_conf(config)
}

async fn serve(
    mut stream: TcpStream,
    upstream: Option<String>,
    script: Arc<Mutex<VecDeque<Step>>>,
    requests: Arc<Mutex<Vec<String>>>,
) {
    let Some((head, body)) = request(&mut stream).await else { return };
    requests.lock().unwrap().push(String::from_utf8_lossy(&body).into_owned());
    let step = script.lock().unwrap().pop_front().unwrap_or(Step::Pass);
    let answer = match step {
        Step::Break => return,
        Step::Answer(status, ref body) => answer(status, body).into_bytes(),
        Step::Pass | Step::LoseAnswer => match upstream {
            Some(upstream) => pass(&upstream, &head, &body).await,
            None => answer(500, r#"{"__type":"InternalServerError","message":"the script is over"}"#).into_bytes(),
        },
    };
    if !matches!(step, Step::LoseAnswer) {
        drop(stream.write_all(&answer).await);
        drop(stream.shutdown().await);
    }
}

/// Head and body of a request.
async fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let mut chunk = vec![0; 16 * 1024];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8(bytes).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let missing = length.unwrap_or(0).checked_sub(body.len())?;
    let mut rest = vec![0; missing];
    stream.read_exact(&mut rest).await.ok()?;
    body.extend(rest);
    Some((head, body))
}

fn answer(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: application/x-amz-json-1.0\r\nx-amzn-RequestId: script\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Hands the request on and brings the whole answer back.
async fn pass(upstream: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(upstream).await.unwrap();
    let kept = head.trim_end().lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let head = kept.collect::<Vec<_>>().join("\r\n");
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

/// The endpoint of a local AWS: `AWS_ENDPOINT_URL`, or the one in the file that `LAKEBELL_LOCAL`
/// names. `None`, with a line that says so, where there is none.
pub(crate) fn emulator(needed_by: &str) -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let described = set("LAKEBELL_LOCAL").and_then(|path| {
        let content = std::fs::read_to_string(path).expect("the file that LAKEBELL_LOCAL names");
        let local: serde_json::Value = serde_json::from_str(&content).unwrap();
        local["endpoint"].as_str().map(str::to_owned)
    });
    let endpoint = described.or_else(|| set("AWS_ENDPOINT_URL"));
    if endpoint.is_none() {
        println!("skipped: {needed_by} needs a local AWS; set LAKEBELL_LOCAL to its local.json");
    }
    endpoint
}
