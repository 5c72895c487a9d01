//! A cluster with exactly the objects of a record: the embedded API server, with identities and times written straight into
//! its store, and nothing that acts on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use krafla_api::{Key, Kind};
use krafla_apiserver::admit::{Admission, Volcano};
use krafla_apiserver::ops::WriteOptions;
use krafla_apiserver::store::{Change, Draft, EntryMeta, Expect, ResourceId, Store, Write};
use krafla_apiserver::{
    Api, Collector, LocalClient, RunningServer, ServerConfig, SystemEnv, Tokens, User, serve,
};
use krafla_runtime::{Engine, SystemClock};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The kinds that records are about.
const KINDS: [Kind; 7] =
    [Kind::VcJob, Kind::Queue, Kind::PodGroup, Kind::JobFlow, Kind::JobTemplate, Kind::Command, Kind::Pod];

const LIMITED_TOKEN: &str = "limited";

pub(crate) struct Cluster {
    pub(crate) api: Api,
    store: Store,
    server: RunningServer,
    is_limited: bool,
    made_at: Timestamp,
    /// What acts on the objects, if anything does.
    tasks: JoinSet<()>,
}

/// Objects by kind, namespace and name.
type Objects = BTreeMap<(String, String, String), Value>;

impl Cluster {
    /// A cluster with these namespaces and objects, whose user may not list what is `denied`.
    pub(crate) async fn start(namespaces: &[String], objects: &[Value], denied: &[String]) -> Cluster {
        let env = Arc::new(SystemEnv);
        let api = Api::new(Store::in_memory(), env.clone(), Admission::default());
        api.bootstrap().await.unwrap();
        let store = api.store().clone();
        for queue in store.snapshot(&resource(Kind::Queue)).entries.values() {
            let object: Value = serde_json::from_slice(&queue.bytes).unwrap();
            let write = Write {
                resource: resource(Kind::Queue),
                key: key(&object),
                expect: Expect::Revision(queue.revision),
                change: Change::Delete(Draft::new(object, queue.meta.clone())),
            };
            store.commit(write).await.unwrap();
        }
        for name in namespaces.iter().filter(|name| *name != "default") {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": name, "uid": format!("namespace-{name}") },
                "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" },
            });
            put(&store, "namespaces", namespace).await;
        }
        for role in grants(denied) {
            let plural = role["kind"].as_str().unwrap().to_lowercase();
            put(&store, &format!("{plural}s.rbac.authorization.k8s.io"), role).await;
        }
        let made_at = Timestamp::now();
        for object in objects {
            make(&api, at_times(object, made_at)).await;
        }
        let user = User { name: "limited".to_owned(), ..User::default() };
        let config = ServerConfig {
            users: vec![(LIMITED_TOKEN.to_owned(), Arc::new(user))],
            ..ServerConfig::new(([127, 0, 0, 1], 0).into(), Arc::new(Tokens::for_now()))
        };
        let server = serve(api.clone(), env, config).await.unwrap();
        Cluster { api, store, server, is_limited: !denied.is_empty(), made_at, tasks: JoinSet::new() }
    }

    /// A new cluster with admission, garbage collection and the controllers, and without scheduler and nodes.
    pub(crate) async fn live() -> Cluster {
        let env = Arc::new(SystemEnv);
        let admission = Admission::default().with(Volcano::default());
        let api = Api::new(Store::in_memory(), env.clone(), admission);
        api.bootstrap().await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(api.clone().run_namespaces());
        tasks.spawn(Collector::new(api.clone()).run());
        let client = Arc::new(LocalClient::new(api.clone()));
        let engine = Engine::new(krafla_plan::controllers());
        tasks.spawn(krafla_runtime::run(engine, client, Arc::new(SystemClock), 4));
        let config = ServerConfig::new(([127, 0, 0, 1], 0).into(), Arc::new(Tokens::for_now()));
        let server = serve(api.clone(), env, config).await.unwrap();
        let (store, made_at) = (api.store().clone(), Timestamp::now());
        Cluster { api, store, server, is_limited: false, made_at, tasks }
    }

    pub(crate) fn kubeconfig(&self) -> String {
        let kubeconfig = self.server.kubeconfig();
        if self.is_limited { self.with("token", LIMITED_TOKEN, &kubeconfig) } else { kubeconfig }
    }

    /// The text of a file, which may be a kubeconfig with a change.
    pub(crate) fn file(&self, text: &str) -> String {
        let change = text.strip_prefix("{kubeconfig-content ").and_then(|text| text.strip_suffix('}'));
        match change.and_then(|change| change.split_once('=')) {
            Some((field, value)) => self.with(field, value, &self.kubeconfig()),
            None => text.to_owned(),
        }
    }

    fn with(&self, field: &str, value: &str, kubeconfig: &str) -> String {
        let head = match field {
            "context" => "current-context:",
            "token" => "token:",
            _ => "namespace:",
        };
        let line = |line: &str| match line.trim_start().starts_with(head) {
            true => format!("{}{head} {value}\n", " ".repeat(line.len() - line.trim_start().len())),
            false => format!("{line}\n"),
        };
        kubeconfig.lines().map(line).collect()
    }

    /// Whether the second in which the objects were made is over.
    pub(crate) fn is_late(&self) -> bool {
        Timestamp::now().as_second() != self.made_at.as_second()
    }

    /// Everything that there is of the kinds of records.
    pub(crate) fn objects(&self) -> Objects {
        let mut objects = Objects::new();
        for kind in KINDS {
            for (key, entry) in &self.store.snapshot(&resource(kind)).entries {
                let name = (kind.info().kind.to_owned(), key.namespace.to_string(), key.name.to_string());
                objects.insert(name, serde_json::from_slice(&entry.bytes).unwrap());
            }
        }
        objects
    }

    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
        self.server.shutdown().await;
    }
}

fn resource(kind: Kind) -> ResourceId {
    kind.info().qualified_plural().as_str().into()
}

fn key(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Key::new(text("namespace"), text("name"))
}

/// Creates an object, so that it has its defaults, and gives it the identity, the times and the status of the record.
async fn make(api: &Api, object: Value) {
    let text = |field: &str| object[field].as_str().unwrap();
    let served = api.registry().table().of_manifest(text("apiVersion"), text("kind")).unwrap().clone();
    let mut fresh = object.clone();
    for of_server in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers"]
    {
        fresh["metadata"].as_object_mut().unwrap().remove(of_server);
    }
    let options = WriteOptions::default();
    let created = api.create(&served, &key(&object).namespace, fresh, &options).await;
    created.unwrap_or_else(|refused| panic!("{object}: {refused:?}"));
    let entry = api.store().get(&served.storage, &key(&object)).unwrap();
    let mut stored: Value = serde_json::from_slice(&entry.bytes).unwrap();
    for (name, value) in object["metadata"].as_object().unwrap() {
        stored["metadata"][name] = value.clone();
    }
    for (name, value) in object["status"].as_object().into_iter().flatten() {
        stored["status"][name] = value.clone();
    }
    let write = Write {
        resource: served.storage.clone(),
        key: key(&object),
        expect: Expect::Revision(entry.revision),
        change: Change::Put(Draft::new(stored, entry.meta.clone())),
    };
    api.store().commit(write).await.unwrap();
}

async fn put(store: &Store, resource: &str, object: Value) {
    let write = Write {
        resource: resource.into(),
        key: key(&object),
        expect: Expect::Absent,
        change: Change::Put(Draft::new(object, EntryMeta::default())),
    };
    store.commit(write).await.unwrap();
}

/// A role for everything but what is denied.
fn grants(denied: &[String]) -> Vec<Value> {
    let all = ["jobs", "queues", "podgroups", "jobflows", "jobtemplates", "commands", "pods", "events"];
    let allowed: Vec<&str> = all.into_iter().filter(|it| !denied.iter().any(|other| other == it)).collect();
    let metadata = |uid: &str| json!({ "name": "limited", "uid": uid });
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata("role"),
            "rules": [{ "apiGroups": ["*"], "resources": allowed, "verbs": ["*"] }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata("binding"),
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "limited" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited" }],
        }),
    ]
}

/// An object with its times, which are relative in records.
fn at_times(value: &Value, now: Timestamp) -> Value {
    match value {
        Value::String(text) if text.starts_with("@now") => {
            moment(text.trim_start_matches("@now"), now).into()
        }
        Value::Array(items) => items.iter().map(|item| at_times(item, now)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), at_times(value, now))).collect()
        }
        other => other.clone(),
    }
}

/// A moment such as `-3d4h30m`.
fn moment(text: &str, now: Timestamp) -> String {
    let (mut seconds, mut digits) = (0i64, String::new());
    for letter in text.trim_start_matches(['-', '+']).chars() {
        let unit = match letter {
            'y' => 365 * 86_400,
            'd' => 86_400,
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            digit => {
                digits.push(digit);
                continue;
            }
        };
        seconds += unit * std::mem::take(&mut digits).parse::<i64>().unwrap();
    }
    let offset = SignedDuration::from_secs(if text.starts_with('-') { -seconds } else { seconds });
    let second = Timestamp::from_second(now.as_second()).unwrap();
    second.checked_add(offset).unwrap().to_string()
}

/// What changed, in the form of records.
pub(crate) fn effects(before: &Objects, after: &Objects) -> Value {
    let created: Vec<Value> =
        after.iter().filter(|(key, _)| !before.contains_key(key)).map(|(_, object)| object.clone()).collect();
    let changed = after.iter().filter(|(key, object)| before.get(key).is_some_and(|old| old != *object));
    let changed: Vec<Value> = changed.map(|(_, object)| object.clone()).collect();
    let deleted = before.keys().filter(|key| !after.contains_key(key)).map(|(kind, namespace, name)| {
        let namespace = if namespace.is_empty() { Value::Null } else { namespace.clone().into() };
        json!({ "kind": kind, "namespace": namespace, "name": name })
    });
    let deleted: Vec<Value> = deleted.collect();
    normal(&json!({ "created": created, "changed": changed, "deleted": deleted }))
}

/// A value without what is empty and without what the server fills in anew each time.
pub(crate) fn normal(value: &Value) -> Value {
    const OF_SERVER: [&str; 5] =
        ["managedFields", "resourceVersion", "creationTimestamp", "generation", "selfLink"];
    match value {
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(fields) => {
            let mut fields: serde_json::Map<String, Value> = fields
                .iter()
                .filter(|(name, _)| !OF_SERVER.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), normal(value)))
                .filter(|(_, value)| !is_empty(value))
                .collect();
            if fields.contains_key("generateName")
                && let Some(Value::String(name)) = fields.get("name").cloned()
            {
                let stem = name.strip_suffix("<random>").map(str::to_owned);
                let stem = stem.unwrap_or_else(|| name[..name.len().saturating_sub(5)].to_owned());
                fields.insert("name".to_owned(), format!("{stem}<random>").into());
            }
            // The identity of a new object is the server's.
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                metadata.remove("uid");
            }
            Value::Object(fields)
        }
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
