//! What requests mean, whoever brings them: HTTP, a component in this process, the simulator.
//!
//! ```text
//!   HTTP handlers ┐
//!   LocalClient   ├──> Api ── reads ──> store.snapshot                      (read.rs, watch.rs)
//!   simulator     ┘     └─── writes ─> compute against what is stored ──> store.commit, on a condition
//!                             ^                                               |
//!                             └──────────── again, if it has changed ─────────┘
//!                             (create.rs, update.rs, apply.rs, delete.rs, pods.rs; prepare.rs and ownership.rs are what they share)
//! ```
//!
//! **Invariant:** every write is conditional on the revision that it was computed from, so two writers never mix. Nothing
//! here needs a runtime or a thread: with a store in memory, every future is ready at its first poll.

mod accounts;
mod addresses;
pub(crate) mod api_services;
mod apply;
mod budgets;
mod create;
mod definitions;
mod delete;
mod endpoints;
mod expiry;
mod flow_control;
mod meta;
mod namespace_report;
mod namespaces;
mod own_service;
mod ownership;
mod patch;
mod pods;
mod prepare;
mod quota;
mod read;
mod rights;
mod scale;
mod standard_roles;
mod storage;
#[cfg(test)]
mod tests;
mod update;
mod versions;
mod watch;
mod webhooks;

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use krafla_admission::rbac::User;
use krafla_api::{Key, Uid};
use krafla_schema::json::stored;
use serde_json::Value;

use crate::admit::{Admission, Warnings};
use crate::authorizer::Authorizer;
use crate::env::Env;
use crate::flow::Flow;
use crate::registry::{Registry, Resource};
use crate::status::Status;
use crate::store::{CommitError, Entry, Store};

pub use apply::Applied;
pub use delete::{DeleteOptions, Deleted};
pub(crate) use meta::warnings as metadata_warnings;
pub(crate) use patch::unreadable;
pub use patch::{FieldValidation, Strictness};
pub use read::{ListOptions, Listing, Match};
pub use update::Part;
pub(crate) use update::check_name;
pub use watch::{Watch, WatchEvent, WatchOptions};

/// The meaning of requests. Clones share everything.
#[derive(Clone)]
pub struct Api {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    registry: Registry,
    env: Arc<dyn Env>,
    admission: Admission,
    quotas: quota::Books,
    claims: addresses::Claims,
    authorizer: Authorizer,
    flows: ArcSwap<Vec<Flow>>,
}

/// What is held between the preparation of a write and the moment when it is stored.
#[derive(Default)]
struct Held<'a> {
    _charge: Option<quota::Charge<'a>>,
    _claim: Option<addresses::Claim<'a>>,
}

/// How a write is to be made.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Whether to do everything but store it.
    pub dry_run: bool,
    /// Who the object must be.
    pub uid: Option<Uid>,
    /// In which state it must be, beside what its `resourceVersion` says.
    pub revision: Option<u64>,
    /// Who manages the fields that are set. Nobody if it is not said: the program's own writes leave managers as they are.
    pub manager: Option<String>,
    /// Where what the client should know is gathered.
    pub warnings: Warnings,
    /// What is to be done about fields that nobody knows.
    pub field_validation: FieldValidation,
    /// Whether the server itself writes what it knows to be right, though a client could not: endpoints of pods whose
    /// addresses are those of this machine.
    pub is_servers_own: bool,
    /// The user who writes. None for Krafla's own components, which may do everything.
    pub user: Option<Arc<User>>,
}

/// An object after a write, or as it would be.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The object as JSON.
    pub bytes: Bytes,
    /// Where it is.
    pub key: Key,
    /// Who it is.
    pub uid: Uid,
    /// Its revision; zero if it was not stored.
    pub revision: u64,
    /// Whether the object is new.
    pub is_new: bool,
}

impl Answer {
    fn stored(entry: &Entry) -> Answer {
        Answer {
            bytes: entry.bytes.clone(),
            key: entry.key.clone(),
            uid: entry.uid.clone(),
            revision: entry.revision,
            is_new: false,
        }
    }

    /// An object that is shown but not, or not so, stored.
    fn shown(object: &Value, revision: u64) -> Answer {
        let (namespace, name) =
            (krafla_schema::object::namespace(object), krafla_schema::object::name(object));
        Answer {
            bytes: object.to_string().into(),
            key: Key::new(namespace, name),
            uid: krafla_schema::object::uid(object).into(),
            revision,
            is_new: false,
        }
    }
}

impl Api {
    /// Serves what is in `store`. The kinds of stored CRDs are served at once.
    pub fn new(store: Store, env: Arc<dyn Env>, admission: Admission) -> Api {
        let api = Api {
            inner: Arc::new(Inner {
                store,
                registry: Registry::builtin(),
                env,
                admission,
                quotas: quota::Books::default(),
                claims: addresses::Claims::default(),
                authorizer: Authorizer::default(),
                flows: ArcSwap::default(),
            }),
        };
        api.serve_stored_definitions();
        api
    }

    /// The same server over a fork of its store, in other surroundings: what happens to one does not happen to the other.
    pub fn fork(&self, env: Arc<dyn Env>) -> Api {
        let Inner { store, registry, admission, .. } = &*self.inner;
        let (store, registry, admission) = (store.fork(), registry.fork(), admission.clone());
        let (quotas, claims) = (quota::Books::default(), addresses::Claims::default());
        let authorizer = Authorizer::new(self.authorizer().mode());
        let flows = ArcSwap::new(self.flows());
        let inner = Inner { store, registry, env, admission, quotas, claims, authorizer, flows };
        Api { inner: Arc::new(inner) }
    }

    /// Where objects are kept.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// What is served.
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// The surroundings.
    pub fn env(&self) -> &dyn Env {
        &*self.inner.env
    }

    fn admission(&self) -> &Admission {
        &self.inner.admission
    }

    fn serve_stored_definitions(&self) {
        let definitions = self.store().snapshot(&"customresourcedefinitions.apiextensions.k8s.io".into());
        for entry in definitions.entries.values() {
            match stored(&entry.bytes) {
                Ok(definition) => crate::registry::custom::serve(self.registry(), &definition),
                Err(error) => {
                    tracing::error!(definition = %entry.key, %error, "stored definition cannot be read")
                }
            }
        }
    }

    /// What is stored under a key.
    fn stored(&self, resource: &Resource, key: &Key) -> Result<Arc<Entry>, Status> {
        let entry = self.store().get(&resource.storage, key);
        entry.ok_or_else(|| Status::not_found(&resource.qualified(), &key.name))
    }

    /// What the next write under a key will meet.
    async fn accepted(&self, resource: &Resource, key: &Key) -> Result<Arc<Entry>, Status> {
        let newest = self.store().newest(&resource.storage, key);
        let missing = || Status::not_found(&resource.qualified(), &key.name);
        match newest.entry {
            Some(entry) => Ok(entry),
            None => self.once_durable(newest.revision, Err(missing())).await,
        }
    }
}

/// The stored object as a tree.
fn parse(entry: &Entry) -> Result<Value, Status> {
    stored(&entry.bytes)
        .map_err(|error| Status::internal(&format!("stored object {} cannot be read: {error}", entry.key)))
}

/// Why an object was not put into the store.
enum NotPut {
    /// The store refused it.
    Commit(CommitError),
    /// It has no form that can be stored.
    Refused(Status),
}

impl From<CommitError> for NotPut {
    fn from(error: CommitError) -> NotPut {
        NotPut::Commit(error)
    }
}

impl From<Status> for NotPut {
    fn from(status: Status) -> NotPut {
        NotPut::Refused(status)
    }
}

/// What a failed commit means to a client, where it is not a reason to try again.
fn commit_failed(resource: &Resource, key: &Key, error: &CommitError) -> Status {
    match error {
        CommitError::Exists => Status::already_exists(&resource.qualified(), &key.name),
        CommitError::Missing => Status::not_found(&resource.qualified(), &key.name),
        CommitError::Stale { .. } => Status::stale(&resource.qualified(), &key.name),
        CommitError::Closed => Status::unavailable("the server is shutting down"),
        // As upstream tells of etcd's alarm NOSPACE.
        CommitError::NoSpace => Status::plain(error.to_string()),
        CommitError::Failed(why) => Status::internal(why),
    }
}
