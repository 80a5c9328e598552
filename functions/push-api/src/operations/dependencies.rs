//! Targets: declare, list, explain, undeclare.

use jiff::Timestamp;
use lakebell_domain::evaluation::Evaluation;
use lakebell_domain::ids::{InstanceId, ProjectCode, TargetId, TargetName, TriggerKey, WorkflowCode};
use lakebell_domain::reason::Verdict;
use lakebell_domain::target::{TargetSpec, WorkflowRef};
use lakebell_domain::trigger::{Followed, Trigger};
use lakebell_engine::records::RegisteredTarget;
use lakebell_engine::{advice, evaluate, settings, targets};
use lakebell_lambda::report_evaluated;
use serde::Serialize;

use super::records;
use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::list::{self, Listed, Page};
use crate::problem::ApiError;

/// What came of a declaration.
#[derive(Serialize)]
pub(super) struct Declared {
    target: TargetId,
    name: TargetName,
    pub(super) changed: bool,
    rule: String,
    evaluation: Option<Evaluation>,
    /// The trigger that was claimed at once, if one was.
    claimed: Option<TriggerKey>,
    /// What a person should know who declares this.
    pub(super) warnings: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explained {
    pub(super) target: TargetId,
    name: TargetName,
    definition: TargetSpec,
    rule: String,
    pub(super) evaluation: Evaluation,
    /// What the scheduler said about the workflow, and loops through what it writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The last start, and how its workflow is getting on.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_start: Option<Start>,
}

/// A start of a target.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    trigger: TriggerKey,
    claimed_at: Timestamp,
    instance: Option<InstanceId>,
    followed: Option<Followed>,
}

impl From<Trigger> for Start {
    fn from(trigger: Trigger) -> Self {
        let followed = trigger.followed().cloned();
        Self { trigger: trigger.key, claimed_at: trigger.claimed_at, instance: trigger.instance, followed }
    }
}

impl From<evaluate::Explained> for Explained {
    fn from(explained: evaluate::Explained) -> Self {
        let evaluate::Explained { definition, evaluation, advice, started, loops } = explained;
        let warnings = advice.and_then(|advice| advice.warning()).into_iter().chain(loops).collect();
        let id = definition.target.id.clone();
        let rule = definition.target.rule();
        let last_start = started.map(Start::from);
        Self { name: id.name.clone(), target: id, definition: definition.spec, rule, evaluation, warnings, last_start }
    }
}

/// Declares a target, or those of the RFC's dependency records.
pub(super) async fn declare(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let bytes = call.request.body()?;
    if let Some(records) = records::read(&bytes)? {
        return records::declare(call, project, &records).await;
    }
    let spec: TargetSpec = body::read(&bytes)?;
    spec.check()?;
    check_connection(call, &spec).await?;
    let declared = put(call, project, &spec).await?;
    Answer::with(if declared.changed { 201 } else { 200 }, &declared)
}

/// Declares a target that was checked.
pub(super) async fn put(call: &Call<'_>, project: ProjectCode, spec: &TargetSpec) -> Result<Declared, ApiError> {
    let declared = targets::declare(&call.context.ports, project, spec, call.trace).await?;
    let target = declared.definition.target;
    tracing::info!(target = %target.id, changed = declared.is_changed, "declared");
    report_evaluated(&call.context.metrics, declared.evaluated.as_slice());
    // The declaration stands whether or not its workflow is looked at.
    if let Err(error) = advice::ask(&call.context.ports, &target.id, call.trace).await {
        tracing::warn!(%error, target = %target.id, "the dispatcher was not asked to look at the workflow");
    }
    let rule = target.rule();
    let (evaluation, claimed) =
        declared.evaluated.map_or((None, None), |evaluated| (Some(evaluated.evaluation), evaluated.claimed));
    Ok(Declared {
        name: target.id.name.clone(),
        target: target.id,
        changed: declared.is_changed,
        rule,
        evaluation,
        claimed,
        warnings: declared.warnings,
    })
}

/// A trigger of a target whose connection is not declared could only fail.
pub(super) async fn check_connection(call: &Call<'_>, spec: &TargetSpec) -> Result<(), ApiError> {
    let known = settings::connections(&call.context.ports).await?;
    if known.iter().any(|connection| connection.name == spec.connection) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(|connection| connection.name.as_str()).collect();
    let hint = if names.is_empty() {
        "declare it first; no connection is declared yet".to_owned()
    } else {
        format!("declare it first, or use one of {}", names.join(", "))
    };
    Err(ApiError::invalid("connection", format!("connection `{}` is not declared", spec.connection), hint))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (project, page) = (call.project()?, Page::of(&call.request.query)?);
    let mut all = targets::list(&call.context.ports, Some(project), None).await?;
    let query = &call.request.query;
    if let Some(workflow) = query.get("workflow").filter(|workflow| !workflow.is_empty()) {
        all.retain(|target| target.workflow.to_string() == *workflow);
    }
    let verdict = list::word(query, "verdict", &Verdict::ALL, Verdict::as_str)?;
    let Listed { items, next } = page.cut(all, |target| target.id.name.to_string())?;
    let mut items = explained(call, &items).await?;
    items.retain(|target| verdict.is_none_or(|verdict| target.evaluation.verdict == verdict));
    Answer::ok(&Listed { items, next })
}

pub(super) async fn explain(call: &Call<'_>) -> Result<Answer, ApiError> {
    let items = match explained_by_name(call).await? {
        Some(explained) => vec![explained],
        None => explained(call, &named(call).await?).await?,
    };
    Answer::ok(&Listed { items, next: None })
}

/// The target of this name, read without a look through all targets. Digits are a workflow's code first.
async fn explained_by_name(call: &Call<'_>) -> Result<Option<Explained>, ApiError> {
    let text = call.parameters.text("target");
    let (Err(_), Ok(name)) = (text.parse::<WorkflowCode>(), text.parse()) else { return Ok(None) };
    let id = TargetId { project: call.project()?, name };
    Ok(targets::explain(&call.context.ports, &[id]).await?.pop().map(Explained::from))
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Answer, ApiError> {
    for target in named(call).await? {
        targets::undeclare(&call.context.ports, &target.id).await?;
        tracing::info!(target = %target.id, "undeclared");
    }
    Ok(Answer::empty())
}

async fn explained(call: &Call<'_>, targets: &[RegisteredTarget]) -> Result<Vec<Explained>, ApiError> {
    let ids: Vec<TargetId> = targets.iter().map(|target| target.id.clone()).collect();
    let explained = targets::explain(&call.context.ports, &ids).await?;
    Ok(explained.into_iter().map(Explained::from).collect())
}

/// The targets that the path names: digits are a workflow's code, anything else a target's name or
/// a workflow's. A target whose name is digits is found where no workflow has that code.
async fn named(call: &Call<'_>) -> Result<Vec<RegisteredTarget>, ApiError> {
    let project = call.project()?;
    let text = call.parameters.text("target");
    let all = targets::list(&call.context.ports, Some(project), None).await?;
    let select = |is_wanted: &dyn Fn(&RegisteredTarget) -> bool| -> Vec<RegisteredTarget> {
        all.iter().filter(|target| is_wanted(target)).cloned().collect()
    };
    let workflow = text.parse::<WorkflowCode>().ok();
    let mut found = select(&|target| workflow.is_some_and(|code| target.starts(code)));
    if found.is_empty() {
        found = select(&|target| target.id.name.as_str() == text);
    }
    if found.is_empty() {
        found = select(&|target| matches!(&target.workflow, WorkflowRef::Name(name) if *name == text));
    }
    if found.is_empty() {
        let detail = format!("no target of project {project} has this name or starts this workflow: {text}");
        let hint = "GET /projects/{p}/asset-dependencies lists them";
        return Err(ApiError::not_found("target", detail).hint(hint));
    }
    Ok(found)
}
