//! Access tokens, read only. The stand-in has one user with two tokens: the one that calls carry,
//! and an older one.

use axum::extract::{Path, State};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::envelope::{Answer, Refused, ok, paged, shown};
use super::fields::Fields;
use crate::shared::App;

/// The id of the one user.
const USER: i64 = 7;

/// Own tokens, or, for an administrator, everybody's.
pub(crate) async fn page(State(app): State<App>, fields: Fields) -> Answer {
    let page = fields.page(70012)?;
    let wanted = fields.get("searchVal").unwrap_or_default();
    let rows = rows(&app).into_iter().filter(|row| row["userName"].as_str().is_some_and(|name| name.contains(wanted)));
    Ok(ok(&paged(rows.collect(), page)))
}

/// The same without pages; only an administrator may ask for another user's.
pub(crate) async fn of_user(State(app): State<App>, Path(user): Path<i64>) -> Answer {
    if user != USER {
        return Err(Refused::new(30001, "user has no operation privilege"));
    }
    Ok(ok(&rows(&app).into_iter().collect()))
}

fn rows(app: &App) -> [Value; 2] {
    let (expires, executor) = app.read(|world| (world.settings.token_expires, world.settings.executor.clone()));
    let now = Timestamp::now();
    // A token always has an end: without a setting it is ten years off.
    let expires = expires.unwrap_or_else(|| now + SignedDuration::from_hours(24 * 3650));
    let row = |id: i64, token: &str, expires: Timestamp| {
        json!({
            "id": id,
            "userId": USER,
            "token": token,
            "expireTime": shown(expires),
            "createTime": shown(now),
            "updateTime": shown(now),
            "userName": executor,
        })
    };
    [row(2, "an-older-token", now - SignedDuration::from_hours(24)), row(1, &app.token, expires)]
}
