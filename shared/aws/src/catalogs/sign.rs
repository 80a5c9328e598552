//! Signatures of AWS, version 4, with the function's own credentials.

use std::time::SystemTime;

use aws_config::SdkConfig;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_runtime_api::client::identity::Identity;
use lakebell_engine::{EngineError, ErrorKind};

use crate::http::{Request, away};

/// Signs requests.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    credentials: Option<SharedCredentialsProvider>,
    region: Option<String>,
}

impl Signer {
    pub(crate) fn new(sdk: &SdkConfig) -> Self {
        Self { credentials: sdk.credentials_provider(), region: sdk.region().map(ToString::to_string) }
    }

    /// The function's own region.
    pub(crate) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// Adds the headers of a signature for a service in a region.
    pub(crate) async fn sign(&self, request: Request, service: &str, region: &str) -> Result<Request, EngineError> {
        let denied = |message: &str| EngineError::new(ErrorKind::Denied, message.to_owned());
        let provider = self.credentials.as_ref().ok_or_else(|| denied("there are no AWS credentials to sign with"))?;
        let credentials = provider
            .provide_credentials()
            .await
            .map_err(|error| away("the AWS credentials to sign with could not be read").caused_by(error))?;
        let identity: Identity = credentials.into();
        let defect = || denied("the request to the catalog cannot be signed: check its URL");
        let parameters = SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(service)
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| defect().caused_by(error))?
            .into();
        let headers = request.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let signable =
            SignableRequest::new(request.method, request.url.as_str(), headers, SignableBody::Bytes(&request.body))
                .map_err(|error| defect().caused_by(error))?;
        let (instructions, _) = sign(signable, &parameters).map_err(|error| defect().caused_by(error))?.into_parts();
        let (added, _) = instructions.into_parts();
        let mut signed = request;
        signed.headers.extend(added.iter().map(|header| (header.name(), header.value().to_owned())));
        Ok(signed)
    }
}
