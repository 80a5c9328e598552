//! The names of an asset beside its key: those that writers claim, and those that are confirmed.

use lakebell_decoders::CatalogName;
use lakebell_domain::asset::AssetKey;
use lakebell_engine::inbox::{self, Alias, Aliases};
use serde::{Deserialize, Serialize};

use super::assets::{self, Named, Readings};
use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::problem::ApiError;

#[derive(Serialize)]
struct Shown<'a> {
    asset: &'a AssetKey,
    aliases: Vec<Alias>,
}

/// A name to confirm.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Confirmed {
    /// The catalog's address, as in the list; empty for a name of no catalog.
    #[serde(default)]
    catalog: String,
    /// Namespaces and name.
    path: Vec<String>,
}

fn answer(asset: &Named, aliases: Aliases) -> Result<Answer, ApiError> {
    Answer::ok(&Shown { asset: &asset.head.value.key, aliases: aliases.aliases })
}

/// The names of an asset.
pub(super) async fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = assets::named(call, call.parameters.raw("assetKey"), Readings::All).await?;
    let aliases = inbox::aliases(&call.context.ports, asset.id).await?;
    answer(&asset, aliases)
}

/// Confirms a name: from now on it finds the asset.
pub(super) async fn confirm(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = assets::own(call, call.parameters.raw("assetKey"), Readings::First).await?;
    let Confirmed { catalog, path } = body::read(&call.request.body()?)?;
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    let Some(name) = CatalogName::new(&catalog, &parts) else {
        let hint = "give 1 to 8 parts, as in [\"ods_db\", \"orders\"]";
        return Err(ApiError::invalid("path", "it is no name, or a part is empty or too long", hint));
    };
    let aliases = inbox::confirm(&call.context.ports, asset.id, &name, call.caller.name(), call.trace).await?;
    tracing::info!(assetKey = %asset.head.value.key, "a name was confirmed");
    answer(&asset, aliases)
}
