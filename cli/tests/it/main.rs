//! The command line as people and programs call it: the binary, with a stub of the API in this
//! process, and real tables on disk.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests, which the lints take for other code

mod apply;
mod audit;
mod control;
mod dead_letters;
mod errors;
mod inspect;
mod lists;
mod operate;
mod real_api;
mod s3;
mod sensor;
mod stub;
mod support;
mod why;
