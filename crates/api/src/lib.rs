//! The words that all of Krafla speaks: kinds, metadata, times, label keys, and the typed Volcano resources.
//!
//! ```text
//!   kind     which resources exist: group, version, plural, scope
//!   meta     metadata, owners, keys, UIDs
//!   time     Kubernetes' times
//!   duration Go's durations
//!   quantity amounts of a resource
//!   pairs    labels and annotations, in little memory
//!   labels   label and annotation keys
//!   words    vocabularies: phases, actions, events
//!   batch    Kubernetes' own Job and CronJob
//!   volcano  Volcano's kinds, typed
//!   crd      the CustomResourceDefinitions generated from those types
//! ```
//!
//! There is no logic here: nothing decides, nothing does I/O, nothing reads a clock.

pub mod batch;
pub mod crd;
pub mod duration;
pub mod kind;
pub mod labels;
pub mod meta;
pub mod pairs;
pub mod quantity;
mod schema;
pub mod time;
pub mod volcano;
mod words;

pub use duration::GoDuration;
pub use kind::{Kind, KindInfo, Scope, Served};
pub use meta::{Key, ObjectMeta, OwnerReference, Uid};
pub use pairs::Pairs;
pub use quantity::Quantity;
pub use time::{Time, time_zone};
