//! What a cluster can be asked. The same interface stands in front of the embedded server (without HTTP underneath), of
//! a real cluster, and of the simulator's faults.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use krafla_api::{Key, Kind, Served, Uid};
use serde_json::Value;

use crate::error::ClientError;
use crate::event::Event;
use crate::step::Step;

/// A cluster, as controllers, scheduler and node see it.
pub trait Client: Send + Sync {
    /// All objects of a kind in all namespaces, and the revision at which that was so.
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>>;

    /// What happened to a kind after `revision`, until the stream ends or fails. [`ClientError::Expired`] means: list
    /// again.
    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>>;

    /// One object.
    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>>;

    /// Makes one write.
    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>>;
}

/// A cluster, as those see it who bring manifests: whatever it serves can be made, named or not in [`Kind`].
pub trait Manifests: Send + Sync {
    /// The kinds under an `apiVersion` whose objects can be made and kept; none if it is not served.
    fn served(&self, api_version: &str) -> BoxFuture<'_, Result<Vec<Served>, ClientError>>;

    /// One object.
    fn read<'a>(&'a self, of: &'a Served, key: &'a Key) -> BoxFuture<'a, Result<Bytes, ClientError>>;

    /// Whether an object could be made now. Nothing is made.
    fn check<'a>(&'a self, of: &'a Served, object: &'a Value) -> BoxFuture<'a, Result<(), ClientError>>;

    /// Makes an object.
    fn make<'a>(&'a self, of: &'a Served, object: &'a Value) -> BoxFuture<'a, Result<Written, ClientError>>;

    /// Gives one very object the fields of a patch. Of the lists of Kubernetes' own kinds, elements of one name are merged, so that
    /// what a server has added to a pod stays.
    fn amend<'a>(
        &'a self,
        of: &'a Served,
        key: &'a Key,
        uid: &'a Uid,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<Written, ClientError>>;
}

/// The answer to a list.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The store's revision at that moment.
    pub revision: u64,
    /// Each object as JSON, with `kind` and `apiVersion`.
    pub items: Vec<Bytes>,
}

/// What a write led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where the object is.
    pub key: Key,
    /// Who it is.
    pub uid: Uid,
    /// Its revision after the write.
    pub revision: u64,
}
