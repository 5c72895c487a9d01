//! Embedded Kubernetes-compatible API server: durable store, watch, HTTPS, garbage collection.
//!
//! ```text
//!                 http        requests, discovery, watches, certificates
//!                   |
//!   local ───────> ops        what a request means                     admit   the cluster's own rules
//!   (in-process)    |   \
//!                   |    registry   what is served: built-in kinds and CRDs    kinds   what is special about one kind
//!                   v
//!                 store       every object: in memory as bytes, on disk in one file
//! ```

pub mod admit;
mod bootstrap;
mod codec;
pub mod env;
pub mod field;
pub mod gc;
pub mod http;
pub mod kinds;
pub mod local;
pub mod names;
pub mod object;
pub mod ops;
pub mod patch;
mod plain;
mod readings;
pub mod registry;
pub mod schema;
pub mod selector;
pub mod status;
pub mod store;
pub mod table;
pub mod tokens;

/// The user whose cluster it is.
pub(crate) const ADMINISTRATOR: &str = "krafla:admin";
/// The groups that the user is in.
pub(crate) const ADMINISTRATOR_GROUPS: [&str; 2] = ["system:masters", "system:authenticated"];

pub use env::{Env, SystemEnv};
pub use gc::Collector;
pub use http::{PodAccess, RunningServer, ServerConfig, serve};
pub use local::LocalClient;
pub use ops::Api;
pub use status::Status;
pub use tokens::Tokens;
