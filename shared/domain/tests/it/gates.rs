//! Time: gates delay, ticks and deadlines start, and a look at `due_at` and at events never misses
//! the moment at which the verdict changes by time alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use lakebell_domain::commit::{Commit, Millis};
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{AssetView, Inputs};
use lakebell_domain::ids::TriggerKey;
use lakebell_domain::policy::{Length, OnDeadline, Policies};
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::state::{AssetState, BackfillStatus, Evidence};
use lakebell_domain::target::{Advance, Target};
use lakebell_domain::trigger::StartReason;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::support::{Judged, asset_id, commit, evidence, group, judge, member, target};

/// One start, and why.
#[derive(Debug, Clone, PartialEq)]
struct Start {
    at: Timestamp,
    reason: StartReason,
    /// Whether it took something.
    takes: bool,
}

struct World {
    target: Target,
    cursor: TargetCursor,
    states: Vec<AssetState>,
    now: Timestamp,
    starts: Vec<Start>,
    alarms: Vec<Timestamp>,
    keys: BTreeSet<TriggerKey>,
    ordinal: u64,
}

fn policies(document: Value) -> Policies {
    serde_json::from_value(document).unwrap()
}

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl World {
    /// One group of both tables, declared and read at a moment.
    fn new(policies: Policies, start: Timestamp) -> Self {
        let state = AssetState::default().apply(&Evidence::FirstRead(Vec::new()), start).state;
        let mut target = target(vec![group("g", Advance::All, vec![member(0), member(1)])]);
        target.policies = policies;
        let cursor = TargetCursor { since: Some(start), ..TargetCursor::default() };
        let (states, starts, alarms) = (vec![state; 2], Vec::new(), Vec::new());
        Self { target, cursor, states, now: start, starts, alarms, keys: BTreeSet::new(), ordinal: 0 }
    }

    fn tell(&mut self, asset: usize, evidence: &Evidence) {
        self.states[asset] = self.states[asset].apply(evidence, self.now).state;
    }

    fn commit(&mut self, asset: usize) {
        self.ordinal += 1;
        let watermark = Some(Millis(self.now.as_millisecond()));
        self.tell(asset, &evidence(Commit { watermark, ..commit(self.ordinal, "APPEND") }));
    }

    fn commits(&mut self) {
        (0..2).for_each(|asset| self.commit(asset));
    }

    fn evaluate(&self) -> Judged {
        let views: BTreeMap<_, _> =
            (0..).zip(&self.states).map(|(n, state)| (asset_id(n), AssetView::of(1, Some(state)))).collect();
        judge(&Inputs {
            target: &self.target,
            cursor: &self.cursor,
            assets: &views,
            open: None,
            failed: None,
            switched_off: None,
            now: self.now,
        })
    }

    /// What the engine does with a look: claims, starts, looks again, and keeps the note.
    fn look(&mut self) -> Judged {
        for _ in 0..5 {
            let evaluation = self.evaluate();
            let Some(plan) = evaluation.plan else {
                if let Some(noted) = &evaluation.noted {
                    if noted.alarmed != self.cursor.alarmed {
                        self.alarms.extend(noted.alarmed);
                    }
                    self.cursor = noted.clone();
                    assert_eq!(self.evaluate().noted, None, "a second look at the same moment notes nothing");
                }
                return evaluation;
            };
            assert!(self.keys.insert(plan.claim.key.clone()), "one key for two triggers");
            let takes = plan.claim.ranges.iter().any(|range| range.bounds.from != range.bounds.to);
            self.starts.push(Start { at: self.now, reason: plan.claim.reason, takes });
            self.cursor = TargetCursor { open: None, ..plan.cursor };
        }
        panic!("it starts again and again at {}: {:?}", self.now, self.starts);
    }

    /// Looks only where the timer says so.
    fn wait_until(&mut self, end: Timestamp) {
        while let Some(due) = self.cursor.due_at.filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.look();
            if self.cursor.due_at == Some(due) {
                self.cursor.due_at = None;
            }
        }
        self.now = end;
    }

    fn code(&mut self) -> Option<ReasonCode> {
        self.look().evaluation.reason.map(|reason| reason.code)
    }

    fn times(&self) -> Vec<String> {
        self.starts.iter().map(|start| start.at.to_string()).collect()
    }
}

#[test]
fn a_quiet_period_starts_again_with_each_commit() {
    let mut world = World::new(policies(json!({ "quietPeriod": "10m" })), moment("2026-06-01T00:00:00Z"));
    world.commits();
    assert_eq!(world.code(), Some(ReasonCode::QuietPeriod));
    world.wait_until(moment("2026-06-01T00:09:00Z"));
    world.commit(0);
    world.look();
    world.wait_until(moment("2026-06-01T01:00:00Z"));
    assert_eq!(world.times(), ["2026-06-01T00:19:00Z"]);
}

#[test]
fn a_minimum_interval_counts_from_claim_to_claim() {
    let mut world = World::new(policies(json!({ "minInterval": "1h" })), moment("2026-06-01T00:00:00Z"));
    world.commits();
    world.look();
    world.wait_until(moment("2026-06-01T00:10:00Z"));
    world.commits();
    assert_eq!(world.code(), Some(ReasonCode::MinInterval));
    world.wait_until(moment("2026-06-01T03:00:00Z"));
    assert_eq!(world.times(), ["2026-06-01T00:00:00Z", "2026-06-01T01:00:00Z"]);
}

#[test]
fn not_before_is_a_time_of_the_day_in_its_zone() {
    let not_before = json!({ "notBefore": { "time": "06:30", "timeZone": "Europe/Berlin" } });
    for (start, opens) in [
        ("2026-06-01T01:00:00Z", "2026-06-01T04:30:00Z"),
        ("2026-03-28T23:30:00Z", "2026-03-29T04:30:00Z"),
        ("2026-10-24T22:30:00Z", "2026-10-25T05:30:00Z"),
    ] {
        let mut world = World::new(policies(not_before.clone()), moment(start));
        world.commits();
        assert_eq!(world.code(), Some(ReasonCode::NotBefore));
        world.wait_until(moment(start) + SignedDuration::from_hours(20));
        assert_eq!(world.times(), [opens]);
    }
}

#[test]
fn a_run_window_may_go_over_midnight() {
    let run_window = json!({ "runWindow": { "from": "22:00", "to": "02:00", "timeZone": "Europe/Berlin" } });
    for (start, opens) in [
        ("2026-06-01T10:00:00Z", "2026-06-01T20:00:00Z"),
        ("2026-06-01T23:59:00Z", "2026-06-01T23:59:00Z"),
        ("2026-06-02T00:00:00Z", "2026-06-02T20:00:00Z"),
        // the hour from 2 to 3 is skipped, and comes twice
        ("2026-03-29T00:30:00Z", "2026-03-29T00:30:00Z"),
        ("2026-03-29T01:00:00Z", "2026-03-29T20:00:00Z"),
        ("2026-10-25T00:00:00Z", "2026-10-25T21:00:00Z"),
    ] {
        let mut world = World::new(policies(run_window.clone()), moment(start));
        world.commits();
        let is_open = start == opens;
        assert_eq!(world.code() == Some(ReasonCode::OutsideRunWindow), !is_open, "{start}");
        world.wait_until(moment(start) + SignedDuration::from_hours(30));
        assert_eq!(world.times(), [opens], "{start}");
    }
}

/// A time that the clocks skip is the first moment after the gap.
#[test]
fn a_time_that_is_skipped_is_the_first_after_it() {
    let not_before = json!({ "notBefore": { "time": "02:15", "timeZone": "Europe/Berlin" } });
    let mut world = World::new(policies(not_before), moment("2026-03-29T00:00:00Z"));
    world.commits();
    world.look();
    world.wait_until(moment("2026-03-29T12:00:00Z"));
    assert_eq!(world.times(), ["2026-03-29T01:00:00Z"]);
}

#[test]
fn or_at_starts_once_for_a_tick_and_once_for_all_that_were_missed() {
    let or_at = json!({ "orAt": { "cron": "0 6 * * *", "timeZone": "UTC" } });
    let mut world = World::new(policies(or_at), moment("2026-06-01T00:00:00Z"));
    world.commit(0);
    world.look();
    world.wait_until(moment("2026-06-02T05:59:00Z"));
    assert_eq!((world.times(), world.starts[0].reason), (vec!["2026-06-01T06:00:00Z".to_owned()], StartReason::OrAt));
    assert!(world.starts[0].takes, "with what is there");
    // nobody looks for three days
    world.now = moment("2026-06-04T12:00:00Z");
    world.look();
    assert_eq!(world.starts.len(), 2);
    assert!(!world.starts[1].takes);
    world.wait_until(moment("2026-06-05T05:00:00Z"));
    world.commits();
    world.look();
    assert_eq!(world.starts.last().unwrap().reason, StartReason::Ready);
    world.wait_until(moment("2026-06-05T07:00:00Z"));
    assert_eq!(world.starts.len(), 4, "a start before the tick is not in its place");
}

#[test]
fn a_deadline_by_a_time_of_day_fires_every_day_or_alarms_once_a_day() {
    let deadline = |on: &str| json!({ "deadline": { "by": "08:00", "timeZone": "UTC" }, "onDeadline": on });
    let mut world = World::new(policies(deadline("fire")), moment("2026-06-01T00:00:00Z"));
    world.look();
    world.wait_until(moment("2026-06-03T12:00:00Z"));
    let expected = ["2026-06-01T08:00:00Z", "2026-06-02T08:00:00Z", "2026-06-03T08:00:00Z"];
    assert_eq!(world.times(), expected);

    let mut world = World::new(policies(deadline("alarm")), moment("2026-06-01T00:00:00Z"));
    world.look();
    world.wait_until(moment("2026-06-01T09:00:00Z"));
    assert_eq!(world.evaluate().timed_out, Some(moment("2026-06-01T08:00:00Z")));
    world.commits();
    world.look();
    assert_eq!(world.evaluate().timed_out, None, "a claim clears it");
    world.wait_until(moment("2026-06-02T07:00:00Z"));
    world.wait_until(moment("2026-06-02T09:00:00Z"));
    assert_eq!(world.alarms.len(), 2, "a start that was late yesterday is none for today");
    world.commits();
    world.look();
    world.commits();
    world.look();
    world.wait_until(moment("2026-06-03T09:00:00Z"));
    assert_eq!(world.alarms.len(), 2, "the second start was in time");
}

#[test]
fn a_deadline_within_counts_from_the_first_advance() {
    let mut world = World::new(policies(json!({ "deadline": { "within": "2h" } })), moment("2026-06-01T00:00:00Z"));
    world.look();
    world.wait_until(moment("2026-06-01T05:00:00Z"));
    world.commit(0);
    world.look();
    world.wait_until(moment("2026-06-01T06:00:00Z"));
    world.commit(0);
    world.look();
    world.wait_until(moment("2026-06-01T20:00:00Z"));
    assert_eq!(world.alarms, [moment("2026-06-01T07:00:00Z")], "once, and not from the second commit");
    world.commit(1);
    world.look();
    assert_eq!((world.starts.len(), world.evaluate().timed_out), (1, None));
}

fn a_zone() -> impl Strategy<Value = &'static str> {
    select(vec!["UTC", "Europe/Berlin", "America/New_York"])
}

fn a_time() -> impl Strategy<Value = String> {
    (0..24, select(vec![0, 15, 30])).prop_map(|(hour, minute)| format!("{hour:02}:{minute:02}"))
}

fn some_policies() -> impl Strategy<Value = Value> {
    let gates = (
        proptest::option::weighted(0.3, 1..90),
        proptest::option::weighted(0.3, 1..400),
        proptest::option::weighted(0.3, a_time()),
        proptest::option::weighted(0.4, (a_time(), a_time())),
    );
    let starts = (
        proptest::option::weighted(0.3, select(vec!["0 6 * * *", "*/45 * * * *", "30 2 * * 0"])),
        proptest::option::weighted(0.5, prop_oneof![a_time().prop_map(Ok), (5..600).prop_map(Err)]),
        any::<bool>(),
        select(vec!["hold", "ignore", "trigger"]),
    );
    (gates, starts, a_zone()).prop_map(
        |((quiet, interval, not_before, window), (cron, deadline, fires, fill), zone)| {
            let mut document = json!({ "onBackfill": fill });
            let mut put = |key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    document[key] = value;
                }
            };
            let minutes = |minutes: i32| json!(format!("{minutes}m"));
            put("quietPeriod", quiet.map(minutes));
            put("minInterval", interval.map(minutes));
            put("notBefore", not_before.map(|time| json!({ "time": time, "timeZone": zone })));
            let window = window.filter(|(from, to)| from != to);
            put("runWindow", window.map(|(from, to)| json!({ "from": from, "to": to, "timeZone": zone })));
            put("orAt", cron.map(|cron| json!({ "cron": cron, "timeZone": zone })));
            put(
                "deadline",
                deadline.clone().map(|deadline| match deadline {
                    Ok(time) => json!({ "by": time, "timeZone": zone }),
                    Err(length) => json!({ "within": format!("{length}m") }),
                }),
            );
            put("onDeadline", deadline.filter(|_| fires).map(|_| json!("fire")));
            document
        },
    )
}

/// What a claim for being ready must satisfy, read off the clock.
fn gates_are_open(policies: &Policies, start: &Start, before: Option<&Start>) -> bool {
    let local = |zone: &TimeZone| start.at.to_zoned(zone.clone()).time();
    let parse = |time: String| time.parse::<Time>().unwrap();
    let interval = policies
        .min_interval
        .is_none_or(|interval| before.is_none_or(|before| start.at.duration_since(before.at) >= interval.duration()));
    let late_enough = policies
        .not_before
        .as_ref()
        .is_none_or(|not_before| local(not_before.time_zone.time_zone()) >= parse(not_before.time.to_string()));
    let inside = policies.run_window.as_ref().is_none_or(|window| {
        let (from, to) = (parse(window.from.to_string()), parse(window.to.to_string()));
        let time = local(window.time_zone.time_zone());
        if from < to { from <= time && time < to } else { from <= time || time < to }
    });
    interval && late_enough && inside
}

proptest! {
    // Each case is watched through 62 hours.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    /// Looks only at events and at `due_at`, and is watched every five minutes.
    #[test]
    fn nothing_changes_by_time_alone_between_two_looks(
        document in some_policies(),
        lag in proptest::option::weighted(0.4, 10_i64..500),
        begin in select(vec!["2026-03-28T20:00:00Z", "2026-03-07T20:00:00Z", "2026-10-24T20:00:00Z", "2026-06-01T03:10:00Z"]),
        events in proptest::collection::vec((0_u32..700, 0_usize..6), 0..12),
    ) {
        let policies = policies(document);
        let mut world = World::new(policies.clone(), moment(begin));
        world.target.groups[0].members[0].conditions.max_lag =
            lag.map(|minutes| Length::from_seconds(minutes * 60).unwrap());
        let mut events: Vec<(Timestamp, usize)> =
            events.into_iter().map(|(n, what)| (moment(begin) + SignedDuration::from_mins(i64::from(n) * 5), what)).collect();
        events.sort();
        let mut last = world.look();
        for minute in (0..62 * 60).step_by(5) {
            world.now = moment(begin) + SignedDuration::from_mins(minute);
            let now = world.now;
            let due: Vec<usize> = events.iter().filter(|(at, _)| *at == now).map(|(_, what)| *what).collect();
            for what in &due {
                match what {
                    0 | 1 => world.commit(*what),
                    2 | 3 => world.commits(),
                    4 => world.tell(0, &Evidence::Backfill("b".to_owned(), BackfillStatus::Running)),
                    _ => world.tell(0, &Evidence::Backfill("b".to_owned(), BackfillStatus::Completed)),
                }
            }
            if !due.is_empty() || world.cursor.due_at.is_some_and(|at| at <= now) {
                last = world.look();
            }
            let seen = world.evaluate();
            prop_assert!(seen.plan.is_none(), "missed at {}: {:?}", now, seen.plan);
            prop_assert_eq!((seen.verdict, seen.timed_out), (last.verdict, last.timed_out), "at {}", now);
        }
        for (at, start) in world.starts.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &world.starts[before]);
            let is_ready = start.reason == StartReason::Ready;
            prop_assert!(!is_ready || gates_are_open(&policies, start, before), "{:?} through a closed gate", start);
            prop_assert!(!is_ready || start.takes);
        }
        let told: BTreeSet<_> = world.alarms.iter().collect();
        prop_assert_eq!(told.len(), world.alarms.len(), "an alarm was told twice");
        let fires = policies.on_deadline == OnDeadline::Fire;
        prop_assert!(fires || world.starts.iter().all(|start| start.reason != StartReason::Deadline));
        prop_assert_ne!(last.verdict, Verdict::Ready);
    }
}
