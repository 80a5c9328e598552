//! What one try of a write came to.
//!
//! The codes of a cancelled transaction are those of the API reference of `TransactWriteItems`.
//! DynamoDB gives one reason for each action, in order; `None` means that this action was not
//! what it failed on.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::CancellationReason;
use lakebell_engine::ports::items::Lost;
use lakebell_engine::{EngineError, ErrorKind};

use super::codec::{Attributes, item};
use crate::failure::{Cause, Doing, cause, cause_of, engine_error};

/// What one try came to.
#[derive(Debug)]
pub(super) enum Try {
    /// It took effect.
    Done,
    /// These conditions did not hold; nothing was written.
    Lost(Vec<Lost>),
    /// Another transaction was under way on an item; nothing was written.
    Conflict,
    /// The table was too busy; nothing was written.
    Throttled(EngineError),
    /// It may have taken effect.
    Unknown(EngineError),
    /// It failed for good; nothing was written, unless the error is `Unavailable`.
    Failed(EngineError),
}

/// What a cancelled transaction's reasons come to. Nothing was written, whatever they are.
///
/// A failed condition decides, whatever else stands beside it: the same transaction would fail on
/// it again. Then an action that can never succeed, then a busy table, then a conflict.
pub(super) fn cancelled(reasons: &[CancellationReason], doing: Doing<'_>) -> Try {
    match lost(reasons) {
        Ok(lost) if lost.is_empty() => {}
        Ok(lost) => return Try::Lost(lost),
        Err(damaged) => return Try::Failed(damaged),
    }
    let Doing { resource, .. } = doing;
    let mut throttled = None;
    let mut conflict = false;
    let mut other = None;
    for (action, reason) in reasons.iter().enumerate() {
        let code = reason.code().unwrap_or("None");
        let error = |kind, what: &str| {
            let said = reason.message().unwrap_or("no message");
            EngineError::new(kind, format!("{resource} {what} ({code}: {said})")).with("action", action)
        };
        match code {
            "None" => {}
            "TransactionConflict" => conflict = true,
            "ValidationError" | "ItemCollectionSizeLimitExceeded" | "DuplicateItem" => {
                return Try::Failed(error(ErrorKind::Defect, "rejected an action of a transaction"));
            }
            code if cause(Some(code), Some(400)) == Cause::Throttled => {
                throttled = Some(error(ErrorKind::Unavailable, "is throttled"));
            }
            code if cause(Some(code), Some(400)) == Cause::Denied => {
                return Try::Failed(error(ErrorKind::Denied, "refused an action of a transaction"));
            }
            _ => other = Some(error(ErrorKind::Unavailable, "cancelled a transaction for a reason unknown here")),
        }
    }
    match (throttled, other) {
        (Some(throttled), _) => Try::Throttled(throttled),
        (None, Some(other)) => Try::Failed(other),
        (None, None) if conflict => Try::Conflict,
        (None, None) => Try::Failed(EngineError::new(
            ErrorKind::Unavailable,
            format!("{resource} cancelled a transaction and gave no reason"),
        )),
    }
}

/// The actions whose condition failed, with the item that stands there.
fn lost(reasons: &[CancellationReason]) -> Result<Vec<Lost>, EngineError> {
    let failed = reasons.iter().enumerate().filter(|(_, reason)| reason.code() == Some("ConditionalCheckFailed"));
    failed.map(|(action, reason)| lost_action(action, reason.item())).collect()
}

/// One action whose condition failed.
pub(super) fn lost_action(action: usize, existing: Option<&Attributes>) -> Result<Lost, EngineError> {
    let existing = existing.filter(|attributes| !attributes.is_empty()).map(item).transpose()?;
    Ok(Lost { action, existing })
}

/// What an error other than a failed condition or a cancelled transaction comes to.
pub(super) fn failed<E>(error: SdkError<E, HttpResponse>, doing: Doing<'_>) -> Try
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let code = error.code().unwrap_or_default().to_owned();
    match code.as_str() {
        "TransactionConflictException" => return Try::Conflict,
        // An earlier try with this token is still under way.
        "TransactionInProgressException" => {
            let message = format!("{} is still at work on an earlier try", doing.resource);
            return Try::Unknown(EngineError::new(ErrorKind::Unavailable, message).caused_by(error));
        }
        // The token was used for another write: what became of this one has to be read back.
        "IdempotentParameterMismatchException" => {
            let message = format!("{} knows this try's token from another write; read back", doing.resource);
            return Try::Failed(EngineError::new(ErrorKind::Unavailable, message).caused_by(error));
        }
        _ => {}
    }
    let cause = cause_of(&error);
    let error = engine_error(error, doing);
    match cause {
        Cause::Throttled => Try::Throttled(error),
        Cause::Away => Try::Unknown(error),
        Cause::Denied | Cause::Missing | Cause::Refused => Try::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use lakebell_domain::ids::AttemptId;
    use lakebell_engine::ports::items::{Draft, Key};

    use super::super::codec::attributes;
    use super::*;

    const DOING: Doing<'_> =
        Doing { permission: "dynamodb:PutItem", resource: "table `t`", where_set: "LAKEBELL_TABLE" };

    fn reasons(codes: &[&str]) -> Vec<CancellationReason> {
        codes.iter().map(|code| CancellationReason::builder().code(*code).message("said").build()).collect()
    }

    fn outcome(codes: &[&str]) -> String {
        match cancelled(&reasons(codes), DOING) {
            Try::Done => "done".to_owned(),
            Try::Lost(lost) => format!("lost {:?}", lost.iter().map(|lost| lost.action).collect::<Vec<_>>()),
            Try::Conflict => "conflict".to_owned(),
            Try::Throttled(error) => format!("throttled {:?}", error.kind()),
            Try::Unknown(error) => format!("unknown {:?}", error.kind()),
            Try::Failed(error) => format!("failed {:?}", error.kind()),
        }
    }

    #[test]
    fn every_reason_is_classified() {
        let condition = "ConditionalCheckFailed";
        let conflict = "TransactionConflict";
        let table: [(&[&str], &str); 21] = [
            (&[condition], "lost [0]"),
            (&["None", condition, "None", condition], "lost [1, 3]"),
            (&[conflict, condition], "lost [1]"),
            (&["ThrottlingError", condition], "lost [1]"),
            (&["ValidationError", condition], "lost [1]"),
            (&[conflict], "conflict"),
            (&["None", conflict, "None"], "conflict"),
            (&[conflict, conflict], "conflict"),
            (&["ProvisionedThroughputExceeded"], "throttled Unavailable"),
            (&["ThrottlingError", "None"], "throttled Unavailable"),
            (&["RequestLimitExceeded"], "throttled Unavailable"),
            (&[conflict, "ThrottlingError"], "throttled Unavailable"),
            (&["ValidationError"], "failed Defect"),
            (&[conflict, "ValidationError"], "failed Defect"),
            (&["ItemCollectionSizeLimitExceeded"], "failed Defect"),
            (&["DuplicateItem"], "failed Defect"),
            (&["AccessDenied"], "failed Denied"),
            (&["SomethingNew"], "failed Unavailable"),
            (&[conflict, "SomethingNew"], "failed Unavailable"),
            (&["None", "None"], "failed Unavailable"),
            (&[], "failed Unavailable"),
        ];
        for (codes, expected) in table {
            assert_eq!(outcome(codes), expected, "{codes:?}");
        }
    }

    #[test]
    fn the_item_that_stands_there_is_handed_on() {
        let draft = Draft::new(Key::new("p", "s"), "{}".to_owned());
        let standing = attributes(&draft, 4, &AttemptId::new("mine").unwrap());
        let with_item = CancellationReason::builder().code("ConditionalCheckFailed").set_item(Some(standing)).build();
        let without = CancellationReason::builder().code("ConditionalCheckFailed").build();
        let Try::Lost(lost) = cancelled(&[with_item, without], DOING) else { panic!("a condition failed") };
        let item = lost[0].existing.as_ref().unwrap();
        assert_eq!((item.rev, item.attempt.as_str()), (4, "mine"));
        assert_eq!(lost[1], Lost { action: 1, existing: None });
    }

    #[test]
    fn a_damaged_item_is_not_taken_for_none() {
        let foreign = Attributes::from([("pk".to_owned(), super::super::codec::text("p"))]);
        let reason = CancellationReason::builder().code("ConditionalCheckFailed").set_item(Some(foreign)).build();
        let Try::Failed(error) = cancelled(&[reason], DOING) else { panic!("it is damaged") };
        assert_eq!(error.kind(), ErrorKind::Damaged);
    }
}
