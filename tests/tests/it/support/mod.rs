//! What the tests share: a deployment, a place of the test's own in it, tables, schedulers, waiting.

mod cli;
mod hints;
mod lake;
mod local;
mod records;
mod scene;
mod scheduler;
mod wait;
mod writer;

pub(crate) use cli::Cli;
pub(crate) use hints::{Shape, sqs_batch};
pub(crate) use lake::{Table, in_path};
pub(crate) use scene::{Answer, Scene};
pub(crate) use scheduler::Scheduler;
pub(crate) use wait::{PATIENCE, until};
pub(crate) use writer::{LakeWriter, Writer};
