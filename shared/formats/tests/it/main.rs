//! Reads real tables: the project's own fixtures and, where they are at hand, further ones.

mod cases;
mod own_fixtures;
mod properties;
mod shared_tables;
