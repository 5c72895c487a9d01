//! Volcano Jobs: their specs, and what users, scheduler and node may do to them.

use krafla_sim::Rng;
use serde_json::{Value, json};

use super::choice::{Choices, objects as objects_in, text, weighted};

/// Exit codes that containers fail with; policies name some of them.
const EXIT_CODES: [i64; 3] = [1, 3, 137];

const ACTIONS: [(u64, &str); 8] = [
    (10, "RestartJob"),
    (8, "RestartTask"),
    (8, "RestartPod"),
    (6, "AbortJob"),
    (6, "TerminateJob"),
    (6, "CompleteJob"),
    (1, "ResumeJob"),
    (1, "RestartPartition"),
];

const EVENTS: [(u64, &str); 8] = [
    (12, "PodFailed"),
    (10, "PodEvicted"),
    (6, "TaskCompleted"),
    (4, "TaskFailed"),
    (2, "Unknown"),
    (1, "PodPending"),
    (1, "JobUpdated"),
    (4, "*"),
];

/// A job, and what it needs.
pub(super) fn objects(rng: &mut Rng) -> Vec<Value> {
    let mut spec = spec(rng);
    let mut objects = Vec::new();
    // Plugins may make a Service of the job's name, which must not have dots.
    let name = if spec.get("plugins").is_some() || rng.percent(90) { "a" } else { "a.b-c" };
    if rng.percent(6) {
        let claim =
            json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
        spec["volumes"] = if rng.percent(50) {
            json!([{ "mountPath": "/data", "volumeClaim": claim }])
        } else {
            objects.push(json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data" }, "spec": claim,
            }));
            json!([{ "mountPath": "/data", "volumeClaimName": "data" }, { "mountPath": "/more", "volumeClaim": claim }])
        };
    }
    if rng.percent(5) {
        spec["queue"] = "{ns}-one".into();
        let mut queue = super::queue::queue("{ns}-one", None);
        queue["status"] = json!({ "state": "Open" });
        objects.push(queue);
    }
    let mut metadata = json!({ "name": name });
    if rng.percent(10) {
        metadata["labels"] = json!({ "volcano.sh/preemptable": "true", "example.com/mine": "yes" });
        metadata["annotations"] = json!({
            "volcano.sh/preemptable": "true", "volcano.sh/jdb-min-available": "1", "example.com/mine": "yes",
        });
    }
    objects.push(json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec,
    }));
    objects
}

/// The spec of a job that admission lets in.
pub(super) fn spec(rng: &mut Rng) -> Value {
    let n_tasks = weighted(rng, &[(5, 1), (4, 2), (1, 3)]).unwrap_or(1);
    let names: Vec<&str> = ["lead", "work", "tail"].into_iter().take(n_tasks).collect();
    let mut tasks = Vec::new();
    for (position, name) in names.iter().enumerate() {
        let before = position.checked_sub(1).and_then(|before| names.get(before)).copied();
        tasks.push(task(rng, name, before));
    }
    let n_pods: u64 = tasks.iter().filter_map(|task| task["replicas"].as_u64()).sum();
    let mut spec = json!({ "queue": "default", "schedulerName": "volcano", "tasks": tasks });
    if rng.percent(50) {
        spec["minAvailable"] = (1 + rng.below(n_pods)).into();
    }
    if rng.percent(15) {
        spec["minSuccess"] = (1 + rng.below(n_pods)).into();
    }
    if rng.percent(70) {
        spec["maxRetry"] = (1 + rng.below(3)).into();
    }
    if rng.percent(3) {
        spec["networkTopology"] = json!({ "mode": "soft", "highestTierAllowed": 2 });
    }
    if rng.percent(70) {
        spec["policies"] = policies(rng, false);
    }
    if let Some(plugins) = plugins(rng, n_tasks) {
        spec["plugins"] = plugins;
    }
    if rng.percent(5) {
        spec["ttlSecondsAfterFinished"] = rng.below(2).into();
    }
    spec
}

fn task(rng: &mut Rng, name: &str, before: Option<&str>) -> Value {
    let mut containers = vec![json!({ "name": "main", "image": "img:1" })];
    if rng.percent(40) {
        containers[0]["resources"] = json!({ "requests": { "cpu": "500m", "memory": "1Mi" } });
    }
    if rng.percent(8) {
        containers.push(json!({ "name": "other", "image": "img:1" }));
    }
    let mut pod = json!({ "containers": containers });
    if let Some(policy) = weighted(rng, &[(6, None), (3, Some("Never")), (1, Some("OnFailure"))]).flatten() {
        pod["restartPolicy"] = policy.into();
    }
    let replicas = 1 + rng.below(3);
    let mut task = json!({ "name": name, "replicas": replicas, "template": { "spec": pod } });
    let is_partitioned = rng.percent(6);
    if is_partitioned {
        task["replicas"] = 4.into();
        task["partitionPolicy"] =
            json!({ "totalPartitions": 2, "partitionSize": 2, "minPartitions": 1 + rng.below(2) });
    } else if rng.percent(30) {
        task["minAvailable"] = (1 + rng.below(replicas)).into();
    }
    if rng.percent(25) {
        task["policies"] = policies(rng, is_partitioned);
    }
    if rng.percent(5) {
        task["maxRetry"] = (1 + rng.below(3)).into();
    }
    if let Some(before) = before.filter(|_| rng.percent(20)) {
        let all = if before == "work" && rng.percent(50) { json!(["lead", "work"]) } else { json!([before]) };
        task["dependsOn"] = json!({ "name": all });
        if let Some(iteration) = weighted(rng, &[(1, None), (1, Some("any")), (1, Some("all"))]).flatten() {
            task["dependsOn"]["iteration"] = iteration.into();
        }
    }
    task
}

/// One or two policies. No two are about the same event, which admission would refuse.
fn policies(rng: &mut Rng, is_partitioned: bool) -> Value {
    let first = weighted(rng, &EVENTS).unwrap_or("PodFailed");
    let mut policies = vec![policy(rng, first, is_partitioned)];
    let second = weighted(rng, &EVENTS).unwrap_or("PodEvicted");
    if rng.percent(40) && first != "*" && second != "*" && first != second {
        policies.push(policy(rng, second, is_partitioned));
    }
    if rng.percent(15) {
        let action = weighted(rng, &ACTIONS);
        policies.push(json!({ "exitCode": rng.pick(&EXIT_CODES), "action": action }));
    }
    policies.into()
}

fn policy(rng: &mut Rng, event: &str, is_partitioned: bool) -> Value {
    let mut action = weighted(rng, &ACTIONS).unwrap_or("RestartJob");
    if is_partitioned && rng.percent(50) {
        action = "RestartPartition";
    }
    let mut policy = json!({ "action": action });
    if rng.percent(15) {
        policy["events"] = json!([event]);
    } else {
        policy["event"] = event.into();
    }
    if rng.percent(3) || (event == "PodPending" && rng.percent(80)) {
        policy["timeout"] = "3s".into();
    }
    policy
}

fn plugins(rng: &mut Rng, n_tasks: usize) -> Option<Value> {
    let plugins = weighted(
        rng,
        &[
            (60, json!(null)),
            (10, json!({ "env": [] })),
            (12, json!({ "svc": [] })),
            (8, json!({ "env": [], "svc": [] })),
            (2, json!({ "svc": ["--publish-not-ready-addresses=true"] })),
            (2, json!({ "svc": ["--disable-network-policy=true"] })),
            (1, json!({ "ssh": [] })),
            (1, json!({ "ssh": [], "svc": [], "env": [] })),
        ],
    )?;
    let of_roles = weighted(
        rng,
        &[
            (20, json!(null)),
            (1, json!({ "pytorch": ["--master=lead", "--worker=work", "--port=23456"] })),
            (1, json!({ "tensorflow": ["--ps=lead", "--worker=work", "--port=2222"] })),
            (1, json!({ "mpi": ["--master=lead", "--worker=work", "--port=22"], "ssh": [], "svc": [] })),
            (1, json!({ "ray": ["--head=lead", "--worker=work"], "svc": [] })),
        ],
    )?;
    let plugins = if n_tasks > 1 && !of_roles.is_null() { of_roles } else { plugins };
    (!plugins.is_null()).then_some(plugins)
}

/// What may happen next to jobs and their pods.
pub(super) fn steps(choices: &mut Choices<'_>, state: &Value, objects: &[Value]) {
    scheduler_and_node(choices, state);
    let jobs: Vec<(String, Value)> =
        objects_in(state, "jobs").map(|(name, job)| (name.to_owned(), job.clone())).collect();
    for (name, job) in &jobs {
        of_users(choices, state, name, job);
    }
    if jobs.is_empty() {
        for object in objects.iter().filter(|object| object["kind"] == "Job") {
            choices.add(10, json!({ "op": "create", "object": object }));
        }
    }
    let text = json!(objects).to_string();
    if text.contains("\"timeout\"") || text.contains("ttlSecondsAfterFinished") {
        choices.add(12, json!({ "op": "wait", "seconds": 5 }));
    }
}

/// What a scheduler and nodes do: they admit gangs, run pods, and end them.
pub(super) fn scheduler_and_node(choices: &mut Choices<'_>, state: &Value) {
    let groups: Vec<&str> =
        objects_in(state, "podgroups").map(|(_, group)| text(group, "/status/phase")).collect();
    if groups.iter().any(|phase| ["", "Pending"].contains(phase)) {
        choices.add(60, json!({ "op": "admit" }));
    }
    let pods: Vec<(&str, &Value)> = objects_in(state, "pods").collect();
    let of_phase = |phase: &str, deleting: bool| -> Vec<&str> {
        let is_meant =
            |pod: &Value| pod.get("deleting").is_some() == deleting && text(pod, "/status/phase") == phase;
        pods.iter().filter(|(_, pod)| is_meant(pod)).map(|(name, _)| *name).collect()
    };
    let (pending, running) = (of_phase("Pending", false), of_phase("Running", false));
    if let Some(one) = choices.rng.pick(&pending) {
        choices.add(10, json!({ "op": "pods", "name": one, "phase": "Running" }));
        choices.add(40, json!({ "op": "pods", "from": "Pending", "phase": "Running" }));
        choices.add(2, json!({ "op": "pods", "name": one, "phase": "Failed", "no_statuses": true }));
        choices.add(2, json!({ "op": "evict", "name": one }));
    }
    if let Some(one) = choices.rng.pick(&running) {
        choices.add(14, json!({ "op": "pods", "name": one, "phase": "Succeeded" }));
        let code = choices.rng.pick(&EXIT_CODES);
        choices.add(16, json!({ "op": "pods", "name": one, "phase": "Failed", "exit_code": code }));
        choices.add(3, json!({ "op": "pods", "name": one, "phase": "Failed", "no_statuses": true }));
        choices.add(10, json!({ "op": "pods", "from": "Running", "phase": "Succeeded" }));
        choices.add(3, json!({ "op": "pods", "from": "Running", "phase": "Failed" }));
        choices.add(2, json!({ "op": "pods", "name": one, "phase": "Unknown" }));
        choices.add(6, json!({ "op": "evict", "name": one }));
        choices.add(6, json!({ "op": "evict", "name": one, "graceful": true }));
        choices.add(1, json!({ "op": "evict", "graceful": true }));
    }
    let ended = [of_phase("Succeeded", false), of_phase("Failed", false)].concat();
    if let Some(one) = choices.rng.pick(&ended) {
        choices.add(3, json!({ "op": "evict", "name": one }));
    }
    if pods.iter().any(|(_, pod)| pod.get("deleting").is_some()) {
        choices.add(50, json!({ "op": "reap" }));
        let ending = of_phase("Running", true);
        if let Some(one) = choices.rng.pick(&ending) {
            // A container that hears of the deletion, and ends as it likes.
            for phase in ["Succeeded", "Failed"] {
                let end = json!({ "op": "pods", "name": one, "deleting": true, "phase": phase });
                choices.add(6, json!({ "op": "burst", "ops": [end, { "op": "reap" }] }));
                choices.add(3, end);
            }
        }
    }
}

fn of_users(choices: &mut Choices<'_>, state: &Value, name: &str, job: &Value) {
    let action =
        weighted(choices.rng, &[(3, "AbortJob"), (3, "RestartJob"), (2, "TerminateJob"), (2, "CompleteJob")]);
    // A user acts more often on a job that is about to stop or to begin anew than chance would have it.
    let is_moving =
        ["Restarting", "Aborting", "Completing", "Terminating"].contains(&text(job, "/status/state/phase"));
    choices.add(if is_moving { 14 } else { 7 }, json!({ "op": "command", "action": action, "target": name }));
    let resume = json!({ "op": "command", "action": "ResumeJob", "target": name });
    choices.add(if text(job, "/status/state/phase") == "Aborted" { 30 } else { 1 }, resume);
    let tasks: Vec<(String, u64)> = job["spec"]["tasks"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|task| task.get("partitionPolicy").is_none())
        .filter_map(|task| Some((task["name"].as_str()?.to_owned(), task["replicas"].as_u64()?)))
        .collect();
    if let Some((task, replicas)) = choices.rng.pick(&tasks).cloned() {
        let more = json!({ "op": "scale", "job": name, "task": task, "replicas": replicas + 1 });
        choices.add(if is_moving { 8 } else { 3 }, more);
        if replicas > 1 {
            // With a minimum that still fits, so that it is not refused.
            let n_pods: u64 = tasks.iter().map(|(_, replicas)| replicas).sum();
            let fewer = json!({
                "op": "scale", "job": name, "task": task, "replicas": replicas - 1, "taskMinAvailable": 1,
                "minAvailable": (job["spec"]["minAvailable"].as_u64().unwrap_or(1)).min(n_pods - 1),
            });
            choices.add(3, fewer);
        }
    }
    let n_pods: u64 = tasks.iter().map(|(_, replicas)| replicas).sum();
    if n_pods > 0 {
        let minimum = 1 + choices.rng.below(n_pods);
        choices.add(1, json!({ "op": "scale", "job": name, "minAvailable": minimum }));
    }
    for phase in ["Unknown", "Running", "Inqueue", "Pending"] {
        let weight = if phase == "Unknown" { 3 } else { 1 };
        choices.add(weight, json!({ "op": "podgroup", "job": name, "phase": phase }));
    }
    let condition = json!([{
        "type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "no room",
    }]);
    choices.add(1, json!({ "op": "podgroup", "job": name, "phase": "Pending", "conditions": condition }));
    choices.add(1, json!({ "op": "delete", "kind": "Job", "name": name }));
    for propagation in ["Foreground", "Orphan"] {
        let delete = json!({ "op": "delete", "kind": "Job", "name": name, "propagation": propagation });
        let weight = u64::from(choices.rng.percent(30));
        choices.add(weight, delete);
    }
    choices.add(1, json!({ "op": "delete", "kind": "PodGroup", "job": name }));
    let label = json!({ "metadata": { "labels": { "example.com/later": "yes" } } });
    choices.add(1, json!({ "op": "patch", "kind": "Job", "name": name, "patch": label }));
    if let Some((queue, _)) = objects_in(state, "queues").find(|(queue, _)| queue.ends_with("-one")) {
        let queue = queue.to_owned();
        for action in ["CloseQueue", "OpenQueue"] {
            choices.add(3, json!({ "op": "command", "action": action, "kind": "Queue", "target": queue }));
        }
    }
    choices.add(1, json!({ "op": "advance" }));
    for (section, kind) in [("services", "Service"), ("configmaps", "ConfigMap")] {
        if let Some((name, _)) = objects_in(state, section).next() {
            choices.add(1, json!({ "op": "delete", "kind": kind, "name": name }));
        }
    }
}

/// Whether pods wait for a node.
pub(super) fn has_waiting_pods(state: &Value) -> bool {
    objects_in(state, "pods")
        .any(|(_, pod)| text(pod, "/status/phase") == "Pending" && pod.get("deleting").is_none())
}
