//! The simulator tested: what ships keeps its promises, equal cases lead to equal runs, and planted faults are found.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod absurd;
mod batch;
mod branches;
mod command_line;
mod determinism;
mod followed;
mod hooked;
mod late;
mod mutants;
mod others;
mod permissions;
mod properties;
mod reclaim;
mod replaced;
mod requests;
mod scenarios;
mod upstream;
mod writes;
