//! The vocabulary and the rules of Lakebell, without I/O, clock or randomness.
//!
//! Everything here is a plain function of its arguments: [`state::AssetState::apply`] moves an
//! asset's registers, [`evaluation::evaluate`] says whether a target is ready and why, and
//! [`trigger::Trigger::apply`] moves a trigger along the only arrows that exist.

pub mod access;
pub mod asset;
pub mod commit;
pub mod cursor;
pub mod digest;
pub mod evaluation;
pub mod event;
pub mod ids;
pub mod invalid;
pub mod lineage;
pub mod notice;
pub mod policy;
pub mod reason;
pub mod replay;
#[cfg(feature = "schema")]
mod schema;
pub mod sensor;
pub mod start_params;
pub mod state;
pub mod target;
pub mod trigger;
pub mod version;

pub use invalid::Invalid;
