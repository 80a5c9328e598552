//! One round of the duplicate check: what at the scheduler carries a trigger's key.

use std::fmt;

use lakebell_domain::ids::{ConnectionName, ProjectCode, WorkflowCode};
use lakebell_domain::target::WorkflowRef;
use lakebell_domain::trigger::Trigger;

use super::Dispatcher;
use crate::ports::scheduler::{CheckOutcome, Preflight, Refusal};

/// Why the code of a workflow is not known.
pub(crate) enum NoCode {
    /// The scheduler does not show it under its name.
    NotShown(String),
    /// The scheduler could not be asked.
    Unavailable(Refusal),
}

impl fmt::Display for NoCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotShown(detail) => f.write_str(detail),
            Self::Unavailable(refusal) => refusal.fmt(f),
        }
    }
}

impl From<NoCode> for CheckOutcome {
    fn from(why: NoCode) -> Self {
        match why {
            NoCode::NotShown(detail) => Self::Undecided { detail },
            NoCode::Unavailable(refusal) => Self::Unavailable(refusal),
        }
    }
}

impl Dispatcher {
    /// The code of a workflow. A code can be looked for whatever the scheduler says of it; a name must be
    /// found first, which it is not while the workflow is offline.
    pub(crate) async fn code_of(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: &WorkflowRef,
    ) -> Result<WorkflowCode, NoCode> {
        match workflow {
            WorkflowRef::Code(code) => Ok(*code),
            WorkflowRef::Name(_) => match self.scheduler.preflight(connection, project, workflow).await {
                Preflight::Startable { workflow, .. } => Ok(workflow),
                Preflight::Offline { detail } | Preflight::Missing { detail } => Err(NoCode::NotShown(detail)),
                Preflight::Unavailable(refusal) => Err(NoCode::Unavailable(refusal)),
            },
        }
    }

    /// One round of the duplicate check for a trigger.
    pub(crate) async fn round(&self, trigger: &Trigger) -> CheckOutcome {
        let (connection, project) = (&trigger.connection, trigger.target.project);
        let since = trigger.first_tried_at.unwrap_or(trigger.claimed_at);
        match self.code_of(connection, project, &trigger.workflow).await {
            Ok(workflow) => self.scheduler.check(connection, project, workflow, &trigger.key, since).await,
            Err(why) => why.into(),
        }
    }
}
