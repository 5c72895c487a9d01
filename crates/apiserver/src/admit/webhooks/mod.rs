//! Webhooks: rules of the cluster that others keep, asked over HTTPS.
//!
//! ```text
//!   this file        who is asked, in which order, and what follows from the answers
//!   conditions.rs    expressions that say whether a webhook is asked at all
//!   destination.rs   where a webhook listens: an address, or a service's pods
//!   https.rs         one question and one answer over the network
//! ```
//!
//! What a configuration means and what questions and answers look like is decided in [`krafla_admission::webhook`].
//!
//! **Invariant:** without configurations nobody waits: a write then costs two look-ups in the store and no more.

mod conditions;
mod destination;
mod https;
mod refusal;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use krafla_admission::rbac::User;
use krafla_admission::webhook::{Answer, Hook, Place, Question, Target, Unreadable, Verb, hooks, read};
use krafla_api::Key;
use krafla_schema::object;
use serde_json::Value;

use self::conditions::Conditions;
use super::kept::Kept;
use super::{Operation, Warnings};
use crate::codec;
use crate::ops::Api;
use crate::patch::Patch;
use crate::registry::{Resource, Table};
use crate::status::Status;

pub use destination::Destination;
pub(super) use https::Https;

/// The group whose objects no webhook is asked about: a wrong one could not be taken away any more.
const CONFIGURATIONS: &str = "admissionregistration.k8s.io";
const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// Whether there are any that are asked about what is to be stored.
pub(super) fn are_asked(api: &Api) -> bool {
    !api.store().snapshot(&VALIDATING.into()).entries.is_empty()
}

/// Somebody who brings a question to a webhook and its answer back.
pub trait Caller: Send + Sync {
    /// Sends a question, and returns the body of the answer or why there is none.
    fn call<'a>(
        &'a self,
        destination: &'a Destination,
        question: Bytes,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Bytes, String>>;
}

/// A write that webhooks are asked about.
pub(crate) struct Call<'a> {
    /// The server.
    pub api: &'a Api,
    /// Of what resource.
    pub resource: &'a Resource,
    /// The part that is written; empty for the object itself.
    pub subresource: &'a str,
    /// What is being done.
    pub operation: Operation,
    /// The object as it is stored.
    pub old: Option<&'a Value>,
    /// Whether nothing will be stored.
    pub is_dry_run: bool,
    /// Where warnings go.
    pub warnings: &'a Warnings,
    /// The webhooks as they are stored.
    pub configured: &'a Configured,
    /// Who writes.
    pub user: Option<&'a User>,
    /// What a client connects to, if this is no write: the object is what it asks of the connection.
    pub connection: Option<Connection<'a>>,
}

/// What a client connects to.
#[derive(Clone, Copy)]
pub struct Connection<'a> {
    /// The pod, service or node.
    pub key: &'a Key,
    /// The kind of what is asked of the connection, such as `PodExecOptions`.
    pub kind: &'a str,
}

/// The webhooks of each stored configuration. Their conditions are compiled once.
#[derive(Default)]
pub(crate) struct Configured {
    mutating: Kept<Vec<Conditional>>,
    validating: Kept<Vec<Conditional>>,
}

/// A webhook, and what must hold for it to be asked.
struct Conditional {
    hook: Hook,
    conditions: Conditions,
}

/// What a webhook answered, about what it was shown.
struct Asked {
    answer: Answer,
    /// The object in the version that the webhook was asked about.
    seen: Value,
}

impl Conditional {
    fn new(hook: Hook) -> Conditional {
        Conditional { conditions: Conditions::of(&hook.match_conditions), hook }
    }
}

impl Call<'_> {
    /// Has the mutating webhooks change an object, one after the other. Says whether one did.
    pub(crate) async fn mutate(&self, caller: &dyn Caller, object: &mut Value) -> Result<bool, Status> {
        let hooks = self.configured(MUTATING);
        let hooks: Vec<&Conditional> = hooks.iter().flat_map(|hooks| hooks.iter()).collect();
        let mut last_change = None;
        for (turn, hook) in hooks.iter().enumerate() {
            if self.mutate_by(caller, hook, object).await? {
                last_change = Some(turn);
            }
        }
        // Those who ask for it see what was changed after them, once: two webhooks that undo each other must not go on.
        let again = hooks.iter().take(last_change.unwrap_or(0)).filter(|hook| hook.hook.wants_another_look());
        for hook in again {
            self.mutate_by(caller, hook, object).await?;
        }
        Ok(last_change.is_some())
    }

    /// Asks the validating webhooks about an object.
    pub(crate) async fn validate(&self, caller: &dyn Caller, object: &Value) -> Result<(), Status> {
        for hook in self.configured(VALIDATING).iter().flat_map(|hooks| hooks.iter()) {
            self.ask(caller, hook, object).await?;
        }
        Ok(())
    }

    /// All webhooks of one of the two kinds, in order of their configurations' names.
    fn configured(&self, storage: &str) -> Vec<Arc<Vec<Conditional>>> {
        if *self.resource.names.group == *CONFIGURATIONS {
            return Vec::new();
        }
        let configurations = self.api.store().snapshot(&storage.into());
        let read = |configuration: Value| hooks(&configuration).into_iter().map(Conditional::new).collect();
        let Configured { mutating, validating } = self.configured;
        let kept = if storage == MUTATING { mutating } else { validating };
        kept.all(&configurations, read)
    }

    /// Whether a webhook changed the object.
    async fn mutate_by(
        &self,
        caller: &dyn Caller,
        hook: &Conditional,
        object: &mut Value,
    ) -> Result<bool, Status> {
        let asked = self.ask(caller, hook, object).await?;
        // What a client asks of a connection is not stored, and stays as it is.
        if self.connection.is_some() {
            return Ok(false);
        }
        let Some(Asked { answer: Answer { patch: Some(patch), .. }, seen }) = asked else {
            return Ok(false);
        };
        let patched = self.patched(&seen, &patch).map_err(|why| {
            Status::internal(&format!("webhook {:?} sent a patch that does not fit: {why}", hook.hook.name))
        })?;
        if patched == seen {
            return Ok(false);
        }
        let own = self.resource.names.api_version();
        let patched = self.api.convert(self.resource, patched, &own).await?;
        let is_changed = patched != *object;
        *object = patched;
        Ok(is_changed)
    }

    fn patched(&self, object: &Value, patch: &str) -> Result<Value, String> {
        let patch = STANDARD.decode(patch).map_err(|error| error.to_string())?;
        let patch = Patch::decode("application/json-patch+json", &patch).ok_or("it is no JSON patch")?;
        let patched = patch
            .and_then(|(patch, _)| patch.apply(object, self.resource.schema))
            .map_err(|status| status.message)?;
        let mut patched = codec::normalise(self.resource, &patched)?;
        // What an object is and where it is stays.
        object::copy_meta(&mut patched, object, &["name", "namespace", "uid"]);
        self.resource.rules.default(&mut patched);
        codec::complete(self.resource, &mut patched);
        Ok(patched)
    }

    /// Asks one webhook, if the request is its business. No answer is taken for consent only where its configuration says so.
    async fn ask(
        &self,
        caller: &dyn Caller,
        Conditional { hook, conditions }: &Conditional,
        object: &Value,
    ) -> Result<Option<Asked>, Status> {
        let table = self.api.registry().table();
        let versions = self.versions(&table);
        let targets: Vec<Target<'_>> = versions.iter().map(|place| place.target).collect();
        let (Some(concerned), Some(requested)) = (hook.concerned(&targets), versions.first()) else {
            return Ok(None);
        };
        if !hook.selects(self.namespace(object).as_ref(), [Some(object), self.old]) {
            return Ok(None);
        }
        let asked = Place { target: *concerned, ..*requested };
        let uid = self.api.env().uid();
        // A webhook sees objects of a custom kind in the version that its rule names.
        let version = format!("{}/{}", concerned.group, concerned.version);
        let seen = self.api.convert(self.resource, object.clone(), &version).await?;
        let old = match self.old {
            Some(old) => Some(self.api.convert(self.resource, old.clone(), &version).await?),
            None => None,
        };
        let question = self.question(&uid.0, asked, *requested, [Some(&seen), old.as_ref()]);
        let answer = match conditions.hold(object::at(&question, "/request")) {
            Ok(false) => return Ok(None),
            Ok(true) => self.answer(caller, hook, &uid.0, question.to_string().into()).await,
            Err(why) => Err(why),
        };
        match answer {
            Ok(answer) => {
                self.warnings.extend(answer.warnings.clone());
                match &answer.refusal {
                    Some(status) => Err(refusal::denied(&hook.name, status)),
                    None => Ok(Some(Asked { answer, seen })),
                }
            }
            Err(why) if hook.may_be_missed() => {
                tracing::warn!(webhook = hook.name, why, "a webhook that may be missed did not answer");
                Ok(None)
            }
            Err(why) => Err(Status::internal(&format!("failed calling webhook {:?}: {why}", hook.name))),
        }
    }

    async fn answer(
        &self,
        caller: &dyn Caller,
        hook: &Hook,
        uid: &str,
        question: Bytes,
    ) -> Result<Answer, String> {
        let failed = |why: String| format!("failed to call webhook: {why}");
        let destination =
            Destination::find(self.api, &hook.client_config, hook.timeout_seconds).map_err(failed)?;
        let timeout = Duration::from_secs(u64::from(hook.timeout_seconds.max(1)));
        let body = caller.call(&destination, question, timeout).await.map_err(failed)?;
        let invalid = |why: String| format!("received invalid webhook response: {why}");
        let body: Value = serde_json::from_slice(&body).map_err(|error| invalid(error.to_string()))?;
        read(&body, uid).map_err(|Unreadable(why)| invalid(why))
    }

    /// The versions in which the resource is served, the request's own first.
    fn versions<'t>(&'t self, table: &'t Table) -> Vec<Place<'t>> {
        let names = &self.resource.names;
        let verb = match self.operation {
            _ if self.connection.is_some() => Verb::Connect,
            Operation::Create => Verb::Create,
            Operation::Update => Verb::Update,
            Operation::Delete => Verb::Delete,
        };
        let place = |version| Place {
            target: Target {
                group: &names.group,
                version,
                resource: &names.plural,
                subresource: self.subresource,
                is_namespaced: self.resource.is_namespaced(),
                verb,
            },
            kind: self.connection.map_or(&*names.kind, |connection| connection.kind),
        };
        let served = table
            .versions(&names.group)
            .iter()
            .filter(|version| version.resources.contains_key(&names.plural));
        let others = served.map(|version| &*version.name).filter(|version| *version != &*names.version);
        std::iter::once(&*names.version).chain(others).map(place).collect()
    }

    /// The namespace whose labels count: the object's own, or the object itself if it is one.
    fn namespace(&self, object: &Value) -> Option<Value> {
        if self.resource.storage.as_str() == "namespaces" {
            return Some(object.clone());
        }
        let name = self.place(Some(object)).0;
        let entry = self.api.store().get(&"namespaces".into(), &Key::new("", name))?;
        serde_json::from_slice(&entry.bytes).ok()
    }

    /// Namespace and name of what is written or connected to.
    fn place<'o>(&'o self, object: Option<&'o Value>) -> (&'o str, &'o str) {
        match self.connection {
            Some(Connection { key, .. }) => (&key.namespace, &key.name),
            None => (object.map_or("", object::namespace), object.map_or("", object::name)),
        }
    }

    fn question(
        &self,
        uid: &str,
        asked: Place<'_>,
        requested: Place<'_>,
        [object, old]: [Option<&Value>; 2],
    ) -> Value {
        let (namespace, name) = self.place(object);
        let question = Question {
            uid,
            asked,
            requested,
            namespace,
            name,
            user: &crate::users::to_json(self.user),
            object: object.filter(|_| self.operation != Operation::Delete),
            old,
            is_dry_run: self.is_dry_run,
        };
        question.to_json()
    }
}
