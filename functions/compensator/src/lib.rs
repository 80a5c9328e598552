//! The compensator: what a clock has to do.
//!
//! Every minute it carries on the triggers whose time has come, and as often as it is told it
//! hands out every asset to be looked at and every target to be evaluated. A tick carries no work
//! list: whatever it says, the same is done, and done twice it changes nothing.

pub mod context;
pub mod handler;
