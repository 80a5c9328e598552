//! Reads real tables: the project's own fixtures and, where they are at hand, further ones.

// clippy.toml allows these in test functions; here the helpers beside them fail a test the same way.
#![allow(clippy::unwrap_used, clippy::panic)]

mod cases;
mod delta;
mod delta_properties;
mod hudi;
mod hudi_properties;
mod iceberg;
mod iceberg_properties;
mod own_fixtures;
mod properties;
mod shared_tables;
