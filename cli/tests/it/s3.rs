//! `table inspect` on S3: a stub that serves a folder as a bucket, two keys a page.

use std::collections::HashMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::support::{lakebell_in, root, scratch};

const PAGE: usize = 2;
const KEYS: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "eu-central-1")];

/// A bucket `lake` whose prefix `wh/t/` is a folder.
#[derive(Clone)]
struct Bucket {
    folder: PathBuf,
    /// Keys that were read, and prefixes that were listed.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Bucket {
    fn serve(folder: &Path) -> (Self, String) {
        let bucket = Self { folder: folder.to_owned(), seen: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(bucket.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        (bucket, url)
    }

    fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        collect(&self.folder, "wh/t/", &mut keys);
        keys.sort();
        keys
    }
}

fn collect(folder: &Path, prefix: &str, keys: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let key = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{key}/"), keys);
        } else {
            keys.push(key);
        }
    }
}

async fn answer(State(bucket): State<Bucket>, uri: Uri, Query(query): Query<HashMap<String, String>>) -> Response {
    let path = percent_encoding::percent_decode_str(uri.path()).decode_utf8().unwrap().into_owned();
    let Some(rest) = path.strip_prefix("/lake") else {
        let body = "<Error><Code>NoSuchBucket</Code><Message>The bucket does not exist</Message></Error>";
        return (StatusCode::NOT_FOUND, body).into_response();
    };
    if query.contains_key("list-type") {
        bucket.seen.lock().unwrap().push(format!("list {}", query["prefix"]));
        return list(&bucket, &query).into_response();
    }
    let key = rest.trim_start_matches('/');
    bucket.seen.lock().unwrap().push(format!("get {key}"));
    match fs::read(bucket.folder.join(key.strip_prefix("wh/t/").unwrap_or(key))) {
        Ok(bytes) if bytes.is_empty() => {
            (StatusCode::RANGE_NOT_SATISFIABLE, "<Error><Code>InvalidRange</Code></Error>").into_response()
        }
        Ok(bytes) => bytes.into_response(),
        Err(_) => (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>").into_response(),
    }
}

/// One page of a listing, with folders where the request asks for them.
fn list(bucket: &Bucket, query: &HashMap<String, String>) -> String {
    let (prefix, is_by_folder) = (&query["prefix"], query.contains_key("delimiter"));
    let mut names: Vec<String> = bucket
        .keys()
        .into_iter()
        .filter_map(|key| {
            let rest = key.strip_prefix(prefix.as_str())?;
            let folder = rest.split_once('/').filter(|_| is_by_folder);
            Some(folder.map_or(key.clone(), |(folder, _)| format!("{prefix}{folder}/")))
        })
        .collect();
    names.dedup();
    let from: usize = query.get("continuation-token").map_or(0, |token| token.parse().unwrap());
    let tag = |name: &String| {
        if name.ends_with('/') {
            format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>")
        } else {
            format!("<Contents><Key>{name}</Key></Contents>")
        }
    };
    let page: Vec<String> = names.iter().skip(from).take(PAGE).map(tag).collect();
    let next = from + PAGE;
    let more = if next < names.len() {
        format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>")
    } else {
        "<IsTruncated>false</IsTruncated>".to_owned()
    };
    format!("<ListBucketResult>{}{more}</ListBucketResult>", page.concat())
}

const INSPECT: [&str; 4] = ["table", "inspect", "--json", "s3://lake/wh/t"];

#[test]
fn a_bucket_shows_what_a_folder_shows() {
    for case in ["branches", "tags-consumers", "damaged", "odd"] {
        let table = root().join("fixtures/paimon").join(case).join("table");
        let (bucket, url) = Bucket::serve(&table);
        let mut environment = KEYS.to_vec();
        environment.push(("AWS_ENDPOINT_URL", &url));
        let seen = lakebell_in(root(), &INSPECT, &environment).succeeded().json();
        let expected = lakebell_in(root(), &["table", "inspect", "--json", table.to_str().unwrap()], &[]).json();
        assert_eq!(seen, expected, "{case}");
        let read = bucket.seen.lock().unwrap();
        assert!(!read.iter().any(|call| call.contains("bucket-") || call.contains("manifest")), "{case}: {read:?}");
    }
}

#[test]
fn the_bucket_of_a_local_deployment_needs_no_settings() {
    let (_, url) = Bucket::serve(&root().join("fixtures/paimon/watermarks/table"));
    let folder = scratch("local-bucket");
    fs::create_dir(folder.join(".lakebell")).unwrap();
    let local = json!({
        "apiUrl": "http://127.0.0.1:1", "apiToken": "t", "bucket": "lake", "endpoint": url, "region": "us-east-1",
        "accessKeyId": "test", "secretAccessKey": "test",
    });
    fs::write(folder.join(".lakebell/local.json"), local.to_string()).unwrap();
    let seen = lakebell_in(&folder, &INSPECT, &[]).succeeded().json();
    assert_eq!(seen["latest"]["branch"], "main");
}

#[test]
fn a_bucket_or_a_table_that_is_not_there_is_said_to_be_none() {
    let (_, url) = Bucket::serve(&root().join("fixtures/paimon/watermarks/table"));
    let mut environment = KEYS.to_vec();
    environment.push(("AWS_ENDPOINT_URL", &url));
    let run = lakebell_in(root(), &["table", "inspect", "s3://pond/wh/t"], &environment);
    assert_eq!(run.status, 1);
    assert!(run.err.contains("s3://pond/wh/t cannot be listed: NoSuchBucket"), "{}", run.err);
    let run = lakebell_in(root(), &["table", "inspect", "s3://lake/wh"], &environment);
    assert_eq!(run.status, 1);
    assert!(run.err.contains("s3://lake/wh is no table"), "{}", run.err);
    let run = lakebell_in(root(), &["table", "inspect", "--format", "delta", "s3://lake/wh"], &environment);
    assert!(run.err.contains("s3://lake/wh is no Delta table"), "{}", run.err);
}
