//! A Paimon table for simulations: writes the commit files that a real writer would, into the
//! storage in memory, and remembers every commit that ever was.

use std::collections::BTreeSet;
use std::sync::Arc;

pub use lakebell_engine::rules::Committed;

use crate::MemoryStorage;

/// A Paimon table or branch below a bucket.
pub struct PaimonTable {
    storage: Arc<MemoryStorage>,
    bucket: String,
    prefix: String,
    /// The newest id there is; 0 for none.
    newest: u64,
    total: i64,
    totals: Vec<i64>,
    born: u64,
    uuid: String,
    /// Every commit that was ever visible.
    pub committed: BTreeSet<Committed>,
}

impl PaimonTable {
    /// A table that was never written, at `s3://bucket/prefix`.
    pub fn new(storage: Arc<MemoryStorage>, bucket: &str, prefix: &str) -> Self {
        storage.make_bucket(bucket);
        Self {
            storage,
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            newest: 0,
            total: 0,
            totals: vec![0],
            born: 0,
            uuid: String::new(),
            committed: BTreeSet::new(),
        }
    }

    /// The location, as assets name it.
    pub fn location(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    /// The bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The newest snapshot id; 0 for none.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// The uuid of the last commit; empty before the first.
    pub fn newest_uuid(&self) -> &str {
        &self.uuid
    }

    /// The key of a snapshot's file.
    pub fn key(&self, id: u64) -> String {
        format!("{}/snapshot/snapshot-{id}", self.prefix)
    }

    /// Commits, and returns the new snapshot's id.
    pub fn commit(&mut self, kind: &str, delta: i64) -> u64 {
        self.commit_with(kind, delta, "")
    }

    /// Commits with further fields of the snapshot file, as in `"watermark":5`.
    pub fn commit_with(&mut self, kind: &str, delta: i64, more: &str) -> u64 {
        let id = self.newest + 1;
        self.born += 1;
        let uuid = format!("{}-{}", self.prefix.replace('/', "-"), self.born);
        self.total += delta;
        let more = if more.is_empty() { String::new() } else { format!(",{more}") };
        let body = format!(
            r#"{{"version":3,"id":{id},"schemaId":0,"uuid":"{uuid}","commitUser":"job","commitIdentifier":{id},"commitKind":"{kind}","timeMillis":{time},"totalRecordCount":{total},"deltaRecordCount":{delta}{more}}}"#,
            time = 1_767_225_600_000 + self.born * 1_000,
            total = self.total,
        );
        self.storage.put(&self.bucket, &self.key(id), body);
        self.newest = id;
        self.totals.push(self.total);
        self.uuid.clone_from(&uuid);
        self.committed.insert((id, uuid));
        id
    }

    /// Rolls back to a snapshot: later ones vanish, newest first, and their ids will be used again.
    pub fn rollback_to(&mut self, id: u64) {
        while self.newest > id {
            self.storage.remove(&self.bucket, &self.key(self.newest));
            self.newest -= 1;
            self.totals.pop();
        }
        self.total = self.totals.last().copied().unwrap_or(0);
    }

    /// Expires every snapshot below an id.
    pub fn expire_below(&self, id: u64) {
        for old in 1..id.min(self.newest) {
            self.storage.remove(&self.bucket, &self.key(old));
        }
    }

    /// Drops the table: ids start at 1 again.
    pub fn drop_table(&mut self) {
        self.storage.remove_prefix(&self.bucket, &self.prefix);
        self.newest = 0;
        self.total = 0;
        self.totals = vec![0];
    }
}
