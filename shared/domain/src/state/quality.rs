//! Verdicts of quality checks, kept per version and check.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Mark, kept};
use crate::event::Outcome;
use crate::version::{Fingerprint, Ordinal, Position, Version};

/// Most versions whose verdicts are kept; the oldest goes first.
const MAX_VERSIONS: usize = 8;
/// Most verdicts that wait for their commit; the oldest goes first.
const MAX_PARKED: usize = 16;
/// Most checks kept for one version.
const MAX_CHECKS: usize = 24;
/// Longest name of a check, in bytes.
pub const MAX_CHECK_NAME: usize = 128;
/// The reason beside the outcome of a verdict that waits for its commit.
pub const PARKED: &str = "parked until its commit is visible";
/// The reason beside the outcome of a verdict whose commit did not come while there was room.
pub const PARKED_TOO_LONG: &str = "parked too long";

/// What a finished check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CheckResult {
    /// Nothing wrong.
    Passed,
    /// Something wrong; how bad the severity says.
    Failed,
    /// The check itself did not finish: nothing is known.
    Errored,
}

/// How bad a failure is. Only an error blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Kept and shown.
    Warn,
    /// Blocks.
    #[default]
    Error,
}

impl Severity {
    #[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde asks for
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One finished check of one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The ordinal of the version that was checked.
    pub ordinal: Ordinal,
    /// Its fingerprint, where the writer knew it.
    pub fingerprint: Option<Fingerprint>,
    /// The check or suite.
    pub check: String,
    /// What it found.
    pub result: CheckResult,
    /// How bad a failure is.
    pub severity: Severity,
    /// Orders two runs of one check on one version: milliseconds since 1970 of the run's start.
    pub run: i64,
}

/// What is known of a version as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum QualityVerdict {
    /// No check, or not every required one, has a result. Never taken for PASSED.
    Unknown,
    /// Every required check passed.
    Passed,
    /// The latest run of a check failed with severity error.
    Failed,
}

/// What the latest run of one check on one version found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    result: CheckResult,
    #[serde(default, skip_serializing_if = "Severity::is_default")]
    severity: Severity,
    run: i64,
}

impl Finding {
    fn is_failure(&self) -> bool {
        self.result == CheckResult::Failed && self.severity == Severity::Error
    }

    /// Which of two runs stands: the later one, and of two at the same time the graver one, so that
    /// the order in which they are told does not matter.
    fn rank(&self) -> (i64, u8) {
        let gravity = match (self.result, self.severity) {
            (CheckResult::Failed, Severity::Error) => 3,
            (CheckResult::Errored, _) => 2,
            (CheckResult::Failed, Severity::Warn) => 1,
            (CheckResult::Passed, _) => 0,
        };
        (self.run, gravity)
    }
}

/// The verdicts of the newest versions, and those that came before their commit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Quality {
    versions: Vec<(Mark, BTreeMap<String, Finding>)>,
    parked: Vec<Verdict>,
}

impl Quality {
    /// Records a verdict: on its version where that commit is known, parked where it is still to come.
    pub(super) fn record(&mut self, verdict: &Verdict, mark: Option<&Mark>) -> Outcome {
        let Some(mark) = mark else { return self.park(verdict) };
        if verdict.fingerprint.as_ref().is_some_and(|fingerprint| *fingerprint != mark.version.fingerprint) {
            return Outcome::Ignored("the verdict is about another commit with this number".to_owned());
        }
        let outcome = record_run(self.checks_of(mark), verdict);
        self.trim();
        if self.versions.iter().any(|(known, _)| known.version == mark.version) {
            outcome
        } else {
            kept(false, MAX_VERSIONS, "newer versions with verdicts")
        }
    }

    fn checks_of(&mut self, mark: &Mark) -> &mut BTreeMap<String, Finding> {
        let known = self.versions.iter().position(|(known, _)| known.version == mark.version);
        let at = known.unwrap_or_else(|| {
            self.versions.push((mark.clone(), BTreeMap::new()));
            self.versions.len() - 1
        });
        &mut self.versions[at].1
    }

    fn park(&mut self, verdict: &Verdict) -> Outcome {
        if self.parked.contains(verdict) {
            return Outcome::Duplicate;
        }
        self.parked.push(verdict.clone());
        if self.parked.len() > MAX_PARKED {
            self.parked.remove(0);
        }
        Outcome::Ignored(PARKED.to_owned())
    }

    /// Binds what was parked for a version that has just become visible.
    pub(super) fn bind(&mut self, mark: &Mark) {
        if self.parked.is_empty() {
            return;
        }
        let version = &mark.version;
        let (due, parked): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.parked).into_iter().partition(|v| v.ordinal == version.position.ordinal);
        self.parked = parked;
        for verdict in due.iter().filter(|v| v.fingerprint.as_ref().is_none_or(|f| *f == version.fingerprint)) {
            record_run(self.checks_of(mark), verdict);
        }
        self.trim();
    }

    /// Only versions that have a verdict are kept, so that an asset without checks pays nothing.
    fn trim(&mut self) {
        self.versions.sort_by_key(|(mark, _)| mark.version.position);
        if self.versions.len() > MAX_VERSIONS {
            self.versions.remove(0);
        }
    }

    /// The verdicts that came before their commit, in the order in which they came.
    pub fn parked(&self) -> &[Verdict] {
        &self.parked
    }

    /// The versions with a verdict, oldest first.
    pub(super) fn marks(&self) -> impl DoubleEndedIterator<Item = &Mark> {
        self.versions.iter().map(|(mark, _)| mark)
    }

    /// The newest version that is PASSED or FAILED as a whole, with which of them.
    pub fn newest_verdict(&self, required: &[String]) -> Option<(&Mark, QualityVerdict)> {
        let newest_first = self.marks().rev();
        let mut decided = newest_first.map(|mark| (mark, self.verdict(mark.version.position, required)));
        decided.find(|(_, verdict)| *verdict != QualityVerdict::Unknown)
    }

    /// The versions in a range (from exclusive, to inclusive) that FAILED, oldest first.
    pub fn failed_between<'a>(
        &'a self,
        from: Option<Position>,
        to: Position,
        required: &'a [String],
    ) -> impl Iterator<Item = &'a Version> {
        let inside = self
            .marks()
            .map(|mark| &mark.version)
            .filter(move |version| from.is_none_or(|from| from < version.position) && version.position <= to);
        inside.filter(|version| self.verdict(version.position, required) == QualityVerdict::Failed)
    }

    /// The checks of a version whose latest run failed with severity error.
    pub fn failed_checks(&self, position: Position) -> Vec<&str> {
        let checks = self.versions.iter().find(|(mark, _)| mark.version.position == position).map(|(_, checks)| checks);
        let failed = checks.into_iter().flatten().filter(|(_, run)| run.is_failure());
        failed.map(|(name, _)| name.as_str()).collect()
    }

    /// The verdict on a version. `required` empty means every check that has reported on it.
    pub fn verdict(&self, position: Position, required: &[String]) -> QualityVerdict {
        let Some((_, checks)) = self.versions.iter().find(|(mark, _)| mark.version.position == position) else {
            return QualityVerdict::Unknown;
        };
        if checks.values().any(Finding::is_failure) {
            return QualityVerdict::Failed;
        }
        let settled = |run: &Finding| run.result != CheckResult::Errored;
        let all_settled = if required.is_empty() {
            !checks.is_empty() && checks.values().all(settled)
        } else {
            required.iter().all(|name| checks.get(name).is_some_and(settled))
        };
        if all_settled { QualityVerdict::Passed } else { QualityVerdict::Unknown }
    }
}

/// For each check the later run wins. The severity of a check that did not fail means nothing.
fn record_run(checks: &mut BTreeMap<String, Finding>, verdict: &Verdict) -> Outcome {
    let run = Finding { result: verdict.result, severity: verdict.severity, run: verdict.run };
    match checks.get(&verdict.check) {
        Some(known) if *known == run => Outcome::Duplicate,
        Some(known) if known.rank() >= run.rank() => Outcome::Superseded,
        None if checks.len() >= MAX_CHECKS => Outcome::Ignored(format!("more than {MAX_CHECKS} checks on one version")),
        _ => {
            checks.insert(verdict.check.clone(), run);
            Outcome::Advanced
        }
    }
}
