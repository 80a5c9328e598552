//! Windows of event time: each trigger stands for exactly one completed window, in order, none is
//! skipped, and none joins another.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{AssetView, Inputs, manual};
use lakebell_domain::policy::{Every, OnFailed, Window};
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::state::{AssetState, Evidence};
use lakebell_domain::target::{Advance, Conditions, Group, Member, Target};
use lakebell_domain::trigger::{Arrow, Trigger, WaitReason};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::{Judged, asset_id, at, evidence, group, group_name, judge, member, target, with_watermark};

struct World {
    target: Target,
    cursor: TargetCursor,
    states: Vec<AssetState>,
    open: Option<Trigger>,
    ordinals: Vec<u64>,
    clock: i64,
}

fn every(period: &str, zone: &str) -> Every {
    Every::new(period, zone.parse().unwrap()).unwrap()
}

fn windowed(asset: u128, every: &Every) -> Member {
    Member { conditions: Conditions { every: Some(every.clone()), ..Conditions::default() }, ..member(asset) }
}

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl World {
    /// Every table is read and empty.
    fn new(groups: Vec<Group>) -> Self {
        let state = AssetState::default().apply(&Evidence::FirstRead(Vec::new()), at(0)).state;
        let mut target = target(groups);
        target.policies.on_failed = OnFailed::Hold;
        Self {
            target,
            cursor: TargetCursor::default(),
            states: vec![state; 3],
            open: None,
            ordinals: vec![0; 3],
            clock: 0,
        }
    }

    fn of(period: &str, zone: &str, members: u128) -> Self {
        let every = every(period, zone);
        Self::new(vec![group("g", Advance::All, (0..members).map(|n| windowed(n, &every)).collect())])
    }

    /// A commit that carries a watermark.
    fn watermark(&mut self, asset: usize, at_moment: Timestamp) {
        self.clock += 1;
        self.ordinals[asset] += 1;
        let commit = with_watermark(self.ordinals[asset], "APPEND", at_moment.as_millisecond());
        self.states[asset] = self.states[asset].apply(&evidence(commit), at(self.clock)).state;
    }

    fn with_inputs<T>(&self, ask: impl Fn(&Inputs<'_>) -> T) -> T {
        let views: BTreeMap<_, _> =
            (0..).zip(&self.states).map(|(n, state)| (asset_id(n), AssetView::of(1, Some(state)))).collect();
        ask(&Inputs {
            target: &self.target,
            cursor: &self.cursor,
            assets: &views,
            open: self.open.as_ref(),
            failed: None,
            switched_off: None,
            now: at(self.clock),
        })
    }

    fn evaluate(&self) -> Judged {
        self.with_inputs(judge)
    }

    /// Claims one window; its trigger stays open.
    fn open_next(&mut self) -> Option<Window> {
        let plan = self.evaluate().plan?;
        let window = plan.claim.window;
        self.cursor = plan.cursor;
        let trace = "t".parse().unwrap();
        self.open = Some(Trigger::claimed(&self.target, 1, plan.claim, trace, at(self.clock), at(self.clock)));
        window
    }

    fn follow(&mut self, arrow: &Arrow) {
        let after = self.open.take().unwrap().apply(arrow, at(self.clock)).unwrap();
        if after.has_ended() && !matches!(after.status(), lakebell_domain::trigger::Status::Failed { .. }) {
            self.cursor.open = None;
        } else {
            self.open = Some(after);
        }
    }

    /// Claims one window, and its trigger starts.
    fn next(&mut self) -> Option<Window> {
        let window = self.open_next()?;
        self.succeed();
        Some(window)
    }

    fn succeed(&mut self) {
        self.follow(&Arrow::Lease { until: at(self.clock + 60) });
        self.follow(&Arrow::Succeed { instance: None });
    }

    fn all(&mut self) -> Vec<Window> {
        std::iter::from_fn(|| self.next()).take(2_000).collect()
    }
}

fn dates(windows: &[Window]) -> Vec<Date> {
    windows.iter().map(|window| window.business_date).collect()
}

/// The beginnings of the windows of a zone, by its own calendar, from a date on; local time that does
/// not exist or comes twice is the first moment that follows.
fn beginnings(period: &str, zone: &str, from: Date, days: i64) -> Vec<Timestamp> {
    let zone = TimeZone::get(zone).unwrap();
    let midnight = |date: Date| date.to_zoned(zone.clone()).unwrap().timestamp();
    let dates = || (0..days).map(|n| from + n.days());
    match period {
        "1d" => dates().map(midnight).collect(),
        "1w" => dates().filter(|date| date.weekday() == jiff::civil::Weekday::Monday).map(midnight).collect(),
        "1mo" => dates().filter(|date| date.day() == 1).map(midnight).collect(),
        "1h" | "6h" => {
            let hours = if period == "1h" { 1 } else { 6 };
            let of_day = |date: Date| {
                let (start, end) = (midnight(date), midnight(date + 1.day()));
                let step = SignedDuration::from_hours(hours);
                std::iter::successors(Some(start), move |at| Some(*at + step)).take_while(move |at| *at < end)
            };
            dates().flat_map(of_day).collect()
        }
        other => panic!("{other}"),
    }
}

#[test]
fn the_first_window_is_the_one_in_which_the_slowest_member_stood() {
    let mut world = World::of("1d", "UTC", 2);
    world.watermark(0, moment("2026-03-03T10:00:00Z"));
    let reason = world.evaluate().groups[0].members[1].reason.clone().unwrap();
    assert_eq!(reason.code, ReasonCode::WatermarkAbsent);
    assert_eq!(world.evaluate().groups[0].members[0].reason.as_ref().unwrap().code, ReasonCode::WindowOpen);
    assert_eq!(world.evaluate().groups[0].window, None, "it cannot be told yet");
    world.watermark(1, moment("2026-03-01T23:00:00Z"));
    world.watermark(0, moment("2026-03-05T00:00:00Z"));
    assert_eq!(world.evaluate().evaluation.reason.unwrap().code, ReasonCode::WindowOpen);
    world.watermark(1, moment("2026-03-04T23:59:59.999Z"));
    assert_eq!(dates(&world.all()), [date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)]);
    world.watermark(1, moment("2026-03-05T00:00:00Z"));
    assert_eq!(dates(&world.all()), [date(2026, 3, 4)], "the end of a window completes it");
}

#[test]
fn days_on_which_the_clocks_change_are_shorter_or_longer() {
    for (zone, spring, autumn) in [
        ("Europe/Berlin", date(2026, 3, 29), date(2026, 10, 25)),
        ("America/New_York", date(2026, 3, 8), date(2026, 11, 1)),
    ] {
        for (day, hours) in [(spring, 23), (autumn, 25)] {
            let mut world = World::of("1d", zone, 1);
            let tz = TimeZone::get(zone).unwrap();
            let midnight = |date: Date| date.to_zoned(tz.clone()).unwrap().timestamp();
            world.watermark(0, midnight(day));
            world.watermark(0, midnight(day + 3.days()));
            let windows = world.all();
            assert_eq!(dates(&windows), [day, day + 1.day(), day + 2.days()], "{zone}");
            assert_eq!(windows[0].end.duration_since(windows[0].start), SignedDuration::from_hours(hours), "{zone}");
            assert_eq!(windows[1].end.duration_since(windows[1].start), SignedDuration::from_hours(24), "{zone}");
        }
    }
}

#[test]
fn a_manual_start_takes_no_window_and_moves_none() {
    let mut world = World::of("1d", "UTC", 1);
    world.watermark(0, moment("2026-03-01T10:00:00Z"));
    world.watermark(0, moment("2026-03-04T12:00:00Z"));
    let plan = world.with_inputs(|inputs| manual(inputs, "r1")).unwrap();
    assert_eq!(plan.claim.window, None);
    world.cursor = TargetCursor { open: None, ..plan.cursor };
    assert_eq!(dates(&world.all()), [date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)]);
}

#[test]
fn a_trigger_of_a_window_is_never_joined_and_one_that_failed_holds() {
    let mut world = World::of("1h", "UTC", 1);
    world.watermark(0, moment("2026-03-01T10:00:00Z"));
    world.watermark(0, moment("2026-03-01T13:00:00Z"));
    let first = world.open_next().unwrap();
    world.follow(&Arrow::Lease { until: at(100) });
    let reason = WaitReason { code: "BACK_OFF".to_owned(), detail: "503".to_owned() };
    world.follow(&Arrow::Wait { reason, due_at: at(900), refused: true });
    let evaluation = world.evaluate();
    assert_eq!(
        (evaluation.verdict, evaluation.evaluation.reason.unwrap().code),
        (Verdict::Waiting, ReasonCode::TriggerInFlight)
    );
    world.clock = 1_000;
    world.follow(&Arrow::Wake);
    world.follow(&Arrow::Lease { until: at(1_100) });
    world.follow(&Arrow::Fail { code: "X".to_owned(), detail: "no".to_owned() });
    assert_eq!(world.evaluate().evaluation.reason.unwrap().code, ReasonCode::TriggerFailed);
    world.follow(&Arrow::Redrive { by: "ops".to_owned() });
    world.succeed();
    let second = world.next().unwrap();
    assert_eq!(first.end, second.start);
}

#[test]
fn what_one_alternative_took_is_taken_for_the_other_and_never_goes_back() {
    let day = every("1d", "UTC");
    let one = |name: &str, asset| group(name, Advance::All, vec![windowed(asset, &day)]);
    let mut world = World::new(vec![one("a", 0), one("b", 1)]);
    world.watermark(0, moment("2026-03-01T10:00:00Z"));
    world.watermark(1, moment("2026-03-01T10:00:00Z"));
    world.watermark(1, moment("2026-03-03T00:00:00Z"));
    assert_eq!(dates(&world.all()), [date(2026, 3, 1), date(2026, 3, 2)]);
    world.watermark(0, moment("2026-03-03T00:00:00Z"));
    assert_eq!(dates(&world.all()), [], "both days were started by the other alternative");

    // one that is behind takes back nothing of one that is ahead
    let mut world = World::new(vec![one("a", 0), one("b", 1)]);
    world.watermark(0, moment("2026-03-01T10:00:00Z"));
    world.watermark(1, moment("2026-03-05T10:00:00Z"));
    world.watermark(0, moment("2026-03-02T00:00:00Z"));
    assert_eq!(dates(&world.all()), [date(2026, 3, 1)]);
    world.watermark(1, moment("2026-03-06T00:00:00Z"));
    assert_eq!(dates(&world.all()), [date(2026, 3, 5)]);
    world.watermark(0, moment("2026-03-06T00:00:00Z"));
    assert_eq!(dates(&world.all()), [], "one start for a window");
}

#[test]
fn a_claim_of_another_group_leaves_the_beginning_of_windows_where_it_is() {
    let day = every("1d", "UTC");
    let mut world = World::new(vec![
        group("commits", Advance::All, vec![member(0)]),
        group("days", Advance::All, vec![windowed(0, &day), windowed(1, &day)]),
    ]);
    world.watermark(0, moment("2026-03-01T10:00:00Z"));
    world.watermark(1, moment("2026-03-01T10:00:00Z"));
    world.watermark(0, moment("2026-03-04T10:00:00Z"));
    assert_eq!(world.open_next(), None, "the group of commits has no window");
    world.succeed();
    assert!(world.evaluate().plan.is_none());
    world.watermark(1, moment("2026-03-03T10:00:00Z"));
    assert_eq!(dates(&world.all()), [date(2026, 3, 1), date(2026, 3, 2)]);
    assert_eq!(world.cursor.windows[&group_name("days")].business_date, date(2026, 3, 2));
}

#[test]
fn any_waits_for_no_member_without_a_watermark() {
    let day = every("1d", "UTC");
    let mut world = World::new(vec![group("g", Advance::Any, vec![windowed(0, &day), windowed(1, &day)])]);
    world.watermark(0, moment("2026-03-01T10:00:00Z"));
    world.watermark(0, moment("2026-03-02T00:00:00Z"));
    assert_eq!(dates(&world.all()), [date(2026, 3, 1)]);
}

proptest! {
    /// However the watermarks come, the triggers are the windows that the slowest member has
    /// completed, one after the other.
    #[test]
    fn each_completed_window_is_one_trigger_in_order(
        (period, days) in select(vec![("1h", 4_i64), ("6h", 20), ("1d", 60), ("1w", 200), ("1mo", 400)]),
        zone in select(vec!["UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai", "Asia/Kolkata"]),
        first in select(vec![date(2026, 3, 6), date(2026, 3, 27), date(2026, 10, 23), date(2026, 10, 30), date(2026, 6, 1)]),
        members in 1_usize..=3,
        steps in proptest::collection::vec((0_usize..3, 0.0_f64..1.0), 1..25),
    ) {
        let mut world = World::of(period, zone, members as u128);
        let bounds = beginnings(period, zone, first - days.days(), days * 3);
        let start = first.to_zoned(TimeZone::get(zone).unwrap()).unwrap().timestamp() + SignedDuration::from_mins(90);
        let span = SignedDuration::from_hours(24 * days);
        let mut highest = vec![start; members];
        for asset in 0..members {
            world.watermark(asset, start);
        }
        let mut triggered = Vec::new();
        for (asset, share) in steps {
            let asset = asset % members;
            let to = start + span.mul_f64(share);
            world.watermark(asset, to);
            highest[asset] = highest[asset].max(to);
            triggered.extend(world.all());
            let slowest = *highest.iter().min().unwrap();
            let complete: Vec<(Timestamp, Timestamp)> = bounds
                .windows(2)
                .map(|pair| (pair[0], pair[1]))
                .filter(|(_, end)| *end > start && *end <= slowest)
                .collect();
            let got: Vec<(Timestamp, Timestamp)> = triggered.iter().map(|window: &Window| (window.start, window.end)).collect();
            prop_assert_eq!(got, complete);
        }
        let tz = TimeZone::get(zone).unwrap();
        for window in triggered {
            prop_assert_eq!(window.business_date, window.start.to_zoned(tz.clone()).date());
        }
    }
}
