//! A large Iceberg metadata file through the S3 adapter and the engine: what it takes in memory, counted
//! for the whole process, a server included that makes the file while it sends it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a helper here fails the test as an assertion does")]

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use flate2::Compression;
use flate2::write::GzEncoder;
use lakebell_aws::S3Storage;
use lakebell_domain::ids::{ProjectCode, TraceId};
use lakebell_engine::assets;
use lakebell_engine::ports::Ports;
use lakebell_testkit::World;
use peak_alloc::PeakAlloc;
use serde_json::json;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const LIMIT_MB: f32 = 64.0;
const NAME: &str = "wh/sales/orders/metadata/00001-a.metadata.json";

/// A metadata file of many snapshots, in parts, and its length: `parts` gives them one by one.
#[derive(Clone, Copy)]
struct File {
    snapshots: i64,
    /// Blanks in front of each snapshot.
    padding: usize,
}

fn id(n: i64) -> i64 {
    n.wrapping_mul(6_364_136_223_846_793_005) & i64::MAX
}

impl File {
    fn parts(self, mut take: impl FnMut(&[u8])) {
        take(br#"{"format-version":2,"table-uuid":"85f616f1","location":"s3://lake/wh/sales/orders","last-updated-ms":1,"snapshots":["#);
        let mut text = String::new();
        for n in 1..=self.snapshots {
            text.clear();
            let comma = if n == 1 { "" } else { "," };
            let parent = if n == 1 { String::new() } else { format!(r#""parent-snapshot-id":{},"#, id(n - 1)) };
            write!(
                text,
                concat!(
                    r#"{}{:pad$}{{"sequence-number":{},"snapshot-id":{},{}"timestamp-ms":{},"summary":{{"operation":"append","#,
                    r#""added-records":"10","total-records":"{}","total-data-files":"{}","total-delete-files":"0","#,
                    r#""spark.app.id":"local-1795982380788","engine-version":"3.5.1"}},"#,
                    r#""manifest-list":"s3://lake/t/metadata/snap-{}-1-{:032x}.avro","schema-id":0}}"#
                ),
                comma, "", n, id(n), parent, n, 10 * n, n, id(n), id(n + 5), pad = self.padding
            )
            .unwrap();
            take(text.as_bytes());
        }
        let head = id(self.snapshots);
        take(
            format!(r#"],"current-snapshot-id":{head},"refs":{{"main":{{"snapshot-id":{head},"type":"branch"}}}}}}"#)
                .as_bytes(),
        );
    }

    fn length(self) -> usize {
        let mut length = 0;
        self.parts(|part| length += part.len());
        length
    }
}

/// What the bucket holds: the file, made as it is sent, or its compressed form.
#[derive(Clone)]
enum Content {
    Made(File),
    Kept(Arc<Vec<u8>>),
}

/// Serves one connection after the other, as S3 answers a listing and a read.
fn serve(listener: &TcpListener, content: &Content) {
    for stream in listener.incoming() {
        let (stream, content) = (stream.unwrap(), content.clone());
        thread::spawn(move || connection(stream, &content));
    }
}

fn connection(mut stream: TcpStream, content: &Content) -> Option<()> {
    loop {
        let mut head = Vec::new();
        let mut byte = [0_u8; 1];
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read(&mut byte).ok()? == 0 {
                return None;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let target = head.split(' ').nth(1)?.to_owned();
        if target.contains("list-type=2") {
            let is_metadata = target.contains("prefix=wh%2Fsales%2Forders%2Fmetadata");
            let row = format!(
                "<Contents><Key>{NAME}</Key><ETag>&quot;e&quot;</ETag><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            );
            let rows = if is_metadata { row } else { String::new() };
            let body = format!("<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>");
            answer(&mut stream, "200 OK", body.len())?;
            stream.write_all(body.as_bytes()).ok()?;
        } else if target.contains(NAME) {
            match content {
                Content::Made(file) => {
                    answer(&mut stream, "200 OK", file.length())?;
                    file.parts(|part| drop(stream.write_all(part)));
                }
                Content::Kept(bytes) => {
                    answer(&mut stream, "200 OK", bytes.len())?;
                    stream.write_all(bytes).ok()?;
                }
            }
        } else {
            let body = "<Error><Code>NoSuchKey</Code></Error>";
            answer(&mut stream, "404 Not Found", body.len())?;
            stream.write_all(body.as_bytes()).ok()?;
        }
    }
}

fn answer(stream: &mut TcpStream, status: &str, length: usize) -> Option<()> {
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\netag: \"e\"\r\n\r\n").ok()
}

/// The peak, in megabytes above what was there before, of registering the table and reading it.
async fn peak_of(content: Content, snapshots: i64) -> f32 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let kept = content.clone();
    thread::spawn(move || serve(&listener, &kept));
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(url)
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("k", "s", None, None, "test"))
        .force_path_style(true);
    let storage = Arc::new(S3Storage::new(aws_sdk_s3::Client::from_conf(config.build())));
    let ports = Ports { storage, ..World::new(1).quiet_ports() };
    let spec = json!({"key": "iceberg://sales/orders", "location": "s3://lake/wh/sales/orders"});
    let spec = serde_json::from_value(spec).unwrap();
    let before = MEMORY.current_usage_as_mb();
    MEMORY.reset_peak_usage();
    let trace = TraceId::new("t").unwrap();
    let registered = assets::register(&ports, ProjectCode(1), &spec, &trace).await.unwrap();
    let peak = MEMORY.peak_usage_as_mb() - before;
    let state = &registered.observed.head.value.state;
    assert_eq!(state.trouble, None);
    assert_eq!(state.table.as_ref().unwrap().snapshot_id, id(snapshots).to_string());
    peak
}

#[tokio::test(flavor = "current_thread")]
async fn a_large_file_is_read_through_the_adapter_and_the_engine_in_little_memory() {
    for (what, file) in [
        ("50,000 snapshots", File { snapshots: 50_000, padding: 0 }),
        ("more than 50 MB", File { snapshots: 50_000, padding: 700 }),
    ] {
        let length = file.length();
        assert!(length > 18 << 20 && (file.padding == 0 || length > 50 << 20), "{length}");
        let peak = peak_of(Content::Made(file), file.snapshots).await;
        println!("{what}, {length} bytes: {peak:.1} MB");
        assert!(peak < LIMIT_MB, "{what}: {peak}");
    }
    let file = File { snapshots: 50_000, padding: 0 };
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    file.parts(|part| encoder.write_all(part).unwrap());
    let bytes = Arc::new(encoder.finish().unwrap());
    let peak = peak_of(Content::Kept(bytes.clone()), file.snapshots).await;
    println!("gzip of {} bytes: {peak:.1} MB", bytes.len());
    assert!(peak < LIMIT_MB, "gzip: {peak}");
}
