//! Queues: open and closed, one below another, with gangs in them.

use krafla_sim::Rng;
use serde_json::{Value, json};

use super::choice::{Choices, objects as objects_in};

pub(super) fn queue(name: &str, parent: Option<&str>) -> Value {
    let mut spec = json!({ "weight": 1, "reclaimable": true });
    if let Some(parent) = parent {
        spec["parent"] = parent.into();
    }
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": { "name": name }, "spec": spec,
    })
}

fn group(name: &str, queue: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": { "name": name },
        "spec": { "minMember": 1, "queue": queue }, "status": { "phase": phase },
    })
}

const PHASES: [&str; 5] = ["Pending", "Inqueue", "Running", "Unknown", "Completed"];

pub(super) fn objects(rng: &mut Rng) -> Vec<Value> {
    let mut objects = vec![queue("{ns}-one", None)];
    if rng.percent(40) {
        objects.push(queue("{ns}-two", Some("{ns}-one")));
    } else if rng.percent(40) {
        objects.push(queue("{ns}-two", None));
    }
    objects
}

pub(super) fn steps(choices: &mut Choices<'_>, state: &Value) {
    let queues: Vec<&str> = objects_in(state, "queues").map(|(name, _)| name).collect();
    if let Some(one) = choices.rng.pick(&queues).copied() {
        for (weight, action) in [(8, "CloseQueue"), (8, "OpenQueue"), (1, "SyncQueue"), (1, "AbortJob")] {
            choices.add(weight, json!({ "op": "command", "action": action, "kind": "Queue", "target": one }));
        }
        let weight = 1 + choices.rng.below(4);
        let patch = json!({ "spec": { "weight": weight } });
        choices.add(1, json!({ "op": "patch", "kind": "Queue", "name": one, "patch": patch }));
        choices.add(1, json!({ "op": "delete", "kind": "Queue", "name": one }));
        let number = choices.rng.below(1000);
        let phase = choices.rng.pick(&PHASES).copied().unwrap_or_default();
        choices.add(4, json!({ "op": "create", "object": group(&format!("g-{number}"), one, phase) }));
    }
    let groups: Vec<&str> = objects_in(state, "podgroups").map(|(name, _)| name).collect();
    if let Some(one) = choices.rng.pick(&groups).copied() {
        let phase = choices.rng.pick(&PHASES).copied();
        choices.add(8, json!({ "op": "podgroup", "name": one, "phase": phase }));
        choices.add(4, json!({ "op": "delete", "kind": "PodGroup", "name": one }));
    }
}
