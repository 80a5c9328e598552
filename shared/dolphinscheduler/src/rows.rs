//! Reading rows of instances.
//!
//! Source: `ProcessInstance.java` / `WorkflowInstance.java` and `WorkflowExecutionStatus.java` of
//! DolphinScheduler 3.1.9, 3.2.2 and the line that became 3.3. Times are texts without a zone, in
//! the zone of the API server's JSON mapper, which is UTC as shipped.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use lakebell_domain::ids::InstanceId;
use lakebell_engine::ports::scheduler::{InstanceReport, InstanceState, Refusal};
use serde_json::Value;

use crate::list::unexpected;

/// How times are written in queries and answers, without a zone.
pub(crate) const TIME: &str = "%Y-%m-%d %H:%M:%S";

/// The states that an instance leaves by itself, of each line, in about the order in which it goes
/// through them, so that one that moves on between two questions is seen by the later one. Only
/// names that every release of the line knows: another one is refused as no state at all.
pub(crate) const ACTIVE_3_1: &[&str] = &[
    "SUBMITTED_SUCCESS",
    "SERIAL_WAIT",
    "DELAY_EXECUTION",
    "RUNNING_EXECUTION",
    "READY_BLOCK",
    "READY_PAUSE",
    "READY_STOP",
];
/// The same for 3.2.
pub(crate) const ACTIVE_3_2: &[&str] = &[
    "SUBMITTED_SUCCESS",
    "SERIAL_WAIT",
    "WAIT_TO_RUN",
    "DELAY_EXECUTION",
    "RUNNING_EXECUTION",
    "READY_BLOCK",
    "READY_PAUSE",
    "READY_STOP",
];
/// The same for 3.3 and later.
pub(crate) const ACTIVE_3_3: &[&str] =
    &["SUBMITTED_SUCCESS", "SERIAL_WAIT", "FAILOVER", "RUNNING_EXECUTION", "READY_PAUSE", "READY_STOP"];

/// The state behind a name. Names that are not known have not ended.
pub(crate) fn state_of(name: &str) -> InstanceState {
    match name {
        "SUCCESS" => InstanceState::Success,
        "FAILURE" => InstanceState::Failure,
        "STOP" | "BLOCK" => InstanceState::Stopped,
        "PAUSE" | "READY_PAUSE" => InstanceState::Suspended,
        _ => InstanceState::Running,
    }
}

/// Whether an instance in this state runs or is about to. A paused one is not: it may stay so for
/// ever.
pub(crate) fn is_active(name: &str) -> bool {
    name != "PAUSE" && !state_of(name).has_ended()
}

/// The state of a row, where it names one.
pub(crate) fn state(row: &Value) -> Option<InstanceState> {
    row.get("state").and_then(Value::as_str).map(state_of)
}

/// A time of a row: shown without a zone, taken as UTC.
pub(crate) fn time(row: &Value, field: &str) -> Option<Timestamp> {
    let text = row.get(field)?.as_str()?;
    DateTime::strptime(TIME, text).ok()?.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp())
}

/// A row as the engine sees it.
pub(crate) fn report(row: &Value) -> Result<InstanceReport, Refusal> {
    let id = row.get("id").and_then(Value::as_i64).ok_or_else(|| unexpected("an instance came without its id"))?;
    let state = state(row).ok_or_else(|| unexpected("an instance came without its state"))?;
    let runs = row.get("runTimes").and_then(Value::as_u64).and_then(|runs| u32::try_from(runs).ok());
    Ok(InstanceReport {
        id: InstanceId(id),
        state,
        started_at: time(row, "startTime"),
        // A rerun clears it late: while it runs there is no end to tell of.
        ended_at: time(row, "endTime").filter(|_| state.has_ended()),
        runs: runs.unwrap_or(1).max(1),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_state_has_not_ended() {
        for name in ["SUBMITTED_SUCCESS", "RUNNING_EXECUTION", "READY_STOP", "SERIAL_WAIT", "FAILOVER", "NEW_ONE", ""] {
            assert_eq!(state_of(name), InstanceState::Running, "{name}");
        }
        assert_eq!(state_of("STOP"), InstanceState::Stopped);
        assert_eq!(state_of("PAUSE"), InstanceState::Suspended);
    }

    #[test]
    fn every_state_that_is_asked_for_is_active() {
        for state in [ACTIVE_3_1, ACTIVE_3_2, ACTIVE_3_3].concat() {
            assert!(is_active(state), "{state}");
        }
        for state in ["SUCCESS", "FAILURE", "STOP", "BLOCK", "PAUSE"] {
            assert!(!is_active(state), "{state}");
        }
    }

    #[test]
    fn times_without_a_zone_are_read() {
        let row = json!({"startTime": "2026-01-02 03:04:05", "endTime": null});
        assert_eq!(time(&row, "startTime").unwrap().to_string(), "2026-01-02T03:04:05Z");
        assert_eq!(time(&row, "endTime"), None);
        assert_eq!(time(&json!({"startTime": 5}), "startTime"), None);
    }

    #[test]
    fn a_row_without_id_or_state_is_no_instance() {
        assert!(report(&json!({"state": "SUCCESS"})).is_err());
        assert!(report(&json!({"id": 1, "state": null})).is_err());
        let row = json!({"id": 1, "state": "RUNNING_EXECUTION", "endTime": "2026-01-02 03:04:05", "runTimes": 2});
        let told = report(&row).unwrap();
        assert_eq!((told.ended_at, told.runs), (None, 2));
    }
}
