//! What an answer means for a start, and for a read.
//!
//! Decided by the code in the body and, where one code stands for several things, by the text.
//! Source of codes and texts: `Status.java`, `ExecutorServiceImpl.java` and the workflow triggers
//! of DolphinScheduler 3.1.9, 3.2.2 and the line that became 3.3; the text of an offline workflow
//! in 3.3 and later from the tests of a public 3.4.1 client.

use lakebell_domain::ids::InstanceId;
use lakebell_engine::ports::scheduler::{Refusal, StartOutcome};
use serde_json::Value;

use crate::envelope::{Answer, Transport};

/// What an answer means, before it is said in terms of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Done.
    Success,
    /// Nothing happened, and the same call may succeed later.
    Retryable,
    /// It may or may not have taken effect.
    Ambiguous,
    /// Nothing happened, and a person has to change something.
    Permanent,
    /// Nothing happened because the workflow, or a workflow within it, is offline.
    Offline,
    /// The wanted state holds already, or is on its way.
    AlreadyDone,
    /// The state does not allow it; what the state is has to be read again.
    RereadState,
    /// The token is refused, and with it every other call.
    ConnectionRefused,
}

/// The class of an envelope's code and text.
pub fn by_code(code: i64, msg: &str) -> Class {
    match code {
        0 => Class::Success,
        10000 => by_text(msg),
        50014 if msg.contains("should be online") => Class::Offline,
        50004 => Class::Offline,
        // Masters missing, failed reads, failed logins: nothing was written.
        10014 | 10025 | 10029 | 10043 | 10047 | 10049 | 10109 | 10110 | 10113 | 10114 | 10116 | 10120 | 10122
        | 10192 | 10205 | 50071 | 70012 | 70016 | 80001 => Class::Retryable,
        10001
        | 10002
        | 10004
        | 10008
        | 10010
        | 10013
        | 10017
        | 10018
        | 10148
        | 10163
        | 10181
        | 10190
        | 10206
        | 10207
        | 30001..=30003
        | 50001
        | 50003
        | 50008
        | 50016..=50021
        | 50027
        | 50030
        | 50035
        | 50036
        | 50054
        | 50080
        | 50081
        | 70015
        | 1_400_001..=1_400_003 => Class::Permanent,
        10019 | 10168 | 50002 | 50005 | 50009 => Class::AlreadyDone,
        50006 => Class::RereadState,
        // 50014 and its like are catch-alls, and an unlisted code proves nothing.
        _ => Class::Ambiguous,
    }
}

/// 10000 is any error that is plain text.
fn by_text(msg: &str) -> Class {
    const PERMANENT: [&str; 2] = ["Cannot find the workflow", "Parse startNodes"];
    if msg.contains("no master server available") {
        Class::Retryable
    } else if PERMANENT.iter().any(|text| msg.contains(text)) || (msg.contains("execType") && msg.contains("invalid")) {
        Class::Permanent
    } else if msg.contains("state is") && msg.contains("cannot") {
        Class::RereadState
    } else {
        // "Trigger workflow failed" among them: the master answered failure, and its transaction
        // should have been rolled back, which nobody proved.
        Class::Ambiguous
    }
}

/// The class of an answer to a POST.
pub fn of_write(answer: &Answer) -> Class {
    match answer {
        Answer::Envelope { code, msg, .. } => by_code(*code, msg),
        Answer::Http { status: 401, .. } => Class::ConnectionRefused,
        // The rate limit stands before every handler, and what was not sent reached none.
        Answer::Http { status: 429, .. } | Answer::None { transport: Transport::NotSent | Transport::Withheld, .. } => {
            Class::Retryable
        }
        // A time-out before the whole request was read, and statuses of proxies nobody listed.
        Answer::Http { status: 408 | 425 | 499.., .. } | Answer::None { transport: Transport::MaybeSent, .. } => {
            Class::Ambiguous
        }
        // Web pages, redirects and refusals of the request itself: no handler saw it.
        Answer::Http { .. } => Class::Permanent,
    }
}

/// The refusal that an answer amounts to.
pub(crate) fn refusal(answer: &Answer) -> Refusal {
    Refusal { code: answer.code_text(), detail: answer.detail() }
}

/// What an answer to a start amounts to.
pub fn start_outcome(answer: &Answer) -> StartOutcome {
    match of_write(answer) {
        Class::Success => StartOutcome::Started { instance: started_instance(answer) },
        Class::Retryable => StartOutcome::Retryable(refusal(answer)),
        // Not said by any start; were one to say it, only the duplicate check could tell.
        Class::Ambiguous | Class::AlreadyDone | Class::RereadState => StartOutcome::Ambiguous(refusal(answer)),
        Class::Permanent => StartOutcome::Permanent(refusal(answer)),
        Class::Offline => StartOutcome::Offline(refusal(answer)),
        Class::ConnectionRefused => StartOutcome::ConnectionRefused(refusal(answer)),
    }
}

/// The instance that a start's answer names: only a list does (3.3 and later). 3.1 answers null and
/// 3.2 a trigger code, which is no instance id.
fn started_instance(answer: &Answer) -> Option<InstanceId> {
    let Answer::Envelope { data: Value::Array(ids), .. } = answer else { return None };
    ids.iter().filter_map(Value::as_i64).filter(|id| *id > 0).min().map(InstanceId)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(code: i64, msg: &str, data: Value) -> Answer {
        Answer::Envelope { code, msg: msg.to_owned(), data }
    }

    #[test]
    fn texts_decide_where_a_code_stands_for_several_things() {
        let cases = [
            (10000, "Internal Server Error: no master server available", Class::Retryable),
            (10000, "Internal Server Error: Cannot find the workflow: 9,752,686,452,032", Class::Permanent),
            (10000, "Internal Server Error: The execType: X is invalid", Class::Permanent),
            (10000, "Internal Server Error: Parse startNodes: a error", Class::Permanent),
            (10000, "Internal Server Error: Trigger workflow failed: x", Class::Ambiguous),
            (10000, "Internal Server Error: something new", Class::Ambiguous),
            (10000, "Internal Server Error: instance 5 state is SUCCESS, cannot STOP", Class::RereadState),
            (50014, "start workflow instance error:The workflowDefinition should be online", Class::Offline),
            (50014, "start workflow instance error:timeout", Class::Ambiguous),
            (50014, "start process instance error", Class::Ambiguous),
            (77_777, "", Class::Ambiguous),
        ];
        for (code, msg, class) in cases {
            assert_eq!(by_code(code, msg), class, "{code} {msg}");
        }
    }

    #[test]
    fn the_http_status_decides_where_there_is_no_envelope() {
        let http = |status| of_write(&Answer::Http { status, detail: String::new() });
        assert_eq!(http(401), Class::ConnectionRefused);
        assert_eq!(http(429), Class::Retryable);
        for status in [200, 201, 302, 400, 403, 404, 405, 413, 414] {
            assert_eq!(http(status), Class::Permanent, "{status}");
        }
        for status in [408, 500, 502, 503, 504] {
            assert_eq!(http(status), Class::Ambiguous, "{status}");
        }
        let none = |transport| of_write(&Answer::None { transport, detail: String::new() });
        assert_eq!(none(Transport::NotSent), Class::Retryable);
        assert_eq!(none(Transport::Withheld), Class::Retryable);
        assert_eq!(none(Transport::MaybeSent), Class::Ambiguous);
    }

    #[test]
    fn only_a_list_names_the_instance() {
        let instance = |data| started_instance(&envelope(0, "success", data));
        assert_eq!(instance(Value::Null), None);
        assert_eq!(instance(json!(9_752_686_452_032_i64)), None);
        assert_eq!(instance(json!([])), None);
        assert_eq!(instance(json!([8, 7])), Some(InstanceId(7)));
    }
}
