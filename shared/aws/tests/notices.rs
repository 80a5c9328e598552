//! Notices against a server that takes what EventBridge would, and one that does not.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use lakebell_aws::BusNotices;
use lakebell_domain::notice::Notice;
use lakebell_engine::ports::notices::{Delivered, Notices};
use lakebell_engine::ports::time::SystemClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Answers each request with the next of these, and gives back what was asked.
async fn server(answers: Vec<&'static str>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let read = stream.read(&mut buffer).await.unwrap();
                text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head
                    .lines()
                    .find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
                if length.is_none_or(|length| body.len() >= length.parse::<usize>().unwrap()) {
                    break;
                }
            }
            asked.push(text);
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
        asked
    });
    (url, serving)
}

fn bus(url: &str) -> BusNotices {
    let credentials = Credentials::new("AKIDEXAMPLE", "secret", Some("session".to_owned()), None, "test");
    let sdk = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .endpoint_url(url)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build();
    BusNotices::new("main-bus", &sdk, Arc::new(SystemClock)).unwrap()
}

fn notice(n: u32) -> Notice {
    let connection = format!("c{n}").parse().unwrap();
    Notice::TokenExpiring { connection, expires_at: "2026-01-01T00:00:00Z".parse().unwrap() }
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 43\r\n\r\n{\"FailedEntryCount\":0,\"Entries\":[{\"a\":\"b\"}]}";

#[tokio::test]
async fn notices_are_signed_and_sent_ten_at_a_time() {
    let some = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 61\r\n\r\n{\"FailedEntryCount\":1,\"Entries\":[{\"ErrorCode\":\"Throttled\"}]} ";
    let (url, serving) = server(vec![TAKEN, some]).await;
    let bus = bus(&url);
    for n in 0..12 {
        bus.tell(notice(n));
    }
    assert_eq!(bus.deliver().await, Delivered { sent: 11, failed: 1 });
    assert_eq!(bus.deliver().await, Delivered::default(), "nothing is sent twice");
    let asked = serving.await.unwrap();
    let head = asked[0].to_lowercase();
    for part in [
        "post / http/1.1",
        "x-amz-target: awsevents.putevents",
        "content-type: application/x-amz-json-1.1",
        "authorization: aws4-hmac-sha256 credential=akidexample/",
        "/eu-central-1/events/aws4_request",
        "x-amz-security-token: session",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    let body: serde_json::Value = serde_json::from_str(asked[0].split_once("\r\n\r\n").unwrap().1).unwrap();
    let entries = body["Entries"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!((&entries[0]["EventBusName"], &entries[0]["Source"]), (&"main-bus".into(), &"lakebell".into()));
    assert_eq!(entries[0]["DetailType"], "io.lakebell.token.expiring.v1");
    let detail: serde_json::Value = serde_json::from_str(entries[0]["Detail"].as_str().unwrap()).unwrap();
    assert_eq!(detail["data"]["connection"], "c0");
}

#[tokio::test]
async fn a_bus_that_is_away_costs_nothing_but_its_notices() {
    let (url, _serving) = server(vec!["HTTP/1.1 500 Oh\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"]).await;
    let refusing = bus(&url);
    refusing.tell(notice(1));
    assert_eq!(refusing.deliver().await, Delivered { sent: 0, failed: 1 });
    let nobody = bus("http://127.0.0.1:9");
    for n in 0..600 {
        nobody.tell(notice(n));
    }
    assert_eq!(nobody.deliver().await, Delivered { sent: 0, failed: 600 });
}
