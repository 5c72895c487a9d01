//! Why objects wait, restart, fail or end: typed reasons.
//!
//! ```text
//!   Reason      one variant for each reason; its sentence stands beside it        reason.rs
//!   Lack        why a node will not do for a pod                                  lack.rs
//!   sentence    writes a sentence from a reason, and reads it back                sentence.rs
//!   foreign     what Volcano's scheduler, kube-scheduler and kubelets write       foreign.rs
//!   remedy      what to do about a reason                                         remedy.rs
//! ```
//!
//! The scheduler, the controllers and the node write reasons into conditions, Events and messages as sentences. Commands such
//! as `krafla why` read the sentences back. Both go through the same text, so they cannot drift apart: for every variant,
//! reading what was written gives the same reason.
//!
//! **Invariant:** pure. No clock, no I/O, no error: every text is a reason, if need be [`Reason::Other`].

mod foreign;
mod lack;
mod reason;
mod remedy;
mod sentence;
#[cfg(test)]
mod tests;

pub use lack::{Lack, Lacks};
pub use reason::{Lease, Pending, Reason};
pub use remedy::{Decider, Means};
pub use sentence::{Name, Tally};
