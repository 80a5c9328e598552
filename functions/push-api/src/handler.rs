//! One request, from the gateway's event to its answer.

use std::str::FromStr;
use std::time::Instant;

use lakebell_domain::Invalid;
use lakebell_domain::ids::{ProjectCode, TargetId, TraceId};
use lakebell_engine::store;
use lakebell_lambda::deliver_notices;
use tracing::Instrument;

use crate::answer::{Answer, response};
use crate::auth::{self, Caller};
use crate::context::Context;
use crate::event::{GatewayEvent, GatewayResponse, Request};
use crate::handshake;
use crate::once;
use crate::problem::{ApiError, Code};
use crate::routes::{self, Found, Parameters, Route};

/// A request that may be served.
pub(crate) struct Call<'a> {
    /// Ports and metrics.
    pub(crate) context: &'a Context,
    /// What was sent.
    pub(crate) request: &'a Request,
    /// Who sent it.
    pub(crate) caller: Caller,
    /// The route that serves it.
    pub(crate) route: &'static Route,
    /// The values of the path's parameters.
    pub(crate) parameters: Parameters,
    /// From here to the started workflow.
    pub(crate) trace: &'a TraceId,
}

impl Call<'_> {
    /// Whose writer it is: the project of the token; `None` for the deployment's.
    pub(crate) fn writer(&self) -> Option<ProjectCode> {
        if self.route.is_of_project() { self.project().ok() } else { self.caller.project() }
    }

    /// The project that the path names, or that the token in the path is for.
    pub(crate) fn project(&self) -> Result<ProjectCode, ApiError> {
        if !self.route.is_of_project()
            && let Some(project) = self.caller.project()
        {
            return Ok(project);
        }
        self.parameters.text("p").parse().map_err(|invalid: Invalid| of_field("projectCode", invalid))
    }

    /// What the path names under `parameter`.
    pub(crate) fn named<T: FromStr<Err = Invalid>>(&self, parameter: &str) -> Result<T, ApiError> {
        self.parameters.text(parameter).parse().map_err(|invalid| of_field(parameter, invalid))
    }

    /// The target that the path names; digits are a name here, too.
    pub(crate) fn target(&self) -> Result<TargetId, ApiError> {
        let project = self.project()?;
        Ok(TargetId { project, name: self.named("target")? })
    }
}

/// What is wrong with a value, by the name that the caller has for its place.
fn of_field(field: &str, invalid: Invalid) -> ApiError {
    ApiError::invalid(field, invalid.problem, invalid.hint)
}

/// Serves one request. There is always an answer.
pub async fn handle(event: GatewayEvent, context: &Context) -> GatewayResponse {
    let began = Instant::now();
    let request = Request::from(event);
    if let Some(welcome) = handshake::answer(&request, context.access.rate()) {
        return welcome;
    }
    let trace = match store::new_trace(&*context.ports.random) {
        Ok(trace) => trace,
        Err(error) => return response(Err(error.into()), None),
    };
    let span = tracing::info_span!("request", traceId = %trace);
    let served = Box::pin(serve(&request, context, &trace)).instrument(span.clone()).await;
    deliver_notices(&context.ports, &context.metrics).await;
    let _entered = span.enter();
    log(&request, &served, began);
    response(served.answer, Some(&trace))
}

/// What came of a request, as far as it got.
struct Served {
    caller: Option<Known>,
    route: Option<&'static Route>,
    answer: Result<Answer, ApiError>,
}

/// Who sent a request that came in, and what it was about.
struct Known {
    name: String,
    /// What the path names.
    subject: String,
}

/// The caller comes first: to nobody anything is said about routes and bodies.
async fn serve(request: &Request, context: &Context, trace: &TraceId) -> Served {
    let found = routes::find(&request.method, &request.path);
    let named = if let Found::Route(route, parameters) = &found { Some((*route, parameters)) } else { None };
    let caller = match auth::authenticate(context, request, named).await {
        Ok(caller) => caller,
        Err(error) => return Served { caller: None, route: None, answer: Err(error) },
    };
    let subject = named.map(|(_, parameters)| parameters.subject()).unwrap_or_default();
    let name = Some(Known { name: caller.name().to_owned(), subject });
    match found {
        Found::Route(route, parameters) => {
            let admitted = auth::admit(route, &parameters, &caller).and_then(|()| check_query(route, request));
            let answer = match admitted {
                Ok(()) => {
                    let call = Call { context, request, caller, route, parameters, trace };
                    Box::pin(once::run(&call)).await
                }
                Err(error) => Err(error),
            };
            Served { caller: name, route: Some(route), answer }
        }
        Found::OtherMethods(methods) => {
            let allowed = methods.join(", ");
            let error = ApiError::new(Code::MethodNotAllowed, "the route does not take this method");
            let error = error.hint(format!("use {allowed}")).allow(allowed);
            Served { caller: name, route: None, answer: Err(error) }
        }
        Found::Nothing => {
            let error = ApiError::new(Code::NoSuchRoute, "there is nothing at this path");
            let error = error.hint("docs/api.md lists the routes; percent-encode an asset key once");
            Served { caller: name, route: None, answer: Err(error) }
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

/// One line for each request: no payload, no query, of the token its id.
fn log(request: &Request, served: &Served, began: Instant) {
    let Served { caller, route, answer } = served;
    let token = caller.as_ref().map_or("none", |caller| caller.name.as_str());
    if let (Some(caller), Some(route)) = (caller, route.filter(|route| route.is_write())) {
        audit(caller, route, answer);
    }
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let route = route.map_or("none", |route| route.template);
    let method = known_method(&request.method);
    let request_id = request.request_id.as_str();
    match answer {
        Ok(answer) => {
            tracing::info!(
                method,
                route,
                token,
                status = answer.status(),
                milliseconds,
                requestId = request_id,
                "served"
            );
        }
        Err(error) => {
            let (status, code, field) = (error.code().status(), error.code().as_str(), error.field());
            match error.cause().filter(|_| status >= 500) {
                Some(cause) => {
                    let error: &(dyn std::error::Error + 'static) = cause;
                    tracing::error!(
                        method,
                        route,
                        token,
                        status,
                        code,
                        milliseconds,
                        requestId = request_id,
                        error,
                        "failed"
                    );
                }
                None => {
                    tracing::warn!(
                        method,
                        route,
                        token,
                        status,
                        code,
                        field,
                        milliseconds,
                        requestId = request_id,
                        "refused"
                    );
                }
            }
        }
    }
}

/// One line for each call that changes something, or would have: who, what, and what came of it.
fn audit(caller: &Known, route: &Route, answer: &Result<Answer, ApiError>) {
    let (status, code) = match answer {
        Ok(answer) => (answer.status(), None),
        Err(error) => (error.code().status(), Some(error.code().as_str())),
    };
    let repeated = answer.as_ref().is_ok_and(Answer::is_replayed);
    let (token, subject, operation) = (caller.name.as_str(), caller.subject.as_str(), route.operation.name());
    tracing::info!(audit = true, token, operation, subject, status, code, repeated, "audit");
}

/// A method is text that a caller chose.
fn known_method(method: &str) -> &'static str {
    ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or("other")
}
