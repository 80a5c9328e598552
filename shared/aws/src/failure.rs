//! What an error of AWS means to the engine.
//!
//! Codes are those of the services' API references ("Common Errors" and each operation's own).

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use lakebell_engine::{EngineError, ErrorKind};

/// What was being done, for messages that say what to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doing<'a> {
    /// The service's own name of the operation's permission, as in `s3:GetObject`.
    pub(crate) permission: &'a str,
    /// What it was about, as in ``bucket `lake` ``.
    pub(crate) resource: &'a str,
    /// What to check where the resource is not there.
    pub(crate) where_set: &'a str,
}

/// Groups of codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Too many requests.
    Throttled,
    /// The caller may not.
    Denied,
    /// The table, queue, bucket or secret is not there.
    Missing,
    /// The request breaks a rule of the service.
    Refused,
    /// The service failed, or could not be reached: nothing is known about the effect.
    Away,
}

/// The group of a code; `status` decides where the code is unknown. Without a status there was no
/// answer.
pub(crate) fn cause(code: Option<&str>, status: Option<u16>) -> Cause {
    match (code.unwrap_or_default(), status) {
        (
            "ProvisionedThroughputExceededException"
            | "ProvisionedThroughputExceeded"
            | "RequestLimitExceeded"
            | "ThrottlingError"
            | "ThrottlingException"
            | "Throttling"
            | "ThrottledException"
            | "TooManyRequestsException"
            | "RequestThrottled"
            | "SlowDown"
            | "KMS.ThrottlingException",
            _,
        )
        | (_, Some(429)) => Cause::Throttled,
        (
            "AccessDenied"
            | "AccessDeniedException"
            | "AllAccessDisabled"
            | "UnrecognizedClientException"
            | "InvalidClientTokenId"
            | "InvalidAccessKeyId"
            | "InvalidSignatureException"
            | "SignatureDoesNotMatch"
            | "MissingAuthenticationToken"
            | "MissingAuthenticationTokenException"
            | "IncompleteSignature"
            | "ExpiredToken"
            | "ExpiredTokenException"
            | "OptInRequired"
            | "InvalidObjectState"
            | "DecryptionFailure"
            | "KMS.AccessDeniedException"
            | "KMS.DisabledException",
            _,
        ) => Cause::Denied,
        (
            "ResourceNotFoundException"
            | "NoSuchBucket"
            | "QueueDoesNotExist"
            | "AWS.SimpleQueueService.NonExistentQueue"
            | "PermanentRedirect"
            | "TableNotFoundException",
            _,
        ) => Cause::Missing,
        (
            "InternalServerError"
            | "InternalError"
            | "InternalFailure"
            | "ServiceUnavailable"
            | "ReplicatedWriteConflictException"
            | "RequestTimeout"
            | "RequestTimeTooSkewed"
            | "RequestExpired",
            _,
        )
        | (_, None) => Cause::Away,
        (_, Some(403)) => Cause::Denied,
        (_, Some(status)) if (400..500).contains(&status) => Cause::Refused,
        _ => Cause::Away,
    }
}

/// Whether an answer came, and which.
pub(crate) fn cause_of<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Cause {
    match error {
        SdkError::ServiceError(answer) => cause(answer.err().code(), Some(answer.raw().status().as_u16())),
        SdkError::ConstructionFailure(_) => Cause::Refused,
        _ => Cause::Away,
    }
}

/// The engine's error for one of AWS, with a sentence that says what to do.
pub(crate) fn engine_error<E>(error: SdkError<E, HttpResponse>, doing: Doing<'_>) -> EngineError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let cause = cause_of(&error);
    let code = error.code().unwrap_or("no answer").to_owned();
    let said = said(&error);
    let Doing { permission, resource, where_set } = doing;
    let (kind, message) = match cause {
        Cause::Throttled => (ErrorKind::Unavailable, format!("{resource} is throttled ({permission})")),
        Cause::Away => (ErrorKind::Unavailable, format!("{resource} did not answer {permission}")),
        Cause::Denied => {
            (ErrorKind::Denied, format!("{permission} on {resource} was refused: allow it in the role that is used"))
        }
        Cause::Missing => (ErrorKind::NotFound, format!("{resource} does not exist here: check {where_set}")),
        Cause::Refused => (ErrorKind::Defect, format!("{resource} rejected the request of {permission}")),
    };
    EngineError::new(kind, format!("{message} ({code}: {said})")).caused_by(error)
}

/// What the service said, or how it could not be reached.
fn said<E: ProvideErrorMetadata + std::error::Error + 'static>(error: &SdkError<E, HttpResponse>) -> String {
    error.message().map_or_else(|| deepest(error).to_string(), str::to_owned)
}

/// The first cause in a chain of errors: the SDK's outer ones say only "dispatch failure".
fn deepest<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_code_has_its_cause() {
        let table = [
            (Some("ProvisionedThroughputExceededException"), Some(400), Cause::Throttled),
            (Some("RequestLimitExceeded"), Some(400), Cause::Throttled),
            (Some("ThrottlingException"), Some(400), Cause::Throttled),
            (Some("SlowDown"), Some(503), Cause::Throttled),
            (Some("SomethingNew"), Some(429), Cause::Throttled),
            (Some("AccessDeniedException"), Some(400), Cause::Denied),
            (Some("AccessDenied"), Some(403), Cause::Denied),
            (Some("ExpiredTokenException"), Some(400), Cause::Denied),
            (Some("SomethingNew"), Some(403), Cause::Denied),
            (Some("ResourceNotFoundException"), Some(400), Cause::Missing),
            (Some("NoSuchBucket"), Some(404), Cause::Missing),
            (Some("PermanentRedirect"), Some(301), Cause::Missing),
            (Some("QueueDoesNotExist"), Some(400), Cause::Missing),
            (Some("ValidationException"), Some(400), Cause::Refused),
            (Some("SerializationException"), Some(400), Cause::Refused),
            (Some("InternalServerError"), Some(500), Cause::Away),
            (Some("ServiceUnavailable"), Some(503), Cause::Away),
            (Some("RequestTimeout"), Some(400), Cause::Away),
            (None, Some(502), Cause::Away),
            (None, None, Cause::Away),
        ];
        for (code, status, expected) in table {
            assert_eq!(cause(code, status), expected, "{code:?} {status:?}");
        }
    }
}
