//! The rules of the domain: tables for what is decided, properties for what must always hold.
// Helpers of tests are tests: what they do not expect ends the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod asset_keys;
mod conditions_random;
mod conditions_reference;
mod each;
mod evaluator;
mod followed;
mod gates;
mod golden;
mod head_size;
mod ids;
mod keys;
mod locations;
mod machine;
mod notes;
mod notices;
mod optional;
mod partitions;
mod reasons;
mod reference;
mod refusals_of_conditions;
mod registers;
mod registers_random;
mod support;
mod tags;
mod takeover;
mod target_refusals;
mod target_resolution;
mod walks;
mod windows;
mod world;
