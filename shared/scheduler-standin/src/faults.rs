//! Faults that are switched on at run time.

use serde::{Deserialize, Serialize};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The call takes effect, then the connection is closed without an answer.
    DropAfterAccept,
    /// The call takes effect, then no answer comes for as long as the caller waits.
    HangAfterAccept,
    /// The call takes effect, then the answer is 50014 with the text of an RPC time-out.
    TimeoutAfterAccept,
    /// The call takes effect, then the answer is HTTP 500.
    ErrorAfterAccept,
    /// The connection is closed without an answer and without effect.
    DropBeforeAccept,
    /// No answer and no effect.
    HangBeforeAccept,
    /// A start answers 50014 with the text of an RPC time-out, without effect.
    TimeoutBeforeAccept,
    /// An answer with the fault's own `code` and `msg`, without effect.
    Answer,
    /// Masters consume every waiting command just before this call is answered: the move from
    /// command to instance happens between two reads.
    ConsumeFirst,
    /// `data` is null: of a start that took effect, or of a read.
    NullData,
    /// HTTP 401 with an empty body.
    Unauthorized,
    /// HTTP 429 with an empty body.
    RateLimited,
    /// HTTP 500 without effect.
    ServerError,
    /// HTTP 200 with a web page, as a proxy or a wrong base path gives.
    Html,
    /// An answer larger than any reader should take: 9 MiB of JSON.
    HugeBody,
    /// One command becomes two instances, as two masters that read it make it.
    TwoInstances,
    /// No master is alive for this call.
    NoMaster,
    /// The command cannot be handled and is moved to the error list.
    CommandToError,
    /// The instance of the start ends at once in STOP, as `SERIAL_DISCARD` does.
    SerialDiscard,
    /// The workflow begins without its start parameters, as reported of `SERIAL_WAIT`.
    LoseParams,
}

/// Which calls a fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Starts of a workflow.
    #[default]
    Start,
    /// Lists of instances.
    List,
    /// Reads of one instance.
    Get,
    /// Reads of definitions.
    Definitions,
    /// Lists of commands and of errors, and the command count.
    Commands,
    /// The list of masters.
    Masters,
    /// Lists of access tokens.
    Tokens,
    /// Every call of the API.
    Any,
}

/// A fault and how often it strikes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// How many calls it is for.
    #[serde(default = "once")]
    pub count: u32,
    /// Whether it stays until faults are cleared, whatever the count.
    #[serde(default)]
    pub always: bool,
    /// How many calls it lets pass first.
    #[serde(default)]
    pub skip: u32,
    /// Which calls it is for.
    #[serde(default)]
    pub on: Operation,
    /// The code of [`FaultKind::Answer`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The text of [`FaultKind::Answer`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg: Option<String>,
}

const fn once() -> u32 {
    1
}

impl Fault {
    /// A fault for the next start.
    pub fn of(kind: FaultKind) -> Self {
        Self { kind, count: 1, always: false, skip: 0, on: Operation::Start, code: None, msg: None }
    }

    /// For these calls instead of starts.
    #[must_use]
    pub fn on(mut self, operation: Operation) -> Self {
        self.on = operation;
        self
    }

    /// For so many calls.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// Until faults are cleared.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }

    /// With this code and text, for [`FaultKind::Answer`].
    #[must_use]
    pub fn saying(mut self, code: i64, msg: &str) -> Self {
        self.code = Some(code);
        self.msg = Some(msg.to_owned());
        self
    }

    fn is_for(&self, operation: Operation) -> bool {
        self.on == operation || self.on == Operation::Any
    }
}

/// The faults that strike this call among the `wanted` kinds; each is counted down.
pub(crate) fn strike(faults: &mut Vec<Fault>, operation: Operation, wanted: impl Fn(FaultKind) -> bool) -> Vec<Fault> {
    let mut struck = Vec::new();
    for fault in faults.iter_mut().filter(|fault| fault.is_for(operation) && wanted(fault.kind)) {
        if fault.skip > 0 {
            fault.skip -= 1;
        } else if fault.always || fault.count > 0 {
            fault.count = fault.count.saturating_sub(1);
            struck.push(fault.clone());
        }
    }
    faults.retain(|fault| fault.always || fault.count > 0);
    struck
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_as_often_as_it_says_and_only_its_own_calls() {
        let mut faults =
            vec![Fault::of(FaultKind::Unauthorized).times(2), Fault::of(FaultKind::Html).on(Operation::List)];
        assert!(strike(&mut faults, Operation::Get, |_| true).is_empty());
        assert_eq!(strike(&mut faults, Operation::Start, |_| true).len(), 1);
        assert_eq!(strike(&mut faults, Operation::Start, |_| true).len(), 1);
        assert!(strike(&mut faults, Operation::Start, |_| true).is_empty());
        assert_eq!(strike(&mut faults, Operation::List, |_| true).len(), 1);
        assert!(faults.is_empty());
    }
}
