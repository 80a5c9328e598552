//! The engine's scheduler port over HTTP.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, TriggerKey, WorkflowCode};
use lakebell_engine::ports::scheduler::{
    Active, CheckOutcome, Connections, InstanceList, InstanceReport, Latest, Preflight, Refusal, Scheduler,
    StartOutcome, StartRequest, TokenExpiry, VersionLine, WorkflowRef,
};
use lakebell_engine::ports::time::{Clock, SystemClock};
use tokio::time::timeout;

use crate::bounded::Bounded;
use crate::circuit::{self, Circuits};
use crate::classify;
use crate::client::{BuildError, Client, Options};
use crate::envelope::Answer;
use crate::preflight::PreflightKey;
use crate::session::{NoSession, Session};
use crate::spelling::Spelling;
use crate::start;

/// How many workflows, and how many schedulers, are remembered.
const REMEMBERED: usize = 1000;
/// The longest time for a preflight, and before the start call itself: reading connection and token,
/// finding the version.
pub(crate) const PREPARATION: Duration = Duration::from_secs(5);
/// The longest time after it: reading a replaced token, finding the version anew.
const AFTERMATH: Duration = Duration::from_secs(5);

/// Every declared DolphinScheduler, over HTTP.
///
/// Remembers for a bounded time what it was told: a workflow's release state for 60 s when it can
/// be started and 10 s otherwise, a scheduler's version line for 10 minutes or until it answers
/// like another. A connection whose scheduler does not answer, or refuses its token, is left alone
/// for 5 s doubling to 5 minutes; calls through it are refused as [`Refusal::CIRCUIT_OPEN`]
/// meanwhile.
pub struct DolphinScheduler {
    pub(crate) connections: Arc<dyn Connections>,
    pub(crate) client: Client,
    pub(crate) preflights: Bounded<PreflightKey, Preflight>,
    pub(crate) alert_groups: Bounded<(ConnectionName, ProjectCode, WorkflowCode), Option<i64>>,
    pub(crate) lines: Bounded<String, VersionLine>,
    pub(crate) circuits: Circuits,
    pub(crate) clock: Arc<dyn Clock>,
}

impl DolphinScheduler {
    /// A client that takes connections and tokens from there. Fails where the certificate authority
    /// in the options is not usable or TLS cannot be set up.
    pub fn new(connections: Arc<dyn Connections>, options: &Options) -> Result<Self, BuildError> {
        Ok(Self {
            connections,
            client: Client::new(options)?,
            preflights: Bounded::new(REMEMBERED),
            alert_groups: Bounded::new(REMEMBERED),
            lines: Bounded::new(REMEMBERED),
            circuits: Circuits::new(Arc::new(SystemClock)),
            clock: Arc::new(SystemClock),
        })
    }

    /// With another clock than the machine's for the pauses of its circuit breakers, which begin
    /// closed, and for how near a token's end is.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.circuits = Circuits::new(Arc::clone(&clock));
        self.clock = clock;
        self
    }

    /// Everything before the start call itself. Nothing has been sent when this fails.
    async fn prepare(
        &self,
        connection: &ConnectionName,
        request: &StartRequest,
    ) -> Result<(Session<'_>, Spelling, Option<i64>), StartOutcome> {
        let mut session = Session::open(self, connection).await.map_err(|none| match none {
            NoSession::Undeclared(refusal) => StartOutcome::Permanent(refusal),
            NoSession::Unavailable(refusal) => StartOutcome::Retryable(refusal),
        })?;
        let spelling = self.spelling(&mut session, request.project).await.map_err(not_sent)?;
        // The first call after a pause is a read, whose loss does no harm.
        let line = circuit::line(&session.spec);
        if self.circuits.is_open(&line) {
            let probed = session.get(spelling.masters, &[]).await;
            if self.circuits.is_open(&line) {
                return Err(not_sent(classify::refusal(&probed)));
            }
        }
        let mut alert_group = None;
        if spelling.overwrites_alert_group() {
            let key = (connection.clone(), request.project, request.workflow);
            if self.alert_groups.get(&key).is_none() {
                // The preflight finds it; what it says otherwise, the start's own answer says too.
                self.look_anew(&mut session, request).await;
            }
            alert_group = self.alert_groups.get(&key).flatten();
        }
        Ok((session, spelling, alert_group))
    }

    /// What is left to do once the start has been answered; it never sends it again.
    async fn follow_up(
        &self,
        session: &mut Session<'_>,
        spelling: &Spelling,
        request: &StartRequest,
        answer: &Answer,
    ) -> StartOutcome {
        let outcome = classify::start_outcome(answer);
        match outcome {
            // A 401 came before any handler. With another token the next attempt may pass.
            StartOutcome::ConnectionRefused(refusal) => match timeout(AFTERMATH, session.renew()).await {
                Ok(true) => {
                    self.circuits.close(&circuit::line(&session.spec));
                    StartOutcome::Retryable(refusal)
                }
                Ok(false) | Err(_) => StartOutcome::ConnectionRefused(refusal),
            },
            // The path is not there. If the scheduler speaks another version now, the next attempt
            // takes its path; if not, somebody has to look at the connection.
            StartOutcome::Permanent(refusal) if answer.is_unknown_path() && Self::is_detected(session) => {
                self.forget_line(session);
                match timeout(AFTERMATH, self.detect(session, request.project)).await {
                    Ok(Ok(now)) if now.line == spelling.line => StartOutcome::Permanent(refusal),
                    Ok(Ok(_) | Err(_)) | Err(_) => StartOutcome::Retryable(refusal),
                }
            }
            other => other,
        }
    }

    /// What was remembered of the workflow was wrong.
    fn forget_preflights(&self, connection: &ConnectionName, project: ProjectCode) {
        self.preflights.forget(|(name, of, _)| name == connection && *of == project);
    }
}

/// A refusal before anything was sent.
fn not_sent(refusal: Refusal) -> StartOutcome {
    if refusal.code == "HTTP_401" { StartOutcome::ConnectionRefused(refusal) } else { StartOutcome::Retryable(refusal) }
}

#[async_trait]
impl Scheduler for DolphinScheduler {
    async fn preflight(&self, connection: &ConnectionName, project: ProjectCode, workflow: &WorkflowRef) -> Preflight {
        self.look(connection, project, workflow).await
    }

    async fn start(&self, connection: &ConnectionName, request: &StartRequest) -> StartOutcome {
        let Ok(prepared) = timeout(PREPARATION, self.prepare(connection, request)).await else {
            let detail = "preparing the start took too long; nothing was sent".to_owned();
            return StartOutcome::Retryable(Refusal { code: "TRANSPORT_ERROR".to_owned(), detail });
        };
        let (mut session, spelling, alert_group) = match prepared {
            Ok(prepared) => prepared,
            Err(outcome) => return outcome,
        };
        let form = start::form(&spelling, request, alert_group);
        let answer = session.post(&spelling.start(request.project), &form).await;
        let outcome = self.follow_up(&mut session, &spelling, request, &answer).await;
        if matches!(outcome, StartOutcome::Offline(_) | StartOutcome::Permanent(_)) {
            self.forget_preflights(connection, request.project);
        }
        tracing::info!(
            %connection,
            trigger = %request.trigger,
            workflow = %request.workflow,
            line = ?spelling.line,
            code = %answer.code_text(),
            "the scheduler answered a start"
        );
        outcome
    }

    async fn check(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: WorkflowCode,
        trigger: &TriggerKey,
        since: Timestamp,
    ) -> CheckOutcome {
        self.round(connection, project, workflow, trigger, since).await
    }

    async fn instance(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        instance: InstanceId,
    ) -> Result<Option<InstanceReport>, Refusal> {
        self.one_instance(connection, project, instance).await
    }

    async fn active(&self, connection: &ConnectionName, project: ProjectCode, workflow: WorkflowCode) -> Active {
        self.count_active(connection, project, workflow).await
    }

    async fn latest(&self, connection: &ConnectionName, project: ProjectCode, workflow: &WorkflowRef) -> Latest {
        self.look_at_latest(connection, project, workflow).await
    }

    async fn instances_since(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: WorkflowCode,
        since: Timestamp,
    ) -> Result<InstanceList, Refusal> {
        self.all_instances(connection, project, workflow, since).await
    }

    async fn token_expiry(&self, connection: &ConnectionName) -> TokenExpiry {
        self.look_at_token(connection).await
    }

    fn start_timeout(&self) -> Duration {
        PREPARATION + self.client.start_timeout + AFTERMATH
    }
}
