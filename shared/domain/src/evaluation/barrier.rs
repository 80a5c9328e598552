//! What stands in the way of every claim, whatever the groups say.

use super::Inputs;
use crate::policy::{Coalesce, OnFailed, OnResume};
use crate::reason::{Reason, ReasonCode, Verdict};
use crate::target::Target;
use crate::trigger::{Status, Trigger};

pub(super) fn barrier(inputs: &Inputs<'_>) -> Option<(Verdict, Reason)> {
    if !inputs.target.enabled {
        let reason = Reason {
            code: ReasonCode::TargetDisabled,
            asset: None,
            expected: "enabledFlag 1".to_owned(),
            actual: "enabledFlag 0".to_owned(),
            since: None,
            unblock: "declare the target with `enabledFlag: 1`; its cursors are kept".into(),
        };
        return Some((Verdict::Disabled, reason));
    }
    if let Some(problem) = &inputs.target.invalid {
        let reason = Reason {
            code: ReasonCode::TargetInvalid,
            asset: None,
            expected: "a declaration that can be met".to_owned(),
            actual: problem.clone(),
            since: None,
            unblock: "declare the target again; its cursors are kept, and it catches up once".into(),
        };
        return Some((Verdict::Disabled, reason));
    }
    if let Some(switch) = inputs.switched_off {
        let reason = Reason {
            code: ReasonCode::SwitchedOff,
            asset: None,
            expected: "starting switched on".to_owned(),
            actual: format!("switched off ({}) by {}", switch.scope, switch.by),
            since: Some(switch.since),
            unblock: format!("switch it on again; {}", what_came(inputs.target)).into(),
        };
        return Some((Verdict::BlockedByGate, reason));
    }
    if let Some(paused) = &inputs.cursor.paused {
        let reason = Reason {
            code: ReasonCode::TargetPaused,
            asset: None,
            expected: "not paused".to_owned(),
            actual: format!("paused by {}", paused.by),
            since: Some(paused.since),
            unblock: format!("resume the target; {}", after_a_pause(inputs.target)).into(),
        };
        return Some((Verdict::Paused, reason));
    }
    let open = inputs.open?;
    let holds_failed = inputs.target.policies.on_failed == OnFailed::Hold;
    let (code, actual, since, unblock) = match open.status() {
        Status::Failed { code, .. } if holds_failed => (
            ReasonCode::TriggerFailed,
            format!("trigger {} failed: {code}", open.key),
            open.log.last().map(|passage| passage.at),
            format!("redrive trigger {}, or skip it to give it up", open.key),
        ),
        _ if open.has_ended() || gives_way(inputs, open) => return None,
        Status::Unknown { held: true, detail, since, .. } => (
            ReasonCode::TriggerHeld,
            format!("trigger {} is held: {detail}", open.key),
            Some(*since),
            format!("decide trigger {}: did its workflow start?", open.key),
        ),
        _ if open.waits_for_sensor() => (
            ReasonCode::TriggerInFlight,
            format!("trigger {} waits for its task to ask", open.key),
            Some(open.claimed_at),
            format!("nothing to do once its task polls; or skip trigger {} to give it up", open.key),
        ),
        status => (
            ReasonCode::TriggerInFlight,
            format!("trigger {} is {}", open.key, status.step()),
            Some(open.claimed_at),
            if inputs.target.is_apart() {
                format!("nothing to do: after it {}", what_came(inputs.target))
            } else {
                "nothing to do: what advances meanwhile becomes the next trigger".to_owned()
            },
        ),
    };
    let expected = "no open trigger".to_owned();
    Some((Verdict::Waiting, Reason { code, asset: None, expected, actual, since, unblock: unblock.into() }))
}

/// What becomes of what came while nothing could start.
fn what_came(target: &Target) -> &'static str {
    match target.policies.coalesce {
        Coalesce::Each => "each version that came meanwhile becomes a trigger of its own",
        Coalesce::Newest if target.is_apart() => {
            "each window or partition that is complete by then becomes a trigger of its own"
        }
        Coalesce::Newest => "what has advanced meanwhile becomes one trigger",
    }
}

fn after_a_pause(target: &Target) -> &'static str {
    match (target.policies.on_resume, target.policies.coalesce) {
        (OnResume::Skip, _) => "what has advanced meanwhile counts as taken",
        (OnResume::Latest, Coalesce::Each) => "what has advanced meanwhile becomes one trigger of its group",
        (OnResume::Latest, Coalesce::Newest) => what_came(target),
    }
}

/// Not sent for a while yet: the next claim replaces it and takes its data along, unless each
/// trigger of the target stands for itself.
pub(super) fn gives_way(inputs: &Inputs<'_>, open: &Trigger) -> bool {
    matches!(open.status(), Status::Waiting { .. }) && !inputs.target.is_apart()
}
