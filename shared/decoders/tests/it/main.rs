//! What writers send, decoded.
// Helpers of tests are tests: what they do not expect ends the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden;
mod mutations;
mod samples;
mod support;
