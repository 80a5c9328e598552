//! Events that storage has to confirm: look there, and keep what it does not confirm.

use lakebell_domain::event::{EventKind, Outcome, PushedEvidence, Source};

use super::{Push, attach, record, trusted, version};
use crate::EngineError;
use crate::asset_settings::Trust;
use crate::observe::{self, Hint, Look, Observed};

/// Looks at the asset. What it meant is what the look found, or why storage does not bear it out.
pub(super) async fn follow(push: &Push<'_>, look: Look) -> Result<(Outcome, Observed), EngineError> {
    let hint = Hint { asset: push.asset, look, source: Source::Push, trace: push.trace.clone() };
    let mut observed = observe::observe(push.ports, &hint).await?;
    if observed.head.value.settings.trust == Trust::Writer {
        return Box::pin(trusted::take(push, observed)).await;
    }
    let Some(reason) = unconfirmed(push, &observed).await? else {
        attach::keep(push, &observed.head.value).await?;
        let outcome = observed.outcomes.last().map_or(Outcome::Duplicate, |(_, outcome)| outcome.clone());
        return Ok((outcome, observed));
    };
    let outcome = Outcome::Ignored(reason.clone());
    let tag = push.pushed.facts.tag.clone().map(|name| PushedEvidence::Tag { name, version: None });
    let event = push.event(outcome.clone(), tag);
    record::keep_refused(push, &event, &reason, &mut observed.head).await?;
    Ok((outcome, observed))
}

/// Why storage does not bear the event out, if it does not.
async fn unconfirmed(push: &Push<'_>, observed: &Observed) -> Result<Option<String>, EngineError> {
    let head = &observed.head.value;
    let Some(state) = head.live_state() else { return Ok(Some(observe::DEREGISTERED.to_owned())) };
    let facts = &push.pushed.facts;
    Ok(match (push.pushed.kind, &facts.snapshot_id, &facts.tag, facts.schema_id) {
        (EventKind::SnapshotCommitted, Some(id), ..) => {
            let is_there = version::is_there(push, head, id).await?;
            (!is_there).then(|| format!("snapshot {id} is not visible in storage"))
        }
        (EventKind::TagCreated, _, Some(tag), _) => {
            (!state.tags.contains_key(tag)).then(|| format!("tag {tag} is not visible in storage"))
        }
        (EventKind::TagDeleted, _, Some(tag), _) => {
            state.tags.contains_key(tag).then(|| format!("tag {tag} is still there in storage"))
        }
        (EventKind::SchemaChanged, _, _, Some(id)) => {
            let is_seen = state.schema.current == Some(id) || state.marks().any(|mark| mark.schema_id == Some(id));
            (!is_seen).then(|| format!("no commit with schema {id} is visible in storage"))
        }
        (EventKind::HistoryRewritten, ..) => {
            let is_seen =
                state.hold.is_some() || observed.outcomes.iter().any(|(kind, _)| *kind == EventKind::HistoryRewritten);
            (!is_seen).then(|| "storage agrees with the recorded history".to_owned())
        }
        _ => None,
    })
}
