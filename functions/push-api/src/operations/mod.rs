//! What the routes do.

mod assets;
mod control;
mod dependencies;
mod events;
mod lineage;
mod operate;
mod records;
mod settings;
mod triggers;

use crate::answer::Answer;
use crate::handler::Call;
use crate::problem::ApiError;
use crate::routes::Operation;

/// Runs an operation.
pub(crate) async fn run(operation: Operation, call: &Call<'_>) -> Result<Answer, ApiError> {
    match operation {
        Operation::RegisterAsset => assets::register(call).await,
        Operation::ListAssets => assets::list(call).await,
        Operation::ReadAssetState => assets::state(call).await,
        Operation::DeleteAsset => assets::delete(call).await,
        Operation::ObserveAsset => assets::look(call).await,
        Operation::AcceptRewrite => assets::accept_rewrite(call).await,
        Operation::ReadWithdrawn => assets::withdrawn(call).await,
        Operation::ReadLineage => lineage::show(call).await,
        Operation::ListUnregisteredAssets => assets::unregistered(call).await,
        Operation::PushEvents => events::push(call).await,
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
        Operation::ListTriggers => triggers::list_of_project(call).await,
        Operation::ReadTrigger => triggers::read(call).await,
        Operation::RedriveTrigger => operate::redrive(call).await,
        Operation::SkipTrigger => operate::skip(call).await,
        Operation::DecideTrigger => operate::decide(call).await,
        Operation::PutConnection => settings::put_connection(call).await,
        Operation::ListConnections => settings::connections(call).await,
        Operation::DeleteConnection => settings::delete_connection(call).await,
        Operation::PutWarehouse => settings::put_warehouse(call).await,
        Operation::ListWarehouses => settings::warehouses(call).await,
        Operation::DeleteWarehouse => settings::delete_warehouse(call).await,
        Operation::PushEventsByPath => events::push_by_path(call).await,
    }
}
