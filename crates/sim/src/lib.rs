//! A deterministic world for the controllers: virtual time, faults, properties checked at every revision.
//!
//! ```text
//!   scenario    what users want, how pods behave, how it must end        one file each
//!      |
//!   case        a scenario, how pods are terminated, an order of events, a list of faults
//!      |                                                               one word: restart+yields:12:crash-before
//!      |
//!   world       plays a case: real store, API, engine, controllers and scheduler; virtual clock; actors
//!      |           wire     numbers the writes and makes them go wrong
//!      |           oracle   sees every revision and every write
//!      v
//!   outcome     findings, the end, a number that equal runs share
//!
//!   branches    plays cases that begin alike from where they part, until one comes to where another has been
//!   driver      which cases: exhaustive (each write x each fault), pairs (of faults), swarm (seeds), replay (one, with a timeline)
//!   shrink      from a failing case to the smallest that fails
//! ```
//!
//! **Invariant:** a case always leads to the same outcome, bit by bit, on every machine.

mod actor;
mod branches;
mod case;
mod clock;
pub mod driver;
mod fault;
mod feed;
pub mod golden;
mod oracle;
mod process;
mod program;
mod rng;
pub mod scenario;
mod server;
mod shrink;
mod termination;
mod trace;
mod wire;
mod world;

pub use branches::Verdict;
pub use case::{Case, NoCase, Order};
pub use fault::{FAULTS, Fault, Injection};
pub use oracle::Finding;
pub use program::{Part, Program};
pub use rng::Rng;
pub use shrink::shrink;
pub use termination::{KILLED, TERMINATIONS, Termination};
pub use wire::Attempt;
pub use world::{Outcome, play};
