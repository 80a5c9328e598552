//! From the object keys and bytes of a table format to commits: pure functions, no I/O, no clock.
//!
//! Each format is a module of its own: [`paimon`], [`iceberg`], [`delta`], [`hudi`]. A module says which objects of a store
//! make a commit visible (from the key alone, before anything is read), reads those objects into
//! [`lakebell_domain::commit::Commit`], and knows the rules of its format, such as which commits
//! change data. What `lakebell table inspect` shows has one shape for all formats: [`inspect`].
//!
//! Bytes come from outside and are not trusted: parsers take a bounded input, never panic, and
//! name what is wrong in a [`FormatError`].

pub mod delta;
pub mod error;
pub mod hudi;
pub mod iceberg;
pub mod inspect;
mod json;
pub mod paimon;

pub use error::{FormatError, FormatErrorKind, ReadError};
