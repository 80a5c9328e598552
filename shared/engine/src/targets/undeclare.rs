//! Take a target back.

use lakebell_domain::ids::TargetId;
use lakebell_domain::trigger::{Arrow, Status, Trigger};

use super::{load, not_found, pointers, subscribe};
use crate::evaluate::{cursor_draft, defect, trigger_draft};
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::records::Definition;
use crate::store::{self, MAX_LOST_RACES};
use crate::{EngineError, ErrorKind};

/// Undeclares a target in one transaction: a tombstone in the definition, the cursors kept, a
/// queued or waiting trigger SKIPPED. Doing it twice changes nothing.
///
/// Errors: `NotFound`; `Conflict` while a trigger is leased, unknown or held.
pub async fn undeclare(ports: &Ports, id: &TargetId) -> Result<(), EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, id).await?;
        let (Some(definition), Some(cursor)) = (known.definition, known.cursor) else { return Err(not_found(id)) };
        if definition.value.undeclared_at.is_some() {
            // The run that did it may have died before this.
            return forget(ports, id, &definition.value).await;
        }
        let now = ports.clock.now();
        let tombstone = Definition { undeclared_at: Some(now), ..definition.value.clone() };
        let mut closed = cursor.value.clone();
        let mut actions = Vec::new();
        if let Some(open) = &cursor.value.open
            && let Some(trigger) = store::get::<Trigger>(&*ports.items, layout::trigger(open)).await?
            && !trigger.value.has_ended()
        {
            let skip = Arrow::Skip { why: "its target was undeclared".to_owned() };
            let is_skippable = matches!(trigger.value.status(), Status::Queued | Status::Waiting { .. });
            if !is_skippable {
                return Err(EngineError::new(
                    ErrorKind::Conflict,
                    format!("trigger {open} is {}; try again when it has ended", trigger.value.status().step()),
                )
                .with("target", id));
            }
            let skipped = trigger.value.apply(&skip, now).map_err(defect)?;
            actions.push(Write::Replace(trigger_draft(&skipped)?, trigger.rev));
        }
        closed.open = None;
        // Nothing takes over its data any more, and a redrive would start what is not declared.
        closed.failed = None;
        closed.due_at = None;
        actions.push(Write::Replace(store::draft(layout::definition(id), &tombstone)?, definition.rev));
        actions.push(Write::Replace(cursor_draft(id, &closed)?, cursor.rev));
        let registered = layout::registered_target(id);
        if let Some(item) = ports.items.get(std::slice::from_ref(&registered)).await?.first() {
            actions.push(Write::Remove(registered, item.rev));
        }
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            return forget(ports, id, &definition.value).await;
        }
    }
    Err(store::lost_too_often("undeclare").with("target", id))
}

/// Takes back what says of its assets that an undeclared target depends on them.
async fn forget(ports: &Ports, id: &TargetId, definition: &Definition) -> Result<(), EngineError> {
    for asset in definition.target.assets().into_keys() {
        pointers::drop_stale(ports, asset, id).await?;
    }
    subscribe::keep_only(ports, id, &definition.target, &[]).await
}
