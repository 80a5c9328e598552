//! Finding out which version line a scheduler speaks.
//!
//! No call tells the version. But each line has paths that the others lack, and an unknown path is
//! answered with a web page while a known one is answered with JSON, whatever its code: the list of
//! workflow instances exists from 3.3 on, the list of commands from 3.2 on, and the list of process
//! instances in 3.1 and 3.2.

use std::time::Duration;

use lakebell_domain::ids::ProjectCode;
use lakebell_engine::ports::scheduler::{Refusal, VersionLine};

use crate::classify;
use crate::envelope::Answer;
use crate::scheduler::DolphinScheduler;
use crate::session::Session;
use crate::spelling::Spelling;

/// How long a detected line is trusted. An upgrade is noticed earlier, by the first web page.
pub(crate) const TRUSTED: Duration = Duration::from_mins(10);

const ONE_ROW: [(&str, &str); 2] = [("pageNo", "1"), ("pageSize", "1")];

impl DolphinScheduler {
    /// The spelling to use: declared, remembered, or found by asking.
    pub(crate) async fn spelling(&self, session: &mut Session<'_>, project: ProjectCode) -> Result<Spelling, Refusal> {
        if let Some(declared) = Spelling::of(session.spec.version) {
            return Ok(declared);
        }
        if let Some(known) = self.lines.get(&session.spec.url).and_then(Spelling::of) {
            return Ok(known);
        }
        self.detect(session, project).await
    }

    /// Asks, and remembers the answer.
    pub(crate) async fn detect(&self, session: &mut Session<'_>, project: ProjectCode) -> Result<Spelling, Refusal> {
        let found = if knows(session, &Spelling::v3_3().instances(project)).await? {
            Spelling::v3_3()
        } else if knows(session, "projects/analysis/listCommand").await? {
            Spelling::v3_2()
        } else if knows(session, &Spelling::v3_1().instances(project)).await? {
            Spelling::v3_1()
        } else {
            let detail =
                "no version of the API answers there: check the connection's URL (it ends in /dolphinscheduler)";
            return Err(Refusal { code: "HTTP_2xx_NOT_JSON".to_owned(), detail: detail.to_owned() });
        };
        tracing::info!(connection = %session.spec.name, line = ?found.line, "found the version line of the scheduler");
        self.lines.put(session.spec.url.clone(), found.line, TRUSTED);
        Ok(found)
    }

    /// Forgets what was found about a scheduler that has just answered like another version.
    pub(crate) fn forget_line(&self, session: &Session<'_>) {
        self.lines.forget(|url| *url == session.spec.url);
    }

    /// Passes a result on; after a failed read another version may answer there now.
    pub(crate) fn forgetting_line<T>(&self, session: &Session<'_>, result: Result<T, Refusal>) -> Result<T, Refusal> {
        if result.as_ref().is_err_and(|refusal| refusal.code != Refusal::CIRCUIT_OPEN) {
            self.forget_line(session);
        }
        result
    }

    /// Whether the line of this connection was found by asking.
    pub(crate) fn is_detected(session: &Session<'_>) -> bool {
        session.spec.version == VersionLine::Auto
    }
}

/// Whether the path exists: any envelope says so, whatever its code.
async fn knows(session: &mut Session<'_>, path: &str) -> Result<bool, Refusal> {
    let query = ONE_ROW.map(|(name, value)| (name, value.to_owned()));
    let answer = session.get(path, &query).await;
    match &answer {
        Answer::Envelope { .. } => Ok(true),
        unknown if unknown.is_unknown_path() => Ok(false),
        other => Err(classify::refusal(other)),
    }
}
