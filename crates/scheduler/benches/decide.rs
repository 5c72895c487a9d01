//! How long one decision takes on clusters of different kinds: `cargo bench -p krafla-scheduler`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafla_api::{Key, Kind, Time};
use krafla_plan::{Controller, Object, Objects, Snapshot};
use krafla_scheduler::Scheduler;
use serde_json::{Value, json};

const N_NODES: usize = 1_000;
const N_PODS: usize = 10_000;
const N_PODS_PER_GANG: usize = 10;
const N_RUNS: usize = 5;

/// A cluster of one kind.
struct Case {
    name: &'static str,
    reclaims: bool,
    build: fn(&mut Objects),
}

/// A cluster that takes nothing back.
const PLAIN: Case = Case { name: "", reclaims: false, build: |_| () };

const CASES: [Case; 14] = [
    Case { name: "gangs of ten, all fit", build: |objects| pods(objects, |_| json!({})), ..PLAIN },
    Case {
        name: "gangs of ten, all nodes full",
        build: |objects| {
            fill(objects, "default", "6300m");
            pods(objects, |_| json!({}));
        },
        ..PLAIN
    },
    Case {
        name: "every pod asks for something else",
        build: |objects| pods(objects, |index| containers(&format!("{}m", 100 + index))),
        ..PLAIN
    },
    Case {
        name: "every gang wants other nodes",
        build: |objects| {
            pods(objects, |index| json!({ "nodeSelector": { "zone": format!("z{}", index / 10 % 100) } }));
        },
        ..PLAIN
    },
    Case {
        name: "one node advises against pods",
        build: |objects| {
            let taint = json!({ "key": "old", "effect": "PreferNoSchedule" });
            node(objects, 0, &json!({ "taints": [taint] }));
            pods(objects, |_| json!({}));
        },
        ..PLAIN
    },
    Case {
        name: "pods of a gang avoid each other",
        build: |objects| {
            pods(objects, |index| json!({ "affinity": { "podAntiAffinity": own_gang(index) } }));
        },
        ..PLAIN
    },
    Case {
        name: "pods of a gang must be on one node, where they do not fit",
        build: |objects| {
            pods(objects, |index| {
                with(containers("10"), "affinity", json!({ "podAffinity": own_gang(index) }))
            });
        },
        ..PLAIN
    },
    Case {
        name: "every gang is spread over the zones",
        build: |objects| {
            pods(objects, |index| {
                let constraint = json!({
                    "labelSelector": { "matchLabels": gang_label(index) }, "topologyKey": "zone",
                    "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
                });
                json!({ "topologySpreadConstraints": [constraint] })
            });
        },
        ..PLAIN
    },
    Case {
        name: "a hundred queues share",
        build: |objects| {
            let queues: Vec<String> = (0..100).map(|index| format!("q{index}")).collect();
            queues.iter().for_each(|name| queue(objects, name));
            gangs(
                objects,
                |index| queues.get(index / N_PODS_PER_GANG % 100).map_or("", String::as_str),
                |_| containers("20"),
            );
        },
        ..PLAIN
    },
    Case {
        name: "a queue with its share gets what another cannot use",
        build: |objects| {
            ["left", "right"].iter().for_each(|name| queue(objects, name));
            fill(objects, "left", "5");
            let of_right = |index: usize| index / N_PODS_PER_GANG % 2 == 1;
            gangs(
                objects,
                |index| if of_right(index) { "right" } else { "left" },
                |index| {
                    let zone = json!({ "zone": format!("z{}", index / N_PODS_PER_GANG % 50) });
                    let large = || with(containers("16"), "nodeSelector", zone);
                    if of_right(index) { large() } else { containers("2") }
                },
            );
        },
        ..PLAIN
    },
    Case {
        name: "a queue takes back its share",
        reclaims: true,
        build: |objects| {
            ["left", "right"].iter().for_each(|name| queue(objects, name));
            fill(objects, "left", "6300m");
            gangs(objects, |_| "right", |_| json!({}));
        },
    },
    Case {
        name: "a queue takes back its share from its sibling, of a few nodes that all its gangs want",
        reclaims: true,
        build: |objects| {
            queue(objects, "family");
            ["left", "right"].iter().for_each(|name| child_queue(objects, name, "family"));
            fill(objects, "left", "6300m");
            gangs(
                objects,
                |_| "right",
                |index| {
                    let spec = containers(&format!("{}m", 2_000 + index / N_PODS_PER_GANG));
                    with(spec, "nodeSelector", json!({ "zone": "z0" }))
                },
            );
        },
    },
    Case { name: "10,000 PodGroups that are not let in", build: waiting_podgroups, ..PLAIN },
    Case { name: "nothing to do: all pods run", build: |objects| fill(objects, "default", "6300m"), ..PLAIN },
];

fn gang_label(index: usize) -> Value {
    json!({ "gang": format!("g{}", index / N_PODS_PER_GANG) })
}

/// The term that picks the pods of a pod's own gang on its node.
fn own_gang(index: usize) -> Value {
    let term = json!({ "labelSelector": { "matchLabels": gang_label(index) }, "topologyKey": "host" });
    json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] })
}

fn main() {
    println!("{N_PODS} pending pods on {N_NODES} nodes; the best of {N_RUNS} decisions");
    for Case { name, reclaims, build } in CASES {
        let mut objects = Objects::default();
        nodes(&mut objects);
        build(&mut objects);
        let (best, n_steps) = decide(&Scheduler { reclaims, ..Scheduler::default() }, &objects);
        println!("{:>8.1} ms  {n_steps:>6} writes  {name}", best.as_secs_f64() * 1e3);
    }
}

fn decide(scheduler: &Scheduler, objects: &Objects) -> (Duration, usize) {
    let key = Key::new("", "root");
    let snapshot = Snapshot::new(Kind::Queue, &key, Time::from_seconds(1_800_000_000), objects);
    let mut best = Duration::MAX;
    let mut n_steps = 0;
    for _ in 0..N_RUNS {
        let started = Instant::now();
        let plan = black_box(scheduler.plan(black_box(&snapshot)));
        best = best.min(started.elapsed());
        n_steps = plan.writes().count();
    }
    (best, n_steps)
}

fn nodes(objects: &mut Objects) {
    (0..N_NODES).for_each(|index| node(objects, index, &json!({})));
}

fn node(objects: &mut Objects, index: usize, spec: &Value) {
    let name = format!("node-{index}");
    let metadata = json!({ "name": name, "labels": { "zone": format!("z{}", index % 100), "host": name } });
    let status = json!({ "allocatable": { "cpu": "64", "memory": "256Gi", "pods": "110" } });
    insert(objects, Kind::Node, &json!({ "metadata": metadata, "spec": spec, "status": status }));
}

/// Gangs of pods that wait in the default queue; `spec` adds to a pod's spec.
fn pods(objects: &mut Objects, spec: fn(usize) -> Value) {
    gangs(objects, |_| "default", spec);
}

fn queue(objects: &mut Objects, name: &str) {
    child_queue(objects, name, "root");
}

fn child_queue(objects: &mut Objects, name: &str, parent: &str) {
    let metadata = json!({ "name": name, "uid": name });
    let spec = json!({ "weight": 1, "reclaimable": true, "parent": parent });
    let status = json!({ "state": "Open" });
    insert(objects, Kind::Queue, &json!({ "metadata": metadata, "spec": spec, "status": status }));
}

/// As many PodGroups as there are pods elsewhere, for which there is no room.
fn waiting_podgroups(objects: &mut Objects) {
    fill(objects, "default", "6300m");
    for index in 0..N_PODS {
        let name = format!("g{index}");
        let metadata = json!({ "namespace": "default", "name": name, "uid": name });
        let spec =
            json!({ "minMember": 10, "queue": "default", "minResources": { "cpu": "20000", "pods": "10" } });
        insert(
            objects,
            Kind::PodGroup,
            &json!({ "metadata": metadata, "spec": spec, "status": { "phase": "Pending" } }),
        );
    }
}

/// Gangs of pods that wait, each in its queue.
fn gangs<'q>(objects: &mut Objects, queue: impl Fn(usize) -> &'q str, spec: impl Fn(usize) -> Value) {
    for index in 0..N_PODS {
        let gang = format!("g{}", index / N_PODS_PER_GANG);
        if index % N_PODS_PER_GANG == 0 {
            let metadata = json!({ "namespace": "default", "name": gang, "uid": gang });
            let spec = json!({ "minMember": N_PODS_PER_GANG, "queue": queue(index) });
            insert(
                objects,
                Kind::PodGroup,
                &json!({ "metadata": metadata, "spec": spec, "status": { "phase": "Inqueue" } }),
            );
        }
        let name = format!("{gang}-{index}");
        let annotations = json!({ "scheduling.k8s.io/group-name": gang });
        let metadata = json!({ "namespace": "default", "name": name, "uid": name, "annotations": annotations, "labels": { "gang": gang } });
        let mut pod_spec = containers("2");
        if let (Some(fields), Value::Object(more)) = (pod_spec.as_object_mut(), spec(index)) {
            fields.insert("schedulerName".to_owned(), "volcano".into());
            fields.extend(more);
        }
        insert(objects, Kind::Pod, &json!({ "metadata": metadata, "spec": pod_spec }));
    }
}

fn containers(cpu: &str) -> Value {
    json!({ "containers": [{ "resources": { "requests": { "cpu": cpu, "memory": "4Gi" } } }] })
}

/// A pod's spec with one field more.
fn with(mut spec: Value, field: &str, value: Value) -> Value {
    if let Some(fields) = spec.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
    spec
}

/// Ten running pods of a queue on every node.
fn fill(objects: &mut Objects, queue: &str, cpu: &str) {
    for index in 0..N_NODES * 10 {
        let name = format!("running-{index}");
        let pod = json!({
            "metadata": {
                "namespace": "default", "name": name, "uid": name,
                "annotations": { "scheduling.volcano.sh/queue-name": queue },
            },
            "spec": {
                "schedulerName": "volcano",
                "nodeName": format!("node-{}", index / 10),
                "containers": [{ "resources": { "requests": { "cpu": cpu, "memory": "4Gi" } } }],
            },
            "status": { "phase": "Running" },
        });
        insert(objects, Kind::Pod, &pod);
    }
}

fn insert(objects: &mut Objects, kind: Kind, manifest: &Value) {
    objects.insert(Arc::new(Object::decode(kind, manifest.to_string().as_bytes())));
}
