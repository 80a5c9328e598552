//! The API over the ports in memory: every route, every error, every form of an event.
// Helpers of tests are tests: what they do not expect ends the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod advice;
mod assets;
mod audits;
mod clients;
mod control;
mod dead_letters;
mod dependencies;
mod docs;
mod events;
mod evidence;
mod grants;
mod keys;
mod logs;
mod once;
mod one_commit;
mod openapi;
mod operate;
mod rights;
mod sensor;
mod settings;
mod signatures;
mod support;
mod tokens;
mod triggers;
mod writers;
