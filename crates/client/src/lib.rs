//! A cluster over HTTPS: the same [`krafla_cluster::Client`] that stands in front of the embedded server, for any server
//! that speaks Kubernetes' API.
//!
//! ```text
//!   kubeconfig, service account -> Access       where the cluster is, whom it trusts, who asks
//!   Access                      -> HttpsClient  list, watch, get, write: one connection where the server speaks HTTP/2
//!     bearer.rs                   the token, and the command that logs in for it
//!     identity.rs                 the certificate that a login command prints
//!     proxy.rs                    the proxy between us and the server
//!     request.rs                  what is asked: method, path, body
//!     answer.rs                   what the answer means
//!     watching.rs                 what comes on a watch, line by line
//! ```
//!
//! Nothing is decided here, and nothing is remembered but the connection: whoever asks knows what to do about an answer.

mod access;
mod answer;
mod bearer;
mod connector;
mod https;
mod identity;
mod kubeconfig;
mod proxy;
mod request;
mod watching;

pub use access::{Access, AccessError, Credentials, Token};
pub use bearer::{Login, Variable};
pub use https::{HttpsClient, Limits};
pub use proxy::Proxy;
pub use request::{Names, Request, collection_path, encoded, object_path};
