//! What an operator does: pause and resume a target; redrive, skip and decide a trigger.

use lakebell_domain::Invalid;
use lakebell_domain::evaluation::Evaluation;
use lakebell_domain::ids::{InstanceId, TriggerKey};
use lakebell_domain::trigger::Decision;
use lakebell_engine::operate::{self, Operated};
use lakebell_engine::{EngineError, ErrorKind, targets};
use lakebell_lambda::report_evaluated;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::operations::dependencies::Explained;
use crate::operations::triggers::{self, Shown};
use crate::problem::ApiError;

/// Longest name of whoever it was: it is kept in the trigger's log.
const MAX_BY_CHARS: usize = 100;

/// The body of every verb but `decide`; it may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plain {
    #[serde(default)]
    pub(super) by: Option<String>,
}

/// The body of `decide`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    decision: Word,
    #[serde(default)]
    instance: Option<InstanceId>,
    #[serde(default)]
    by: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Word {
    Started,
    Absent,
    Failed,
}

impl Decided {
    fn decision(&self) -> Result<Decision, Invalid> {
        if self.instance.is_some_and(|instance| instance.0 <= 0) {
            let hint = "use the positive number that DolphinScheduler shows";
            return Err(Invalid::new("instance", "it is no workflow instance id", hint));
        }
        match (self.decision, self.instance) {
            (Word::Started, instance) => Ok(Decision::Started(instance)),
            (Word::Absent, None) => Ok(Decision::Absent),
            (Word::Failed, None) => Ok(Decision::Failed),
            (Word::Absent | Word::Failed, Some(_)) => {
                let hint = "leave it out, or decide `started`";
                Err(Invalid::new("instance", "only what started has an instance", hint))
            }
        }
    }
}

/// A target after a verb.
#[derive(Serialize)]
pub(super) struct OperatedTarget {
    #[serde(flatten)]
    pub(super) explained: Explained,
    /// The trigger that was claimed at once, if one was.
    pub(super) claimed: Option<TriggerKey>,
}

/// A trigger after a verb.
#[derive(Serialize)]
struct OperatedTrigger {
    #[serde(flatten)]
    trigger: Shown,
    /// The evaluation of its target that followed.
    evaluation: Option<Evaluation>,
    /// The trigger that this evaluation claimed, if it did.
    claimed: Option<TriggerKey>,
}

pub(super) async fn pause(call: &Call<'_>) -> Result<Answer, ApiError> {
    let by = by(call, plain(call)?.by)?;
    let target = declared(call).await?.target;
    operate::pause(&call.context.ports, &target, &by).await?;
    tracing::info!(%target, by, "target paused");
    Answer::ok(&OperatedTarget { explained: declared(call).await?, claimed: None })
}

pub(super) async fn resume(call: &Call<'_>) -> Result<Answer, ApiError> {
    let by = by(call, plain(call)?.by)?;
    let mut explained = declared(call).await?;
    let target = &explained.target;
    let evaluated = operate::resume(&call.context.ports, target, call.trace).await?;
    tracing::info!(%target, by, "target resumed");
    report_evaluated(&call.context.metrics, evaluated.as_slice());
    let mut claimed = None;
    if let Some(evaluated) = evaluated {
        explained.evaluation = evaluated.evaluation;
        claimed = evaluated.claimed;
    }
    Answer::ok(&OperatedTarget { explained, claimed })
}

pub(super) async fn redrive(call: &Call<'_>) -> Result<Answer, ApiError> {
    let by = by(call, plain(call)?.by)?;
    let key = triggers::named(call).await?.key;
    let hint = "only a FAILED trigger can be redriven, until the next one of its target takes over its data";
    let operated = operate::redrive(&call.context.ports, &key, &by, call.trace).await;
    answer(call, operated.map_err(|error| refused(error, hint))?, &by, "trigger redriven")
}

pub(super) async fn skip(call: &Call<'_>) -> Result<Answer, ApiError> {
    let by = by(call, plain(call)?.by)?;
    let key = triggers::named(call).await?.key;
    let hint = "only a queued or waiting trigger, or one that failed and holds its target, can be skipped";
    let operated = operate::skip(&call.context.ports, &key, &by, call.trace).await;
    answer(call, operated.map_err(|error| refused(error, hint))?, &by, "trigger skipped")
}

pub(super) async fn decide(call: &Call<'_>) -> Result<Answer, ApiError> {
    call.project()?;
    let decided: Decided = body::read(&call.request.body()?)?;
    let (decision, by) = (decided.decision()?, by(call, decided.by)?);
    let key = triggers::named(call).await?.key;
    let hint = "only a trigger that is UNKNOWN and held can be decided; the others go on by themselves";
    let operated = operate::decide(&call.context.ports, &key, decision, &by, call.trace).await;
    answer(call, operated.map_err(|error| refused(error, hint))?, &by, "trigger decided")
}

pub(super) fn plain(call: &Call<'_>) -> Result<Plain, ApiError> {
    let bytes = call.request.body()?;
    if bytes.iter().all(u8::is_ascii_whitespace) { Ok(Plain::default()) } else { body::read(&bytes) }
}

/// Who it was: by the caller's word, or else whoever the token is named after.
pub(super) fn by(call: &Call<'_>, given: Option<String>) -> Result<String, Invalid> {
    let Some(by) = given else { return Ok(call.caller.label().chars().take(MAX_BY_CHARS).collect()) };
    let is_name = !by.trim().is_empty() && by.chars().count() <= MAX_BY_CHARS && !by.chars().any(char::is_control);
    if is_name {
        return Ok(by);
    }
    let hint = format!("use 1 to {MAX_BY_CHARS} characters on one line, or leave it out");
    Err(Invalid::new("by", "it is no name of a person or program", hint))
}

/// The declared target that the path names; digits are a name here, too.
pub(super) async fn declared(call: &Call<'_>) -> Result<Explained, ApiError> {
    let id = call.target()?;
    let found = targets::explain(&call.context.ports, std::slice::from_ref(&id)).await?.pop();
    found.map(Explained::from).ok_or_else(|| {
        ApiError::not_found("target", format!("target {id} is not declared"))
            .hint("give the name of a target; GET /projects/{p}/asset-dependencies lists them")
    })
}

/// What stands in the way of a verb on a trigger, and for which triggers it is.
fn refused(error: EngineError, hint: &str) -> ApiError {
    let is_conflict = error.kind() == ErrorKind::Conflict;
    let error = ApiError::from(error);
    if is_conflict { error.at("triggerKey").hint(hint) } else { error }
}

fn answer(call: &Call<'_>, operated: Operated, by: &str, message: &'static str) -> Result<Answer, ApiError> {
    let Operated { trigger, evaluated } = operated;
    tracing::info!(
        target = %trigger.target,
        triggerKey = %trigger.key,
        status = trigger.status().word().as_str(),
        step = trigger.status().step(),
        workflowInstanceId = trigger.instance.map(|instance| instance.0),
        by,
        "{message}"
    );
    report_evaluated(&call.context.metrics, evaluated.as_slice());
    let (evaluation, claimed) = match evaluated {
        Some(evaluated) => (Some(evaluated.evaluation), evaluated.claimed),
        None => (None, None),
    };
    Answer::ok(&OperatedTrigger { trigger: Shown::from(trigger), evaluation, claimed })
}
