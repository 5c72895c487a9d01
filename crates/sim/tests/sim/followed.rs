//! The controllers on a server of their own, driven by watches and by a clock that only the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use krafla_api::{Key, Kind, Time};
use krafla_apiserver::admit::Admission;
use krafla_apiserver::store::{EventType as Stored, ResourceId, Store, Watcher};
use krafla_apiserver::{Api, LocalClient, SystemEnv};
use krafla_cluster::{Client, ClientError, Event, EventType, Listed, Propagation, Step, Written};
use krafla_plan::Object;
use krafla_runtime::apply::apply;
use krafla_runtime::{Engine, Outcome};
use serde_json::{Value, json};

/// The controllers on a server of their own. They follow it by watches, one event at a time, and look for work after each.
pub(crate) struct Followed {
    client: LocalClient,
    pub(crate) engine: Engine,
    watchers: Vec<(Kind, Watcher)>,
    pub(crate) now: Time,
    requests: Requests,
}

/// What the controllers asked of the server. What others ask is not counted.
#[derive(Default)]
struct Requests {
    reads: AtomicUsize,
    status_patches: AtomicUsize,
    other_writes: AtomicUsize,
}

/// The controllers' way to the server, with somebody who counts.
struct Counted<'a> {
    client: &'a LocalClient,
    requests: &'a Requests,
}

impl Client for Counted<'_> {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        self.requests.reads.fetch_add(1, Ordering::Relaxed);
        self.client.list(kind)
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        self.client.watch(kind, revision)
    }

    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        self.requests.reads.fetch_add(1, Ordering::Relaxed);
        self.client.get(kind, key)
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        let of_status = matches!(step, Step::Patch { of_status: true, .. });
        let requests = if of_status { &self.requests.status_patches } else { &self.requests.other_writes };
        requests.fetch_add(1, Ordering::Relaxed);
        self.client.write(step)
    }
}

impl Followed {
    pub(crate) fn new() -> Followed {
        let store = Store::in_memory();
        let api = Api::new(store.clone(), Arc::new(SystemEnv), Admission::default());
        api.bootstrap().now_or_never().unwrap().unwrap();
        let (client, mut engine) = (LocalClient::new(api), Engine::new(krafla_plan::controllers()));
        let now = Time::from_seconds(1_800_000_000);
        let mut watchers = Vec::new();
        for kind in engine.kinds().collect::<Vec<_>>() {
            let listed = client.list(kind).now_or_never().unwrap().unwrap();
            engine.listed(kind, &listed, now).unwrap();
            let resource = ResourceId::from(kind.info().qualified_plural().as_str());
            watchers.push((kind, store.watch(&resource, listed.revision).unwrap()));
        }
        Followed { client, engine, watchers, now, requests: Requests::default() }
    }

    /// How many requests the controllers have sent, reads included.
    pub(crate) fn n_requests(&self) -> usize {
        let reads = self.requests.reads.load(Ordering::Relaxed);
        reads + self.n_status_patches() + self.requests.other_writes.load(Ordering::Relaxed)
    }

    /// How many of them were to a status.
    pub(crate) fn n_status_patches(&self) -> usize {
        self.requests.status_patches.load(Ordering::Relaxed)
    }

    pub(crate) fn write(&self, step: &Step) {
        self.client.write(step).now_or_never().unwrap().unwrap();
    }

    pub(crate) fn list(&self, kind: Kind) -> Vec<Object> {
        let listed = self.client.list(kind).now_or_never().unwrap().unwrap();
        listed.items.iter().map(|item| Object::decode(kind, item)).collect()
    }

    /// The node reports the same of all pods that are not there yet.
    pub(crate) fn report_all(&self, phase: &str) {
        for pod in self.list(Kind::Pod) {
            if pod.as_pod().unwrap().status.phase.as_str() != phase {
                self.report(&pod, phase);
            }
        }
    }

    pub(crate) fn report(&self, pod: &Object, phase: &str) {
        let (key, uid) = (pod.meta.key.clone(), pod.meta.uid.clone());
        let (ready, state) = match phase {
            "Running" => ("True", json!({ "running": { "startedAt": self.now } })),
            _ => {
                let exit_code = i32::from(phase == "Failed");
                ("False", json!({ "terminated": { "exitCode": exit_code, "finishedAt": self.now } }))
            }
        };
        let container = json!({ "name": "main", "image": "any", "imageID": "", "ready": true, "restartCount": 0, "state": state });
        let patch = json!({ "status": {
            "phase": phase, "conditions": [{ "type": "Ready", "status": ready }], "containerStatuses": [container],
        } });
        self.write(&Step::Patch { kind: Kind::Pod, key, uid, revision: None, of_status: true, patch });
    }

    /// Shows the controllers what happened, and lets them act after each event and until nothing is left to do for a while.
    pub(crate) fn settle(&mut self) {
        loop {
            self.look();
            let soon = self.now.after(Duration::from_secs(2));
            match self.engine.next_wake().filter(|at| *at <= soon) {
                Some(at) => self.now = self.now.max(at),
                None if self.engine.has_work(self.now) => {}
                None => return,
            }
        }
    }

    /// Shows the controllers what happened, and lets them do after each event what they want to do at once.
    pub(crate) fn look(&mut self) {
        while let Some((kind, event)) = self.next_event() {
            self.now = self.now.after(Duration::from_micros(100));
            self.engine.observed(kind, &event, self.now);
            self.act();
        }
        self.act();
    }

    /// Shows the controllers what happened, and lets them do nothing about it yet.
    pub(crate) fn see(&mut self) {
        while let Some((kind, event)) = self.next_event() {
            self.engine.observed(kind, &event, self.now);
        }
    }

    /// Shows the controllers what happened to one kind, and lets them do nothing about it yet.
    pub(crate) fn see_only(&mut self, kind: Kind) {
        while let Some(event) = self.next_event_of(kind) {
            self.engine.observed(kind, &event, self.now);
        }
    }

    /// Lets hours pass in which nothing happens.
    pub(crate) fn rest(&mut self) {
        for _ in 0..10 {
            self.now = self.now.after(Duration::from_secs(3600));
            self.settle();
        }
    }

    fn next_event(&mut self) -> Option<(Kind, Event)> {
        self.watchers.iter_mut().find_map(|(kind, watcher)| Some((*kind, next_of(watcher)?)))
    }

    fn next_event_of(&mut self, kind: Kind) -> Option<Event> {
        let (_, watcher) = self.watchers.iter_mut().find(|(watched, _)| *watched == kind)?;
        next_of(watcher)
    }

    fn act(&mut self) {
        while self.act_once() {}
    }

    /// Lets the controllers carry out one plan, unless what it stands on has changed. Whether they had one.
    pub(crate) fn act_once(&mut self) -> bool {
        let Some(work) = self.engine.next(self.now) else { return false };
        let client = Counted { client: &self.client, requests: &self.requests };
        let applied = apply(&client, work.premise.as_ref(), &work.plan).now_or_never().unwrap();
        let failure = applied.failure.as_ref().map(|failure| &failure.error);
        assert!(matches!(failure, None | Some(ClientError::Conflict(_))), "{failure:?}");
        self.engine.finished(work, Outcome::Applied(applied), self.now);
        true
    }

    /// A user stores a Volcano Job of one task, all of whose pods are needed at once.
    pub(crate) fn create_vcjob(&self, name: &str, replicas: usize) {
        self.create_vcjob_of(
            name,
            json!({ "minAvailable": replicas, "queue": "default", "tasks": [vcjob_task(replicas)] }),
        );
    }

    /// A user stores a Volcano Job that nobody has looked at: this server knows Volcano's schema, and none of its rules.
    pub(crate) fn create_vcjob_of(&self, name: &str, spec: Value) {
        self.try_create_vcjob(name, spec).unwrap();
    }

    /// The same, with the answer.
    pub(crate) fn try_create_vcjob(&self, name: &str, spec: Value) -> Result<Written, ClientError> {
        let object = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "metadata": { "name": name, "namespace": "default" },
            "spec": spec,
        });
        self.client.write(&Step::Create { kind: Kind::VcJob, object }).now_or_never().unwrap()
    }

    /// A user asks for something to be done to a job.
    pub(crate) fn command(&self, job: &str, action: &str) {
        let jobs = self.list(Kind::VcJob);
        let job = jobs.iter().find(|object| *object.meta.key.name == *job).unwrap();
        let target = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "name": job.meta.key.name, "uid": job.meta.uid.0, "controller": true,
        });
        let object = json!({
            "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
            "metadata": { "generateName": "ask-", "namespace": "default", "ownerReferences": [target] },
            "action": action, "target": target,
        });
        self.write(&Step::Create { kind: Kind::Command, object });
    }

    /// The scheduler gives all pods to a node. Only then they need time to go when they are told to.
    pub(crate) fn bind_all(&self) {
        for pod in self.list(Kind::Pod) {
            let (pod, uid) = (pod.meta.key, pod.meta.uid);
            self.write(&Step::Bind { pod, uid, node: "node".to_owned() });
        }
    }

    /// The node confirms that all pods that were told to go have gone.
    pub(crate) fn confirm_all(&self) {
        for pod in self.list(Kind::Pod).into_iter().filter(|pod| pod.meta.is_deleting()) {
            self.write(&Step::Delete {
                kind: Kind::Pod,
                key: pod.meta.key,
                uid: pod.meta.uid,
                revision: None,
                propagation: Propagation::Background,
                grace_seconds: Some(0),
            });
        }
    }

    /// The scheduler lets all gangs have their pods.
    pub(crate) fn admit_all(&self) {
        for group in self.list(Kind::PodGroup) {
            let (key, uid, patch) =
                (group.meta.key, group.meta.uid, json!({ "status": { "phase": "Inqueue" } }));
            self.write(&Step::Patch {
                kind: Kind::PodGroup,
                key,
                uid,
                revision: None,
                of_status: false,
                patch,
            });
        }
    }
}

fn next_of(watcher: &mut Watcher) -> Option<Event> {
    let stored = watcher.try_next()?.unwrap();
    let event_type = match stored.event_type {
        Stored::Added => EventType::Added,
        Stored::Modified => EventType::Modified,
        Stored::Deleted => EventType::Deleted,
    };
    Some(Event::new(event_type, stored.revision, stored.entry.bytes.clone()))
}

/// A task of a Volcano Job.
pub(crate) fn vcjob_task(replicas: usize) -> Value {
    json!({
        "name": "work", "replicas": replicas,
        "template": { "spec": { "containers": [{ "name": "main", "image": "any" }] } },
    })
}
