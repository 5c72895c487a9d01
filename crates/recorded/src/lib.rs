//! Recorded conversations with an API server: played on a server, made comparable, compared.
//!
//! ```text
//!   tests/golden/**/*.json -> case -> play -> client -> a server, over HTTPS
//!                                      |
//!                    answers, comparable: what differs from run to run becomes placeholders
//!                                      |
//!                         differences <- the recorded answers, or those of another server
//! ```
//!
//! The format of the records is described in `tests/golden/apiserver/README.md`. Only tests use this crate: a record that
//! cannot be read stops them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on stops")]

pub mod answers;
pub mod case;
pub mod client;
pub mod comparable;
pub mod differences;
pub mod play;
pub mod pointer;
