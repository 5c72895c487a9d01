//! What users do, through the real binary, real kubectl and real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod accounts;
mod backup;
mod bad_inputs;
mod batch;
mod batch_conformance;
mod batch_lifecycle;
mod changes;
mod chart;
mod clients;
mod controller_manager;
mod controllers;
mod data;
mod doctor;
mod everyday;
mod exec;
mod files;
mod interrupted;
mod killed;
mod kubectl;
mod kubernetes;
mod limits;
mod metrics;
mod mistakes;
mod pods;
mod probes;
mod recorder;
mod rights;
mod run;
mod run_ends;
mod run_waits;
mod scheduling;
mod services;
mod simulate;
mod support;
mod survival;
mod terminal;
mod there;
mod verbs;
mod webhook_manager;
mod why;
mod workloads;
