//! Paimon tables written by hand: the commit files that a writer would leave, and nothing else.

use std::collections::BTreeSet;

use jiff::Timestamp;
use lakebell_domain::asset::{AssetKey, Format};
use lakebell_testkit::table::Committed;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// A table of a test.
pub(crate) struct Table {
    s3: aws_sdk_s3::Client,
    pub(crate) bucket: String,
    /// Where it lives below the bucket.
    pub(crate) prefix: String,
    /// Its key as an asset.
    pub(crate) asset: String,
    /// The newest snapshot; 0 for none.
    pub(crate) newest: u64,
    total: i64,
    /// Every commit.
    pub(crate) committed: BTreeSet<Committed>,
}

impl Table {
    /// A table that was never written, at `s3://<bucket>/e2e/<database>.db/<table>`.
    pub(crate) fn new(s3: aws_sdk_s3::Client, bucket: &str, database: &str, table: &str) -> Self {
        let asset = AssetKey::new(Format::Paimon, None, database, table, None).unwrap().to_string();
        let (bucket, prefix) = (bucket.to_owned(), format!("e2e/{database}.db/{table}"));
        Self { s3, bucket, prefix, asset, newest: 0, total: 0, committed: BTreeSet::new() }
    }

    /// Its location, as assets are registered with.
    pub(crate) fn location(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    /// The key of a snapshot's file.
    pub(crate) fn object(&self, snapshot: u64) -> String {
        format!("{}/snapshot/snapshot-{snapshot}", self.prefix)
    }

    /// Commits, and returns the new snapshot's id.
    pub(crate) async fn commit(&mut self, kind: &str, delta: i64) -> u64 {
        self.commit_with(kind, delta, &json!({})).await
    }

    /// Commits with further fields of the snapshot's file, as in `{"watermark": 5}`.
    pub(crate) async fn commit_with(&mut self, kind: &str, delta: i64, more: &Value) -> u64 {
        let id = self.newest + 1;
        self.total += delta;
        let uuid = format!("{}-{id}", self.prefix.replace('/', "-"));
        let mut snapshot = json!({
            "version": 3, "id": id, "schemaId": 0, "uuid": uuid, "commitUser": "e2e", "commitIdentifier": id,
            "commitKind": kind, "timeMillis": Timestamp::now().as_millisecond(),
            "totalRecordCount": self.total, "deltaRecordCount": delta,
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            snapshot[field] = value.clone();
        }
        self.put(&self.object(id), snapshot.to_string().into_bytes()).await;
        self.newest = id;
        self.committed.insert((id, uuid));
        id
    }

    /// Tags a snapshot: Paimon's tag file is a copy of the snapshot's.
    pub(crate) async fn tag(&self, name: &str, snapshot: u64) {
        let get = self.s3.get_object().bucket(&self.bucket).key(self.object(snapshot));
        let body = get.send().await.unwrap().body.collect().await.unwrap().to_vec();
        self.put(&format!("{}/tag/tag-{name}", self.prefix), body).await;
    }

    /// Commits rows.
    pub(crate) async fn append(&mut self) -> u64 {
        self.commit("APPEND", 1).await
    }

    /// Writes any object.
    pub(crate) async fn put(&self, key: &str, body: Vec<u8>) {
        let put = self.s3.put_object().bucket(&self.bucket).key(key).body(body.into());
        put.send().await.unwrap_or_else(|error| panic!("{key}: {error:?}"));
    }

    /// The entity tag of a snapshot's file.
    pub(crate) async fn etag(&self, snapshot: u64) -> String {
        let head = self.s3.head_object().bucket(&self.bucket).key(self.object(snapshot)).send().await.unwrap();
        head.e_tag.unwrap().trim_matches('"').to_owned()
    }
}

/// A text as one segment of a path, or one value of a query.
pub(crate) fn in_path(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
