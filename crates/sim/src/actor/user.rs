//! Users: they do what the scenario's script says, one thing after the other.

use std::collections::VecDeque;
use std::time::Duration;

use krafla_api::volcano::{Action, Command, CommandFields, Resource};
use krafla_api::{Key, Kind, ObjectMeta, OwnerReference, Time};
use krafla_cluster::ClientError;
use krafla_plan::Object;
use serde_json::{Value, json};

use crate::clock;
use crate::oracle::Oracle;
use crate::scenario::{Act, Deed, NAMESPACE, When, key};
use crate::server::Server;

/// Users with what is left of their script.
#[derive(Clone, Debug)]
pub(crate) struct User {
    script: VecDeque<Act>,
    /// Whether the pods that they delete get no time to end.
    is_forceful: bool,
}

impl User {
    pub(crate) fn new(script: Vec<Act>, is_forceful: bool) -> User {
        User { script: script.into(), is_forceful }
    }

    /// How much of the script is left.
    pub(crate) fn n_left(&self) -> usize {
        self.script.len()
    }

    /// Whether the whole script has been played.
    pub(crate) fn is_done(&self) -> bool {
        self.script.is_empty()
    }

    /// Whether the time has come for the next act.
    pub(crate) fn is_ready(&self, oracle: &Oracle, elapsed: Duration) -> bool {
        let Some(act) = self.script.front() else { return false };
        match &act.when {
            When::Now => true,
            When::At(at) => *at <= elapsed,
            When::JobHasBeen(job, phase) => {
                let phases = oracle.phases_of(&key(Kind::VcJob, job));
                phases.is_some_and(|phases| phases.contains(phase))
            }
            When::JobIsGone(job) => oracle.phases_of(&key(Kind::VcJob, job)).is_none(),
            When::Shows(kind, name, is_so) => {
                oracle.stored(*kind, &key(*kind, name)).is_some_and(|object| is_so(&object))
            }
        }
    }

    /// When the next act is due, if a moment is all it waits for.
    pub(crate) fn due_at(&self) -> Option<Time> {
        match self.script.front()?.when {
            When::At(at) => Some(clock::start().after(at)),
            When::Now | When::JobHasBeen(..) | When::JobIsGone(_) | When::Shows(..) => None,
        }
    }

    /// Plays the next act, and says what it was.
    pub(crate) fn act(&mut self, server: &Server) -> String {
        let Some(Act { deed, .. }) = self.script.pop_front() else { return String::new() };
        let (said, answer) = match deed {
            Deed::Create(kind, manifest) => {
                (format!("create {}", kind.info().singular), server.create(kind, manifest))
            }
            Deed::CreateFor(owner, name, kind, manifest) => (
                format!("create {} of {name}", kind.info().singular),
                create_for(server, owner, name, kind, manifest),
            ),
            Deed::Patch(kind, name, patch) => (
                format!("patch {} {name} {patch}", kind.info().singular),
                server.patch(kind, &key(kind, name), patch),
            ),
            Deed::Delete(Kind::Pod, name) => {
                (format!("delete pod {name}"), self.delete_pod(server, &key(Kind::Pod, name)))
            }
            Deed::Delete(kind, name) => {
                (format!("delete {} {name}", kind.info().singular), server.delete(kind, &key(kind, name)))
            }
            Deed::DeleteInForeground(kind, name) => (
                format!("delete {} {name} after its children", kind.info().singular),
                server.delete_in_foreground(kind, &key(kind, name)),
            ),
            Deed::Orphan(kind, name) => (
                format!("delete {} {name} and leave its children", kind.info().singular),
                server.orphan(kind, &key(kind, name)),
            ),
            Deed::DeletePodOf(owner) => (
                format!("delete a pod of {owner}"),
                pod_of(server, owner).and_then(|pod| self.delete_pod(server, &pod)),
            ),
            Deed::Command(job, action) => {
                (format!("{action} of {job}"), command(server, Kind::VcJob, job, &action))
            }
            Deed::CommandQueue(queue, action) => {
                (format!("{action} of {queue}"), command(server, Kind::Queue, queue, &action))
            }
        };
        match answer {
            Ok(()) => said,
            Err(error) => format!("{said} -> {error}"),
        }
    }

    fn delete_pod(&self, server: &Server, pod: &Key) -> Result<(), ClientError> {
        if self.is_forceful { server.delete_by_force(Kind::Pod, pod) } else { server.delete(Kind::Pod, pod) }
    }
}

/// Stores an object that an owner controls, as the owner's controller would.
fn create_for(
    server: &Server,
    owner: Kind,
    name: &str,
    kind: Kind,
    mut manifest: Value,
) -> Result<(), ClientError> {
    let owner = OwnerReference { block_owner_deletion: Some(true), ..controller(server, owner, name)? };
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
    }
    server.create(kind, manifest)
}

/// A reference to an object as the one that is in control.
fn controller(server: &Server, kind: Kind, name: &str) -> Result<OwnerReference, ClientError> {
    Ok(OwnerReference {
        api_version: kind.info().api_version(),
        kind: kind.info().kind.to_owned(),
        name: name.to_owned(),
        uid: server.uid(kind, &key(kind, name))?,
        controller: Some(true),
        block_owner_deletion: None,
    })
}

/// The first pod of an owner.
fn pod_of(server: &Server, owner: &str) -> Result<Key, ClientError> {
    let nobody = || ClientError::not_found(format!("a pod of {owner}"));
    let listed = server.list(Kind::Pod).ok_or_else(nobody)?;
    let mut pods = listed.items.iter().map(|item| Object::decode(Kind::Pod, item));
    let is_its_own = |pod: &Object| pod.meta.owners.iter().any(|it| it.name == owner);
    let pod = pods.find(is_its_own).ok_or_else(nobody)?;
    Ok(pod.meta.key)
}

/// Stores a Command for a job or a queue, as Volcano's own command line does.
fn command(server: &Server, kind: Kind, name: &str, action: &Action) -> Result<(), ClientError> {
    let target = controller(server, kind, name)?;
    let metadata = ObjectMeta {
        generate_name: format!("{name}-{}-", action.as_str().to_lowercase()),
        namespace: NAMESPACE.to_owned(),
        owner_references: vec![target.clone()],
        ..ObjectMeta::default()
    };
    let fields = CommandFields { action: action.clone(), target: Some(target), ..CommandFields::default() };
    server.create(Kind::Command, Command { metadata, fields }.to_manifest())
}
