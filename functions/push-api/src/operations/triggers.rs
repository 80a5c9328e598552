//! Trigger history.

use lakebell_domain::ids::{InstanceId, TriggerKey};
use lakebell_domain::trigger::{StatusWord, Trigger};
use lakebell_engine::history::{self, Extra};
use serde::Serialize;

use crate::answer::Answer;
use crate::handler::Call;
use crate::list::{self, Listed, Page};
use crate::problem::ApiError;

const WORDS: [StatusWord; 5] =
    [StatusWord::Triggering, StatusWord::Unknown, StatusWord::Success, StatusWord::Failed, StatusWord::Skipped];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    trigger_status: StatusWord,
    #[serde(flatten)]
    trigger: Trigger,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Extras<'a> {
    extra_instances: &'a [InstanceId],
    items: Vec<Extra>,
    next: Option<String>,
}

impl From<Trigger> for Shown {
    fn from(trigger: Trigger) -> Self {
        Self { trigger_status: trigger.status().word(), trigger }
    }
}

/// What a caller wants to see.
struct Filter {
    workflow: Option<String>,
    target: Option<String>,
    status: Option<StatusWord>,
}

impl Filter {
    fn of(call: &Call<'_>) -> Result<Self, ApiError> {
        let value = |name: &str| call.request.query.get(name).filter(|value| !value.is_empty()).cloned();
        let status = list::word(&call.request.query, "status", &WORDS, StatusWord::as_str)?;
        Ok(Self { workflow: value("workflow"), target: value("target"), status })
    }

    fn admits(&self, trigger: &Trigger) -> bool {
        let is_workflow = |workflow: &String| trigger.workflow.to_string() == *workflow;
        let is_target =
            |target: &String| trigger.target.name.as_str() == target.as_str() || trigger.target.to_string() == *target;
        self.workflow.as_ref().is_none_or(is_workflow)
            && self.target.as_ref().is_none_or(is_target)
            && self.status.is_none_or(|status| trigger.status().word() == status)
    }
}

pub(super) async fn list_of_project(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (project, page, filter) = (call.project()?, Page::of(&call.request.query)?, Filter::of(call)?);
    let ports = &call.context.ports;
    let read = |limit: usize, after: Option<String>| -> list::Reading<'_, _> {
        Box::pin(async move { history::triggers(ports, project, limit, after.as_deref()).await })
    };
    let Listed { items, next } = list::filtered(&page, read, |trigger| filter.admits(trigger)).await?;
    Answer::ok(&Listed { items: items.into_iter().map(Shown::from).collect(), next })
}

/// What writers attached to what a trigger took, and the instances beyond its own.
pub(super) async fn extras(call: &Call<'_>) -> Result<Answer, ApiError> {
    let page = Page::of(&call.request.query)?;
    let trigger = named(call).await?;
    let after = page.history_after()?;
    let read = history::extras(&call.context.ports, &trigger, page.limit, after.as_deref()).await;
    let read = read.map_err(list::about_mark)?;
    Answer::ok(&Extras {
        extra_instances: &trigger.extra_instances,
        items: read.found,
        next: list::history_next(read.next.as_deref()),
    })
}

pub(super) async fn read(call: &Call<'_>) -> Result<Answer, ApiError> {
    Answer::ok(&Shown::from(named(call).await?))
}

/// The trigger of this project that the path names.
pub(super) async fn named(call: &Call<'_>) -> Result<Trigger, ApiError> {
    let project = call.project()?;
    let key: TriggerKey = call.named("triggerKey")?;
    let trigger = history::trigger(&call.context.ports, &key).await?.value;
    if trigger.target.project != project {
        return Err(ApiError::not_found("triggerKey", format!("there is no trigger {key}")));
    }
    Ok(trigger)
}
