//! What the readers of all formats share: the table's files, and the words for what they find.

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::asset::Location;
use lakebell_domain::commit::Commit;
use lakebell_domain::state::{AssetState, Evidence, Gap, Hole, RewriteHold, SchemaDetail, Trouble, TroubleCode};
use lakebell_domain::version::Ordinal;
use lakebell_formats::FormatError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::findings::{Finding, Reading};
use crate::ports::storage::{Listed, Listing, Object, Opened, TableStorage};
use crate::records::Ring;
use crate::{EngineError, ErrorKind};

/// How long a missing commit below one that is there is waited for before it is a recorded gap.
const HOLE_GRACE: SignedDuration = SignedDuration::from_mins(10);
/// How far a first read goes back to find a commit that changed data.
const FIRST_READ_DEPTH: usize = 8;

/// Files that a read of many commits asks for at a time.
const AHEAD: usize = 16;

/// How far a reader goes back in a table of which nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Back<'a> {
    /// To the newest commit that changed data, if it is among the last few.
    ToData,
    /// To this ordinal, or to the oldest commit that is left, and at most so many commits.
    To(Ordinal, usize),
    /// To the newest of these commits that is there and changed data, and at most so many commits.
    ToKnown(&'a Ring, usize),
}

impl Back<'_> {
    /// Most commits that are read.
    pub(super) const fn depth(self) -> usize {
        match self {
            Self::ToData => FIRST_READ_DEPTH,
            Self::To(_, depth) | Self::ToKnown(_, depth) => depth,
        }
    }

    /// How many commits are read at a time: where the newest will mostly do, it alone.
    pub(super) const fn ahead(self) -> usize {
        match self {
            Self::ToData => 1,
            Self::To(..) | Self::ToKnown(..) => AHEAD,
        }
    }

    /// Whether nothing before a commit is asked for.
    pub(super) fn ends_at(self, commit: &Commit) -> bool {
        let is_data = commit.changes_data != Some(false);
        match self {
            Self::ToData => is_data,
            Self::To(first, _) => commit.ordinal <= first,
            Self::ToKnown(ring, _) => is_data && ring.holds(commit),
        }
    }
}

/// A read that ended early: trouble to record, or an error to try again.
pub(super) enum Stop {
    Trouble(TroubleCode, String),
    /// Trouble to record, and then to be tried again.
    Away(TroubleCode, EngineError),
    Error(EngineError),
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        match error.kind() {
            ErrorKind::Denied => Self::Trouble(TroubleCode::Unreadable, error.message().to_owned()),
            ErrorKind::Damaged => Self::Trouble(TroubleCode::Damaged, error.message().to_owned()),
            _ => Self::Error(error),
        }
    }
}

/// One table or branch, and the moment of the look at it.
pub(super) struct Table<'a> {
    pub(super) storage: &'a dyn TableStorage,
    pub(super) location: &'a Location,
    pub(super) branch: Option<&'a str>,
    pub(super) back: Back<'a>,
    pub(super) now: Timestamp,
}

impl Table<'_> {
    /// A whole object by its key relative to the root, of at most `limit` bytes.
    pub(super) async fn object(&self, relative: &str, limit: usize) -> Result<Option<Object>, Stop> {
        let key = self.location.object_key(relative);
        Ok(self.storage.get(self.location.bucket(), &key, limit).await?)
    }

    /// An object by its key relative to the root, to be read piece by piece.
    pub(super) async fn open(&self, relative: &str) -> Result<Option<Opened>, Stop> {
        let key = self.location.object_key(relative);
        Ok(self.storage.open(self.location.bucket(), &key).await?)
    }

    /// A listing in keys relative to the root.
    pub(super) async fn list(&self, listing: Listing<'_>) -> Result<Vec<Listed>, Stop> {
        let prefix = self.location.object_key(listing.prefix);
        let after = listing.after.map(|after| self.location.object_key(after));
        let absolute = Listing { prefix: &prefix, after: after.as_deref(), ..listing };
        let mut listed = self.storage.list(self.location.bucket(), absolute).await?;
        let root = self.location.object_key("").len();
        for row in &mut listed {
            row.key.drain(..root.min(row.key.len()));
        }
        Ok(listed)
    }

    /// The reading, or the trouble that ended it, to be recorded.
    pub(super) fn settle(&self, reading: Result<Reading, Stop>) -> Result<Reading, EngineError> {
        match reading {
            Ok(reading) => Ok(reading),
            Err(Stop::Trouble(code, detail)) => Ok(Reading::of(self.trouble(code, detail))),
            Err(Stop::Away(code, error)) => {
                let trouble = self.trouble(code, error.message().to_owned());
                Ok(Reading { failed: Some(error), ..Reading::of(trouble) })
            }
            Err(Stop::Error(error)) => Err(error),
        }
    }

    pub(super) const fn trouble(&self, code: TroubleCode, detail: String) -> Evidence {
        Evidence::Trouble(Trouble { code, detail, since: self.now })
    }

    pub(super) fn gap(&self, first: u64, last: u64, cause: &str) -> Finding {
        let gap = Gap { first: Ordinal(first), last: Ordinal(last), at: self.now, cause: cause.to_owned() };
        Finding::new(Evidence::Expired(gap))
    }

    /// The hole to record, or `None` once its grace is over.
    pub(super) fn hole(&self, state: &AssetState, ordinal: u64) -> Option<Hole> {
        let first_seen = state.hole.as_ref().filter(|hole| hole.ordinal.0 == ordinal).map(|hole| hole.first_seen);
        let over = first_seen.is_some_and(|since| self.now.duration_since(since) >= HOLE_GRACE);
        (!over).then(|| Hole { ordinal: Ordinal(ordinal), first_seen: first_seen.unwrap_or(self.now) })
    }

    pub(super) fn sighting(&self, state: &AssetState, evidence: String) -> RewriteHold {
        RewriteHold {
            evidence,
            withdrawn: state.table.clone(),
            storage_newest: None,
            first_seen: self.now,
            confirmed_at: None,
        }
    }

    /// What a look at a hold came to: the same sighting once more, or its withdrawal.
    pub(super) fn hold_again(&self, hold: &RewriteHold, still_stands: bool) -> Reading {
        if still_stands {
            let again = RewriteHold { first_seen: self.now, confirmed_at: None, ..hold.clone() };
            return Reading::of(Evidence::RewriteSighted(again));
        }
        Reading { more: true, ..Reading::of(Evidence::RewriteWithdrawn) }
    }
}

/// A whole look that found no rewrite has compared what was taken on trust; one that found nothing
/// at all says that storage can be read again.
pub(super) fn verified(state: &AssetState, mut reading: Reading) -> Reading {
    reading.verified = !reading.sights_rewrite();
    if reading.findings.is_empty() && state.trouble.is_some() {
        reading.findings.push(Finding::new(Evidence::Readable));
    }
    reading
}

pub(super) fn damaged(key: &str, error: &FormatError) -> Stop {
    Stop::Trouble(TroubleCode::Damaged, format!("{key}: {error}"))
}

/// What a reader keeps in the state for itself, from one look to the next. It stands where the
/// state has room for a fact of the format's reader; one that cannot be read any more is as none.
pub(super) fn note_of<T: DeserializeOwned + Default>(state: &AssetState) -> T {
    let text = state.schema.detail.as_ref().and_then(|detail| detail.text.as_deref());
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The finding that keeps a note.
pub(super) fn keep_note<T: Serialize>(note: &T, schema_id: Option<i64>) -> Result<Finding, Stop> {
    let text = crate::store::encode(note).map_err(Stop::Error)?;
    Ok(Finding::new(Evidence::SchemaRead(SchemaDetail { schema_id: schema_id.unwrap_or(-1), text: Some(text) })))
}

/// The id that a table's own metadata gives it, where a look has found one.
pub(crate) fn uuid_of(state: &AssetState) -> Option<String> {
    #[derive(Default, serde::Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Identity {
        uuid: Option<String>,
        table_id: Option<String>,
    }
    let identity: Identity = note_of(state);
    identity.uuid.or(identity.table_id)
}

/// The name of the metadata file that a look at an Iceberg table has accepted last.
pub(crate) fn file_of(state: &AssetState) -> Option<String> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Accepted {
        file: Option<String>,
    }
    note_of::<Accepted>(state).file.filter(|file| !file.is_empty())
}
