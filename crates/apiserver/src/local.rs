//! The cluster as components in this process see it: the same meaning as over HTTP, and no HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use krafla_api::{Key, Kind, Served, Uid};
use krafla_cluster::{
    Client, ClientError, Event, EventType, Listed, Manifests, Refusal, SshKeyPair, Step, Written,
};
use krafla_schema::object;
use serde_json::{Value, json};

use crate::codec;
use crate::ops::{
    Answer, Api, DeleteOptions, Deleted, ListOptions, Part, Watch, WatchEvent, WatchOptions, WriteOptions,
};
use crate::patch::Patch;
use crate::readings::Readings;
use crate::registry::Resource;
use crate::status::Status;
use crate::store;

/// The cluster without HTTP in between. Clones of one client read each object once, for all of them.
#[derive(Clone)]
pub struct LocalClient {
    api: Api,
    manager: Option<String>,
    readings: Arc<Readings>,
}

impl LocalClient {
    /// A client of this server that leaves the managers of fields as they are.
    pub fn new(api: Api) -> LocalClient {
        LocalClient { api, manager: None, readings: Arc::default() }
    }

    /// The same as the manager of the fields that it sets.
    pub fn writing_as(self, manager: &str) -> LocalClient {
        LocalClient { manager: Some(manager.to_owned()), ..self }
    }

    fn options(&self) -> WriteOptions {
        WriteOptions { manager: self.manager.clone(), ..WriteOptions::default() }
    }

    fn resource(&self, kind: Kind) -> Result<Arc<Resource>, ClientError> {
        let missing = || ClientError::not_found(format!("{kind} is not served"));
        self.api.registry().of_kind(kind).ok_or_else(missing)
    }

    fn served_resource(&self, of: &Served) -> Result<Arc<Resource>, ClientError> {
        let missing = || ClientError::not_found(format!("{} is not served", of.plural));
        self.api.registry().find(&of.group, &of.version, &of.plural).ok_or_else(missing)
    }

    async fn carry_out(&self, step: &Step) -> Result<Written, ClientError> {
        let resource = self.resource(step.kind())?;
        let written = match step {
            Step::Create { object, .. } => self.create(&resource, object, &self.options()).await,
            Step::CreateGenerated { object, recipe, .. } => {
                let mut object = object.clone();
                recipe.fill(&mut object, &self.ssh_key_pair().await?);
                self.create(&resource, &object, &self.options()).await
            }
            Step::Patch { key, uid, revision, of_status, patch, .. } => {
                let part = if *of_status { Part::Status } else { Part::Main };
                // Not as a part of the patch: all of the metadata would have to be read for it.
                let options = WriteOptions { uid: Some(uid.clone()), revision: *revision, ..self.options() };
                self.api.patch(&resource, key, part, &Patch::Merge(patch.clone()), &options).await
            }
            Step::Delete { key, uid, revision, propagation, grace_seconds, .. } => {
                let options = DeleteOptions {
                    uid: Some(uid.0.to_string()),
                    revision: revision.map(|revision| revision.to_string()),
                    propagation: Some(*propagation),
                    grace_seconds: *grace_seconds,
                    ..DeleteOptions::default()
                };
                self.api.delete(&resource, key, &options).await.map(|deleted| match deleted {
                    Deleted::Gone(answer) | Deleted::Marked(answer) => answer,
                })
            }
            Step::Bind { pod, uid, node } => {
                let binding =
                    json!({"metadata": {"uid": uid.0.as_ref()}, "target": {"kind": "Node", "name": node}});
                self.api.bind(&resource, pod, &binding, &self.options()).await
            }
        };
        written.map(Written::from).map_err(refusal)
    }

    async fn create(
        &self,
        resource: &Resource,
        object: &Value,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        let namespace = object::namespace(object).to_owned();
        let object = codec::normalise(resource, object).map_err(Status::bad_request)?;
        self.api.create(resource, &namespace, object, options).await
    }

    /// Draws a key pair beside the work of others: it takes longer than anything else here.
    async fn ssh_key_pair(&self) -> Result<SshKeyPair, ClientError> {
        let api = self.api.clone();
        let draw = move || api.env().ssh_key_pair();
        let drawn = match tokio::runtime::Handle::try_current() {
            Ok(runtime) => runtime.spawn_blocking(draw).await.unwrap_or_else(|error| Err(error.to_string())),
            Err(_) => draw(),
        };
        drawn.map_err(ClientError::Unknown)
    }
}

impl From<Answer> for Written {
    fn from(answer: Answer) -> Written {
        Written { key: answer.key, uid: answer.uid, revision: answer.revision }
    }
}

impl Client for LocalClient {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        Box::pin(async move {
            let resource = self.resource(kind)?;
            let listing = self.api.list(&resource, &ListOptions::default()).map_err(refusal)?;
            let items = listing.items.iter().map(|entry| entry.bytes.clone()).collect();
            Ok(Listed { revision: listing.revision, items })
        })
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        // Revision zero is the empty store: everything that is there came after it.
        let options = WatchOptions { revision: Some(revision), ..WatchOptions::default() };
        let watch =
            self.resource(kind).and_then(|resource| self.api.watch(&resource, options).map_err(refusal));
        match watch {
            Ok(watch) => {
                let readings = self.readings.clone();
                stream::unfold(Some(watch), move |watch| next_event(watch, readings.clone())).boxed()
            }
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        let key = key.clone();
        Box::pin(async move {
            let resource = self.resource(kind)?;
            self.api.get(&resource, &key).map(|entry| entry.bytes.clone()).map_err(refusal)
        })
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        Box::pin(self.carry_out(step))
    }
}

impl Manifests for LocalClient {
    fn served(&self, api_version: &str) -> BoxFuture<'_, Result<Vec<Served>, ClientError>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let table = self.api.registry().table();
        let version = table.versions(group).iter().find(|of| *of.name == *version);
        let resources = version.into_iter().flat_map(|version| version.resources.values());
        let kept = resources.filter(|resource| resource.is_kept());
        let served = kept.map(|resource| Served::from(&**resource)).collect();
        Box::pin(std::future::ready(Ok(served)))
    }

    fn read<'a>(&'a self, of: &'a Served, key: &'a Key) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(async move {
            let resource = self.served_resource(of)?;
            self.api.get(&resource, key).map(|entry| entry.bytes.clone()).map_err(refusal)
        })
    }

    fn check<'a>(&'a self, of: &'a Served, object: &'a Value) -> BoxFuture<'a, Result<(), ClientError>> {
        Box::pin(async move {
            let resource = self.served_resource(of)?;
            let options = WriteOptions { dry_run: true, ..self.options() };
            self.create(&resource, object, &options).await.map(drop).map_err(refusal)
        })
    }

    fn make<'a>(&'a self, of: &'a Served, object: &'a Value) -> BoxFuture<'a, Result<Written, ClientError>> {
        Box::pin(async move {
            let resource = self.served_resource(of)?;
            self.create(&resource, object, &self.options()).await.map(Written::from).map_err(refusal)
        })
    }

    fn amend<'a>(
        &'a self,
        of: &'a Served,
        key: &'a Key,
        uid: &'a Uid,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<Written, ClientError>> {
        Box::pin(async move {
            let resource = self.served_resource(of)?;
            let options = WriteOptions { uid: Some(uid.clone()), ..self.options() };
            let merge = if of.has_strategic_patches() { Patch::Strategic } else { Patch::Merge };
            let patch = merge(patch.clone());
            let written = self.api.patch(&resource, key, Part::Main, &patch, &options).await;
            written.map(Written::from).map_err(refusal)
        })
    }
}

/// One event, and the rest of the stream unless it ends here.
async fn next_event(
    watch: Option<Watch>,
    readings: Arc<Readings>,
) -> Option<(Result<Event, ClientError>, Option<Watch>)> {
    let mut watch = watch?;
    match watch.next().await {
        Ok(event) => Some((Ok(seen(event, &readings)), Some(watch))),
        Err(status) => Some((Err(refusal(status)), None)),
    }
}

fn seen(event: WatchEvent, readings: &Readings) -> Event {
    match event {
        WatchEvent::Stored(event) => Event {
            event_type: match event.event_type {
                store::EventType::Added => EventType::Added,
                store::EventType::Modified => EventType::Modified,
                store::EventType::Deleted => EventType::Deleted,
            },
            revision: event.revision,
            object: event.entry.bytes.clone(),
            reading: readings.of(event.revision),
        },
        WatchEvent::Added(entry) => Event::new(EventType::Added, entry.revision, entry.bytes.clone()),
        WatchEvent::Deleted(entry, revision) => Event::new(EventType::Deleted, revision, entry.bytes.clone()),
        WatchEvent::InitialEnd(revision) => Event::new(EventType::Bookmark, revision, Bytes::new()),
    }
}

/// What a refusal means to a component.
fn refusal(status: Status) -> ClientError {
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
    let Status { code, reason, message, details } = status;
    ClientError::from_refusal(Refusal { code, reason: reason.into_owned(), message, details }, retry_after)
}
