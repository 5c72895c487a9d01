//! Pods of other owners that name Volcano's scheduler: they get PodGroups.

use krafla_sim::Rng;
use serde_json::{Value, json};

use super::choice::{Choices, objects as objects_in};

fn pod(rng: &mut Rng, name: &str, is_owned: bool) -> Value {
    let mut annotations = json!({});
    if rng.percent(15) {
        annotations["scheduling.volcano.sh/queue-name"] = "default".into();
    }
    if rng.percent(15) {
        annotations["scheduling.volcano.sh/group-min-member"] = "2".into();
    }
    if rng.percent(10) {
        annotations["example.com/note"] = "kept".into();
    }
    let mut container = json!({ "name": "main", "image": "img:1" });
    if rng.percent(50) {
        container["resources"] = json!({ "requests": { "cpu": "1" } });
    }
    let scheduler = if rng.percent(85) { "volcano" } else { "default-scheduler" };
    let mut metadata = json!({ "name": name, "labels": { "app": "x" }, "annotations": annotations });
    if is_owned {
        metadata["ownerReferences"] = json!([{
            "name": "r", "apiVersion": "apps/v1", "blockOwnerDeletion": true, "controller": true, "kind": "ReplicaSet",
        }]);
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": { "containers": [container], "schedulerName": scheduler },
    })
}

pub(super) fn objects(rng: &mut Rng) -> Vec<Value> {
    let is_owned = rng.percent(50);
    let mut objects = Vec::new();
    if is_owned {
        let mut annotations = json!({});
        if rng.percent(40) {
            annotations["scheduling.volcano.sh/group-min-member"] = "2".into();
        }
        objects.push(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "r", "annotations": annotations },
            "spec": { "replicas": 2, "selector": { "matchLabels": { "app": "x" } }, "template": {
                "metadata": { "labels": { "app": "x" } },
                "spec": { "containers": [{ "name": "main", "image": "img:1" }], "schedulerName": "volcano" },
            } },
        }));
    }
    let n_pods = 1 + rng.below(2);
    objects.extend((0..n_pods).map(|number| pod(rng, &format!("p-{number}"), is_owned)));
    objects
}

pub(super) fn steps(choices: &mut Choices<'_>, state: &Value) {
    let pods: Vec<&str> = objects_in(state, "pods").map(|(name, _)| name).collect();
    if let Some(one) = choices.rng.pick(&pods).copied() {
        for phase in ["Running", "Succeeded", "Failed"] {
            choices.add(3, json!({ "op": "pods", "name": one, "phase": phase }));
        }
        choices.add(4, json!({ "op": "evict", "name": one }));
        choices.add(2, json!({ "op": "evict", "name": one, "graceful": true }));
        choices.add(2, json!({ "op": "reap" }));
        let patch = json!({ "metadata": { "annotations": { "example.com/later": "yes" } } });
        choices.add(2, json!({ "op": "patch", "kind": "Pod", "name": one, "patch": patch }));
    }
    let number = 10 + choices.rng.below(1000);
    let is_owned = pods.iter().any(|name| text_of_owner(state, name));
    let pod = pod(choices.rng, &format!("p-{number}"), is_owned);
    choices.add(6, json!({ "op": "create", "object": pod }));
    let groups: Vec<&str> = objects_in(state, "podgroups").map(|(name, _)| name).collect();
    if !groups.is_empty() {
        choices.add(4, json!({ "op": "admit" }));
    }
    if is_owned {
        let replicas = choices.rng.below(4);
        let patch = json!({ "spec": { "replicas": replicas } });
        choices.add(2, json!({ "op": "patch", "kind": "ReplicaSet", "name": "r", "patch": patch }));
        choices.add(1, json!({ "op": "delete", "kind": "ReplicaSet", "name": "r" }));
    }
}

fn text_of_owner(state: &Value, pod: &str) -> bool {
    state["pods"][pod]["ownerReferences"][0]["name"] == "r"
}
