//! What writers send, in the forms that they already speak, as typed reports.
//!
//! Each decoder is a plain function of bytes (or of a document that was read): no I/O, no clock, no
//! randomness. Whatever comes in, what goes out is bounded, and an item that cannot be understood is
//! refused by itself with its reason. A decoder decides nothing: a version in a report is a hint, and
//! a name is a claim.

pub mod aws;
pub mod catalogs;
pub mod flink;
pub mod hooks;
mod node;
pub mod openlineage;
pub mod quality;
mod report;
mod table;

pub use node::{MAX_DEPTH, MAX_VALUES, Node};
pub use report::{
    Committed, Content, Entry, Job, Lifecycle, MAX_NAME, MAX_REPORTS, Mention, Refusal, Report, Run, Says, Skipped,
    digest, partition_of,
};
pub use table::{CatalogName, TableRef, canonical, root_of};
