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
mod authorizer;
mod bootstrap;
mod codec;
pub mod env;
pub mod flow;
pub mod gc;
pub mod http;
pub mod kinds;
pub mod local;
pub mod ops;
pub mod patch;
mod readings;
pub mod registry;
pub mod selector;
pub mod status;
pub mod store;
pub mod table;
pub mod tokens;
mod users;

pub use authorizer::AuthorizationMode;
pub use env::{Env, SystemEnv};
pub use gc::Collector;
pub use http::{AuditConfig, PodAccess, RunningServer, ServerConfig, serve};
pub use krafla_admission::rbac::User;
pub use local::LocalClient;
pub use ops::Api;
pub use status::Status;
pub use tokens::Tokens;
pub use users::parse_token_file;
