//! The API: register assets, read state, push and list events, declare targets and read their
//! verdicts, trigger history, and the settings that `lakebell apply` writes.
//!
//! It stands behind an API Gateway REST API with one greedy resource, so the routes are this
//! crate's own: [`routes::ROUTES`] is the one table of them. [`handler::handle`] is a plain
//! function of a gateway event and the [`Context`].

mod answer;
mod auth;
mod body;
mod cloudevent;
mod context;
pub mod event;
pub mod handler;
mod handshake;
mod list;
mod once;
mod operations;
pub mod path;
mod problem;
pub mod routes;

pub use auth::{Access, Rate};
pub use context::{Context, Sensors, Tokens};
pub use problem::{ApiError, Code};
