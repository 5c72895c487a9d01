//! A flow and its world in a few words, one object per line:
//!
//! ```text
//! flow phase=Running retain=delete going
//! step x
//! step y after=x patch-replicas=3
//! step z after=x,y reached=server:Running
//! step u after=x tcp=server:80 get=server:8080/healthz
//! record f-x Completed from=08:00:00
//! job f-x Running tasks=server,worker ran=30s retries=1 server:Running*2 from=08:00:30 going
//! gone f-x Completed
//! foreign f-x Running
//! no-template y
//! pod f-x server Running 10.0.0.1
//! refused
//! answered 10.0.0.1:80 good
//! answered 10.0.0.1:8080/healthz refused
//! ```
//!
//! Templates exist for all steps unless `no-template` says otherwise. `now` is 100 seconds after the flow was created.

use std::collections::BTreeSet;
use std::sync::Arc;

use krafla_api::{Key, Kind, Time};
use serde_json::{Value, json};

use crate::probe::HttpGet;
use crate::{Answer, Answers, Body, Departed, Note, Object, Objects, Plan, Probe, Snapshot};

/// The moment of every decision in these tests.
pub(super) fn now() -> Time {
    Time::from_seconds(1_800_000_100)
}

/// The plan for the world that `text` describes.
pub(super) fn plan(text: &str) -> Plan {
    let (objects, departed) = parse(text);
    let key = Key::new("ns", "f");
    let snapshot = Snapshot::new(Kind::JobFlow, &key, now(), &objects);
    let was_refused = text.lines().any(|line| line.trim() == "refused");
    let refusal = Note::warning("FailedCreate", String::new());
    let refusal = was_refused.then_some(&refusal);
    crate::jobflow::plan(&Snapshot { departed: &departed, answers: &answers(text), refusal, ..snapshot })
}

/// The world that `text` describes.
pub(super) fn parse(text: &str) -> (Objects, Vec<Departed>) {
    let (mut objects, mut departed) = (Objects::default(), Vec::new());
    let mut flow = json!({ "metadata": metadata("f", "f1"), "spec": { "flows": [] }, "status": {} });
    let (mut templates, mut missing) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "flow" => describe_flow(&mut flow, &words),
            "step" => {
                templates.insert(words[1].to_owned());
                flow["spec"]["flows"].as_array_mut().unwrap().push(step(&words));
            }
            "record" => {
                let history = json!([{ "startTimestamp": "2027-01-15T08:00:01Z", "state": words[2] }]);
                let mut record = json!({ "name": words[1], "state": words[2], "runningHistories": history });
                if let Some(from) = value(&words, "from") {
                    record["startTimestamp"] = json!(format!("2027-01-15T{from}Z"));
                }
                let status = flow["status"].as_object_mut().unwrap();
                let list = status.entry("jobStatusList").or_insert_with(|| json!([]));
                list.as_array_mut().unwrap().push(record);
            }
            "job" => insert(&mut objects, Kind::VcJob, job(&words, "f1")),
            "foreign" => insert(&mut objects, Kind::VcJob, job(&words, "somebody-else")),
            "gone" => {
                let object = Object::decode(Kind::VcJob, job(&words, "f1").to_string().as_bytes());
                departed.push(Departed { object: Arc::new(object), at: now() });
            }
            "pod" => insert(&mut objects, Kind::Pod, pod(&words)),
            "answered" | "refused" => {}
            "no-template" => drop(missing.insert(words[1].to_owned())),
            other => panic!("unknown line {other:?}"),
        }
    }
    for name in templates.difference(&missing) {
        let spec = json!({ "queue": "fast", "tasks": [{ "name": "server", "replicas": 1 }], "newer": name });
        insert(&mut objects, Kind::JobTemplate, json!({ "metadata": metadata(name, name), "spec": spec }));
    }
    insert(&mut objects, Kind::JobFlow, flow);
    (objects, departed)
}

fn describe_flow(flow: &mut Value, words: &[&str]) {
    if let Some(phase) = value(words, "phase") {
        flow["status"]["state"] = json!({ "phase": phase });
    }
    if let Some(retain) = value(words, "retain") {
        flow["spec"]["jobRetainPolicy"] = json!(retain);
    }
    if words.contains(&"going") {
        flow["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:01:00Z");
    }
}

fn step(words: &[&str]) -> Value {
    let mut step = json!({ "name": words[1] });
    if let Some(targets) = value(words, "after") {
        step["dependsOn"] = json!({ "targets": targets.split(',').collect::<Vec<_>>() });
    }
    if let Some(reached) = value(words, "reached") {
        let (task, phase) = reached.split_once(':').unwrap();
        step["dependsOn"]["probe"] = json!({ "taskStatusList": [{ "taskName": task, "phase": phase }] });
    }
    if let Some((task, port)) = value(words, "tcp").and_then(|probe| probe.split_once(':')) {
        let port: i32 = port.parse().unwrap();
        step["dependsOn"]["probe"]["tcpSocketList"] = json!([{ "taskName": task, "port": port }]);
    }
    if let Some((task, url)) = value(words, "get").and_then(|probe| probe.split_once(':')) {
        let (port, path) = url.split_at(url.find('/').unwrap());
        let port: i32 = port.parse().unwrap();
        let header = json!({ "name": "X-Who", "value": "flow" });
        let get = json!({ "taskName": task, "port": port, "path": path, "httpHeader": header });
        step["dependsOn"]["probe"]["httpGetList"] = json!([get]);
    }
    if let Some(replicas) = value(words, "patch-replicas") {
        let replicas: i32 = replicas.parse().unwrap();
        step["patch"] = json!({ "jobSpec": { "queue": "default", "maxRetry": 3,
            "tasks": [{ "name": "server", "replicas": replicas }] } });
    }
    step
}

fn job(words: &[&str], owner: &str) -> Value {
    let mut metadata = metadata(words[1], &format!("uid-{}", words[1]));
    metadata["ownerReferences"] = json!([{ "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow",
        "name": if owner == "f1" { "f" } else { "other" }, "uid": owner, "controller": true }]);
    if words.contains(&"going") {
        metadata["deletionTimestamp"] = json!("2027-01-15T08:01:00Z");
    }
    if let Some(from) = value(words, "from") {
        metadata["creationTimestamp"] = json!(format!("2027-01-15T{from}Z"));
    }
    let mut status = json!({});
    if words[2] != "New" {
        status["state"] = json!({ "phase": words[2] });
    }
    if let Some(ran) = value(words, "ran") {
        status["runningDuration"] = json!(ran);
    }
    if let Some(retries) = value(words, "retries") {
        status["retryCount"] = json!(retries.parse::<i32>().unwrap());
    }
    for count in words.iter().filter(|word| word.contains('*')) {
        let (task, count) = count.split_once(':').unwrap();
        let (phase, n) = count.split_once('*').unwrap();
        status["taskStatusCount"][task]["phase"][phase] = json!(n.parse::<i32>().unwrap());
    }
    let tasks = value(words, "tasks").unwrap_or("server").split(',');
    let tasks: Vec<Value> =
        tasks.map(|name| json!({ "name": name, "replicas": 2, "template": {} })).collect();
    json!({ "metadata": metadata, "spec": { "tasks": tasks }, "status": status })
}

fn pod(words: &[&str]) -> Value {
    let [_, job, task, phase, address, ..] = words else { panic!("{words:?}") };
    let mut metadata = metadata(&format!("{job}-{task}-{address}"), address);
    metadata["annotations"] = json!({ "volcano.sh/task-spec": task });
    metadata["ownerReferences"] = json!([{ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "name": job, "uid": format!("uid-{job}"), "controller": true }]);
    json!({ "metadata": metadata, "status": { "phase": phase, "podIP": address } })
}

/// What the lines that begin with `answered` say. An answer is half a second old, or two seconds if it is an `old` one.
fn answers(text: &str) -> Answers {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("answered "));
    let answer = |line: &str| {
        let (place, word) = line.split_once(' ').unwrap();
        let (address, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        let (address, port) = address.split_once(':').unwrap();
        let headers = vec![("X-Who".to_owned(), "flow".to_owned())];
        let http_get = (!path.is_empty()).then(|| HttpGet { path: path.to_owned(), headers });
        let (pod, port) = (address.into(), port.parse().unwrap());
        let probe = Probe { pod, address: address.parse().unwrap(), port, http_get };
        let failure = (word != "good").then(|| format!("{address}:{port}: {word}"));
        let age_ms = if word == "old" { 2000 } else { 500 };
        (probe, Answer { failure, at: Time::from_nanos(now().0.as_nanosecond() - age_ms * 1_000_000) })
    };
    lines.map(answer).collect()
}

fn metadata(name: &str, uid: &str) -> Value {
    json!({ "namespace": "ns", "name": name, "uid": uid, "resourceVersion": "7", "creationTimestamp": "2027-01-15T08:00:00Z" })
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
