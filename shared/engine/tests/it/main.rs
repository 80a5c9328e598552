//! The engine over the ports in memory.
// Helpers of tests are tests: what they do not expect ends the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod advice;
mod audit;
mod budget;
mod cases;
mod claim;
mod compensate;
mod conditions;
mod dispatch;
mod evidence;
mod fixtures;
mod follow;
mod formats;
mod found;
mod inbox;
mod lineage;
mod notices;
mod observe;
mod operate;
mod partitions;
mod policies;
mod reads;
mod refusals;
mod sensor;
mod simulation;
mod support;
mod times;
mod withdrawn;
