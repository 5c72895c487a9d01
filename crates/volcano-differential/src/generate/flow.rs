//! JobFlows: templates, and steps that depend on each other.

use krafla_sim::Rng;
use serde_json::{Value, json};

use super::choice::{Choices, objects as objects_in};
use super::job;

const TEMPLATES: [&str; 3] = ["one", "two", "three"];

pub(super) fn objects(rng: &mut Rng) -> Vec<Value> {
    let n_templates = usize::try_from(1 + rng.below(3)).unwrap_or(1);
    let mut objects = Vec::new();
    let mut flows = Vec::new();
    for (position, name) in TEMPLATES.iter().enumerate().take(n_templates) {
        let tasks = json!([{
            "name": "work", "replicas": 1 + rng.below(2),
            "template": { "spec": { "containers": [{ "name": "main", "image": "img:1" }], "restartPolicy": "Never" } },
        }]);
        objects.push(json!({
            "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "metadata": { "name": name },
            "spec": { "queue": "default", "schedulerName": "volcano", "maxRetry": 1 + rng.below(2), "tasks": tasks },
        }));
        let before: Vec<&&str> = TEMPLATES.iter().take(position).filter(|_| rng.percent(60)).collect();
        let mut flow = json!({ "name": name });
        if !before.is_empty() {
            flow["dependsOn"] = json!({ "targets": before });
        }

        flows.push(flow);
    }
    if rng.percent(10) {
        // A template that comes late, or never.
        objects.remove(0);
    }
    let retain = if rng.percent(60) { "retain" } else { "delete" };
    objects.push(json!({
        "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": { "name": "f" },
        "spec": { "flows": flows, "jobRetainPolicy": retain },
    }));
    objects
}

pub(super) fn steps(choices: &mut Choices<'_>, state: &Value, objects: &[Value]) {
    job::scheduler_and_node(choices, state);
    let jobs: Vec<&str> = objects_in(state, "jobs").map(|(name, _)| name).collect();
    if let Some(one) = choices.rng.pick(&jobs) {
        let is_running = |pod: &Value| pod["status"]["phase"] == "Running";
        let weight = if objects_in(state, "pods").any(|(_, pod)| is_running(pod)) { 20 } else { 0 };
        choices.add(weight, json!({ "op": "pods", "job": one, "from": "Running", "phase": "Succeeded" }));
        choices.add(weight / 5, json!({ "op": "pods", "job": one, "from": "Running", "phase": "Failed" }));
        choices.add(3, json!({ "op": "delete", "kind": "Job", "name": one }));
        for action in ["AbortJob", "TerminateJob", "CompleteJob", "RestartJob"] {
            choices.add(1, json!({ "op": "command", "action": action, "target": one }));
        }
    }
    if objects_in(state, "jobflows").next().is_none() {
        for object in objects.iter().filter(|object| object["kind"] == "JobFlow") {
            choices.add(10, json!({ "op": "create", "object": object }));
        }
    }
    let templates: Vec<&str> = objects_in(state, "jobtemplates").map(|(name, _)| name).collect();
    if let Some(one) = choices.rng.pick(&templates) {
        choices.add(1, json!({ "op": "delete", "kind": "JobTemplate", "name": one }));
    }
    choices.add(1, json!({ "op": "delete", "kind": "JobFlow", "name": "f" }));
    choices.add(1, json!({ "op": "advance" }));
}
