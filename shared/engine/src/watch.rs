//! From an object in a bucket to the asset that it belongs to.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::asset::{Format, Location};
use lakebell_domain::event::{EventKind, Outcome, Source};
use lakebell_domain::ids::{AssetId, TraceId};
use lakebell_domain::version::Ordinal;
use lakebell_formats::delta::{self, DeltaObjectKind};
use lakebell_formats::hudi;
use lakebell_formats::iceberg::{self, IcebergObjectKind};
use lakebell_formats::paimon::{self, PaimonObjectKind};

use crate::assets::{self, AssetSpec};
use crate::evaluate::{self, Evaluated};
use crate::observe::{self, Hint, Look, Observed};
use crate::ports::Ports;
use crate::records::{Unregistered, Warehouse};
use crate::settings;
use crate::{EngineError, ErrorKind};

/// How long a function may go on believing which asset lives at a location.
pub const LOCATION_CACHE: SignedDuration = SignedDuration::from_secs(60);
/// The same where nobody has registered it and no warehouse holds it. Whether somebody has registered it
/// meanwhile is looked up all the same: a commit right after that must not wait for the next scan.
pub const UNKNOWN_CACHE: SignedDuration = SignedDuration::from_secs(5);
/// Most branches of one table whose assets are looked at with a file that holds them.
const MAX_BRANCHES: usize = 16;
/// Most locations remembered; beyond it the cache starts over.
const MAX_CACHED: usize = 10_000;

/// An object that was created in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The bucket.
    pub bucket: String,
    /// The object's key, decoded.
    pub key: String,
    /// Its entity tag, where the notification had one.
    pub etag: Option<String>,
}

/// What came of a created object.
#[derive(Debug)]
pub enum Watched {
    /// It is no commit of any table: data, manifests, temporary objects, hints.
    NotACommit,
    /// It is a commit of a table that is not registered.
    UnknownTable {
        /// Where the table lives.
        location: String,
        /// The format of the commit; absent where only an asset was named.
        format: Option<Format>,
        /// Whether it was seen for the first time.
        is_new: bool,
    },
    /// Its asset was looked at, and the asset's targets evaluated.
    Observed {
        /// The look.
        observed: Box<Observed>,
        /// The evaluations.
        evaluated: Vec<Evaluated>,
        /// The same for assets that are other branches in the same files.
        others: Vec<Self>,
    },
}

/// The commit watcher: remembers which asset lives where for [`LOCATION_CACHE`].
pub struct Watcher {
    ports: Ports,
    locations: Mutex<HashMap<String, (Option<AssetId>, Timestamp)>>,
}

/// What may be a commit of a table, told from an object's key alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitKey {
    /// The format of the table.
    pub format: Format,
    /// The table's root in the bucket, without a slash at the end.
    pub root: String,
    /// The branch, where the key names one.
    pub branch: Option<String>,
    /// Rises with the commits of one table, as far as keys tell: a batch of hints in this order
    /// meets the fewest gaps. Not the ordinal.
    pub order: u64,
}

impl Watcher {
    /// A watcher with an empty memory.
    pub fn new(ports: Ports) -> Self {
        Self { ports, locations: Mutex::new(HashMap::new()) }
    }

    /// The ports.
    pub const fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Looks at the asset that a created object belongs to.
    pub async fn created(&self, object: &Created, trace: &TraceId) -> Result<Watched, EngineError> {
        let Some(commit) = CommitKey::of(&object.key) else { return Ok(Watched::NotACommit) };
        let Ok(location) = Location::new(&object.bucket, &commit.root) else { return Ok(Watched::NotACommit) };
        let format = commit.format;
        let (asset, is_fresh) = self.asset_at(&location, &commit, trace).await?;
        let Some(asset) = asset else {
            if !is_fresh {
                let location = location.to_string();
                return Ok(Watched::UnknownTable { location, format: Some(format), is_new: false });
            }
            let seen = Unregistered {
                location: location.to_string(),
                project: None,
                format: Some(format),
                first_seen: self.ports.clock.now(),
                object: format!("s3://{}/{}", object.bucket, object.key),
                reason: "no asset and no warehouse is registered at this location".to_owned(),
            };
            let is_new = assets::remember_unregistered(&self.ports, &seen).await?;
            return Ok(Watched::UnknownTable { location: seen.location, format: Some(format), is_new });
        };
        let hint = Hint { asset, look: commit.look(object), source: Source::Notify, trace: trace.clone() };
        let (mut watched, branches) = self.look_at(&hint).await?;
        if let Watched::Observed { others, .. } = &mut watched {
            for branch in branches.into_iter().take(MAX_BRANCHES) {
                let of_branch = CommitKey { branch: Some(branch), ..commit.clone() };
                if let (Some(asset), _) = self.asset_at(&location, &of_branch, trace).await? {
                    others.push(self.look(&Hint { asset, ..hint.clone() }).await?);
                }
            }
        }
        Ok(watched)
    }

    /// Looks at an asset and evaluates the targets that depend on it.
    pub async fn look(&self, hint: &Hint) -> Result<Watched, EngineError> {
        self.look_at(hint).await.map(|(watched, _)| watched)
    }

    /// The same, with the names of other branches in the files that were read.
    async fn look_at(&self, hint: &Hint) -> Result<(Watched, BTreeSet<String>), EngineError> {
        let (observed, branches) = match observe::observe_branch(&self.ports, hint).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let location = hint.asset.to_string();
                return Ok((Watched::UnknownTable { location, format: None, is_new: false }, BTreeSet::new()));
            }
            other => other?,
        };
        let evaluated = Box::pin(evaluate::evaluate_dependents(&self.ports, &observed, &hint.trace)).await?;
        Ok((Watched::Observed { observed: Box::new(observed), evaluated, others: Vec::new() }, branches))
    }

    /// Whose it is, and whether that was looked up just now.
    async fn asset_at(
        &self,
        location: &Location,
        commit: &CommitKey,
        trace: &TraceId,
    ) -> Result<(Option<AssetId>, bool), EngineError> {
        let name = format!("{location}@{}", commit.branch.as_deref().unwrap_or_default());
        let now = self.ports.clock.now();
        let remembered = self.remembered(&name, now);
        if let Some(Some(known)) = remembered {
            return Ok((Some(known), false));
        }
        let mut found = assets::at_location(&self.ports, location, commit.branch.as_deref()).await?;
        if found.is_none() && remembered.is_some() {
            return Ok((None, false));
        }
        if found.is_none() && commit.branch.is_none() {
            found = self.discover(location, commit.format, trace).await?;
        }
        let mut locations = self.locations.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if locations.len() >= MAX_CACHED {
            locations.clear();
        }
        let believed = if found.is_some() { LOCATION_CACHE } else { UNKNOWN_CACHE };
        locations.insert(name, (found, now + believed));
        Ok((found, true))
    }

    #[allow(clippy::option_option)] // not remembered, remembered as nobody's, remembered as somebody's
    fn remembered(&self, name: &str, now: Timestamp) -> Option<Option<AssetId>> {
        let locations = self.locations.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        locations.get(name).filter(|(_, until)| *until > now).map(|(asset, _)| *asset)
    }

    /// A table below a registered warehouse registers itself with its first commit.
    async fn discover(
        &self,
        location: &Location,
        format: Format,
        trace: &TraceId,
    ) -> Result<Option<AssetId>, EngineError> {
        let warehouses = settings::warehouses(&self.ports).await?;
        let takes = |warehouse: &&Warehouse| settings::spec_of(warehouse, format, location).is_some();
        let Some(warehouse) = warehouses.iter().find(takes) else { return Ok(None) };
        // A commit of one format may lie in a table of another, which keeps metadata for readers of the first.
        let format = match warehouse.format.told() {
            Some(told) => told,
            None => observe::format_found(&*self.ports.storage, location).await?.unwrap_or(format),
        };
        let Some(spec) = settings::spec_of(warehouse, format, location) else { return Ok(None) };
        let (AssetSpec { key, .. }, project) = (&spec, warehouse.project);
        tracing::info!(assetKey = %key, traceId = %trace, "registering a table of a warehouse");
        Ok(Some(assets::register_found(&self.ports, project, &spec, trace).await?.id))
    }
}

impl CommitKey {
    /// What a key, decoded, stands for: the cheap way out for all that is no commit.
    pub fn of(key: &str) -> Option<Self> {
        Self::of_paimon(key).or_else(|| Self::of_delta(key)).or_else(|| Self::of_hudi(key)).or_else(|| {
            // Last, because its names fit into any folder.
            Self::of_iceberg(key)
        })
    }

    fn of_paimon(key: &str) -> Option<Self> {
        let found = paimon::classify(key)?;
        let order = match found.kind {
            PaimonObjectKind::Snapshot(id) => id,
            // A tag names a commit, so it comes after them.
            PaimonObjectKind::Tag(_) => u64::MAX,
            _ => return None,
        };
        Some(Self { format: Format::Paimon, root: found.root, branch: found.branch, order })
    }

    fn of_delta(key: &str) -> Option<Self> {
        let found = delta::classify(key)?;
        let DeltaObjectKind::Commit(version) = found.kind else { return None };
        Some(Self { format: Format::Delta, root: found.root, branch: None, order: version })
    }

    fn of_hudi(key: &str) -> Option<Self> {
        let found = hudi::classify(key)?;
        let order = found.completed()?.position().as_number();
        Some(Self { format: Format::Hudi, root: found.root, branch: None, order })
    }

    fn of_iceberg(key: &str) -> Option<Self> {
        let found = iceberg::classify(key)?;
        let IcebergObjectKind::Metadata(name) = found.kind else { return None };
        let order = name.rising().unwrap_or(u64::MAX);
        Some(Self { format: Format::Iceberg, root: found.root()?.to_owned(), branch: None, order })
    }

    fn look(&self, object: &Created) -> Look {
        if self.format == Format::Paimon {
            return match paimon::classify(&object.key).map(|found| found.kind) {
                Some(PaimonObjectKind::Tag(name)) => Look::Tag(name),
                _ => Look::At { ordinal: Ordinal(self.order), etag: object.etag.clone() },
            };
        }
        let relative =
            object.key.strip_prefix(&self.root).map_or(object.key.as_str(), |rest| rest.trim_start_matches('/'));
        Look::File { key: relative.to_owned(), etag: object.etag.clone() }
    }
}

impl Watched {
    /// What it meant for the state, for metrics and logs: one entry for each event.
    pub fn outcomes(&self) -> Vec<(EventKind, Outcome)> {
        match self {
            Self::NotACommit => Vec::new(),
            Self::UnknownTable { .. } => {
                vec![(EventKind::SnapshotCommitted, Outcome::Ignored("unknown table".to_owned()))]
            }
            Self::Observed { observed, others, .. } => {
                observed.outcomes.iter().cloned().chain(others.iter().flat_map(Self::outcomes)).collect()
            }
        }
    }
}
