//! The shell around decisions: it watches, remembers, queues, applies, and decides nothing. It knows no kind.
//!
//! ```text
//!   watch event -> cache.observe     the only writer of the only cache
//!               -> controller.keys   which roots does this concern
//!               -> queue.push        deduplicated, in order of arrival, delayed wake-ups
//!   worker      -> barrier.is_ready  have we seen our own last writes?
//!               -> plan, guard       pure
//!               -> apply             in order, UID preconditions, never decides
//!               -> queue.wake        at plan.wake_at
//! ```
//!
//! [`Engine`] is all of this without I/O or time of its own, so that the simulator drives the very code that ships;
//! [`run`] adds tasks, a clock and a client.

pub mod apply;
mod barrier;
mod cache;
mod counters;
pub mod dial;
mod engine;
mod events;
mod inquiry;
pub mod lease;
pub mod metrics;
mod queue;
mod rest;
mod roots;
mod run;

pub use barrier::Expectation;
pub use engine::{Counts, Engine, Outcome, Root, Work};
pub use events::{Recorder, Remark};
pub use inquiry::Inquiry;
pub use run::{Clock, SystemClock, rest_until, run};
