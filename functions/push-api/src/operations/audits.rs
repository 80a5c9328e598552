//! Audits, and how the deployment is.

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::Invalid;
use lakebell_domain::ids::AuditId;
use lakebell_engine::{audit, doctor};
use serde::Deserialize;

use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::problem::ApiError;

/// How far back an audit looks where nobody says.
const USUAL: SignedDuration = SignedDuration::from_hours(24);
/// How far back one may look: beyond it schedulers have deleted instances.
const FARTHEST: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What to audit; it may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    since: Option<Timestamp>,
}

pub(super) async fn ask(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let bytes = call.request.body()?;
    let asked: Asked = if bytes.iter().all(u8::is_ascii_whitespace) { Asked::default() } else { body::read(&bytes)? };
    let now = call.context.ports.clock.now();
    let since = asked.since.unwrap_or(now - USUAL);
    if since > now || now.duration_since(since) > FARTHEST {
        let hint = "use a time of the last 30 days, as in 2026-01-15T00:00:00Z, or leave it out for the last 24 hours";
        return Err(Invalid::new("since", "it is in the future, or too long ago", hint).into());
    }
    let asked = audit::ask(&call.context.ports, project, since, call.trace).await?;
    tracing::info!(%project, audit = %asked.id, "an audit was asked for");
    Answer::with(202, &asked)
}

pub(super) async fn read(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let id: AuditId = call.named("auditId")?;
    Answer::ok(&audit::read(&call.context.ports, project, &id).await?)
}

pub(super) async fn examine(call: &Call<'_>) -> Result<Answer, ApiError> {
    Answer::ok(&doctor::examine(&call.context.ports, &*call.context.dead_letters, call.trace).await?)
}
