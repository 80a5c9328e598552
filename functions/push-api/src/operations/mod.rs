//! What the routes do.

mod aliases;
mod assets;
mod audits;
mod control;
mod dead_letters;
mod dependencies;
mod events;
mod grants;
mod lineage;
mod operate;
mod records;
mod sensor;
mod settings;
mod tokens;
mod triggers;
mod writers;

use crate::answer::Answer;
use crate::handler::Call;
use crate::problem::ApiError;
use crate::routes::Operation;

/// The `OpenAPI` document of this API. A test makes it of the code; the zip compresses it.
const OPEN_API: &str = include_str!("../../../../schema/openapi.json");

/// Runs an operation.
pub(crate) async fn run(operation: Operation, call: &Call<'_>) -> Result<Answer, ApiError> {
    match operation {
        Operation::RegisterAsset => assets::register(call).await,
        Operation::ListAssets => assets::list(call).await,
        Operation::ReadAsset => assets::read(call).await,
        Operation::ReadAssetState => assets::state(call).await,
        Operation::DeleteAsset => assets::delete(call).await,
        Operation::ObserveAsset => assets::look(call).await,
        Operation::AcceptRewrite => assets::accept_rewrite(call).await,
        Operation::ReadWithdrawn => assets::withdrawn(call).await,
        Operation::ReadLineage => lineage::show(call).await,
        Operation::ListUnregisteredAssets => assets::unregistered(call).await,
        Operation::PushEvents => events::push(call).await,
        Operation::ReadOutcome => events::outcome(call).await,
        Operation::ReadQuarantine => events::quarantine(call).await,
        Operation::ListAliases => aliases::list(call).await,
        Operation::ConfirmAlias => aliases::confirm(call).await,
        Operation::PushLineage => writers::lineage(call).await,
        Operation::PushLineageBatch => writers::lineage_batch(call).await,
        Operation::PushQuality => writers::quality(call).await,
        Operation::PaimonPartitionDone => writers::paimon(call).await,
        Operation::HudiCommit | Operation::HudiCommitByPath => writers::hudi(call).await,
        Operation::IcebergMetrics | Operation::IcebergMetricsByPath => writers::iceberg(call).await,
        Operation::ListEvents => events::list_of_asset(call).await,
        Operation::DeclareDependencies => dependencies::declare(call).await,
        Operation::ListDependencies => dependencies::list(call).await,
        Operation::ExplainDependencies => dependencies::explain(call).await,
        Operation::DeleteDependencies => dependencies::delete(call).await,
        Operation::PauseTarget => operate::pause(call).await,
        Operation::ResumeTarget => operate::resume(call).await,
        Operation::FireTarget => control::fire(call).await,
        Operation::ResetTarget => control::reset(call).await,
        Operation::PassOver => control::pass_over(call).await,
        Operation::ReplayTarget => control::replay_declared(call).await,
        Operation::ReplaySpec => control::replay_spec(call).await,
        Operation::ReadProjectSwitch => control::read_project_switch(call).await,
        Operation::SetProjectSwitch => control::set_project_switch(call).await,
        Operation::ReadGlobalSwitch => control::read_global_switch(call).await,
        Operation::SetGlobalSwitch => control::set_global_switch(call).await,
        Operation::AskSensor => sensor::ask(call).await,
        Operation::ListTriggers => triggers::list_of_project(call).await,
        Operation::ReadExtras => triggers::extras(call).await,
        Operation::ReadTrigger => triggers::read(call).await,
        Operation::RedriveTrigger => operate::redrive(call).await,
        Operation::SkipTrigger => operate::skip(call).await,
        Operation::DecideTrigger => operate::decide(call).await,
        Operation::AskAudit => audits::ask(call).await,
        Operation::ReadAudit => audits::read(call).await,
        Operation::Examine => audits::examine(call).await,
        Operation::ListDeadLetters => dead_letters::list(call).await,
        Operation::DrainDeadLetters => dead_letters::drain(call).await,
        Operation::PutConnection => settings::put_connection(call).await,
        Operation::ListConnections => settings::connections(call).await,
        Operation::DeleteConnection => settings::delete_connection(call).await,
        Operation::PutWarehouse => settings::put_warehouse(call).await,
        Operation::ListWarehouses => settings::warehouses(call).await,
        Operation::DeleteWarehouse => settings::delete_warehouse(call).await,
        Operation::CreateToken => tokens::create(call).await,
        Operation::ListTokens => tokens::list(call).await,
        Operation::RotateToken => tokens::rotate(call).await,
        Operation::RevokeToken => tokens::revoke(call).await,
        Operation::ListGrants => grants::list(call).await,
        Operation::GiveGrant => grants::give(call).await,
        Operation::TakeBackGrant => grants::take_back(call).await,
        Operation::ReadOpenApi => Ok(Answer::document(OPEN_API)),
        Operation::PushEventsByPath => events::push_by_path(call).await,
    }
}
