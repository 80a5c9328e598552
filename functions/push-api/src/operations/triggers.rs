//! Trigger history.

use lakebell_domain::ids::{ProjectCode, TriggerKey};
use lakebell_domain::trigger::{StatusWord, Trigger};
use lakebell_engine::history;
use serde::Serialize;

use crate::answer::Answer;
use crate::handler::Call;
use crate::list::{self, Listed, Page};
use crate::problem::ApiError;

/// Most triggers that one request with filters looks at; the mark in its answer leads on.
const MAX_SCANNED: usize = 1_000;
/// Most reads of one request.
const MAX_READS: usize = 20;

const WORDS: [StatusWord; 5] =
    [StatusWord::Triggering, StatusWord::Unknown, StatusWord::Success, StatusWord::Failed, StatusWord::Skipped];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    trigger_status: StatusWord,
    #[serde(flatten)]
    trigger: Trigger,
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
        let status = value("status").map(|text| word(&text)).transpose()?;
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

fn word(text: &str) -> Result<StatusWord, ApiError> {
    WORDS.into_iter().find(|word| word.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| {
        let names: Vec<&str> = WORDS.iter().map(|word| word.as_str()).collect();
        ApiError::invalid("status", format!("`{text}` is no status"), format!("use one of {}", names.join(", ")))
    })
}

pub(super) async fn list_of_project(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (project, page, filter) = (call.project()?, Page::of(&call.request.query)?, Filter::of(call)?);
    Answer::ok(&filtered(call, project, &page, &filter).await?)
}

/// Reads on until the page is full, the history ends, or enough was looked at. A page with filters
/// may have fewer items than asked for and still a mark.
async fn filtered(
    call: &Call<'_>,
    project: ProjectCode,
    page: &Page,
    filter: &Filter,
) -> Result<Listed<Shown>, ApiError> {
    let mut items = Vec::new();
    let mut next = page.history_after()?;
    let mut scanned = 0;
    for _ in 0..MAX_READS {
        let wanted = page.limit - items.len();
        let read = history::triggers(&call.context.ports, project, wanted, next.as_deref()).await;
        let read = read.map_err(list::about_mark)?;
        scanned += read.found.len();
        items.extend(read.found.into_iter().filter(|trigger| filter.admits(trigger)).map(Shown::from));
        next = read.next;
        if next.is_none() || items.len() >= page.limit || scanned >= MAX_SCANNED {
            break;
        }
    }
    Ok(Listed { items, next: list::history_next(next.as_deref()) })
}

pub(super) async fn read(call: &Call<'_>) -> Result<Answer, ApiError> {
    Answer::ok(&Shown::from(named(call).await?))
}

/// The trigger of this project that the path names.
pub(super) async fn named(call: &Call<'_>) -> Result<Trigger, ApiError> {
    let project = call.project()?;
    let key: TriggerKey =
        call.parameters.text("triggerKey").parse().map_err(|invalid: lakebell_domain::Invalid| {
            ApiError::invalid("triggerKey", invalid.problem, invalid.hint)
        })?;
    let trigger = history::trigger(&call.context.ports, &key).await?.value;
    if trigger.target.project != project {
        return Err(ApiError::not_found("triggerKey", format!("there is no trigger {key}")));
    }
    Ok(trigger)
}
