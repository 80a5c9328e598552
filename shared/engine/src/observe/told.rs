//! Assets whose writer is trusted: nothing of them is read, and what is told is recorded like what is read.

use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::state::{AssetState, Evidence, RewriteHold};

use super::findings::{Finding, Reading};
use super::table::Table;
use super::{Hint, Look, Observed, load, observed, write_reading};
use crate::EngineError;
use crate::ports::Ports;
use crate::records::Ring;
use crate::store::{self, MAX_LOST_RACES};

/// What a look at such an asset comes to, without a read: the first one begins its history, and a rewrite that
/// was told of stands until a person accepts it.
pub(super) fn recorded(state: &AssetState, look: &Look, table: &Table<'_>) -> Reading {
    if state.baseline.is_none() {
        return Reading::of(Evidence::FirstRead(Vec::new()));
    }
    match &state.hold {
        Some(hold) if *look == Look::Whole => {
            let again = RewriteHold { first_seen: table.now, confirmed_at: None, ..hold.clone() };
            Reading::of(Evidence::RewriteSighted(again))
        }
        Some(_) => Reading::default(),
        None => Reading { verified: *look == Look::Whole, ..Reading::default() },
    }
}

/// Records what the writer of an asset tells.
///
/// Errors: `NotFound` for an asset that is not registered; `Contention` after too many lost races, and
/// `Unavailable`, both to be tried again.
pub(crate) async fn told(ports: &Ports, hint: &Hint, evidence: &Evidence) -> Result<Observed, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, hint.asset).await?;
        if let Some(outcome) = known_commit(&known.ring.value, evidence) {
            return Ok(observed(hint.asset, known, vec![(EventKind::SnapshotCommitted, outcome)]));
        }
        let finding = Finding { evidence: evidence.clone(), etags: vec![String::new()] };
        let reading = Reading { findings: vec![finding], ..Reading::default() };
        if let Some(observed) = write_reading(ports, hint, known, &reading).await? {
            return Ok(observed);
        }
    }
    Err(store::lost_too_often("record what a writer tells").with("asset", hint.asset))
}

/// What becomes of a commit whose place in the history is taken: it is there already, or cannot be.
fn known_commit(ring: &Ring, evidence: &Evidence) -> Option<Outcome> {
    let Evidence::Commit(commit) = evidence else { return None };
    let there = ring.find(commit.ordinal)?;
    Some(if there.fingerprint == commit.fingerprint {
        Outcome::Duplicate
    } else {
        Outcome::Ignored(format!("another snapshot stands at {} in the history of the table", commit.ordinal))
    })
}
