//! Admission as a whole, against recorded answers of Volcano's own webhooks and beyond them.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod answers;
mod defaults;
mod endpoints;
mod fields;
mod jobs;
mod places;
mod recorded;
mod records;
mod rules;
mod upstream;
mod volcano;
