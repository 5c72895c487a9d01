//! The shell around decisions: it watches, remembers, queues, applies, and decides nothing.
//!
//! ```text
//!   client   what a cluster can be asked, whether in this process or behind HTTPS
//! ```

pub mod client;

pub use client::{Client, ClientError, Event, EventType, Listed, Written};
