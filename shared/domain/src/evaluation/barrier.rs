//! What stands in the way of every claim, whatever the groups say.

use super::Inputs;
use crate::policy::OnFailed;
use crate::reason::{Reason, ReasonCode, Verdict};
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
            unblock: "switch it on again; what has advanced meanwhile becomes one trigger".into(),
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
            unblock: "resume the target; what has advanced meanwhile becomes one trigger".into(),
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
        status => (
            ReasonCode::TriggerInFlight,
            format!("trigger {} is {}", open.key, status.step()),
            Some(open.claimed_at),
            "nothing to do: what advances meanwhile becomes the next trigger".to_owned(),
        ),
    };
    let expected = "no open trigger".to_owned();
    Some((Verdict::Waiting, Reason { code, asset: None, expected, actual, since, unblock: unblock.into() }))
}

/// Not sent for a while yet: the next claim replaces it and takes its data along, unless each
/// trigger of the target stands for itself.
pub(super) fn gives_way(inputs: &Inputs<'_>, open: &Trigger) -> bool {
    matches!(open.status(), Status::Waiting { .. }) && !inputs.target.is_apart()
}
