//! Volcano's CronJobs, minute by minute.

use krafla_sim::Rng;
use serde_json::{Value, json};

use super::choice::{Choices, weighted};
use super::job;

pub(super) fn objects(rng: &mut Rng) -> Vec<Value> {
    let policy = weighted(rng, &[(1, "Allow"), (1, "Forbid"), (1, "Replace")]);
    let mut spec = json!({
        "schedule": "* * * * *", "concurrencyPolicy": policy, "suspend": rng.percent(20),
        "jobTemplate": { "spec": {
            "queue": "default", "schedulerName": "volcano", "maxRetry": 1,
            "tasks": [{ "name": "work", "replicas": 1, "template": {
                "spec": { "containers": [{ "name": "main", "image": "img:1" }], "restartPolicy": "Never" } } }],
        } },
    });
    if rng.percent(50) {
        spec["successfulJobsHistoryLimit"] = rng.below(2).into();
        spec["failedJobsHistoryLimit"] = rng.below(2).into();
    }
    if rng.percent(20) {
        spec["startingDeadlineSeconds"] = 30.into();
    }
    if rng.percent(20) {
        spec["timeZone"] = "Etc/UTC".into();
    }
    vec![json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": { "name": "c" }, "spec": spec,
    })]
}

pub(super) fn steps(choices: &mut Choices<'_>, state: &Value) {
    choices.add(100, json!({ "op": "minute" }));
    let is_there = state["cronjobs"].get("c").is_some();
    if is_there {
        let suspend = choices.rng.percent(50);
        let patch = json!({ "spec": { "suspend": suspend } });
        choices.add(10, json!({ "op": "patch", "kind": "CronJob", "name": "c", "patch": patch }));
        choices.add(3, json!({ "op": "delete", "kind": "CronJob", "name": "c" }));
    }
    // The names of its jobs differ from clock to clock: only what is done to all of them is the same.
    for (weight, phase) in [(40, "Succeeded"), (15, "Failed")] {
        choices.add(weight, json!({ "op": "pods", "from": "Running", "phase": phase }));
    }
    let has_waiting = job::has_waiting_pods(state);
    if has_waiting {
        choices.add(100, json!({ "op": "pods", "from": "Pending", "phase": "Running" }));
    }
    choices.add(if has_waiting { 0 } else { 60 }, json!({ "op": "admit" }));
}
