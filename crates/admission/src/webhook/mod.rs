//! Webhooks: which of them a request concerns, what they are asked, and what their answers mean.
//!
//! ```text
//!   configuration.rs   what a configuration may say            (defaults, validation)
//!   rules.rs           what rules about requests may say, of webhooks and of policies
//!   hook.rs            one webhook as it is configured, and whether a request concerns it
//!   review.rs          the question that goes out, and the answer that comes back
//!   conversion.rs      the same for webhooks that convert custom resources between versions
//!   endpoint.rs        the answering side: the paths of Volcano's webhook manager
//! ```
//!
//! Everything here is a function of its arguments. Who calls, in which order and how long to wait is the server's business.

mod configuration;
pub mod conversion;
mod endpoint;
mod hook;
mod review;
pub(crate) mod rules;

pub use configuration::{default, validate, validate_conversion};
pub use endpoint::{ENDPOINTS, Endpoint, NotAReview, Role};
pub(crate) use hook::selects;
pub use hook::{Client, Condition, Hook, Rule, Service, Target, Verb, hooks};
pub use review::{Answer, Place, Question, Unreadable, read};
