//! The catalogs of Iceberg tables: Iceberg's REST protocol, and AWS Glue by its own API.
//!
//! Requests go through the HTTP client that the AWS SDK brings along, so that a function does not
//! carry a second one. Redirects are not followed: a secret goes to the place that it names, and
//! nowhere else.

mod answer;
mod glue;
mod rest;
pub(crate) mod sign;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use lakebell_domain::asset::AssetKey;
use lakebell_engine::EngineError;
use lakebell_engine::catalog::RemoteCatalog;
use lakebell_engine::ports::catalog::Catalogs;

use crate::Secrets;
use crate::http::Http;
use glue::Glue;
use rest::Rest;
use sign::Signer;

/// The longest time that a question takes, its answer included.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);

/// [`Catalogs`] over HTTP, with secrets from Secrets Manager.
#[derive(Debug)]
pub struct AwsCatalogs {
    rest: Rest,
    glue: Glue,
}

impl AwsCatalogs {
    /// Catalogs asked with the SDK's region, credentials and endpoint.
    pub fn new(sdk: &SdkConfig, secrets: Arc<Secrets>) -> Self {
        Self::with_timeout(sdk, secrets, ANSWER_TIMEOUT)
    }

    /// The same, with less patience.
    pub fn with_timeout(sdk: &SdkConfig, secrets: Arc<Secrets>, timeout: Duration) -> Self {
        let http = Http::new(sdk, timeout, "the catalog");
        let signer = Signer::new(sdk);
        Self {
            rest: Rest::new(http.clone(), signer.clone(), secrets),
            glue: Glue::new(http, signer, sdk.endpoint_url().map(str::to_owned)),
        }
    }
}

#[async_trait]
impl Catalogs for AwsCatalogs {
    async fn current(&self, catalog: &RemoteCatalog, table: &AssetKey) -> Result<String, EngineError> {
        match catalog {
            RemoteCatalog::Rest(catalog) => self.rest.current(catalog, table).await,
            RemoteCatalog::Glue(catalog) => self.glue.current(catalog, table).await,
        }
    }
}
