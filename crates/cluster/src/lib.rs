//! What can be asked of a cluster: objects, watches, writes, manifests of any kind, logs and commands in containers.
//!
//! ```text
//!   controllers, scheduler, node, command line
//!        |  Client, Manifests         Step -> Written, or ClientError
//!        v
//!   embedded server | a real cluster over HTTPS | the simulator
//! ```
//!
//! This crate does no I/O. Implementations are elsewhere, and callers cannot tell them apart.

mod client;
mod error;
mod event;
mod pods;
pub mod recipe;
mod step;

pub use client::{Client, Listed, Manifests, Written};
pub use error::{Cause, ClientError, Details, Refusal};
pub use event::{Event, EventType, Reading};
pub use pods::{ExecOptions, LogOptions, Stream};
pub use recipe::{Recipe, SshKeyPair};
pub use step::{Propagation, Step, Verb, Write};
