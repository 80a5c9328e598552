//! The commit watcher: reads the tables that hints point at and moves their state.
//!
//! Hints come as S3 notifications through any of the envelopes that [`unwrap`] takes off, and as
//! messages of Lakebell to itself. Each message of a batch stands for itself: one that a later try
//! may help is handed back, everything else is done with, counted and logged.

pub mod context;
mod deliveries;
pub mod handler;
mod plan;
mod report;
pub mod unwrap;
