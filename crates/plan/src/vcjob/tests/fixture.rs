//! A job and its world in a few words, one object per line:
//!
//! ```text
//! job phase=Running min=2 retry=1 version=1 max-retry=3 policy=PodFailed:RestartJob policy=3:AbortJob
//! task work replicas=2 min=1 after=lead policy=PodFailed:RestartJob
//! group Inqueue
//! pod work-0 Running
//! pod work-1 Failed exit=3 version=0 going
//! ```
//!
//! What is not said has the value that the server would give. `now` is 100 seconds after the job was created.

use std::sync::Arc;

use krafla_api::{Key, Kind, Time};
use serde_json::{Value, json};

use crate::{Body, Object, Objects, Plan, Snapshot, Step};

/// The moment of every decision in these tests.
pub(super) fn now() -> Time {
    Time::from_seconds(1_800_000_100)
}

/// The plan for the world that `text` describes.
pub(super) fn plan(text: &str) -> Plan {
    let objects = parse(text);
    let key = Key::new("ns", "a");
    crate::vcjob::plan(&Snapshot { key: &key, kind: Kind::VcJob, now: now(), objects: &objects })
}

/// The plan for the same world once the first plan's status is stored.
pub(super) fn plan_after_status(text: &str) -> Plan {
    let mut objects = parse(text);
    let key = Key::new("ns", "a");
    let snapshot = Snapshot { key: &key, kind: Kind::VcJob, now: now(), objects: &objects };
    let Some(Step::Patch { patch, .. }) = crate::vcjob::plan(&snapshot).status else { panic!("no status") };
    let mut job = snapshot.root().unwrap().as_ref().clone();
    let Body::VcJob(body) = &mut job.body else { panic!("no job") };
    let mut status = json!(body.status);
    merge(&mut status, &patch["status"]);
    body.status = serde_json::from_value(status).unwrap();
    objects.insert(Arc::new(job));
    crate::vcjob::plan(&Snapshot { key: &key, kind: Kind::VcJob, now: now(), objects: &objects })
}

fn merge(target: &mut Value, patch: &Value) {
    for (name, value) in patch.as_object().unwrap() {
        match value {
            Value::Object(_) if target[name].is_object() => merge(&mut target[name], value),
            Value::Null => drop(target.as_object_mut().unwrap().remove(name)),
            value => target[name] = value.clone(),
        }
    }
}

/// The world that `text` describes.
pub(super) fn parse(text: &str) -> Objects {
    let mut objects = Objects::default();
    let mut job = json!({});
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let word = words.next().unwrap();
        let words: Vec<&str> = words.collect();
        match word {
            "job" => job = new_job(&words),
            "task" => job["spec"]["tasks"].as_array_mut().unwrap().push(new_task(&words)),
            "group" => insert(&mut objects, Kind::PodGroup, new_group(&words)),
            "pod" => insert(&mut objects, Kind::Pod, new_pod(&words)),
            other => panic!("unknown line {other:?}"),
        }
    }
    insert(&mut objects, Kind::VcJob, job);
    objects
}

fn insert(objects: &mut Objects, kind: Kind, object: Value) {
    let object = Object::decode(kind, object.to_string().as_bytes());
    assert!(!matches!(object.body, Body::Unreadable(_)), "{object:?}");
    objects.insert(Arc::new(object));
}

/// `name=value` among the words.
fn value<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn number(words: &[&str], name: &str, default: i64) -> i64 {
    value(words, name).map_or(default, |text| text.parse().unwrap())
}

fn policies(words: &[&str]) -> Value {
    let policy = |text: &str| {
        let (on, action) = text.split_once(':').unwrap();
        let (action, timeout) = action.split_once('@').map_or((action, None), |(a, t)| (a, Some(t)));
        let mut policy = match on.parse::<i32>() {
            Ok(code) => json!({ "exitCode": code, "action": action }),
            Err(_) => json!({ "event": on, "action": action }),
        };
        if let Some(timeout) = timeout {
            policy["timeout"] = timeout.into();
        }
        policy
    };
    words.iter().filter_map(|word| word.strip_prefix("policy=")).map(policy).collect()
}

fn metadata(name: &str, uid: &str) -> Value {
    json!({ "namespace": "ns", "name": name, "uid": uid, "resourceVersion": "7", "creationTimestamp": "2027-01-15T08:00:00Z" })
}

fn owned(name: &str, owner_uid: &str) -> Value {
    let mut metadata = metadata(name, &format!("uid-{name}"));
    metadata["ownerReferences"] = json!([{ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a",
        "uid": owner_uid, "controller": true, "blockOwnerDeletion": true }]);
    metadata
}

fn new_job(words: &[&str]) -> Value {
    let mut job = json!({
        "metadata": metadata("a", "u1"),
        "spec": {
            "queue": "default", "schedulerName": "volcano", "tasks": [],
            "minAvailable": number(words, "min", 1),
            "maxRetry": number(words, "max-retry", 3),
            "policies": policies(words),
        },
        "status": {
            "version": number(words, "version", 0),
            "retryCount": number(words, "retry", 0),
            "minAvailable": number(words, "min", 1),
        },
    });
    if let Some(phase) = value(words, "phase") {
        job["status"]["state"] = json!({ "phase": phase, "lastTransitionTime": "2027-01-15T08:00:01Z" });
    }
    if let Some(min_success) = value(words, "min-success") {
        job["spec"]["minSuccess"] = json!(min_success.parse::<i32>().unwrap());
    }
    if words.contains(&"going") {
        job["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:01:00Z");
    }
    job
}

fn new_task(words: &[&str]) -> Value {
    let mut task = json!({
        "name": words[0],
        "replicas": number(words, "replicas", 1),
        "minAvailable": number(words, "min", number(words, "replicas", 1)),
        "maxRetry": 3,
        "policies": policies(words),
        "template": { "spec": { "containers": [{ "name": "main", "image": "img" }] } },
    });
    let dependencies: Vec<&str> = words.iter().filter_map(|word| word.strip_prefix("after=")).collect();
    if !dependencies.is_empty() {
        let iteration = value(words, "iteration").unwrap_or("all");
        task["dependsOn"] = json!({ "name": dependencies, "iteration": iteration });
    }
    task
}

fn new_group(words: &[&str]) -> Value {
    let mut group = json!({
        "metadata": owned("a-u1", value(words, "owner").unwrap_or("u1")),
        "spec": {},
        "status": { "phase": words[0] },
    });
    if words.contains(&"going") {
        group["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:01:00Z");
    }
    group
}

fn new_pod(words: &[&str]) -> Value {
    let (task, index) = words[0].rsplit_once('-').unwrap();
    let mut metadata = owned(&format!("a-{}", words[0]), value(words, "owner").unwrap_or("u1"));
    metadata["annotations"] = json!({
        "volcano.sh/task-spec": task, "volcano.sh/task-index": index,
        "volcano.sh/job-version": number(words, "version", 0).to_string(),
    });
    if words.contains(&"going") {
        metadata["deletionTimestamp"] = json!("2027-01-15T08:01:00Z");
    }
    let exit = number(words, "exit", i64::from(words[1] == "Failed"));
    let state = match words[1] {
        "Succeeded" | "Failed" => {
            json!({ "terminated": { "exitCode": exit, "finishedAt": "2027-01-15T08:01:30Z" } })
        }
        _ => json!({}),
    };
    json!({
        "metadata": metadata,
        "spec": { "nodeName": "n" },
        "status": { "phase": words[1], "containerStatuses": [{ "name": "main", "ready": true, "state": state }] },
    })
}
