//! A server in memory: as much of one as a node needs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Client, ClientError, Event, EventType, Listed, Step, Written};
use krafla_runtime::{Clock, SystemClock};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Long enough for a busy machine; a test that waits so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Default)]
pub(crate) struct Server(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<(Kind, Key), Value>,
    history: Vec<(Kind, Event)>,
    n_status_writes: usize,
}

impl Server {
    /// Stores an object and returns its UID.
    pub(crate) fn create(&self, kind: Kind, object: Value) -> Uid {
        self.0.create(kind, object).unwrap().uid
    }

    /// Stores a pod of the namespace `default`, bound to the node `here`.
    pub(crate) fn create_pod(&self, name: &str, mut spec: Value) -> Uid {
        spec["nodeName"] = json!("here");
        let metadata = json!({"name": name, "namespace": "default"});
        self.create(Kind::Pod, json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
    }

    /// Changes fields of an object of the namespace `default`.
    pub(crate) fn patch(&self, kind: Kind, name: &str, patch: &Value) {
        let key = Key::new("default", name);
        let mut state = self.0.state.lock();
        let mut object = state.objects[&(kind, key.clone())].clone();
        merge(&mut object, patch);
        self.0.store(&mut state, kind, key, object, EventType::Modified);
    }

    /// Removes an object of the namespace `default` at once.
    pub(crate) fn remove(&self, kind: Kind, name: &str) {
        self.0.delete(kind, &Key::new("default", name), Some(0)).unwrap();
    }

    /// Asks for the deletion of a pod, as `kubectl delete` does.
    pub(crate) fn delete_pod(&self, name: &str, grace_seconds: Option<i64>) {
        self.0.delete(Kind::Pod, &Key::new("default", name), grace_seconds).unwrap();
    }

    /// The pod as it is.
    pub(crate) fn pod(&self, name: &str) -> Option<Value> {
        self.0.state.lock().objects.get(&(Kind::Pod, Key::new("default", name))).cloned()
    }

    /// Waits until there is an event with a reason.
    pub(crate) async fn until_event(&self, reason: &str) -> Value {
        self.wait(reason, |_| self.find_event(reason)).await
    }

    fn find_event(&self, reason: &str) -> Option<Value> {
        let state = self.0.state.lock();
        let mut events =
            state.objects.iter().filter(|((kind, _), _)| *kind == Kind::Event).map(|(_, event)| event);
        events.find(|event| event["reason"] == reason).cloned()
    }

    /// Waits until there are so many events with a reason, and returns their messages.
    pub(crate) async fn until_messages(&self, reason: &str, n_events: usize) -> Vec<String> {
        self.wait(reason, |_| Some(self.messages(reason)).filter(|told| told.len() >= n_events)).await
    }

    /// The messages of all events with a reason.
    pub(crate) fn messages(&self, reason: &str) -> Vec<String> {
        let state = self.0.state.lock();
        let events =
            state.objects.iter().filter(|((kind, _), _)| *kind == Kind::Event).map(|(_, event)| event);
        let told = events.filter(|event| event["reason"] == reason);
        told.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    /// How many status writes there were.
    pub(crate) fn n_status_writes(&self) -> usize {
        self.0.state.lock().n_status_writes
    }

    /// Waits until a pod is as described, and returns it.
    pub(crate) async fn until(&self, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.wait(name, |pod| pod.filter(|pod| is_so(pod))).await
    }

    /// Waits until a pod has the phase.
    pub(crate) async fn until_phase(&self, name: &str, phase: &str) -> Value {
        self.until(name, |pod| pod["status"]["phase"] == phase).await
    }

    /// Waits until a pod is no more, and returns it as it was last.
    pub(crate) async fn until_gone(&self, name: &str) -> Value {
        self.wait(name, |pod| if pod.is_none() { Some(()) } else { None }).await;
        let state = self.0.state.lock();
        let last = state
            .history
            .iter()
            .rev()
            .map(|(_, event)| serde_json::from_slice::<Value>(&event.object).unwrap());
        last.into_iter().find(|object| object["metadata"]["name"] == name).unwrap()
    }

    async fn wait<T>(&self, name: &str, answer: impl Fn(Option<Value>) -> Option<T>) -> T {
        let waiting = async {
            loop {
                let changed = self.0.changed.notified();
                if let Some(answer) = answer(self.pod(name)) {
                    return answer;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(answer) => answer,
            Err(_) => panic!("pod {name} is still {:#}", self.pod(name).unwrap_or_default()),
        }
    }
}

impl Inner {
    fn create(&self, kind: Kind, mut object: Value) -> Result<Written, ClientError> {
        let key = key_of(&object);
        let mut state = self.state.lock();
        if state.objects.contains_key(&(kind, key.clone())) {
            return Err(ClientError::already_exists(key.to_string()));
        }
        object["metadata"]["uid"] = json!(format!("uid-{}-{}", key.name, state.history.len()));
        Ok(self.store(&mut state, kind, key, object, EventType::Added))
    }

    fn store(
        &self,
        state: &mut State,
        kind: Kind,
        key: Key,
        mut object: Value,
        event_type: EventType,
    ) -> Written {
        let revision = state.history.len() as u64 + 1;
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        let uid = Uid::from(object["metadata"]["uid"].as_str().unwrap());
        let event = Event::new(event_type, revision, Bytes::from(object.to_string()));
        state.history.push((kind, event));
        if event_type == EventType::Deleted {
            state.objects.remove(&(kind, key.clone()));
        } else {
            state.objects.insert((kind, key.clone()), object);
        }
        self.changed.notify_waiters();
        Written { key, uid, revision }
    }

    fn delete(&self, kind: Kind, key: &Key, grace_seconds: Option<i64>) -> Result<Written, ClientError> {
        let mut state = self.state.lock();
        let found = state.objects.get(&(kind, key.clone())).cloned();
        let mut object = found.ok_or_else(|| ClientError::not_found(key.to_string()))?;
        let of_spec = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        let grace = grace_seconds.unwrap_or(of_spec);
        if grace == 0 {
            return Ok(self.store(&mut state, kind, key.clone(), object, EventType::Deleted));
        }
        let at = SystemClock.now().after(Duration::from_secs(grace as u64));
        object["metadata"]["deletionTimestamp"] = json!(Time::to_string(&at));
        object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        Ok(self.store(&mut state, kind, key.clone(), object, EventType::Modified))
    }

    fn write(&self, step: &Step) -> Result<Written, ClientError> {
        match step {
            Step::Create { kind, object } | Step::CreateGenerated { kind, object, .. } => {
                self.create(*kind, object.clone())
            }
            Step::Patch { kind, key, uid, revision, of_status, patch } => {
                let mut state = self.state.lock();
                let mut object = checked(&state, *kind, key, uid, *revision)?;
                let fields = if *of_status { json!({"status": patch["status"]}) } else { patch.clone() };
                merge(&mut object, &fields);
                state.n_status_writes += usize::from(*of_status && *kind == Kind::Pod);
                Ok(self.store(&mut state, *kind, key.clone(), object, EventType::Modified))
            }
            Step::Delete { kind, key, uid, grace_seconds, .. } => {
                checked(&self.state.lock(), *kind, key, uid, None)?;
                self.delete(*kind, key, *grace_seconds)
            }
            Step::Bind { .. } => Err(ClientError::forbidden("no scheduler here")),
        }
    }
}

fn key_of(object: &Value) -> Key {
    let metadata = &object["metadata"];
    Key::new(metadata["namespace"].as_str().unwrap_or_default(), metadata["name"].as_str().unwrap())
}

fn checked(
    state: &State,
    kind: Kind,
    key: &Key,
    uid: &Uid,
    revision: Option<u64>,
) -> Result<Value, ClientError> {
    let object =
        state.objects.get(&(kind, key.clone())).ok_or_else(|| ClientError::not_found(key.to_string()))?;
    let is_same = object["metadata"]["uid"] == *uid.0;
    let stored: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let is_current = revision.is_none_or(|revision| revision == stored);
    if is_same && is_current { Ok(object.clone()) } else { Err(ClientError::conflict(key.to_string())) }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name.as_str()], value);
        }
    }
}

impl Client for Server {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        Box::pin(async move {
            let state = self.0.state.lock();
            let of_kind = state.objects.iter().filter(|((k, _), _)| *k == kind);
            let items = of_kind.map(|(_, object)| Bytes::from(object.to_string())).collect();
            Ok(Listed { revision: state.history.len() as u64, items })
        })
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        let inner = self.0.clone();
        let events = stream::unfold((inner, revision as usize), move |(inner, position)| async move {
            loop {
                let changed = inner.changed.notified();
                let next = {
                    let state = inner.state.lock();
                    let mut rest = state.history.iter().enumerate().skip(position);
                    rest.find(|(_, (k, _))| *k == kind).map(|(index, (_, event))| (index, event.clone()))
                };
                match next {
                    Some((index, event)) => break Some((Ok(event), (inner.clone(), index + 1))),
                    None => changed.await,
                }
            }
        });
        events.boxed()
    }

    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        let found =
            self.0.state.lock().objects.get(&(kind, key.clone())).map(|object| object.to_string().into());
        let answer = found.ok_or_else(|| ClientError::not_found(key.to_string()));
        Box::pin(async move { answer })
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        Box::pin(async move { self.0.write(step) })
    }
}
