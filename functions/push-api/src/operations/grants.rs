//! Grants of a project's assets to other projects, and the requests for them.

use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::ProjectCode;
use lakebell_engine::grants::{self, Grant};
use lakebell_lambda::report_evaluated;
use serde::Deserialize;

use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::list::Page;
use crate::path;
use crate::problem::ApiError;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Given {
    asset_key: AssetKey,
    project: ProjectCode,
}

pub(super) async fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (owner, page) = (call.project()?, Page::of(&call.request.query)?);
    let all = grants::list(&call.context.ports, owner).await?;
    Answer::ok(&page.cut(all, |grant| format!("{} {:020}", grant.asset_key, grant.project.0))?)
}

pub(super) async fn give(call: &Call<'_>) -> Result<Answer, ApiError> {
    let owner = call.project()?;
    let Given { asset_key, project } = body::read(&call.request.body()?)?;
    let evaluated = grants::give(&call.context.ports, owner, &asset_key, project, call.trace).await?;
    report_evaluated(&call.context.metrics, &evaluated);
    tracing::info!(assetKey = %asset_key, grantedTo = %project, "grant given");
    Answer::ok(&Grant { asset_key, project, asked_at: None })
}

pub(super) async fn take_back(call: &Call<'_>) -> Result<Answer, ApiError> {
    let owner = call.project()?;
    let value = |name: &str, example: &str| {
        call.request
            .query
            .get(name)
            .ok_or_else(|| ApiError::invalid(name, "it is missing", format!("name it as `?{name}={example}`")))
    };
    let key = path::candidates(value("assetKey", "paimon%3A%2F%2Fods_db%2Forders")?)?.swap_remove(0);
    let project = value("project", "7")?.parse();
    let project = project
        .map_err(|invalid: lakebell_domain::Invalid| ApiError::invalid("project", invalid.problem, invalid.hint))?;
    let evaluated = grants::take_back(&call.context.ports, owner, &key, project, call.trace).await?;
    report_evaluated(&call.context.metrics, &evaluated);
    tracing::info!(assetKey = %key, takenFrom = %project, "grant taken back");
    Ok(Answer::empty())
}
