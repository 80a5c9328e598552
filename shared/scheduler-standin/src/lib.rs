//! A **stand-in** for Apache DolphinScheduler's REST API. It is not DolphinScheduler.
//!
//! It answers the calls that Lakebell makes as DolphinScheduler 3.1, 3.2, 3.3 or 3.4 would, faults
//! included, and can "run" a workflow by calling a command line. It exists for tests and for the
//! local demo; what passes against it still has to be tried against a real server.
//!
//! Everything that a real server does not have is under `/_standin/` (see [`control`]) and asks for
//! the same `token` header. It listens on the loopback address only, because whoever may declare a
//! definition may run commands.

mod api;
pub mod control;
mod faults;
mod master;
mod params;
mod profile;
mod run;
mod server;
mod shared;
mod world;

pub use faults::{Fault, FaultKind, Operation};
pub use profile::{Profile, UnknownProfile};
pub use server::{Config, Running, Standin, StandinError};
pub use world::{Command, Definition, Delay, Instance, ManualWord, Project, Settings, StartCall, World};
