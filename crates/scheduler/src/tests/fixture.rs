//! A cluster in a few lines of text, and the scheduler's plan for it in a few more.
//!
//! ```text
//!   node <name> [cpu=4] [memory=8Gi] [pods=10] [<resource>=<n>] [label:<key>=<value>] [taint=<key>] [soft-taint=<key>] [cordoned] [down] [deleting]
//!   queue <name> [weight=1] [parent=root] [priority=0] [fifo] [keeps] [state=Open] [uncounted] [cap:|guarantee:|deserved:|used:<resource>=<n>]
//!         [pending=<n>] [running=<n>]
//!   class <name> value=<n> [for-all]
//!   claim <name>
//!   podgroup <name> [min=1] [phase=Inqueue] [queue=default] [priority=<class>] [task:<name>=<n>] [needs:<resource>=<n>]
//!            [running=<n>] [succeeded=<n>] [failed=<n>] [unschedulable=<message>] [lacks-pods] [scheduled] [was=<condition>]
//!   pod <name> [of=<podgroup>] [queue=<name>] [task=<name>] [cpu=1] [<resource>=<n>] [on=<node>] [phase=Running] [priority=<class>]
//!       [deleting] [protected] [gated] [unschedulable=<message>] [scheduler=<name>] [label:<key>=<value>] [node:<label>=<value>] [tolerates=<key>]
//!       [near=<label>:<value>@<topology>] [away=<label>:<value>@<topology>] [claim=<claim>]
//!       [port=[<address>:]<n>[/<protocol>]] [sidecar-port=<n>]
//!       [spread=<label>:<value>@<topology>] [spread-if-possible=...] [max-skew=1] [min-domains=1] [same=<label>]
//!       [likes=<label>:<value>*<weight>] [affinity-policy=Honor] [taints-policy=Ignore]
//! ```
//!
//! Pods of a PodGroup name the scheduler `volcano`, others `default-scheduler`, unless the text says otherwise.
//! In values, `_` stands for a blank. Objects are as old as their lines are early; `young` ones are ten seconds old, and
//! `new` ones were made this second. The queues `root` and `default` exist
//! unless the text says otherwise. Writes to queues are shown by [`check_queues`] and left out by [`check`].

use std::sync::Arc;

use expect_test::Expect;
use krafla_api::{Key, Kind, Time};
use krafla_cluster::{Step, Write};
use krafla_plan::{Controller, Object, Objects, Plan, Snapshot};
use serde_json::{Map, Value, json};

use crate::Scheduler;

/// The moment of all decisions here.
pub(crate) const NOW: i64 = 1_800_000_000;

/// Compares the plan for a cluster with what is expected.
pub(crate) fn check(cluster: &str, expected: &Expect) {
    check_writes(&plan(&objects(cluster)), |kind| kind != Kind::Queue, expected);
}

/// The same with reclaiming on.
pub(crate) fn check_reclaiming(cluster: &str, expected: &Expect) {
    check_writes(&plan_reclaiming(&objects(cluster)), |kind| kind != Kind::Queue, expected);
}

/// Compares the writes to queues with what is expected.
pub(crate) fn check_queues(cluster: &str, expected: &Expect) {
    check_writes(&plan(&objects(cluster)), |kind| kind == Kind::Queue, expected);
}

/// What stands aside is what is true already, so a reader wants it first.
fn check_writes(plan: &Plan, is_meant: impl Fn(Kind) -> bool, expected: &Expect) {
    let writes = plan.aside.iter().chain(&plan.steps);
    let writes: Vec<&Step> = writes.filter(|step| is_meant(step.kind())).collect();
    expected.assert_eq(&lines(&writes));
}

/// What is said in Events of a cluster, and about which objects.
pub(crate) fn check_told(cluster: &str, expected: &Expect) {
    let plan = plan_of(&Scheduler { tells: true, ..Scheduler::default() }, &objects(cluster));
    let told = plan.notes.iter().map(|note| {
        let Write { kind, key, .. } = note.tells_of.as_ref().filter(|_| note.is_about_written).unwrap();
        format!("{} {}: {} {}\n", kind.info().singular, key.name, note.reason, note.message)
    });
    expected.assert_eq(&told.collect::<String>());
}

/// The scheduler's plan for these objects.
pub(crate) fn plan(objects: &Objects) -> Plan {
    plan_of(&Scheduler::default(), objects)
}

/// The same with reclaiming on.
pub(crate) fn plan_reclaiming(objects: &Objects) -> Plan {
    plan_of(&Scheduler { reclaims: true, ..Scheduler::default() }, objects)
}

/// Compares the plan for a cluster in which priorities count with what is expected.
pub(crate) fn check_preempting(cluster: &str, expected: &Expect) {
    check_writes(&plan_preempting(&objects(cluster)), |kind| kind != Kind::Queue, expected);
}

/// The plan where gangs make room for others with a higher priority.
pub(crate) fn plan_preempting(objects: &Objects) -> Plan {
    plan_of(&Scheduler { preempts: true, ..Scheduler::default() }, objects)
}

fn plan_of(scheduler: &Scheduler, objects: &Objects) -> Plan {
    plan_at(scheduler, objects, Time::from_seconds(NOW))
}

/// The scheduler's plan so many seconds later.
pub(crate) fn plan_later(objects: &Objects, seconds: i64) -> Plan {
    plan_at(&Scheduler::default(), objects, Time::from_seconds(NOW + seconds))
}

fn plan_at(scheduler: &Scheduler, objects: &Objects, now: Time) -> Plan {
    scheduler.plan(&Snapshot::new(Kind::Queue, &Key::new("", "root"), now, objects))
}

/// The objects of a text.
pub(crate) fn objects(cluster: &str) -> Objects {
    let mut objects = Objects::default();
    for manifest in manifests(cluster) {
        objects.insert(Arc::new(decode(&manifest)));
    }
    objects
}

/// The observed object of a manifest.
pub(crate) fn decode(manifest: &Value) -> Object {
    let text = |field: &str| manifest[field].as_str().unwrap_or_default();
    let kind = Kind::of_manifest(text("apiVersion"), text("kind")).unwrap();
    Object::decode(kind, manifest.to_string().as_bytes())
}

/// The manifests of a text.
pub(crate) fn manifests(cluster: &str) -> Vec<Value> {
    let given = cluster.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = ["queue root parent=", "queue default"].into_iter().chain(given);
    lines.enumerate().map(|(n_line, text)| manifest(n_line, text)).collect()
}

/// One line: what it is, its name, and words that are `key=value` or just `key`.
struct Line<'a> {
    words: Vec<(&'a str, String)>,
}

impl Line<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.words.iter().find(|(word, _)| *word == key).map(|(_, value)| value.as_str())
    }

    /// The values of a word that may be repeated.
    fn all(&self, key: &str) -> Vec<&str> {
        self.words.iter().filter(|(word, _)| *word == key).map(|(_, value)| value.as_str()).collect()
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn text(&self, key: &str, default: &str) -> Value {
        self.get(key).unwrap_or(default).into()
    }

    fn number(&self, key: &str, default: i32) -> Value {
        self.get(key).map_or(default, |number| number.parse().unwrap()).into()
    }

    /// The words `<prefix><key>=<value>`.
    fn map(&self, prefix: &str) -> Map<String, Value> {
        let words = self.words.iter().filter_map(|(word, value)| Some((word.strip_prefix(prefix)?, value)));
        words.map(|(key, value)| (key.to_owned(), Value::from(value.as_str()))).collect()
    }

    /// The words that name a resource, with defaults.
    fn resources(&self, defaults: &[(&str, &str)]) -> Map<String, Value> {
        let is_resource = |word: &str| ["cpu", "memory", "pods"].contains(&word) || word.contains('/');
        let given = self.words.iter().filter(|(word, _)| is_resource(word) && !word.contains(':'));
        let given = given.map(|(word, value)| ((*word).to_owned(), Value::from(value.as_str())));
        let defaults = defaults.iter().map(|(name, amount)| ((*name).to_owned(), Value::from(*amount)));
        defaults.chain(given).collect()
    }
}

fn manifest(n_line: usize, text: &str) -> Value {
    let mut words = text.split_whitespace();
    let (kind, name) = (words.next().unwrap(), words.next().unwrap());
    let words = words.map(|word| word.split_once('=').unwrap_or((word, "true")));
    let line = Line { words: words.map(|(key, value)| (key, value.replace('_', " "))).collect() };
    let (kind, mut manifest) = match kind {
        "node" => (Kind::Node, node(&line)),
        "queue" => (Kind::Queue, queue(&line)),
        "class" => (
            Kind::PriorityClass,
            json!({ "metadata": {}, "value": line.number("value", 0), "globalDefault": line.has("for-all") }),
        ),
        "claim" => (Kind::PersistentVolumeClaim, json!({ "metadata": {} })),
        "podgroup" => (Kind::PodGroup, podgroup(&line)),
        "pod" => (Kind::Pod, pod(&line)),
        other => panic!("no such kind: {other}"),
    };
    let created_at = Time::from_seconds(NOW - 3600 + i64::try_from(n_line).unwrap());
    manifest["apiVersion"] = kind.info().api_version().into();
    manifest["kind"] = kind.info().kind.into();
    manifest["metadata"]["name"] = name.into();
    manifest["metadata"]["uid"] = format!("uid-{name}").into();
    manifest["metadata"]["creationTimestamp"] =
        json!(if line.has("young") { Time::from_seconds(NOW - 10) } else { created_at });
    if line.has("new") {
        manifest["metadata"]["creationTimestamp"] = json!(Time::from_seconds(NOW));
    }
    if matches!(kind, Kind::Pod | Kind::PodGroup | Kind::PersistentVolumeClaim) {
        manifest["metadata"]["namespace"] = "default".into();
    }
    manifest
}

fn node(line: &Line<'_>) -> Value {
    let hard = line.get("taint").map(|key| json!({ "key": key, "effect": "NoSchedule" }));
    let soft = line.get("soft-taint").map(|key| json!({ "key": key, "effect": "PreferNoSchedule" }));
    let taints: Vec<Value> = hard.into_iter().chain(soft).collect();
    let mut metadata = json!({ "labels": line.map("label:") });
    if line.has("deleting") {
        metadata["deletionTimestamp"] = json!(Time::from_seconds(NOW + 30));
    }
    json!({
        "metadata": metadata,
        "spec": { "unschedulable": line.has("cordoned"), "taints": taints },
        "status": {
            "allocatable": line.resources(&[("cpu", "4"), ("memory", "8Gi"), ("pods", "10")]),
            "conditions": [{ "type": "Ready", "status": if line.has("down") { "False" } else { "True" } }],
        },
    })
}

fn queue(line: &Line<'_>) -> Value {
    json!({
        "metadata": {},
        "spec": {
            "weight": line.number("weight", 1),
            "priority": line.number("priority", 0),
            "parent": line.text("parent", "root"),
            "capability": line.map("cap:"),
            "deserved": line.map("deserved:"),
            "guarantee": { "resource": line.map("guarantee:") },
            "reclaimable": !line.has("keeps"),
            "dequeueStrategy": if line.has("fifo") { "fifo" } else { "traverse" },
        },
        "status": queue_status(line),
    })
}

fn queue_status(line: &Line<'_>) -> Value {
    let mut status = json!({ "state": line.text("state", "Open"), "allocated": line.map("used:") });
    if !line.has("uncounted") {
        for counter in ["pending", "inqueue", "running", "unknown", "completed"] {
            status[counter] = line.number(counter, 0);
        }
    }
    status
}

fn podgroup(line: &Line<'_>) -> Value {
    let tasks = line.map("task:").into_iter().map(|(task, min)| {
        let min: i32 = min.as_str().unwrap_or_default().parse().unwrap();
        (task, Value::from(min))
    });
    let mut conditions = Vec::new();
    let long_ago = Time::from_seconds(NOW - 600);
    if let Some(message) = line.get("unschedulable") {
        let reason = "NotEnoughResources";
        conditions.push(json!({ "type": "Unschedulable", "status": "True", "reason": reason, "message": message, "lastTransitionTime": long_ago }));
    }
    if line.has("lacks-pods") {
        conditions.push(json!({ "type": "Unschedulable", "status": "True", "reason": "NotEnoughTasks", "lastTransitionTime": long_ago }));
    }
    if let Some(condition) = line.get("was") {
        conditions.push(json!({ "type": condition, "status": "False", "lastTransitionTime": long_ago }));
    }
    if line.has("scheduled") {
        let reason = "tasks in gang are ready to be scheduled";
        conditions.push(json!({ "type": "Scheduled", "status": "True", "reason": reason, "lastTransitionTime": long_ago }));
    }
    json!({
        "metadata": {},
        "spec": {
            "minMember": line.number("min", 1),
            "minTaskMember": tasks.collect::<Map<_, _>>(),
            "minResources": line.map("needs:"),
            "queue": line.text("queue", "default"),
            "priorityClassName": line.text("priority", ""),
        },
        "status": {
            "phase": line.text("phase", ""),
            "conditions": conditions,
            "running": line.number("running", 0),
            "succeeded": line.number("succeeded", 0),
            "failed": line.number("failed", 0),
        },
    })
}

fn pod(line: &Line<'_>) -> Value {
    let mut metadata = json!({ "annotations": {}, "labels": line.map("label:") });
    if let Some(group) = line.get("of") {
        metadata["annotations"]["scheduling.k8s.io/group-name"] = group.into();
    }
    if let Some(queue) = line.get("queue") {
        metadata["annotations"]["scheduling.volcano.sh/queue-name"] = queue.into();
    }
    if let Some(task) = line.get("task") {
        metadata["labels"]["volcano.sh/task-spec"] = task.into();
    }
    if line.has("protected") {
        metadata["annotations"]["volcano.sh/preemptable"] = "false".into();
    }
    if line.has("deleting") {
        metadata["deletionTimestamp"] = json!(Time::from_seconds(NOW + 30));
    }
    let gates: Vec<Value> = line.get("gated").map(|_| json!({ "name": "wait" })).into_iter().collect();
    let tolerations: Vec<Value> =
        line.get("tolerates").map(|key| json!({ "key": key, "operator": "Exists" })).into_iter().collect();
    let claims = line.get("claim").map(|name| json!({ "persistentVolumeClaim": { "claimName": name } }));
    let volumes: Vec<Value> = [json!({ "emptyDir": {} })].into_iter().chain(claims).collect();
    json!({
        "metadata": metadata,
        "spec": {
            "volumes": volumes,
            "schedulerName": line.text("scheduler", if line.has("of") { "volcano" } else { "default-scheduler" }),
            "nodeName": line.text("on", ""),
            "priorityClassName": line.text("priority", ""),
            "nodeSelector": line.map("node:"),
            "schedulingGates": gates,
            "tolerations": tolerations,
            "topologySpreadConstraints": spread_constraints(line),
            "affinity": {
                "nodeAffinity": node_affinity(line),
                "podAffinity": pod_affinity(&line.all("near")),
                "podAntiAffinity": pod_affinity(&line.all("away")),
            },
            "containers": [{
                "name": "main",
                "resources": { "requests": line.resources(&[("cpu", "1")]) },
                "ports": ports(line.get("port")),
            }],
            "initContainers": line.get("sidecar-port").map_or(json!([]), |port| {
                json!([{ "name": "sidecar", "restartPolicy": "Always", "ports": ports(Some(port)) }])
            }),
        },
        "status": { "phase": line.text("phase", "Pending"), "conditions": pod_conditions(line) },
    })
}

/// `[<address>:]<n>[/<protocol>]`, beside a port that is of no concern to the node.
fn ports(port: Option<&str>) -> Value {
    let Some(port) = port else { return Value::Null };
    let (port, protocol) = port.split_once('/').unwrap_or((port, "TCP"));
    let (address, port) = port.split_once(':').unwrap_or(("", port));
    let port: u16 = port.parse().unwrap();
    json!([
        { "containerPort": 8080 },
        { "containerPort": port, "hostPort": port, "hostIP": address, "protocol": protocol },
    ])
}

fn pod_conditions(line: &Line<'_>) -> Vec<Value> {
    let told = line.get("unschedulable").map(|message| {
        json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": Time::from_seconds(NOW - 600),
        })
    });
    told.into_iter().collect()
}

/// `<label>:<value>*<weight>` for each term.
fn node_affinity(line: &Line<'_>) -> Value {
    let term = |likes: &str| {
        let (label, weight) = likes.split_once('*').unwrap();
        let (key, value) = label.split_once(':').unwrap();
        let expression = json!({ "key": key, "operator": "In", "values": [value] });
        let weight: i32 = weight.parse().unwrap();
        json!({ "weight": weight, "preference": { "matchExpressions": [expression] } })
    };
    let terms: Vec<Value> = line.all("likes").into_iter().map(term).collect();
    json!({ "preferredDuringSchedulingIgnoredDuringExecution": terms })
}

/// `<label>:<value>@<topology>`, or `@<topology>` without a selector, for each term.
fn pod_affinity(demands: &[&str]) -> Value {
    let term = |demand: &&str| {
        let (label, topology) = demand.split_once('@').unwrap();
        json!({ "labelSelector": selector(label), "topologyKey": topology })
    };
    let terms: Vec<Value> = demands.iter().map(term).collect();
    json!({ "requiredDuringSchedulingIgnoredDuringExecution": terms })
}

fn spread_constraints(line: &Line<'_>) -> Vec<Value> {
    let constraint = |demand: &str, unsatisfiable: &str| {
        let (label, topology) = demand.split_once('@').unwrap();
        json!({
            "labelSelector": selector(label),
            "topologyKey": topology,
            "maxSkew": line.number("max-skew", 1),
            "minDomains": line.number("min-domains", 1),
            "whenUnsatisfiable": unsatisfiable,
            "matchLabelKeys": line.all("same"),
            "nodeAffinityPolicy": line.text("affinity-policy", ""),
            "nodeTaintsPolicy": line.text("taints-policy", ""),
        })
    };
    let musts = line.all("spread").into_iter().map(|demand| constraint(demand, "DoNotSchedule"));
    let wishes =
        line.all("spread-if-possible").into_iter().map(|demand| constraint(demand, "ScheduleAnyway"));
    musts.chain(wishes).collect()
}

/// `<label>:<value>`; without it, none.
fn selector(label: &str) -> Value {
    let selector = label.split_once(':').map(|(key, value)| {
        let labels = Map::from_iter([(key.to_owned(), Value::from(value))]);
        json!({ "matchLabels": labels })
    });
    json!(selector)
}

/// A plan as tables show it: one line per write.
fn lines(steps: &[&Step]) -> String {
    steps.iter().map(|step| line(step) + "\n").collect()
}

fn line(step: &Step) -> String {
    let Step::Patch { kind: kind @ (Kind::Pod | Kind::PodGroup), key, patch, .. } = step else {
        return step.to_string();
    };
    let Some(status) = patch["status"].as_object() else { return step.to_string() };
    let mut parts: Vec<String> = Vec::new();
    for (field, value) in status {
        match value.as_array() {
            Some(conditions) => parts.extend(conditions.iter().map(condition)),
            None => {
                parts.push(format!("{field}={}", value.as_str().map_or(value.to_string(), str::to_owned)))
            }
        }
    }
    format!("{} {}: {}", kind.info().singular, key.name, parts.join(", "))
}

fn condition(condition: &Value) -> String {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    match (text("status"), text("type")) {
        ("True", "Scheduled") => "Scheduled".to_owned(),
        ("True", other) => format!("{other}({}: {})", text("reason"), text("message")),
        ("False", "PodScheduled") => format!("not PodScheduled({}: {})", text("reason"), text("message")),
        (_, other) => format!("not {other}"),
    }
}
