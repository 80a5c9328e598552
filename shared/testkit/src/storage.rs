//! Tables' files in memory.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::path::Path;
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;
use lakebell_engine::ports::storage::{ConsumerFiles, Listed, Listing, Opened, Pieces, TableStorage};
use lakebell_engine::{EngineError, ErrorKind};

use crate::lock;

/// How large the pieces are in which an object comes: small, so that tests meet the seams.
const PIECE_BYTES: usize = 4 << 10;

/// A [`TableStorage`] in memory. As on S3, a bucket that nobody made is refused with `Denied`. Its
/// own clock is a second further with each object put.
#[derive(Debug, Default)]
pub struct MemoryStorage {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    buckets: BTreeMap<String, BTreeMap<String, Kept>>,
    puts: i64,
    refusals: Vec<Refusal>,
}

#[derive(Debug)]
struct Kept {
    bytes: Vec<u8>,
    modified: Option<Timestamp>,
}

#[derive(Debug)]
struct Refusal {
    bucket: String,
    prefix: String,
    kind: ErrorKind,
}

impl MemoryStorage {
    /// Without any bucket.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a bucket, if there is none of this name.
    pub fn make_bucket(&self, bucket: &str) {
        lock(&self.state).buckets.entry(bucket.to_owned()).or_default();
    }

    /// Puts an object, and its bucket if there is none.
    pub fn put(&self, bucket: &str, key: &str, bytes: impl Into<Vec<u8>>) {
        let mut state = lock(&self.state);
        state.puts += 1;
        let kept = Kept { bytes: bytes.into(), modified: Timestamp::from_second(state.puts).ok() };
        state.buckets.entry(bucket.to_owned()).or_default().insert(key.to_owned(), kept);
    }

    /// The content of an object.
    pub fn get_now(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        lock(&self.state).buckets.get(bucket)?.get(key).map(|kept| kept.bytes.clone())
    }

    /// The entity tag of an object, as a notification would name it.
    pub fn etag(&self, bucket: &str, key: &str) -> Option<String> {
        self.get_now(bucket, key).map(|bytes| Self::etag_of(&bytes))
    }

    /// Removes an object and says whether there was one.
    pub fn remove(&self, bucket: &str, key: &str) -> bool {
        lock(&self.state).buckets.get_mut(bucket).is_some_and(|objects| objects.remove(key).is_some())
    }

    /// Removes every object whose key starts with `prefix` and says how many there were.
    pub fn remove_prefix(&self, bucket: &str, prefix: &str) -> usize {
        lock(&self.state).buckets.get_mut(bucket).map_or(0, |objects| {
            let before = objects.len();
            objects.retain(|key, _| !key.starts_with(prefix));
            before - objects.len()
        })
    }

    /// Copies every file below the folder `dir` to keys below `prefix` (which is put before the
    /// relative path as it is) and says how many there were.
    pub fn load(&self, bucket: &str, prefix: &str, dir: &Path) -> std::io::Result<usize> {
        self.make_bucket(bucket);
        let mut count = 0;
        let mut folders = vec![(dir.to_owned(), prefix.to_owned())];
        while let Some((folder, prefix)) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                let key = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if entry.file_type()?.is_dir() {
                    folders.push((entry.path(), format!("{key}/")));
                } else {
                    self.put(bucket, &key, std::fs::read(entry.path())?);
                    count += 1;
                }
            }
        }
        Ok(count)
    }

    /// From now on every call about a key or prefix of `bucket` that starts with `prefix` fails
    /// with this kind, until [`Self::heal`].
    pub fn refuse(&self, bucket: &str, prefix: &str, kind: ErrorKind) {
        lock(&self.state).refusals.push(Refusal { bucket: bucket.to_owned(), prefix: prefix.to_owned(), kind });
    }

    /// From now on the whole bucket is refused, until [`Self::heal`].
    pub fn deny(&self, bucket: &str) {
        self.refuse(bucket, "", ErrorKind::Denied);
    }

    /// Ends every refusal.
    pub fn heal(&self) {
        lock(&self.state).refusals.clear();
    }

    /// The entity tag that an object of this content has.
    pub fn etag_of(bytes: &[u8]) -> String {
        // FNV-1a, 128 bits: any digest of the content will do.
        let digest = bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |digest, byte| {
            (digest ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        });
        format!("{digest:032x}")
    }
}

impl State {
    fn objects(&self, bucket: &str, key: &str) -> Result<&BTreeMap<String, Kept>, EngineError> {
        let refusal = self.refusals.iter().find(|refusal| refusal.bucket == bucket && key.starts_with(&refusal.prefix));
        if let Some(refusal) = refusal {
            let message = format!("reading from bucket `{bucket}` was refused by the test");
            return Err(EngineError::new(refusal.kind, message).with("bucket", bucket).with("key", key));
        }
        self.buckets.get(bucket).ok_or_else(|| {
            let message = format!("bucket `{bucket}` does not exist; check the location of the asset");
            EngineError::new(ErrorKind::Denied, message).with("bucket", bucket).with("key", key)
        })
    }
}

fn below<'a>(
    objects: &'a BTreeMap<String, Kept>,
    prefix: &'a str,
    after: Option<&'a str>,
) -> impl Iterator<Item = (&'a String, &'a Kept)> {
    let from = match after {
        Some(after) if after >= prefix => Bound::Excluded(after.to_owned()),
        _ => Bound::Included(prefix.to_owned()),
    };
    objects.range((from, Bound::Unbounded)).take_while(move |(key, _)| key.starts_with(prefix))
}

/// The rest of an object, as it was when it was opened.
struct MemoryPieces(VecDeque<Vec<u8>>);

#[async_trait]
impl Pieces for MemoryPieces {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(self.0.pop_front())
    }
}

#[async_trait]
impl TableStorage for MemoryStorage {
    async fn open(&self, bucket: &str, key: &str) -> Result<Option<Opened>, EngineError> {
        let state = lock(&self.state);
        let Some(kept) = state.objects(bucket, key)?.get(key) else { return Ok(None) };
        let pieces = kept.bytes.chunks(PIECE_BYTES).map(<[u8]>::to_vec).collect();
        Ok(Some(Opened {
            etag: Self::etag_of(&kept.bytes),
            size: kept.bytes.len() as u64,
            pieces: Box::new(MemoryPieces(pieces)),
        }))
    }

    async fn list(&self, bucket: &str, listing: Listing<'_>) -> Result<Vec<Listed>, EngineError> {
        let state = lock(&self.state);
        let Listing { prefix, after, is_flat, limit } = listing;
        let rows = below(state.objects(bucket, prefix)?, prefix, after);
        let rows = rows.filter(|(key, _)| !is_flat || !key[prefix.len()..].contains('/'));
        let listed = |(key, kept): (&String, &Kept)| Listed {
            key: key.clone(),
            etag: Self::etag_of(&kept.bytes),
            modified: kept.modified,
        };
        Ok(rows.take(limit).map(listed).collect())
    }

    async fn folders(
        &self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, EngineError> {
        let state = lock(&self.state);
        let last = after.map(|name| format!("{prefix}{name}/\u{10ffff}"));
        let mut names: Vec<String> = below(state.objects(bucket, prefix)?, prefix, last.as_deref())
            .filter_map(|(key, _)| key.get(prefix.len()..)?.split_once('/').map(|(name, _)| name.to_owned()))
            .collect();
        // What is in one folder follows each other.
        names.dedup();
        names.truncate(limit);
        Ok(names)
    }
}

#[async_trait]
impl ConsumerFiles for MemoryStorage {
    async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>, over: Option<&str>) -> Result<bool, EngineError> {
        let there = lock(&self.state).objects(bucket, key)?.get(key).map(|kept| Self::etag_of(&kept.bytes));
        let is_as_expected = there.as_deref() == over;
        if is_as_expected {
            Self::put(self, bucket, key, bytes);
        }
        Ok(is_as_expected)
    }
}
