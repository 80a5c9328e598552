//! One connection for the length of one port call: its specification, its token, its spelling.

use lakebell_domain::ids::ConnectionName;
use lakebell_engine::EngineError;
use lakebell_engine::ports::scheduler::{ConnectionSpec, Refusal};

use crate::circuit::{self, Purpose};
use crate::classify;
use crate::client::Target;
use crate::envelope::{Answer, Transport, shorten};
use crate::scheduler::DolphinScheduler;

/// Code of a refusal when nobody declared the connection.
pub(crate) const UNDECLARED: &str = "CONNECTION_NOT_DECLARED";

/// A declared connection with its token.
pub(crate) struct Session<'a> {
    scheduler: &'a DolphinScheduler,
    pub(crate) spec: ConnectionSpec,
    token: String,
}

/// Why there is no session.
pub(crate) enum NoSession {
    /// Nobody declared the connection.
    Undeclared(Refusal),
    /// The specification or the token could not be read.
    Unavailable(Refusal),
}

impl NoSession {
    pub(crate) fn into_refusal(self) -> Refusal {
        match self {
            Self::Undeclared(refusal) | Self::Unavailable(refusal) => refusal,
        }
    }
}

impl<'a> Session<'a> {
    pub(crate) async fn open(scheduler: &'a DolphinScheduler, name: &ConnectionName) -> Result<Self, NoSession> {
        let spec = scheduler.connections.connection(name).await.map_err(|error| unavailable(&error))?;
        let spec = spec.ok_or_else(|| {
            let detail = format!("connection `{name}` is not declared: declare it, or name another in the target");
            NoSession::Undeclared(Refusal { code: UNDECLARED.to_owned(), detail })
        })?;
        let token = scheduler.connections.token(&spec, false).await.map_err(|error| unavailable(&error))?;
        Ok(Self { scheduler, spec, token: token.trim().to_owned() })
    }

    /// Reads, if the connection's circuit lets it. A 401 is tried once more if the token has been
    /// replaced meanwhile.
    pub(crate) async fn get(&mut self, path: &str, query: &[(&str, String)]) -> Answer {
        let permit = match self.scheduler.circuits.admit(circuit::line(&self.spec), Purpose::Read) {
            Ok(permit) => permit,
            Err(open) => return withheld(open),
        };
        let mut answer = self.scheduler.client.get(&self.target(), path, query).await;
        if matches!(answer, Answer::Http { status: 401, .. }) && self.renew().await {
            answer = self.scheduler.client.get(&self.target(), path, query).await;
        }
        permit.settle(&answer);
        answer
    }

    /// Sends a form, once and with no second try whatever comes; not at all while the connection's
    /// circuit is open.
    pub(crate) async fn post(&self, path: &str, form: &[(&str, String)]) -> Answer {
        let permit = match self.scheduler.circuits.admit(circuit::line(&self.spec), Purpose::Write) {
            Ok(permit) => permit,
            Err(open) => return withheld(open),
        };
        let answer = self.scheduler.client.post(&self.target(), path, form).await;
        permit.settle(&answer);
        answer
    }

    /// Reads the token past any cache; whether it is another one than before.
    pub(crate) async fn renew(&mut self) -> bool {
        match self.scheduler.connections.token(&self.spec, true).await {
            Ok(fresh) if fresh.trim() != self.token => {
                fresh.trim().clone_into(&mut self.token);
                true
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// The token in use.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    fn target(&self) -> Target<'_> {
        Target { base_url: &self.spec.url, token: &self.token }
    }
}

fn withheld(open: Refusal) -> Answer {
    Answer::None { transport: Transport::Withheld, detail: open.detail }
}

/// The data of a read, or why there is none.
pub(crate) fn data_of(answer: Answer) -> Result<serde_json::Value, Refusal> {
    match answer {
        Answer::Envelope { code: 0, data, .. } => Ok(data),
        other => Err(classify::refusal(&other)),
    }
}

fn unavailable(error: &EngineError) -> NoSession {
    NoSession::Unavailable(Refusal { code: error.kind().code().to_owned(), detail: shorten(error.message()) })
}
