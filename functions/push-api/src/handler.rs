//! One request, from the gateway's event to its answer.

use std::time::Instant;

use lakebell_domain::ids::{ProjectCode, TraceId};
use lakebell_engine::store;
use tracing::Instrument;

use crate::answer::{Answer, response};
use crate::auth;
use crate::context::Context;
use crate::event::{GatewayEvent, GatewayResponse, Request};
use crate::operations;
use crate::problem::{ApiError, Code};
use crate::routes::{self, Found, Parameters, Route};

/// A request that may be served.
pub(crate) struct Call<'a> {
    /// Ports and metrics.
    pub(crate) context: &'a Context,
    /// What was sent.
    pub(crate) request: &'a Request,
    /// The values of the path's parameters.
    pub(crate) parameters: Parameters,
    /// From here to the started workflow.
    pub(crate) trace: &'a TraceId,
    /// When it came in.
    pub(crate) began: Instant,
}

impl Call<'_> {
    /// The project that the path names.
    pub(crate) fn project(&self) -> Result<ProjectCode, ApiError> {
        let text = self.parameters.text("p");
        text.parse().map_err(|invalid: lakebell_domain::Invalid| {
            ApiError::invalid("projectCode", invalid.problem, invalid.hint)
        })
    }
}

/// Serves one request. There is always an answer.
pub async fn handle(event: GatewayEvent, context: &Context) -> GatewayResponse {
    let began = Instant::now();
    let request = Request::from(event);
    let trace = match store::new_trace(&*context.ports.random) {
        Ok(trace) => trace,
        Err(error) => return response(Err(error.into()), None),
    };
    let span = tracing::info_span!("request", traceId = %trace);
    let (route, answer) = serve(&request, context, &trace, began).instrument(span.clone()).await;
    let _entered = span.enter();
    log(&request, route, &answer, began);
    response(answer, Some(&trace))
}

/// The token comes first: without it nothing is said about routes and bodies.
async fn serve(
    request: &Request,
    context: &Context,
    trace: &TraceId,
    began: Instant,
) -> (Option<&'static Route>, Result<Answer, ApiError>) {
    if let Err(error) = auth::check(&*context.tokens, request.authorization.as_deref()).await {
        return (None, Err(error));
    }
    match routes::find(&request.method, &request.path) {
        Found::Route(route, parameters) => {
            let call = Call { context, request, parameters, trace, began };
            let answer = match check_query(route, request) {
                Ok(()) => Box::pin(operations::run(route.operation, &call)).await,
                Err(error) => Err(error),
            };
            (Some(route), answer)
        }
        Found::OtherMethods(methods) => {
            let allowed = methods.join(", ");
            let error = ApiError::new(Code::MethodNotAllowed, "the route does not take this method");
            (None, Err(error.hint(format!("use {allowed}")).allow(allowed)))
        }
        Found::Nothing => {
            let error = ApiError::new(Code::NoSuchRoute, "there is nothing at this path");
            (None, Err(error.hint("docs/api.md lists the routes; percent-encode an asset key once")))
        }
    }
}

/// A misspelt filter would silently list everything.
fn check_query(route: &Route, request: &Request) -> Result<(), ApiError> {
    let mut unknown: Vec<&String> = request.query.keys().filter(|name| !route.query.contains(&name.as_str())).collect();
    unknown.sort();
    let Some(name) = unknown.first() else { return Ok(()) };
    let hint = match route.query {
        [] => "leave it out".to_owned(),
        known => format!("use {}", known.join(", ")),
    };
    Err(ApiError::invalid(name.as_str(), "the route has no such parameter", hint))
}

/// One line for each request: no payload, no query, no token.
fn log(request: &Request, route: Option<&Route>, answer: &Result<Answer, ApiError>, began: Instant) {
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let route = route.map_or("none", |route| route.template);
    let method = known_method(&request.method);
    let request_id = request.request_id.as_str();
    match answer {
        Ok(answer) => {
            tracing::info!(method, route, status = answer.status(), milliseconds, requestId = request_id, "served");
        }
        Err(error) => {
            let (status, code, field) = (error.code().status(), error.code().as_str(), error.field());
            match error.cause().filter(|_| status >= 500) {
                Some(cause) => {
                    let error: &(dyn std::error::Error + 'static) = cause;
                    tracing::error!(method, route, status, code, milliseconds, requestId = request_id, error, "failed");
                }
                None => {
                    tracing::warn!(method, route, status, code, field, milliseconds, requestId = request_id, "refused");
                }
            }
        }
    }
}

/// A method is text that a caller chose.
fn known_method(method: &str) -> &'static str {
    ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or("other")
}
