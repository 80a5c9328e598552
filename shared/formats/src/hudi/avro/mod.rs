//! A small reader of Avro container files: one record, with the writer's schema from the header,
//! only the fields that are asked for, in bounded memory.
//!
//! Own code, because this is how Hudi writes commits and the files come from outside. The general
//! library (apache-avro 0.21, Apache-2.0) decodes whole records into a tree of values, bounded only
//! by a limit on single allocations that holds for the whole process; here statistics of any number
//! of files are summed up while they are read. It also adds 177 KB to every function's zip, a third of
//! what is left below 5 MB; the inflater that this reader needs adds 9 KB.
//!
//! What is left out: schema resolution, logical types, and codecs other than `null` and `deflate`.
//! Hudi's writers use `null`.

mod container;
mod input;
mod schema;

pub(super) use container::{MAGIC, read_record};
pub(super) use input::{Budget, Input};
pub(super) use schema::{Node, Schema};

use crate::error::{FormatError, FormatErrorKind};

/// The file breaks the container format or its own schema.
pub(super) fn broken(problem: impl Into<String>) -> FormatError {
    FormatError::new(FormatErrorKind::NotAvro, problem)
}

/// The file ends where more was announced.
pub(super) fn truncated() -> FormatError {
    FormatError::new(FormatErrorKind::Truncated, "the Avro file is truncated")
}

#[cfg(test)]
mod tests;
