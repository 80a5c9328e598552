//! DolphinScheduler's own routes, as far as they are reproduced.

mod analysis;
mod definitions;
mod envelope;
mod executors;
mod fields;
mod gate;
mod instances;
mod projects;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::shared::App;
use crate::{Profile, control};

pub(crate) use gate::DropConnection;

/// The largest form that the real server reads, in bytes.
const FORM_LIMIT: usize = 5_000_000;

/// What the UI answers for a path that no controller knows.
const PAGE: &str = "<!DOCTYPE html><html><head><title>DolphinScheduler stand-in</title></head><body></body></html>";

/// All routes: the API in the profile's spelling, liveness, and the control routes twice, at the
/// root and under the base path.
pub(crate) fn router(app: &App, profile: Profile) -> Router {
    let control = control::router().layer(middleware::from_fn_with_state(Arc::clone(app), gate::token));
    let api = spelled(profile).layer(middleware::from_fn_with_state(Arc::clone(app), gate::pass));
    let dolphinscheduler = Router::new()
        .merge(api)
        .route("/actuator/health", get(|| async { axum::Json(serde_json::json!({"status": "UP"})) }))
        .nest("/_standin", control.clone());
    Router::new()
        .nest("/dolphinscheduler", dolphinscheduler)
        .nest("/_standin", control)
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(FORM_LIMIT))
        .with_state(Arc::clone(app))
}

fn spelled(profile: Profile) -> Router<App> {
    let noun = profile.noun();
    let definitions = format!("/projects/{{project}}/{noun}-definition");
    let instances = format!("/projects/{{project}}/{noun}-instances");
    let mut router = Router::new()
        .route("/access-tokens", get(tokens::page))
        .route("/access-tokens/user/{user}", get(tokens::of_user))
        .route("/projects", get(projects::page).post(projects::create))
        .route("/projects/list", get(projects::list))
        .route("/projects/{project}", get(projects::one))
        .route("/projects/{project}/task-definition/gen-task-codes", get(definitions::task_codes))
        .route(&definitions, get(definitions::page).post(definitions::create))
        .route(&format!("{definitions}/simple-list"), get(definitions::simple_list))
        .route(&format!("{definitions}/query-by-name"), get(definitions::by_name))
        .route(&format!("{definitions}/{{code}}"), get(definitions::by_code).delete(definitions::delete))
        .route(&format!("{definitions}/{{code}}/release"), post(definitions::release))
        .route(&instances, get(instances::page))
        .route(&format!("{instances}/trigger"), get(instances::by_trigger))
        .route(&format!("{instances}/{{id}}"), get(instances::one))
        .route(&format!("/projects/{{project}}/executors/start-{noun}-instance"), post(executors::start))
        .route("/projects/{project}/executors/execute", post(executors::control))
        .route("/projects/analysis/command-state-count", get(analysis::command_state_count));
    if profile.lists_commands() {
        router = router
            .route("/projects/analysis/listCommand", get(analysis::commands))
            .route("/projects/analysis/listErrorCommand", get(analysis::error_commands))
            .route("/monitor/{node}", get(analysis::nodes));
    } else {
        router = router.route("/monitor/masters", get(analysis::masters));
    }
    router
}

/// GET of an unknown path ends in the UI's page with 200, anything else in 405.
async fn unknown_path(method: Method) -> Response {
    let status = if method == Method::GET { StatusCode::OK } else { StatusCode::METHOD_NOT_ALLOWED };
    page(status)
}

fn page(status: StatusCode) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html;charset=UTF-8")], PAGE).into_response()
}
