//! The dispatcher: carries claimed triggers to started workflows.
//!
//! Each message names a trigger. The engine carries it as far as it goes now; where its time has
//! not come, or a later try may help, the message is handed back alone and comes again.

pub mod context;
pub mod handler;
mod orders;
mod report;
