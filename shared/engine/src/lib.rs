//! The use cases of Lakebell over narrow ports.
//!
//! Every hint (a storage notification, a push, a scan) ends in [`observe`], which reads the
//! table's own commits; every write that can make a target ready is followed by an evaluation.

pub mod access;
pub mod advice;
pub mod asset_settings;
pub mod assets;
pub mod audit;
pub mod catalog;
pub mod compensate;
pub mod consumer;
pub mod dead_letters;
pub mod dispatch;
pub mod doctor;
mod error;
pub mod evaluate;
pub mod follow;
pub mod grants;
pub mod history;
pub mod idempotency;
pub mod inbox;
pub mod layout;
pub mod lineage;
pub mod observe;
pub mod operate;
pub mod ports;
pub mod push;
pub mod records;
pub mod replay;
pub mod rules;
pub mod sensor;
pub mod settings;
pub mod store;
pub mod targets;
pub mod watch;

pub use error::{EngineError, ErrorKind};
