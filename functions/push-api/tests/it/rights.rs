//! Every route by every right: the table is the one that the router reads, so a new route is in it.

use lakebell_domain::access::{Right, Rights};
use lakebell_domain::ids::ProjectCode;
use lakebell_engine::access::Carried;
use lakebell_push_api::routes::{Needs, ROUTES, Route};
use serde_json::{Value, json};

use crate::support::{Api, TOKEN, body, rest_event};

/// A request to the route in a project, without a body, with a token in the path where it has one.
fn request(route: &Route, project: &str, token: &str) -> Value {
    let path = route.template.replace("{p}", project).replace("{token}", token);
    let path = path.replace("{assetKey}", "paimon%3A%2F%2Fa%2Fb").replace(['{', '}'], "");
    rest_event(route.method, &path, None)
}

fn with_token(mut event: Value, token: &str) -> Value {
    event["headers"] = json!({"X-Api-Key": token});
    event
}

/// What the table says about a token with one right.
fn is_admitted(route: &Route, right: Right, of: Option<i64>, asked: i64) -> bool {
    match route.needs {
        Needs::AnyToken => true,
        Needs::Right(needed) if needed != right => false,
        Needs::Writer(needed) => needed == right,
        Needs::Right(_) => of.is_none() || (route.is_of_project() && of == Some(asked)),
        // Only tokens that are made for paths are taken there.
        Needs::PathToken(_) => false,
    }
}

#[tokio::test]
async fn every_route_takes_the_right_it_states_and_no_other() {
    let api = Api::new();
    let mut checked = 0;
    for right in Right::ALL {
        for of in [None, Some(7), Some(8)] {
            let token = api.make_token(of.map(ProjectCode), &[right], Carried::Header).await;
            for route in ROUTES {
                let answer = api.raw(with_token(request(route, "7", &token), &token)).await;
                let is_path = matches!(route.needs, Needs::PathToken(_));
                let admitted = is_admitted(route, right, of, 7);
                let case = format!("{right} of {of:?}: {} {}: {answer:?}", route.method, route.template);
                assert_eq!(answer.status_code == 403, !admitted && !is_path, "{case}");
                assert_eq!(answer.status_code == 401, is_path, "{case}");
                if !admitted && !is_path {
                    assert_eq!(body(&answer)["code"], "FORBIDDEN", "{case}");
                }
                checked += 1;
            }
        }
    }
    assert_eq!(checked, ROUTES.len() * 15);
}

#[tokio::test]
async fn a_token_in_a_path_is_taken_there_alone() {
    let api = Api::new();
    let token = api.make_token(Some(ProjectCode(7)), &[Right::Evidence], Carried::Path).await;
    for route in ROUTES {
        let answer = api.raw(with_token(request(route, "7", &token), &token)).await;
        let is_path = matches!(route.needs, Needs::PathToken(_));
        assert_eq!(answer.status_code == 401, !is_path, "{} {}: {answer:?}", route.method, route.template);
    }
}

/// What a refusal says depends on route and token alone.
#[tokio::test]
async fn refusals_tell_nothing_about_what_exists() {
    let api = Api::with_orders().await;
    let stranger = api.make_token(Some(ProjectCode(8)), &[Right::Read], Carried::Header).await;
    let pusher = api.make_token(Some(ProjectCode(7)), &[Right::Evidence], Carried::Header).await;
    let mut said = Vec::new();
    for token in [stranger.as_str(), &pusher, "wrong", "lakebell_0123456789abcdef_00"] {
        for key in ["paimon%3A%2F%2Fods_db%2Forders", "paimon%3A%2F%2Fods_db%2Fabsent", "no-key"] {
            let event = rest_event("GET", &format!("/projects/7/assets/{key}/state"), None);
            let answer = api.raw(with_token(event, token)).await;
            let mut problem = body(&answer);
            problem["traceId"] = Value::Null;
            said.push((answer.status_code, problem));
        }
    }
    assert_eq!(
        said.iter().map(|(status, _)| *status).collect::<Vec<_>>(),
        [[403; 3], [403; 3], [401; 3], [401; 3]].concat()
    );
    for same in said.chunks(3) {
        assert!(same.iter().all(|one| one == &same[0]), "{same:?}");
    }
    assert_eq!(said[0], said[3]);
    assert_eq!(said[6], said[9]);
}

#[tokio::test]
async fn the_deployment_s_own_token_has_every_right() {
    let api = Api::new();
    for route in ROUTES.iter().filter(|route| !matches!(route.needs, Needs::PathToken(_))) {
        let answer = api.raw(with_token(request(route, "7", ""), TOKEN)).await;
        assert!(![401, 403].contains(&answer.status_code), "{}: {answer:?}", route.template);
    }
    assert!(Rights::all().iter().eq(Right::ALL));
}
