//! Lineage: what a table is made from, and what is made from it.

use lakebell_domain::asset::AssetKey;
use lakebell_engine::lineage::{self, Direction, Shown};
use serde::Serialize;

use super::assets::{self, Readings};
use crate::answer::Answer;
use crate::handler::Call;
use crate::problem::ApiError;

/// Most steps in one direction.
const MAX_STEPS: usize = 8;

#[derive(Serialize)]
struct Lineage<'a> {
    asset: &'a AssetKey,
    #[serde(flatten)]
    shown: Shown,
}

/// The lineage of an asset. Targets of other projects are not told of.
pub(super) async fn show(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let query = &call.request.query;
    let directions: &[Direction] = match query.get("direction").map(String::as_str) {
        None | Some("both") => &[Direction::Upstream, Direction::Downstream],
        Some("upstream") => &[Direction::Upstream],
        Some("downstream") => &[Direction::Downstream],
        Some(other) => {
            let problem = format!("`{other}` is no direction");
            return Err(ApiError::invalid("direction", problem, "use upstream, downstream or both"));
        }
    };
    let steps = match query.get("steps") {
        None => MAX_STEPS,
        Some(text) => text.parse().ok().filter(|steps| (1..=MAX_STEPS).contains(steps)).ok_or_else(|| {
            ApiError::invalid("steps", format!("`{text}` is no number of steps"), format!("use 1 to {MAX_STEPS}"))
        })?,
    };
    let asset = assets::named(call, call.parameters.raw("assetKey"), Readings::All).await?;
    let key = &asset.head.value.key;
    let shown = lineage::show(&call.context.ports, (asset.id, key), directions, steps, project).await?;
    Answer::ok(&Lineage { asset: key, shown })
}
