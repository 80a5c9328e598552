//! What a declaration is refused for before anything is looked up.

use std::collections::BTreeSet;

use super::spec::{DependencySpec, GroupSpec, TargetSpec};
use super::{Advance, MAX_COMMIT_KINDS, MAX_GROUP_MEMBERS, MAX_GROUPS, MAX_TARGET_MEMBERS};
use crate::Invalid;
use crate::ids::Alias;
use crate::policy::{Coalesce, OnDeadline, OnFailed, OnRewrite, StartAs};
use crate::start_params;
use crate::state::MAX_CHECK_NAME;

/// Most checks that one dependency may name.
const MAX_CHECKS: usize = 24;
/// Longest wait of a sensor: a year.
const MAX_TIMEOUT_MINUTES: u32 = 366 * 24 * 60;
/// Most patterns of one operation filter.
const MAX_PATTERNS: usize = 16;

impl TargetSpec {
    /// Checks everything that needs no look-up.
    pub fn check(&self) -> Result<(), Invalid> {
        self.workflow()?;
        if let Some(code) = self.task_definition_code.filter(|code| code.0 <= 0) {
            return Err(Invalid::new(
                "taskDefinitionCode",
                format!("{code} is no task definition code"),
                "use the positive number that DolphinScheduler shows, or leave it out",
            ));
        }
        self.target_name()?;
        if self.enabled_flag > 1 {
            return Err(Invalid::new("enabledFlag", format!("{} is no flag", self.enabled_flag), "use 0 or 1"));
        }
        if self.groups.is_empty() || self.groups.len() > MAX_GROUPS {
            return Err(Invalid::new(
                "groups",
                format!("there are {}", self.groups.len()),
                format!("declare 1 to {MAX_GROUPS} groups"),
            ));
        }
        let mut names = BTreeSet::new();
        let mut members = 0;
        for (at, group) in self.groups.iter().enumerate() {
            let place = format!("groups[{at}]");
            if !names.insert(&group.name) {
                return Err(Invalid::new(
                    "name",
                    format!("two groups are named `{}`", group.name),
                    "give each its own name",
                )
                .within(&place));
            }
            group.check().map_err(|invalid| invalid.within(&place))?;
            members += group.dependencies.len();
        }
        if members > MAX_TARGET_MEMBERS {
            return Err(Invalid::new(
                "groups",
                format!("they have {members} dependencies together"),
                format!("use at most {MAX_TARGET_MEMBERS}"),
            ));
        }
        self.check_policies()?;
        if self.coalesce == Coalesce::Each {
            self.check_each()?;
        }
        if self.goes_step_by_step() {
            self.check_windows()?;
        }
        start_params::check_size(self)
    }

    fn check_policies(&self) -> Result<(), Invalid> {
        if let Some(run_window) = &self.run_window {
            run_window.check()?;
            if let Some(not_before) = &self.not_before {
                let is_after = run_window.from < run_window.to && not_before.time >= run_window.to;
                if is_after && not_before.time_zone == run_window.time_zone {
                    return Err(Invalid::new(
                        "notBefore",
                        format!(
                            "{} is after the run window ends at {}: it would never open",
                            not_before.time, run_window.to
                        ),
                        "use a time before the end of the run window, or leave one of them out",
                    ));
                }
            }
        }
        if self.max_active == Some(0) {
            return Err(Invalid::new(
                "maxActive",
                "0 active instances would never start",
                "use 1 or more, or leave it out",
            ));
        }
        if self.settle.is_some() && self.on_rewrite == OnRewrite::Hold {
            return Err(Invalid::new(
                "settle",
                "a rewrite is held for a person",
                "use it with `onRewrite: follow`, or leave it out",
            ));
        }
        if self.timeout_minutes == Some(0) || self.check_interval_seconds == Some(0) {
            let field = if self.timeout_minutes == Some(0) { "timeoutMinutes" } else { "checkIntervalSeconds" };
            return Err(Invalid::new(field, "0 is no time to wait", "use 1 or more, or leave it out"));
        }
        if self.timeout_minutes.is_some_and(|minutes| minutes > MAX_TIMEOUT_MINUTES) {
            return Err(Invalid::new(
                "timeoutMinutes",
                format!("more than {MAX_TIMEOUT_MINUTES} minutes are no time to wait for"),
                "use less, or leave it out",
            ));
        }
        if self.timeout_minutes.is_some() && self.deadline.is_some() {
            return Err(Invalid::new(
                "timeoutMinutes",
                "it is another word for `deadline: {within: ...}`, and both are given",
                "give one of them",
            ));
        }
        if self.on_deadline == OnDeadline::Fire && self.deadline.is_none() && self.timeout_minutes.is_none() {
            return Err(Invalid::new("onDeadline", "there is no deadline", "give a `deadline`, or leave it out"));
        }
        self.check_sensor()?;
        if self.start_as() == StartAs::Complement {
            let lacks = |group: &GroupSpec| group.dependencies.iter().all(|dependency| dependency.every.is_none());
            if let Some(group) = self.groups.iter().find(|group| lacks(group)) {
                return Err(Invalid::new(
                    "startAs",
                    format!("group `{}` has no windows, so that its triggers have no business date", group.name),
                    "give a dependency of each group `every`, or use `startAs: start`",
                ));
            }
        }
        Ok(())
    }

    /// A sensor is a task, and its workflow runs already: there is no start that a gate could hold back.
    fn check_sensor(&self) -> Result<(), Invalid> {
        if self.start_as() != StartAs::Sensor {
            return Ok(());
        }
        if self.task_definition_code.is_none() {
            return Err(Invalid::new(
                "startAs",
                "a sensor is a task, and none is named",
                "give its `taskDefinitionCode`, or use `startAs: start`",
            ));
        }
        let gates = [("maxActive", self.max_active.is_some()), ("afterWorkflow", self.after_workflow.is_some())];
        match gates.into_iter().find(|(_, is_given)| *is_given) {
            Some((field, _)) => Err(Invalid::new(
                field,
                "the workflow of a sensor runs already when it asks",
                "leave it out, or use `startAs: start` to have the workflow started at the task",
            )),
            None => Ok(()),
        }
    }

    /// `each` is defined where every member's own history decides which version comes next.
    fn check_each(&self) -> Result<(), Invalid> {
        let refused = |field: &str, problem: &str| {
            Invalid::new(
                field,
                format!("{problem} is not defined with `coalesce: each`"),
                "use `coalesce: newest`, or leave it out",
            )
        };
        for (group_at, group) in self.groups.iter().enumerate() {
            let place = format!("groups[{group_at}]");
            if group.advance() != Advance::All {
                return Err(refused("advance", "an `advance` other than all").within(&place));
            }
            for (at, dependency) in group.dependencies.iter().enumerate() {
                if let Some((field, problem)) = dependency.not_for_each() {
                    return Err(refused(field, problem).within(&format!("{place}.dependencies[{at}]")));
                }
            }
        }
        if self.on_failed == Some(OnFailed::Extend) {
            return Err(refused("onFailed", "`extend`"));
        }
        if self.or_at.is_some() {
            return Err(refused("orAt", "`orAt`"));
        }
        if self.on_deadline == OnDeadline::Fire {
            return Err(refused("onDeadline", "`fire`"));
        }
        Ok(())
    }

    /// Each window, or partition, is one trigger: nothing may join or overtake it.
    fn check_windows(&self) -> Result<(), Invalid> {
        let refused = |field: &str, problem: &str| {
            let hint = "leave it out, or declare a second target without them";
            Err(Invalid::new(field, format!("{problem} is not defined with windows (`every`) or partitions"), hint))
        };
        if self.on_failed == Some(OnFailed::Extend) {
            return refused("onFailed", "`extend`");
        }
        if self.or_at.is_some() {
            return refused("orAt", "`orAt`");
        }
        if self.on_deadline == OnDeadline::Fire {
            return refused("onDeadline", "`fire`");
        }
        Ok(())
    }
}

impl GroupSpec {
    fn check(&self) -> Result<(), Invalid> {
        let count = self.dependencies.len();
        if count == 0 || count > MAX_GROUP_MEMBERS {
            return Err(Invalid::new(
                "dependencies",
                if count == 0 {
                    "the group has no members".to_owned()
                } else {
                    format!("the group has {count} members")
                },
                format!("declare 1 to {MAX_GROUP_MEMBERS} dependencies"),
            ));
        }
        let has_prefix = self.dependencies.iter().any(|dependency| dependency.asset.key().is_none());
        let required = self.dependencies.iter().filter(|dependency| !dependency.optional).count();
        if required == 0 {
            return Err(Invalid::new(
                "dependencies",
                "every member is optional, so that nothing would ever start it",
                "leave `optional` out of at least one",
            ));
        }
        if let Advance::AtLeast(k) = self.advance()
            && (k == 0 || (k > required && !has_prefix) || k > MAX_GROUP_MEMBERS)
        {
            let which = if required == count { "members" } else { "members that are not optional" };
            return Err(Invalid::new(
                "advance.atLeast",
                format!("{k} of {required} {which} can never advance"),
                format!("use a number from 1 to {}", if has_prefix { MAX_GROUP_MEMBERS } else { required }),
            ));
        }
        self.check_windows()?;
        self.check_partitions()?;
        for (at, dependency) in self.dependencies.iter().enumerate() {
            dependency.check().map_err(|invalid| invalid.within(&format!("dependencies[{at}]")))?;
        }
        Ok(())
    }
}

impl GroupSpec {
    fn check_windows(&self) -> Result<(), Invalid> {
        let mut windows = self.dependencies.iter().filter_map(|dependency| dependency.every.as_ref());
        let Some(first) = windows.next() else { return Ok(()) };
        if let Some(other) = windows.find(|other| other.zone() != first.zone()) {
            return Err(Invalid::new(
                "dependencies",
                format!("one member has windows of {first} and another of {other}"),
                "use the same time zone for all windows of a group",
            ));
        }
        let lacks = self.dependencies.iter().any(|dependency| dependency.every.is_none());
        if self.advance() != Advance::All && lacks {
            return Err(Invalid::new(
                "advance",
                "some members have windows, and the others could start it before a window has ended",
                "use `advance: all`, or give `every` to all members of the group or to none",
            ));
        }
        Ok(())
    }
}

impl DependencySpec {
    /// The alias that the started workflow sees; for a prefix that of each table is its own.
    pub fn alias(&self) -> Result<Option<Alias>, Invalid> {
        match (&self.alias, self.asset.key()) {
            (Some(_), None) => Err(Invalid::new(
                "alias",
                "one alias cannot name every table of a prefix",
                "leave it out: each table goes by its own name",
            )),
            (Some(alias), Some(_)) => Ok(Some(alias.clone())),
            (None, Some(key)) => alias_of(key.table()).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        if let Some((field, problem)) = self.contradiction() {
            return Err(Invalid::new(field, problem, "leave one of them out"));
        }
        if !self.snapshot_required && !self.names_a_register() {
            return Err(Invalid::new(
                "snapshotRequired",
                "`false` leaves nothing that could start it",
                "name a condition on another register (watermark, every, qualityStatus, schemaStatus, tag, backfill, \
                 cdcLagRecovered), or use `true`",
            ));
        }
        if self.commit_kinds.as_ref().is_some_and(|kinds| kinds.is_empty() || kinds.len() > MAX_COMMIT_KINDS) {
            return Err(Invalid::new(
                "commitKinds",
                "it must name between 1 and 16 kinds",
                "name the kinds that count, as in [\"APPEND\"], or leave it out for those that change data",
            ));
        }
        if self.min_new_snapshots.is_some_and(|count| count == 0 || count > 1_000_000) {
            return Err(Invalid::new(
                "minNewSnapshots",
                "it must be from 1 to 1000000",
                "use 1 or leave it out for any new commit",
            ));
        }
        if self.min_delta_records.is_some_and(|rows| rows < 1) {
            return Err(Invalid::new("minDeltaRecords", "it must be 1 or more", "leave it out for any number of rows"));
        }
        if let Some(checks) = &self.checks {
            let is_name = |name: &String| !name.is_empty() && name.len() <= MAX_CHECK_NAME;
            if checks.is_empty() || checks.len() > MAX_CHECKS || !checks.iter().all(is_name) {
                return Err(Invalid::new(
                    "checks",
                    format!("it must name 1 to {MAX_CHECKS} checks of at most {MAX_CHECK_NAME} bytes"),
                    "name checks or suites as they report, or leave it out for all that have reported",
                ));
            }
        }
        if let Some(operations) = &self.operations {
            let count = operations.include.len() + operations.exclude.len();
            if count == 0 || count > MAX_PATTERNS {
                return Err(Invalid::new(
                    "operations",
                    format!("it has {count} patterns"),
                    format!("give 1 to {MAX_PATTERNS} under `include` and `exclude`"),
                ));
            }
        }
        self.alias().map(|_| ())
    }

    fn names_a_register(&self) -> bool {
        self.watermark.is_some()
            || self.max_lag.is_some()
            || self.every.is_some()
            || self.partition.is_some()
            || self.quality_status.is_some()
            || self.schema_status.is_some()
            || self.tag.is_some()
            || self.backfill.is_some()
            || self.cdc_lag_recovered
    }

    fn counts(&self) -> bool {
        self.min_new_snapshots.is_some_and(|count| count > 1) || self.min_delta_records.is_some()
    }

    /// Two conditions that say different things about the same.
    fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        let chooses = self.commit_kinds.is_some() || self.operations.is_some() || self.ignore_empty;
        if !self.snapshot_required && (chooses || self.counts() || self.min_snapshot_id.is_some()) {
            return Some((
                "snapshotRequired",
                "`false` says that no commit is needed, and another condition chooses commits",
            ));
        }
        if self.quality_status.is_none() && self.checks.is_some() {
            return Some(("checks", "there is no `qualityStatus` that they would be for"));
        }
        if self.quality_status.is_none() && self.on_failed_version.is_some() {
            return Some(("onFailedVersion", "there is no `qualityStatus` that it would be for"));
        }
        if self.counts() && self.commit_kinds.is_some() {
            return Some((
                "commitKinds",
                "counting (minNewSnapshots, minDeltaRecords) goes by commits that change data",
            ));
        }
        if self.counts() && self.tag.is_some() {
            return Some((
                "tag",
                "a tag names one version, and counting (minNewSnapshots, minDeltaRecords) needs a range",
            ));
        }
        if self.tag.is_some() && self.ignore_empty {
            return Some(("ignoreEmpty", "a tag names one version, whatever its commit changed"));
        }
        if self.every.is_some() && self.optional {
            return Some(("optional", "a member that may be absent cannot say that a window has ended"));
        }
        if self.commit_kinds.is_some() && self.ignore_empty {
            return Some(("ignoreEmpty", "it goes by commits that change data, and `commitKinds` chooses others"));
        }
        if self.operations.is_some()
            && (self.quality_status.is_some() || self.schema_status.is_some() || self.tag.is_some() || self.counts())
        {
            return Some((
                "operations",
                "it goes by the newest commit of a writer, and another condition by another version",
            ));
        }
        if self.partition.is_some() && (self.every.is_some() || chooses || self.counts() || self.tag.is_some()) {
            return Some((
                "partition",
                "a partition is one step of its own, and another condition chooses commits or windows",
            ));
        }
        if self.every.is_some() && (chooses || self.counts() || self.tag.is_some()) {
            return Some(("every", "a window is completed by the watermark, and another condition chooses commits"));
        }
        None
    }

    /// The first condition by which time or another register, not the order of commits, would decide.
    fn not_for_each(&self) -> Option<(&'static str, &'static str)> {
        let named = [
            (self.optional, "optional", "an optional member"),
            (self.every.is_some(), "every", "a window"),
            (self.partition.is_some(), "partition", "a partition"),
            (self.watermark.is_some(), "watermark", "a watermark"),
            (self.max_lag.is_some(), "maxLag", "`maxLag`"),
            (self.quality_status.is_some(), "qualityStatus", "a verdict"),
            (self.schema_status.is_some(), "schemaStatus", "a schema decision"),
            (self.tag.is_some(), "tag", "a tag"),
            (self.backfill.is_some(), "backfill", "a backfill"),
            (self.cdc_lag_recovered, "cdcLagRecovered", "CDC lag"),
            (self.counts(), "minNewSnapshots", "counting"),
            (self.asset.key().is_none(), "asset", "a prefix"),
        ];
        named.into_iter().find(|(is_named, ..)| *is_named).map(|(_, field, problem)| (field, problem))
    }
}

/// The alias that a table's name gives.
pub(super) fn alias_of(table: &str) -> Result<Alias, Invalid> {
    Alias::new(table).map_err(|_| {
        Invalid::new(
            "alias",
            format!("`{table}` is no parameter name"),
            "give the dependency an `alias` of letters, digits and `_`",
        )
    })
}
