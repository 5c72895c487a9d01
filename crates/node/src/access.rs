//! What pods need to talk to the API server of their cluster.

use std::net::{IpAddr, SocketAddr};

use futures_util::future::BoxFuture;

use crate::pod::{AccountToken, Pod};

/// The way to the API server, for pods. A node without one runs pods that have nothing to talk to.
pub trait ServerAccess: Send + Sync {
    /// A token of the pod's account, good for as long as the pod and its own time: a new one is asked for before that is over.
    fn token(&self, pod: &Pod, wanted: &AccountToken) -> Result<String, String>;

    /// Where the server listens, as soon as it does.
    fn address(&self) -> BoxFuture<'_, SocketAddr>;

    /// Where the server listens on the port of HTTPS, if it does: the name of its Service leads there.
    fn address_by_name(&self) -> Option<IpAddr>;

    /// Whether the reclaim policy of a deleted PersistentVolumeClaim keeps its files.
    fn retains_files(&self, _claim: &[u8]) -> bool {
        false
    }
}
