//! Connections and warehouses.

use lakebell_domain::Invalid;
use lakebell_domain::asset::Location;
use lakebell_domain::ids::ConnectionName;
use lakebell_engine::ports::scheduler::{ConnectionSpec, VersionLine};
use lakebell_engine::records::Warehouse;
use lakebell_engine::settings;
use serde::Deserialize;

use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::list::Page;
use crate::problem::ApiError;

/// Longest name or ARN of a secret.
const MAX_SECRET_BYTES: usize = 2_048;
/// Longest user name.
const MAX_USER_BYTES: usize = 255;
/// Longest catalog name.
const MAX_CATALOG_BYTES: usize = 255;

/// A connection without its name, which stands in the path.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConnectionBody {
    url: String,
    #[serde(default)]
    version: VersionLine,
    token_secret: String,
    #[serde(default)]
    user: Option<String>,
}

impl ConnectionBody {
    fn named(self, name: ConnectionName) -> Result<ConnectionSpec, Invalid> {
        let is_secret_name = |c: char| c.is_ascii_alphanumeric() || "/_+=.@-:!".contains(c);
        let secret = &self.token_secret;
        if secret.is_empty() || secret.len() > MAX_SECRET_BYTES || !secret.chars().all(is_secret_name) {
            return Err(Invalid::new(
                "tokenSecret",
                "it is no name or ARN of a secret",
                "name the Secrets Manager secret that holds the token, not the token itself",
            ));
        }
        if self.user.as_ref().is_some_and(|user| user.is_empty() || user.len() > MAX_USER_BYTES) {
            let hint = format!("use 1 to {MAX_USER_BYTES} bytes, or leave it out");
            return Err(Invalid::new("user", "it is empty or too long", hint));
        }
        Ok(ConnectionSpec {
            name,
            url: self.url,
            version: self.version,
            token_secret: self.token_secret,
            user: self.user,
        })
    }
}

pub(super) async fn put_connection(call: &Call<'_>) -> Result<Answer, ApiError> {
    let name: ConnectionName = call.named("name")?;
    let body: ConnectionBody = body::read(&call.request.body()?)?;
    let spec = body.named(name)?;
    settings::put_connection(&call.context.ports, &spec).await?;
    tracing::info!(connection = %spec.name, "connection declared");
    Answer::ok(&spec)
}

pub(super) async fn connections(call: &Call<'_>) -> Result<Answer, ApiError> {
    let page = Page::of(&call.request.query)?;
    let all = settings::connections(&call.context.ports).await?;
    Answer::ok(&page.cut(all, |connection| connection.name.to_string())?)
}

pub(super) async fn delete_connection(call: &Call<'_>) -> Result<Answer, ApiError> {
    let name: ConnectionName = call.named("name")?;
    settings::delete_connection(&call.context.ports, &name).await?;
    tracing::info!(connection = %name, "connection forgotten");
    Ok(Answer::empty())
}

pub(super) async fn put_warehouse(call: &Call<'_>) -> Result<Answer, ApiError> {
    let warehouse: Warehouse = body::read(&call.request.body()?)?;
    if warehouse.catalog.as_ref().is_some_and(|name| name.is_empty() || name.len() > MAX_CATALOG_BYTES) {
        let hint = format!("use 1 to {MAX_CATALOG_BYTES} bytes, or leave it out for keys of two parts");
        return Err(ApiError::invalid("catalog", "it is empty or too long", hint));
    }
    if warehouse.project.0 < 0 {
        let hint = "use the positive number that DolphinScheduler shows";
        return Err(ApiError::invalid("project", "it is no project code", hint));
    }
    let discovery = settings::put_warehouse(&call.context.ports, &warehouse, call.trace).await?;
    let (registered, refused) = (discovery.registered.len(), discovery.refused.len());
    tracing::info!(registered, known = discovery.known, refused, "warehouse declared");
    Answer::ok(&discovery)
}

pub(super) async fn warehouses(call: &Call<'_>) -> Result<Answer, ApiError> {
    let page = Page::of(&call.request.query)?;
    let all = settings::warehouses(&call.context.ports).await?;
    Answer::ok(&page.cut(all, |warehouse| warehouse.location.to_string())?)
}

pub(super) async fn delete_warehouse(call: &Call<'_>) -> Result<Answer, ApiError> {
    let Some(text) = call.request.query.get("location") else {
        let hint = "name the warehouse as `?location=s3://bucket/path`";
        return Err(ApiError::invalid("location", "it is missing", hint));
    };
    let location: Location = text.parse()?;
    settings::delete_warehouse(&call.context.ports, &location).await?;
    tracing::info!("warehouse forgotten");
    Ok(Answer::empty())
}
