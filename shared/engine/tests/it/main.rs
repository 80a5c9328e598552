//! The engine over the ports in memory.

mod budget;
mod claim;
mod dispatch;
mod fixtures;
mod observe;
mod simulation;
mod support;
