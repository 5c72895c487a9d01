//! A cluster in a few lines of text, and the plan that the scheduler makes for it.
//!
//! ```text
//!   node <name> [cpu=4] [memory=8Gi] [pods=10] [<resource>=<amount>] [label:<key>=<value>] [taint=<key>] [cordoned]
//!   podgroup <name> min=<n> [phase=Inqueue] [task:<name>=<n>] [needs:<resource>=<amount>] [priority=<class>]
//!   pod <name> [of=<podgroup>] [task=<name>] [cpu=1] [on=<node>] [phase=Running] [priority=<class>] [deleting] [gated]
//!   class <name> value=<n>
//! ```
//!
//! Objects are as old as their lines are early.

use std::sync::Arc;

use expect_test::Expect;
use krafla_api::{Key, Kind, Time};
use krafla_plan::{Controller, Object, Objects, Plan, Snapshot};
use serde_json::{Value, json};

use crate::Scheduler;

/// The moment of all decisions here, unless a test says otherwise.
pub(crate) const NOW: i64 = 1_800_000_000;

/// Compares the plan for a cluster with what is expected.
pub(crate) fn check(cluster: &str, expected: &Expect) {
    expected.assert_eq(&plan(&objects(cluster)).to_string());
}

/// The scheduler's plan for these objects.
pub(crate) fn plan(objects: &Objects) -> Plan {
    let now = Time::from_seconds(NOW);
    Scheduler::default().plan(&Snapshot { key: &Key::new("", "root"), kind: Kind::Queue, now, objects })
}

/// The objects of a text.
pub(crate) fn objects(cluster: &str) -> Objects {
    let mut objects = Objects::default();
    for (line, text) in cluster.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let (kind, manifest) = object(line, text);
        objects.insert(Arc::new(Object::decode(kind, manifest.to_string().as_bytes())));
    }
    objects
}

/// One line: what it is, its name, and words that are `key=value` or just `key`.
struct Line<'a> {
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find(|(word, _)| *word == key).map(|(_, value)| *value)
    }

    /// The words `<prefix><key>=<value>`, as an object.
    fn map(&self, prefix: &str) -> Value {
        let words = self.words.iter().filter_map(|(word, value)| Some((word.strip_prefix(prefix)?, *value)));
        words
            .map(|(key, value)| (key.to_owned(), Value::from(value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// The words that name a resource, with defaults.
    fn resources(&self, defaults: &[(&str, &str)]) -> Value {
        let mut amounts = serde_json::Map::new();
        for (name, amount) in defaults {
            amounts.insert((*name).to_owned(), Value::from(*amount));
        }
        let is_resource = |word: &str| ["cpu", "memory", "pods"].contains(&word) || word.contains('/');
        for (word, value) in self.words.iter().filter(|(word, _)| is_resource(word) && !word.contains(':')) {
            amounts.insert((*word).to_owned(), Value::from(*value));
        }
        amounts.into()
    }
}

fn object(n_line: usize, text: &str) -> (Kind, Value) {
    let mut words = text.split_whitespace();
    let (kind, name) = (words.next().unwrap(), words.next().unwrap());
    let line = Line { words: words.map(|word| word.split_once('=').unwrap_or((word, "true"))).collect() };
    let created = Time::from_seconds(NOW - 3600 + i64::try_from(n_line).unwrap());
    let mut manifest = match kind {
        "node" => node(&line),
        "podgroup" => podgroup(&line),
        "pod" => pod(&line),
        "class" => json!({ "value": line.get("value").unwrap().parse::<i32>().unwrap() }),
        other => panic!("no such kind: {other}"),
    };
    let metadata = &mut manifest["metadata"];
    metadata["name"] = name.into();
    metadata["uid"] = format!("uid-{name}").into();
    metadata["resourceVersion"] = "1".into();
    metadata["creationTimestamp"] =
        json!(line.get("created").map_or(created, |at| at.parse().map(Time).unwrap()));
    let kind = match kind {
        "node" => Kind::Node,
        "podgroup" => Kind::PodGroup,
        "pod" => Kind::Pod,
        _ => Kind::PriorityClass,
    };
    if matches!(kind, Kind::Pod | Kind::PodGroup) {
        metadata["namespace"] = line.get("namespace").unwrap_or("default").into();
    }
    (kind, manifest)
}

fn node(line: &Line<'_>) -> Value {
    let taints = line.get("taint").map(|key| json!([{ "key": key, "effect": "NoSchedule" }]));
    let ready = if line.get("down").is_some() { "False" } else { "True" };
    json!({
        "metadata": { "labels": line.map("label:") },
        "spec": { "unschedulable": line.get("cordoned").is_some(), "taints": taints.unwrap_or(json!([])) },
        "status": {
            "allocatable": line.resources(&[("cpu", "4"), ("memory", "8Gi"), ("pods", "10")]),
            "conditions": [{ "type": "Ready", "status": ready }],
        },
    })
}

fn podgroup(line: &Line<'_>) -> Value {
    let tasks = line.words.iter().filter_map(|(word, value)| Some((word.strip_prefix("task:")?, value)));
    let tasks: serde_json::Map<String, Value> =
        tasks.map(|(task, min)| (task.to_owned(), min.parse::<i32>().unwrap().into())).collect();
    let mut status = json!({});
    if let Some(phase) = line.get("phase") {
        status["phase"] = phase.into();
    }
    for counter in ["running", "succeeded", "failed"] {
        if let Some(count) = line.get(counter) {
            status[counter] = count.parse::<i32>().unwrap().into();
        }
    }
    json!({
        "metadata": {},
        "spec": {
            "minMember": line.get("min").unwrap_or("1").parse::<i32>().unwrap(),
            "minTaskMember": tasks,
            "minResources": line.map("needs:"),
            "queue": line.get("queue").unwrap_or("default"),
            "priorityClassName": line.get("priority").unwrap_or(""),
        },
        "status": status,
    })
}

fn pod(line: &Line<'_>) -> Value {
    let mut metadata = json!({ "annotations": {}, "labels": line.map("label:") });
    if let Some(group) = line.get("of") {
        metadata["annotations"]["scheduling.k8s.io/group-name"] = group.into();
    }
    if let Some(task) = line.get("task") {
        metadata["labels"]["volcano.sh/task-spec"] = task.into();
    }
    if line.get("deleting").is_some() {
        metadata["deletionTimestamp"] = json!(Time::from_seconds(NOW + 30));
    }
    let gates = line.get("gated").map(|_| json!([{ "name": "wait" }]));
    let tolerations = line.get("tolerates").map(|key| json!([{ "key": key, "operator": "Exists" }]));
    json!({
        "metadata": metadata,
        "spec": {
            "schedulerName": line.get("scheduler").unwrap_or("volcano"),
            "nodeName": line.get("on").unwrap_or(""),
            "priorityClassName": line.get("priority").unwrap_or(""),
            "nodeSelector": line.map("node:"),
            "schedulingGates": gates.unwrap_or(json!([])),
            "tolerations": tolerations.unwrap_or(json!([])),
            "containers": [{ "name": "main", "resources": { "requests": line.resources(&[("cpu", "1")]) } }],
        },
        "status": { "phase": line.get("phase").unwrap_or("Pending") },
    })
}
