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
    build: fn(&mut Objects),
}

const CASES: [Case; 6] = [
    Case { name: "gangs of ten, all fit", build: |objects| pods(objects, |_| json!({})) },
    Case {
        name: "gangs of ten, all nodes full",
        build: |objects| {
            fill(objects);
            pods(objects, |_| json!({}));
        },
    },
    Case {
        name: "every pod asks for something else",
        build: |objects| pods(objects, |index| containers(&format!("{}m", 100 + index))),
    },
    Case {
        name: "every gang wants other nodes",
        build: |objects| {
            pods(objects, |index| json!({ "nodeSelector": { "zone": format!("z{}", index / 10 % 100) } }));
        },
    },
    Case {
        name: "pods of a gang avoid each other",
        build: |objects| {
            pods(objects, |index| {
                let labels = json!({ "gang": format!("g{}", index / N_PODS_PER_GANG) });
                let term = json!({ "labelSelector": { "matchLabels": labels }, "topologyKey": "host" });
                let terms = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] });
                json!({ "affinity": { "podAntiAffinity": terms } })
            });
        },
    },
    Case { name: "nothing to do: all pods run", build: fill },
];

fn main() {
    println!("{N_PODS} pending pods on {N_NODES} nodes; the best of {N_RUNS} decisions");
    for Case { name, build } in CASES {
        let mut objects = Objects::default();
        nodes(&mut objects);
        build(&mut objects);
        let (best, n_steps) = decide(&objects);
        println!("{:>8.1} ms  {n_steps:>6} writes  {name}", best.as_secs_f64() * 1e3);
    }
}

fn decide(objects: &Objects) -> (Duration, usize) {
    let key = Key::new("", "root");
    let snapshot = Snapshot::new(Kind::Queue, &key, Time::from_seconds(1_800_000_000), objects);
    let mut best = Duration::MAX;
    let mut n_steps = 0;
    for _ in 0..N_RUNS {
        let started = Instant::now();
        let plan = black_box(Scheduler::default().plan(black_box(&snapshot)));
        best = best.min(started.elapsed());
        n_steps = plan.writes().count();
    }
    (best, n_steps)
}

fn nodes(objects: &mut Objects) {
    for index in 0..N_NODES {
        let name = format!("node-{index}");
        let labels = json!({ "zone": format!("z{}", index % 100), "host": name });
        let allocatable = json!({ "cpu": "64", "memory": "256Gi", "pods": "110" });
        let manifest = json!({ "metadata": { "name": name, "labels": labels }, "status": { "allocatable": allocatable } });
        insert(objects, Kind::Node, &manifest);
    }
}

/// Gangs of pods that wait; `spec` adds to a pod's spec.
fn pods(objects: &mut Objects, spec: fn(usize) -> Value) {
    for index in 0..N_PODS {
        let gang = format!("g{}", index / N_PODS_PER_GANG);
        if index % N_PODS_PER_GANG == 0 {
            let metadata = json!({ "namespace": "default", "name": gang, "uid": gang });
            let spec = json!({ "minMember": N_PODS_PER_GANG, "queue": "default" });
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

/// Ten running pods on every node, which leave no room.
fn fill(objects: &mut Objects) {
    for index in 0..N_NODES * 10 {
        let name = format!("running-{index}");
        let pod = json!({
            "metadata": { "namespace": "default", "name": name, "uid": name },
            "spec": {
                "schedulerName": "volcano",
                "nodeName": format!("node-{}", index / 10),
                "containers": [{ "resources": { "requests": { "cpu": "6300m", "memory": "4Gi" } } }],
            },
            "status": { "phase": "Running" },
        });
        insert(objects, Kind::Pod, &pod);
    }
}

fn insert(objects: &mut Objects, kind: Kind, manifest: &Value) {
    objects.insert(Arc::new(Object::decode(kind, manifest.to_string().as_bytes())));
}
