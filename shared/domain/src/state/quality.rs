//! Verdicts of quality checks, kept per version and check.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kept;
use crate::event::Outcome;
use crate::version::{Fingerprint, Ordinal, Position, Version};

/// Most versions whose verdicts are kept; the oldest goes first.
const MAX_VERSIONS: usize = 16;
/// Most verdicts that wait for their commit; the oldest goes first.
const MAX_PARKED: usize = 16;
/// Most checks kept for one version.
const MAX_CHECKS: usize = 32;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Kept and shown.
    Warn,
    /// Blocks.
    Error,
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
    severity: Severity,
    run: i64,
}

/// The verdicts of the newest versions, and those that came before their commit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Quality {
    versions: Vec<(Version, BTreeMap<String, Finding>)>,
    parked: Vec<Verdict>,
}

impl Quality {
    /// Records a verdict: on `version` where that commit is known, parked where it is still to come.
    pub(super) fn record(&mut self, verdict: &Verdict, version: Option<&Version>) -> Outcome {
        let Some(version) = version else { return self.park(verdict) };
        if verdict.fingerprint.as_ref().is_some_and(|fingerprint| *fingerprint != version.fingerprint) {
            return Outcome::Ignored("the verdict is about another commit with this number".to_owned());
        }
        let outcome = record_run(self.checks_of(version), verdict);
        self.trim();
        if self.versions.iter().any(|(known, _)| known == version) {
            outcome
        } else {
            kept(false, MAX_VERSIONS, "newer versions with verdicts")
        }
    }

    fn checks_of(&mut self, version: &Version) -> &mut BTreeMap<String, Finding> {
        let at = self.versions.iter().position(|(known, _)| known == version).unwrap_or_else(|| {
            self.versions.push((version.clone(), BTreeMap::new()));
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
        Outcome::Ignored("parked until its commit is visible".to_owned())
    }

    /// Binds what was parked for a version that has just become visible.
    pub(super) fn bind(&mut self, version: &Version) {
        let (due, parked): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.parked).into_iter().partition(|v| v.ordinal == version.position.ordinal);
        self.parked = parked;
        for verdict in due.iter().filter(|v| v.fingerprint.as_ref().is_none_or(|f| *f == version.fingerprint)) {
            record_run(self.checks_of(version), verdict);
        }
        self.trim();
    }

    /// Only versions that have a verdict are kept, so that an asset without checks pays nothing.
    fn trim(&mut self) {
        self.versions.sort_by_key(|(version, _)| version.position);
        if self.versions.len() > MAX_VERSIONS {
            self.versions.remove(0);
        }
    }

    /// The verdict on a version. `required` empty means every check that has reported on it.
    pub fn verdict(&self, position: Position, required: &[String]) -> QualityVerdict {
        let Some((_, checks)) = self.versions.iter().find(|(version, _)| version.position == position) else {
            return QualityVerdict::Unknown;
        };
        let failed = |run: &Finding| run.result == CheckResult::Failed && run.severity == Severity::Error;
        if checks.values().any(failed) {
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

/// For each check the later run wins.
fn record_run(checks: &mut BTreeMap<String, Finding>, verdict: &Verdict) -> Outcome {
    let run = Finding { result: verdict.result, severity: verdict.severity, run: verdict.run };
    match checks.get(&verdict.check) {
        Some(known) if *known == run => Outcome::Duplicate,
        Some(known) if known.run >= run.run => Outcome::Superseded,
        None if checks.len() >= MAX_CHECKS => Outcome::Ignored(format!("more than {MAX_CHECKS} checks on one version")),
        _ => {
            checks.insert(verdict.check.clone(), run);
            Outcome::Advanced
        }
    }
}
