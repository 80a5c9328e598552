//! What tests of Lakebell share: the engine's ports in memory, a log of every call, faults by
//! plan or by chance, a clock that only moves when told to, and the contract of an item store.
//!
//! The memory ports keep the limits of AWS that a use case could run into (actions of a
//! transaction, sizes of keys and items, pages), so that what passes here is not refused there.
//!
//! Cargo builds a crate's unit tests apart from the crate that this one depends on, so the
//! engine's tests use these ports from `tests/`, not from inside its modules.

mod catalogs;
pub mod contract;
mod dead_letters;
mod items;
mod notices;
mod queue;
mod scheduler;
pub mod sim;
mod storage;
pub mod storage_contract;
pub mod table;
mod tap;
mod time;
mod world;

pub use catalogs::MemoryCatalogs;
pub use dead_letters::MemoryDeadLetters;
pub use items::MemoryItems;
pub use notices::MemoryNotices;
pub use queue::MemoryQueue;
pub use scheduler::{Instance, MemoryScheduler, StartFault};
pub use storage::MemoryStorage;
pub use table::PaimonTable;
pub use tap::{Call, Fault, Op, Tap, Tapped};
pub use time::{SeededRandom, SimClock};
pub use world::World;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The value behind a lock, also after a test panicked while it held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
