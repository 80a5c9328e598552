//! Hold what was recorded against the rules, and against what the scheduler really runs.
//!
//! Whoever takes requests does not know the scheduler, so an audit is asked for with a message, and the
//! dispatcher keeps what it found under the audit's id. One audit looks at one project's triggers since
//! a time. It is bounded; workflows that it did not come to are named, for the next one.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::{AuditId, ConnectionName, InstanceId, ProjectCode, TargetId, TraceId, TriggerKey};
use lakebell_domain::notice::Notice;
use lakebell_domain::trigger::{Status, StatusWord, Trigger};
use serde::{Deserialize, Serialize};

use crate::compensate::LATE;
use crate::dispatch::Dispatcher;
use crate::evaluate::trigger_draft;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Draft, Item, Key, Write, Written};
use crate::ports::queue::Message;
use crate::ports::scheduler::{CarriedKey, InstanceList};
use crate::rules::Records;
use crate::store::{self, Stored};
use crate::{EngineError, ErrorKind, history};

/// Most triggers that one audit looks at, the newest first.
pub const MOST_TRIGGERS: usize = 1_000;
/// Most findings that are kept; beyond them they are counted.
pub const MOST_FINDINGS: usize = 200;
/// How long an audit's result is kept.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);
/// A start this young may not be shown by the scheduler yet.
const YOUNG: SignedDuration = SignedDuration::from_mins(10);
/// Triggers read in one go.
const PAGE: usize = 100;

/// What is wrong, or cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingKind {
    /// What is recorded breaks a rule.
    Rule,
    /// An instance carries the key of a trigger that has another one, or that did not start.
    Extra,
    /// A trigger says that it started, and the scheduler does not show its instance.
    Missing,
    /// Which trigger an instance belongs to, or whether a trigger started, cannot be told.
    Unknown,
}

impl FindingKind {
    /// The word for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Extra => "extra",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// What was found, in a sentence.
    pub detail: String,
    /// The trigger, where one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<TriggerKey>,
    /// The workflow instance, where one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
}

/// A workflow on a DolphinScheduler.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OnScheduler {
    /// The connection.
    pub connection: ConnectionName,
    /// The workflow, as triggers name it.
    pub workflow: String,
}

/// A workflow that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotCompared {
    /// Which.
    #[serde(flatten)]
    pub which: OnScheduler,
    /// Why not.
    pub why: String,
}

/// An audit, as it is asked for and as it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// Its id.
    pub id: AuditId,
    /// The project.
    pub project: ProjectCode,
    /// Triggers that were claimed since then.
    pub since: Timestamp,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// What it came to; absent until the dispatcher has done it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<AuditResult>,
}

/// What an audit came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditResult {
    /// Whether nothing was found, and everything was compared.
    pub is_clean: bool,
    /// Triggers that were looked at.
    pub triggers: usize,
    /// Instances of the scheduler that they were compared with.
    pub instances: usize,
    /// The findings, at most [`MOST_FINDINGS`].
    pub findings: Vec<Finding>,
    /// Findings beyond that.
    pub more_findings: usize,
    /// Workflows that were not compared.
    pub not_compared: Vec<NotCompared>,
    /// Set where there are more triggers than one audit looks at: they were claimed before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_since: Option<Timestamp>,
}

/// Asks for an audit of a project's triggers since a time.
///
/// Errors: those of the store and the queue.
pub async fn ask(ports: &Ports, project: ProjectCode, since: Timestamp, trace: &TraceId) -> Result<Audit, EngineError> {
    let id = AuditId::new(format!("{:032x}", ports.random.bits()))?;
    let audit = Audit { id, project, since, asked_at: ports.clock.now(), result: None };
    let action = Write::Create(draft(&audit)?);
    store::write(&*ports.items, &*ports.random, &[action]).await?;
    ports.queue.send(&Message::Audit { project, audit: audit.id.clone(), trace: trace.clone() }).await?;
    Ok(audit)
}

/// An audit as it stands.
///
/// Errors: `NotFound`.
pub async fn read(ports: &Ports, project: ProjectCode, id: &AuditId) -> Result<Audit, EngineError> {
    let known: Option<Stored<Audit>> = store::get(&*ports.items, layout::audit(project, id)).await?;
    known.map(|known| known.value).ok_or_else(|| {
        EngineError::new(ErrorKind::NotFound, format!("there is no audit {id}; results are kept for 7 days"))
    })
}

fn draft(audit: &Audit) -> Result<Draft, EngineError> {
    let draft = store::draft(layout::audit(audit.project, &audit.id), audit)?;
    Ok(Draft { expires_at: Some(audit.asked_at + KEPT_FOR), ..draft })
}

/// The findings so far.
#[derive(Default)]
struct Found {
    findings: BTreeSet<Finding>,
}

impl Found {
    fn add(&mut self, kind: FindingKind, detail: String, trigger: Option<&Trigger>, instance: Option<InstanceId>) {
        let trigger = trigger.map(|trigger| trigger.key.clone());
        self.findings.insert(Finding { kind, detail, trigger, instance });
    }
}

impl Dispatcher {
    /// Does an audit that was asked for; `None` where it is done or forgotten. `until` is when nothing
    /// further may begin.
    ///
    /// Errors: those of the store, after which the message must come again.
    pub async fn audit(
        &self,
        project: ProjectCode,
        id: &AuditId,
        until: Timestamp,
    ) -> Result<Option<Audit>, EngineError> {
        let Some(known) = store::get::<Audit>(&*self.ports.items, layout::audit(project, id)).await? else {
            return Ok(None);
        };
        if known.value.result.is_some() {
            return Ok(None);
        }
        let mut audit = known.value;
        let (triggers, only_since) = triggers_since(&self.ports, project, audit.since).await?;
        let first = self.broken_rules(&triggers).await?;
        let mut found = Found::default();
        let mut result = AuditResult { triggers: triggers.len(), only_since, ..AuditResult::default() };
        let since = only_since.unwrap_or(audit.since);
        for (which, of_workflow) in by_workflow(&triggers) {
            match self.compare(project, &which, &of_workflow, since, until, &mut found).await? {
                Ok(instances) => result.instances += instances,
                Err(why) => result.not_compared.push(NotCompared { which, why }),
            }
        }
        // Items are read one by one, so a look at what moves may see what never was together: only what a
        // second look still shows is wrong.
        if !first.is_empty() {
            let (triggers, _) = triggers_since(&self.ports, project, audit.since).await?;
            found.findings.extend(self.broken_rules(&triggers).await?.intersection(&first).cloned());
        }
        result.is_clean = found.findings.is_empty() && result.not_compared.is_empty();
        result.more_findings = found.findings.len().saturating_sub(MOST_FINDINGS);
        result.findings = found.findings.into_iter().take(MOST_FINDINGS).collect();
        audit.result = Some(result);
        let action = Write::Replace(draft(&audit)?, known.rev);
        let written = store::write(&*self.ports.items, &*self.ports.random, &[action]).await?;
        Ok((written == Written::Done).then_some(audit))
    }

    /// The rules over what is recorded of these triggers, their targets and tables.
    async fn broken_rules(&self, triggers: &[Trigger]) -> Result<BTreeSet<Finding>, EngineError> {
        let now = self.ports.clock.now();
        let targets: BTreeSet<&TargetId> = triggers.iter().map(|trigger| &trigger.target).collect();
        let mut records = Records::default();
        // Cursors before heads: an advance in between cannot make a cursor look ahead of its table.
        let of_targets: Vec<Key> =
            targets.iter().flat_map(|target| [layout::cursor(target), layout::definition(target)]).collect();
        take_in(&mut records, &self.ports.items.get(&of_targets).await?)?;
        let heads: BTreeSet<Key> = records
            .cursors
            .values()
            .flat_map(|cursor| cursor.taken.values())
            .flat_map(BTreeMap::keys)
            .copied()
            .map(layout::head)
            .collect();
        take_in(&mut records, &self.ports.items.get(&heads.into_iter().collect::<Vec<_>>()).await?)?;
        records.triggers.extend(triggers.iter().map(|trigger| (trigger.key.clone(), trigger.clone())));
        let mut found = Found::default();
        let broken = [records.in_order(), records.no_overlap(), records.cursors_within_heads()];
        for sentence in broken.into_iter().flatten() {
            found.add(FindingKind::Rule, sentence, None, None);
        }
        for trigger in triggers {
            let is_paused = records.cursors.get(&trigger.target).is_some_and(|cursor| cursor.paused.is_some());
            match trigger.status() {
                Status::Unknown { held: true, detail, .. } => {
                    let detail = format!("held for a person: {detail}; `lakebell decide {}`", trigger.key);
                    found.add(FindingKind::Unknown, detail, Some(trigger), None);
                }
                _ if !is_paused && trigger.due_at.is_some_and(|due_at| now.duration_since(due_at) > LATE) => {
                    let step = trigger.status().step();
                    let detail = format!("rule 3: {step}, and its next step is more than 15 minutes late");
                    found.add(FindingKind::Rule, detail, Some(trigger), None);
                }
                _ => {}
            }
        }
        Ok(found.findings)
    }

    /// Compares the triggers of one workflow with its instances; how many there are, or why it was not
    /// compared.
    async fn compare(
        &self,
        project: ProjectCode,
        which: &OnScheduler,
        triggers: &[&Trigger],
        since: Timestamp,
        until: Timestamp,
        found: &mut Found,
    ) -> Result<Result<usize, String>, EngineError> {
        if self.ports.clock.now() >= until {
            return Ok(Err("there was no time left; ask for another audit with a later `since`".to_owned()));
        }
        let Some(first) = triggers.first() else { return Ok(Ok(0)) };
        let workflow = match self.code_of(&first.connection, project, &first.workflow).await {
            Ok(workflow) => workflow,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let list = match self.scheduler.instances_since(&which.connection, project, workflow, since).await {
            Ok(list) => list,
            Err(refusal) => return Ok(Err(refusal.to_string())),
        };
        let carried = Self::carried(&list);
        for (key, instances) in &carried {
            self.judge(key, instances, found).await?;
        }
        for listed in list.instances.iter().filter(|listed| listed.key == CarriedKey::Unknown) {
            let detail = "its parameters are not known (yet)".to_owned();
            found.add(FindingKind::Unknown, detail, None, Some(listed.report.id));
        }
        if let Some(cut) = &list.cut {
            return Ok(Err(format!("{cut}; ask for another audit with a later `since`")));
        }
        let ids: BTreeSet<InstanceId> = list.instances.iter().map(|listed| listed.report.id).collect();
        let now = self.ports.clock.now();
        // A waiting task asked by itself: its instance is there, perhaps since before the time that is looked at.
        let started = |trigger: &&&Trigger| trigger.status().word() == StatusWord::Success && trigger.sensor.is_none();
        for trigger in triggers.iter().filter(started) {
            let started = trigger.followed().map_or(trigger.claimed_at, |followed| followed.since);
            let is_shown = carried.contains_key(&trigger.key) || trigger.instance.is_some_and(|id| ids.contains(&id));
            if !is_shown && now.duration_since(started) > YOUNG {
                let detail = "it says that it started, and the scheduler shows no instance of it".to_owned();
                found.add(FindingKind::Missing, detail, Some(trigger), trigger.instance);
            }
        }
        Ok(Ok(list.instances.len()))
    }

    /// The instances that carry a trigger key, by key, lowest id first.
    fn carried(list: &InstanceList) -> BTreeMap<TriggerKey, Vec<InstanceId>> {
        let mut carried: BTreeMap<TriggerKey, Vec<InstanceId>> = BTreeMap::new();
        for listed in &list.instances {
            if let CarriedKey::Trigger(key) = &listed.key {
                carried.entry(key.clone()).or_default().push(listed.report.id);
            }
        }
        carried
    }

    /// What the instances that carry one key mean, read after them: a trigger is recorded before its start.
    async fn judge(&self, key: &TriggerKey, instances: &[InstanceId], found: &mut Found) -> Result<(), EngineError> {
        let Some(stored) = store::get::<Trigger>(&*self.ports.items, layout::trigger(key)).await? else {
            for instance in instances {
                let detail = format!("it carries trigger key {key}, which is not recorded");
                found.add(FindingKind::Unknown, detail, None, Some(*instance));
            }
            return Ok(());
        };
        let trigger = stored.value;
        match trigger.status().word() {
            // On its way: the dispatcher will see it by itself.
            StatusWord::Triggering | StatusWord::Unknown => return Ok(()),
            StatusWord::Failed | StatusWord::Skipped => {
                for instance in instances {
                    let detail = format!("it runs, and its trigger is {}", trigger.status().word().as_str());
                    found.add(FindingKind::Extra, detail, Some(&trigger), Some(*instance));
                }
                return Ok(());
            }
            StatusWord::Success => {}
        }
        let own = trigger.instance.or_else(|| instances.first().copied());
        let extras: Vec<InstanceId> = instances.iter().copied().filter(|id| Some(*id) != own).collect();
        for instance in &extras {
            let detail = "a second instance of one trigger: stop it".to_owned();
            found.add(FindingKind::Extra, detail, Some(&trigger), Some(*instance));
        }
        if let Some(next) = trigger.found(instances) {
            let action = Write::Replace(trigger_draft(&next)?, stored.rev);
            // Somebody else may have written first; the finding stands all the same.
            store::write(&*self.ports.items, &*self.ports.random, &[action]).await?;
            if !extras.is_empty() {
                self.ports.notices.tell(Notice::ExtraInstance { trigger: (&next).into(), extras });
            }
        }
        Ok(())
    }
}

/// A project's triggers that were claimed since, newest first, and from when on where there are more.
async fn triggers_since(
    ports: &Ports,
    project: ProjectCode,
    since: Timestamp,
) -> Result<(Vec<Trigger>, Option<Timestamp>), EngineError> {
    let mut triggers: Vec<Trigger> = Vec::new();
    let mut after = None;
    while triggers.len() < MOST_TRIGGERS {
        let page = history::triggers(ports, project, PAGE, after.as_deref()).await?;
        let is_over = page.found.iter().any(|trigger| trigger.claimed_at < since);
        triggers.extend(page.found.into_iter().filter(|trigger| trigger.claimed_at >= since));
        match page.next {
            Some(next) if !is_over => after = Some(next),
            _ => return Ok((triggers, None)),
        }
    }
    let oldest = triggers.iter().map(|trigger| trigger.claimed_at).min();
    Ok((triggers, oldest))
}

fn by_workflow(triggers: &[Trigger]) -> BTreeMap<OnScheduler, Vec<&Trigger>> {
    let mut workflows: BTreeMap<OnScheduler, Vec<&Trigger>> = BTreeMap::new();
    for trigger in triggers {
        let which = OnScheduler { connection: trigger.connection.clone(), workflow: trigger.workflow.to_string() };
        workflows.entry(which).or_default().push(trigger);
    }
    workflows
}

fn take_in(records: &mut Records, items: &[Item]) -> Result<(), EngineError> {
    for item in items {
        records.take_in(item).map_err(|error| EngineError::new(ErrorKind::Damaged, error))?;
    }
    Ok(())
}
