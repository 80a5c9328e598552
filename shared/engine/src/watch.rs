//! From an object in a bucket to the asset that it belongs to.

use std::collections::HashMap;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::asset::{Format, Location};
use lakebell_domain::event::{EventKind, Outcome, Source};
use lakebell_domain::ids::{AssetId, TraceId};
use lakebell_domain::version::Ordinal;
use lakebell_formats::paimon::{self, PaimonObjectKind};

use crate::assets::{self, AssetSpec};
use crate::evaluate::{self, Evaluated};
use crate::observe::{self, Hint, Look, Observed};
use crate::ports::Ports;
use crate::records::{Unregistered, Warehouse};
use crate::settings;
use crate::{EngineError, ErrorKind};

/// How long a function may go on believing which asset lives at a location, or that none does.
pub const LOCATION_CACHE: SignedDuration = SignedDuration::from_secs(60);
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
        /// Whether it was seen for the first time.
        is_new: bool,
    },
    /// Its asset was looked at, and the asset's targets evaluated.
    Observed {
        /// The look.
        observed: Box<Observed>,
        /// The evaluations.
        evaluated: Vec<Evaluated>,
    },
}

/// The commit watcher: remembers which asset lives where for [`LOCATION_CACHE`].
pub struct Watcher {
    ports: Ports,
    locations: Mutex<HashMap<String, (Option<AssetId>, Timestamp)>>,
}

/// A commit object by its key alone.
struct CommitObject {
    location: Location,
    branch: Option<String>,
    look: Look,
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
        let Some(commit) = classify(object) else { return Ok(Watched::NotACommit) };
        let (asset, is_fresh) = self.asset_at(&commit, trace).await?;
        let Some(asset) = asset else {
            if !is_fresh {
                return Ok(Watched::UnknownTable { location: commit.location.to_string(), is_new: false });
            }
            let seen = Unregistered {
                location: commit.location.to_string(),
                format: Format::Paimon,
                first_seen: self.ports.clock.now(),
                object: format!("s3://{}/{}", object.bucket, object.key),
                reason: "no asset and no warehouse is registered at this location".to_owned(),
            };
            let is_new = assets::remember_unregistered(&self.ports, &seen).await?;
            return Ok(Watched::UnknownTable { location: seen.location, is_new });
        };
        let hint = Hint { asset, look: commit.look, source: Source::Notify, trace: trace.clone() };
        self.look(&hint).await
    }

    /// Looks at an asset and evaluates the targets that depend on it.
    pub async fn look(&self, hint: &Hint) -> Result<Watched, EngineError> {
        let observed = match observe::observe(&self.ports, hint).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Watched::UnknownTable { location: hint.asset.to_string(), is_new: false });
            }
            other => other?,
        };
        let evaluated = evaluate::evaluate_dependents(&self.ports, &observed, &hint.trace).await?;
        Ok(Watched::Observed { observed: Box::new(observed), evaluated })
    }

    /// Whose it is, and whether that was looked up just now.
    async fn asset_at(&self, commit: &CommitObject, trace: &TraceId) -> Result<(Option<AssetId>, bool), EngineError> {
        let name = format!("{}@{}", commit.location, commit.branch.as_deref().unwrap_or_default());
        let now = self.ports.clock.now();
        if let Some(known) = self.remembered(&name, now) {
            return Ok((known, false));
        }
        let mut found = assets::at_location(&self.ports, &commit.location, commit.branch.as_deref()).await?;
        if found.is_none() && commit.branch.is_none() {
            found = self.discover(&commit.location, trace).await?;
        }
        let mut locations = self.locations.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if locations.len() >= MAX_CACHED {
            locations.clear();
        }
        locations.insert(name, (found, now + LOCATION_CACHE));
        Ok((found, true))
    }

    #[allow(clippy::option_option)] // not remembered, remembered as nobody's, remembered as somebody's
    fn remembered(&self, name: &str, now: Timestamp) -> Option<Option<AssetId>> {
        let locations = self.locations.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        locations.get(name).filter(|(_, until)| *until > now).map(|(asset, _)| *asset)
    }

    /// A table below a registered warehouse registers itself with its first commit.
    async fn discover(&self, location: &Location, trace: &TraceId) -> Result<Option<AssetId>, EngineError> {
        let warehouses = settings::warehouses(&self.ports).await?;
        let spec = |warehouse: &Warehouse| settings::spec_of(warehouse, location).map(|spec| (warehouse.project, spec));
        let Some((project, spec)) = warehouses.iter().find_map(spec) else { return Ok(None) };
        let AssetSpec { key, .. } = &spec;
        tracing::info!(assetKey = %key, traceId = %trace, "registering a table of a warehouse");
        Ok(Some(assets::register(&self.ports, project, &spec, trace).await?.id))
    }
}

/// What a created object is, from its key alone: the cheap way out for all that is no commit.
fn classify(object: &Created) -> Option<CommitObject> {
    let found = paimon::classify(&object.key)?;
    let look = match found.kind {
        PaimonObjectKind::Snapshot(id) => Look::At { ordinal: Ordinal(id), etag: object.etag.clone() },
        PaimonObjectKind::Tag(name) => Look::Tag(name),
        _ => return None,
    };
    let location = Location::new(&object.bucket, &found.root).ok()?;
    Some(CommitObject { location, branch: found.branch, look })
}

impl Watched {
    /// What it meant for the state, for metrics and logs: one entry for each event.
    pub fn outcomes(&self) -> Vec<(EventKind, Outcome)> {
        match self {
            Self::NotACommit => Vec::new(),
            Self::UnknownTable { .. } => {
                vec![(EventKind::SnapshotCommitted, Outcome::Ignored("unknown table".to_owned()))]
            }
            Self::Observed { observed, .. } => observed.outcomes.clone(),
        }
    }
}
