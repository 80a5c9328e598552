//! What kind of run a seed is. Runs in which everything goes wrong at once find less than runs in
//! which some things go wrong often and others never.

use lakebell_engine::asset_settings::ScanInterval;

use super::dice::Dice;
use super::menu;
use super::scheduler::Line;

/// The character of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Profile {
    /// Nothing that was sent is ever lost, and nobody but messages and timers finds anything: there is
    /// no pass, and none may be needed. Else notifications and messages are lost, and a pass at the end
    /// has to find what they would have told.
    pub(super) is_intact: bool,
    /// How many calls of a hundred fail.
    pub(super) fault_percent: usize,
    /// How many calls of a hundred to the scheduler go wrong.
    pub(super) scheduler_percent: usize,
    /// Deaths in a thousand steps.
    pub(super) deaths: usize,
    /// Most functions at work at the same time.
    pub(super) workers: usize,
    /// How many notifications of a hundred are lost.
    pub(super) lost_notifications: usize,
    /// How many messages of a hundred are lost.
    pub(super) lost_messages: usize,
    /// Requests of people in a thousand steps.
    pub(super) requests: usize,
    /// Whether tables are rolled back, dropped, expired, and files vanish for a moment.
    pub(super) has_rewrites: bool,
    /// In a run in which tables are rolled back, one read in so many is held up.
    pub(super) held_up: usize,
    /// A rollback withdraws a snapshot in one step of so many.
    pub(super) pace: usize,
    /// The tables that have a scan interval of their own, longer than faults last: no pass looks at them.
    pub(super) scanned_apart: &'static [&'static str],
    /// Whether start calls may arrive minutes later.
    pub(super) has_late_bytes: bool,
    /// Whether some target keeps the history of its tables.
    pub(super) line: Line,
    /// The targets that are declared, by their names on the menu.
    pub(super) targets: Vec<&'static str>,
}

impl Profile {
    pub(super) fn of(seed: u64) -> Self {
        let dice = Dice::at(seed, u64::MAX);
        let is_intact = seed.is_multiple_of(2);
        let mut targets: Vec<&'static str> = menu::NAMES.iter().copied().filter(|_| dice.below(5) < 2).collect();
        if targets.is_empty() {
            targets.push("both");
        }
        if seed % 8 == 6 {
            targets.push("crowd");
        }
        Self {
            is_intact,
            fault_percent: dice.pick(&[0, 1, 3, 8]).unwrap_or(0),
            scheduler_percent: dice.pick(&[0, 5, 30]).unwrap_or(0),
            deaths: dice.pick(&[0, 2, 8]).unwrap_or(0),
            workers: dice.pick(&[1, 2, 4, 8]).unwrap_or(1),
            lost_notifications: if is_intact { 0 } else { dice.pick(&[5, 30, 100]).unwrap_or(0) },
            lost_messages: if is_intact { 0 } else { dice.pick(&[0, 5, 25]).unwrap_or(0) },
            requests: dice.pick(&[0, 6, 20]).unwrap_or(0),
            has_rewrites: !is_intact && dice.below(3) > 0,
            // Some faults show where many readers are held up, others where few are.
            held_up: [25, 40, 60][remainder(seed, 3)],
            pace: [6, 40][remainder(seed / 6, 2)],
            scanned_apart: if seed % 4 == 3 { &["b", "c"] } else { &[] },
            has_late_bytes: seed % 16 == 5,
            line: dice.pick(&[Line::V31, Line::V32, Line::V33]).unwrap_or(Line::V33),
            targets,
        }
    }

    /// What a table is registered with.
    pub(super) fn scan_interval(&self, table: &str) -> Option<ScanInterval> {
        let interval = self.scanned_apart.contains(&table).then(|| serde_json::from_str(r#""1d""#));
        interval.and_then(Result::ok)
    }

    /// Whether a target of the menu is declared.
    pub(super) fn has(&self, name: &str) -> bool {
        self.targets.contains(&name)
    }
}

fn remainder(number: u64, by: u64) -> usize {
    usize::try_from(number % by).unwrap_or(0)
}
