//! The client against the stand-in, one stand-in for each test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, which clippy does not see as tests")]

mod cases;
mod checks;
mod circuits;
mod expiry;
mod faults;
mod gates;
mod instances;
mod preflights;
mod standin;
mod starts;
mod status_codes;
mod support;
