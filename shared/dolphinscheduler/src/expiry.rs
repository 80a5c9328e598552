//! When a connection's token stops working.
//!
//! The list of access tokens shows a user's own, with their ends; an administrator's shows
//! everybody's. It is gone through for the one token that the connection has, and nothing of it is
//! kept or logged but that token's end. The list by user id would need the id first.
//!
//! Source: `AccessTokenController.java`, `AccessTokenServiceImpl.java` and `AccessTokenMapper.xml` of
//! DolphinScheduler 3.1.9, 3.2.2 and the line that became 3.3, which agree.

use std::ops::ControlFlow;

use lakebell_domain::ids::ConnectionName;
use lakebell_engine::ports::scheduler::{Refusal, TokenExpiry};
use serde_json::Value;

use crate::list::each_row;
use crate::rows;
use crate::scheduler::DolphinScheduler;
use crate::session::{NoSession, Session};

/// What is answered where the user may not see tokens.
const NO_PERMISSION: [&str; 3] = ["30001", "30002", "30003"];

impl DolphinScheduler {
    pub(crate) async fn look_at_token(&self, connection: &ConnectionName) -> TokenExpiry {
        let expiry = self.expiry(connection).await.unwrap_or_else(TokenExpiry::Unavailable);
        if let TokenExpiry::At(end) = &expiry
            && expiry.is_near(self.clock.now())
        {
            tracing::warn!(
                %connection,
                expires_at = %end,
                "the connection's token expires soon: put a new one into its secret"
            );
        }
        expiry
    }

    async fn expiry(&self, connection: &ConnectionName) -> Result<TokenExpiry, Refusal> {
        let mut session = Session::open(self, connection).await.map_err(NoSession::into_refusal)?;
        let filters: Vec<_> = session.spec.user.iter().map(|user| ("searchVal", user.clone())).collect();
        // The list is read with this token unless it is replaced on the way; then the next look tells.
        let token = session.token().to_owned();
        let mut end = None;
        let read = each_row(&mut session, "access-tokens", &filters, |row| {
            if row.get("token").and_then(Value::as_str) != Some(token.as_str()) {
                return ControlFlow::Continue(());
            }
            end = Some(rows::time(row, "expireTime"));
            ControlFlow::Break(())
        })
        .await;
        let detail = match (read, end) {
            (_, Some(Some(end))) => return Ok(TokenExpiry::At(end)),
            (_, Some(None)) => "the scheduler shows the token without its end".to_owned(),
            (Ok(_), None) => "the scheduler's list of tokens does not show the one in use".to_owned(),
            // It may not be asked, and will not be allowed to by asking again.
            (Err(refusal), None) if NO_PERMISSION.contains(&refusal.code.as_str()) => refusal.to_string(),
            (Err(refusal), None) => return Err(refusal),
        };
        Ok(TokenExpiry::Unknown { detail })
    }
}
