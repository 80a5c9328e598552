//! The deployed functions on a local AWS, from commit to started workflow. `README.md` says how to run them.
//!
//! Each test has a project, a database and names of its own, so that all of them run side by side on one deployment.
//! Without a deployment each says that it is skipped, and passes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod api_errors;
mod asset_keys;
mod care;
mod cli;
mod clients;
mod closed_loop;
mod concurrency;
mod deaths;
mod dispatch;
mod faults;
mod formats;
mod lost;
mod notifications;
mod poison;
mod races;
mod redelivery;
mod scenarios;
mod sensor;
mod storm;
mod support;

/// The test's scene, or the end of the test where there is no deployment.
macro_rules! scene {
    ($label:literal) => {
        match $crate::support::Scene::open($label).await {
            Some(scene) => scene,
            None => return,
        }
    };
}
pub(crate) use scene;
