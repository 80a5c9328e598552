//! The contract of an item store, run against every implementation.
