//! A client with a fault in the way it writes.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use krafla_api::{Key, Kind};
use krafla_cluster::{Client, ClientError, Event, Listed, Step, Written};
use krafla_sim::Program;

/// How a write is made, given a client that makes it well.
pub(crate) type Write = for<'a> fn(&'a dyn Client, &'a Step) -> BoxFuture<'a, Result<Written, ClientError>>;

/// A client that passes everything on but writes, which it makes in its own way.
pub(crate) struct Hooked {
    pub(crate) inner: Arc<dyn Client>,
    pub(crate) write: Write,
}

impl Client for Hooked {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        self.inner.list(kind)
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        self.inner.watch(kind, revision)
    }

    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        self.inner.get(kind, key)
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        (self.write)(self.inner.as_ref(), step)
    }
}

/// What ships, with another client in all its parts.
pub(crate) fn program_with(client: fn(Arc<dyn Client>) -> Arc<dyn Client>) -> Program {
    let mut program = Program::as_shipped();
    for part in &mut program.parts {
        part.client = client;
    }
    program
}
