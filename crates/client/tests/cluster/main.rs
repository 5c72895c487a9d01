//! The client against the real embedded server over real sockets, and against servers that misbehave.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on stops"
)]

mod conformance;
mod controllers;
mod faults;
mod lease;
mod network;
mod proxy;
mod support;
