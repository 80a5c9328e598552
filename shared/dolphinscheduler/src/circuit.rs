//! A circuit breaker for each connection: a scheduler that does not answer is left alone for a
//! while, and no trigger is to blame for it.
//!
//! Closed, every call passes. Three failures in a row open the circuit, a refused token at once:
//! then no call is sent until a pause is over, 5 s at first and doubling to 5 minutes. After it one
//! read is let through. If that is answered the circuit is closed, else the next pause begins. A
//! start is never that probe, because a start without an answer is worse than none.
//!
//! The state is this process's own and gone with it. Own code, because what there is as a crate
//! reads the machine's clock, or wraps whole futures and cannot tell a read from a start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::ConnectionName;
use lakebell_engine::ports::scheduler::{ConnectionSpec, Refusal};
use lakebell_engine::ports::time::Clock;

use crate::classify;
use crate::envelope::Answer;

/// Failures in a row that open a circuit.
const FAILURES: u32 = 3;
/// The first pause; each further one is twice as long.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(5);
/// The longest pause.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// A connection at an address: declared anew with another one, it begins with a closed circuit.
pub(crate) type Line = (ConnectionName, String);

/// The circuit that a connection's calls go through.
pub(crate) fn line(spec: &ConnectionSpec) -> Line {
    (spec.name.clone(), spec.url.clone())
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It may be repeated, and so be the probe.
    Read,
    /// It may not.
    Write,
}

/// The circuits that are not simply closed.
pub(crate) struct Circuits {
    clock: Arc<dyn Clock>,
    troubled: Mutex<HashMap<Line, Circuit>>,
}

struct Circuit {
    failures: u32,
    /// Until when it is open; `None` while it is closed.
    until: Option<Timestamp>,
    /// The pause that was set last.
    pause: SignedDuration,
    /// Whether the one probe is under way.
    probing: bool,
    /// The last failure.
    because: Refusal,
}

impl Circuits {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, troubled: Mutex::new(HashMap::new()) }
    }

    /// Lets a call through, or says until when none is.
    pub(crate) fn admit(&self, line: Line, purpose: Purpose) -> Result<Permit<'_>, Refusal> {
        let now = self.clock.now();
        let mut probe = false;
        if let Some(circuit) = self.lock().get_mut(&line)
            && let Some(until) = circuit.until
        {
            let left = until.duration_since(now);
            // A clock that was set back must not keep it open for longer than a pause lasts.
            let is_over = left <= SignedDuration::ZERO || left > LONGEST_PAUSE;
            if !is_over {
                return Err(Refusal::circuit_open(until, &circuit.because));
            }
            if circuit.probing || purpose == Purpose::Write {
                return Err(Refusal::circuit_open(after(now, FIRST_PAUSE), &circuit.because));
            }
            circuit.probing = true;
            probe = true;
        }
        Ok(Permit { circuits: self, line: Some(line), probe })
    }

    /// Whether the next start would have to wait for a probe.
    pub(crate) fn is_open(&self, line: &Line) -> bool {
        self.lock().get(line).is_some_and(|circuit| circuit.until.is_some())
    }

    /// Closes a circuit: what was wrong has been put right.
    pub(crate) fn close(&self, line: &Line) {
        if self.lock().remove(line).is_some_and(|circuit| circuit.until.is_some()) {
            tracing::info!(connection = %line.0, "the scheduler answers again: the circuit is closed");
        }
    }

    fn fail(&self, line: &Line, probe: bool, at_once: bool, because: Refusal) {
        let now = self.clock.now();
        let mut troubled = self.lock();
        let circuit = troubled.entry(line.clone()).or_insert_with(|| Circuit {
            failures: 0,
            until: None,
            pause: SignedDuration::ZERO,
            probing: false,
            because: because.clone(),
        });
        if circuit.until.is_some() && !probe {
            // A call from before it was opened: nothing new.
            return;
        }
        circuit.failures = circuit.failures.saturating_add(1);
        circuit.because = because;
        circuit.probing = false;
        if probe || at_once || circuit.failures >= FAILURES {
            circuit.pause = (circuit.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            let until = after(now, circuit.pause);
            circuit.until = Some(until);
            let code = &circuit.because.code;
            tracing::warn!(connection = %line.0, %code, %until, "no calls to the scheduler: the circuit is open");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Line, Circuit>> {
        self.troubled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn after(now: Timestamp, pause: SignedDuration) -> Timestamp {
    now.saturating_add(pause).unwrap_or(Timestamp::MAX)
}

/// One call that was let through. Dropped without an answer, it counts as failed: its time was up.
pub(crate) struct Permit<'a> {
    circuits: &'a Circuits,
    line: Option<Line>,
    probe: bool,
}

impl Permit<'_> {
    /// Takes note of how the call ended.
    pub(crate) fn settle(mut self, answer: &Answer) {
        let Some(line) = self.line.take() else { return };
        match answer {
            Answer::Http { status: 401, .. } => self.circuits.fail(&line, self.probe, true, classify::refusal(answer)),
            Answer::Http { status: 429 | 500.., .. } | Answer::None { .. } => {
                self.circuits.fail(&line, self.probe, false, classify::refusal(answer));
            }
            // Whatever it says, it answers.
            Answer::Envelope { .. } | Answer::Http { .. } => self.circuits.close(&line),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            let detail = "the call was given up before it was answered".to_owned();
            self.circuits.fail(&line, self.probe, false, Refusal { code: "TRANSPORT_ERROR".to_owned(), detail });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::envelope::Transport;

    struct Hand(Mutex<Timestamp>);

    impl Hand {
        fn advance(&self, seconds: i64) {
            let mut now = self.0.lock().unwrap();
            *now += SignedDuration::from_secs(seconds);
        }
    }

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            *self.0.lock().unwrap()
        }
    }

    fn fixture() -> (Arc<Hand>, Circuits, Line) {
        let hand = Arc::new(Hand(Mutex::new(Timestamp::UNIX_EPOCH)));
        let circuits = Circuits::new(Arc::clone(&hand) as Arc<dyn Clock>);
        (hand, circuits, (ConnectionName::new("main").unwrap(), "http://ds".to_owned()))
    }

    fn lost() -> Answer {
        Answer::None { transport: Transport::MaybeSent, detail: "no answer in time".to_owned() }
    }

    fn well() -> Answer {
        Answer::Envelope { code: 50014, msg: "an error is an answer".to_owned(), data: Value::Null }
    }

    fn read(circuits: &Circuits, line: &Line, answer: &Answer) -> Result<(), Refusal> {
        circuits.admit(line.clone(), Purpose::Read).map(|permit| permit.settle(answer))
    }

    #[test]
    fn three_failures_in_a_row_open_it_and_an_answer_in_between_does_not() {
        let (_, circuits, line) = fixture();
        for answer in [lost(), lost(), well(), lost(), lost()] {
            read(&circuits, &line, &answer).unwrap();
            assert!(!circuits.is_open(&line));
        }
        read(&circuits, &line, &Answer::read(503, b"")).unwrap();
        let refused = read(&circuits, &line, &well()).unwrap_err();
        assert_eq!(refused.code, "CIRCUIT_OPEN");
        assert_eq!(refused.open_until().unwrap().as_second(), 5);
        assert!(refused.detail.contains("HTTP_5xx"), "{refused}");
    }

    #[test]
    fn pauses_double_to_five_minutes_and_begin_anew_after_an_answer() {
        let (hand, circuits, line) = fixture();
        for _ in 0..2 {
            read(&circuits, &line, &lost()).unwrap();
        }
        for pause in [5, 10, 20, 40, 80, 160, 300, 300] {
            read(&circuits, &line, &lost()).unwrap();
            hand.advance(pause - 1);
            assert!(read(&circuits, &line, &well()).is_err(), "{pause}");
            hand.advance(1);
        }
        read(&circuits, &line, &well()).unwrap();
        assert!(!circuits.is_open(&line));
        for _ in 0..3 {
            read(&circuits, &line, &lost()).unwrap();
        }
        let until = read(&circuits, &line, &well()).unwrap_err().open_until().unwrap();
        assert_eq!(until.duration_since(hand.now()), FIRST_PAUSE);
    }

    #[test]
    fn a_refused_token_opens_at_once_and_only_its_own_connection() {
        let (_, circuits, line) = fixture();
        read(&circuits, &line, &Answer::read(401, b"")).unwrap();
        assert!(read(&circuits, &line, &well()).unwrap_err().detail.contains("HTTP_401"));
        let other = (ConnectionName::new("other").unwrap(), line.1.clone());
        let moved = (line.0.clone(), "http://elsewhere".to_owned());
        assert!(!circuits.is_open(&other) && !circuits.is_open(&moved));
        circuits.close(&line);
        read(&circuits, &line, &well()).unwrap();
    }

    #[test]
    fn after_the_pause_one_read_passes_and_no_start() {
        let (hand, circuits, line) = fixture();
        read(&circuits, &line, &Answer::read(401, b"")).unwrap();
        hand.advance(5);
        assert!(circuits.admit(line.clone(), Purpose::Write).is_err());
        let probe = circuits.admit(line.clone(), Purpose::Read).unwrap();
        let second = circuits.admit(line.clone(), Purpose::Read).err().unwrap();
        assert_eq!(second.open_until().unwrap().as_second(), 10);
        probe.settle(&well());
        assert!(circuits.admit(line, Purpose::Write).is_ok());
    }

    #[test]
    fn a_probe_that_is_given_up_counts_as_failed_and_leaves_room_for_the_next() {
        let (hand, circuits, line) = fixture();
        read(&circuits, &line, &Answer::read(401, b"")).unwrap();
        hand.advance(5);
        drop(circuits.admit(line.clone(), Purpose::Read).unwrap());
        let refused = circuits.admit(line.clone(), Purpose::Read).err().unwrap();
        assert_eq!(refused.open_until().unwrap().as_second(), 15);
        hand.advance(10);
        read(&circuits, &line, &well()).unwrap();
    }

    #[test]
    fn calls_from_before_it_was_opened_do_not_prolong_it() {
        let (hand, circuits, line) = fixture();
        let late: Vec<_> = (0..5).map(|_| circuits.admit(line.clone(), Purpose::Read).unwrap()).collect();
        hand.advance(3);
        for permit in late {
            permit.settle(&lost());
        }
        let refused = circuits.admit(line, Purpose::Read).err().unwrap();
        assert_eq!(refused.open_until().unwrap().as_second(), 8);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_keep_it_open() {
        let (hand, circuits, line) = fixture();
        read(&circuits, &line, &Answer::read(401, b"")).unwrap();
        hand.advance(-3600);
        read(&circuits, &line, &well()).unwrap();
    }
}
