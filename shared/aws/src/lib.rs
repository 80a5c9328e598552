//! The ports of the engine on AWS: items on DynamoDB, tables' files on S3, messages on SQS,
//! tokens in Secrets Manager, the catalogs of Iceberg tables; and what a function needs beside them: settings, logs and metrics.
//!
//! A function builds one [`AwsPorts`] in its init phase, calls [`AwsPorts::warm`], and passes the
//! ports on. Nothing here decides anything about tables or triggers.
//!
//! What is cached, and for how long at most: a connection's specification 60 s
//! ([`connections::SPEC_AGE`]), a secret 300 s ([`secrets::SECRET_AGE`]), a token that a catalog gave until
//! a minute before its end, a catalog's paths 10 min. Items are never cached.

mod cache;
pub mod catalogs;
pub mod config;
pub mod connections;
mod context;
pub mod dead_letters;
mod failure;
mod http;
pub mod items;
pub mod logging;
pub mod metrics;
pub mod notices;
pub mod queue;
mod random;
pub mod secrets;
pub mod storage;

pub use catalogs::AwsCatalogs;
pub use config::Settings;
pub use connections::AwsConnections;
pub use context::AwsPorts;
pub use dead_letters::SqsDeadLetters;
pub use items::DynamoItems;
pub use metrics::{Measure, Metrics, OlderThan};
pub use notices::BusNotices;
pub use queue::SqsQueue;
pub use random::SystemRandom;
pub use secrets::Secrets;
pub use storage::S3Storage;
