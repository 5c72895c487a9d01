//! A Job and its pods in a few words, one object per line:
//!
//! ```text
//! job parallelism=2 completions=5 indexed suspend going backoff=3 per-index=1 max-failed=2 deadline=10 replace=Failed
//! rule FailJob exit=42 | rule Ignore condition=DisruptionTarget
//! success indexes=0-2 count=1
//! status succeeded=2 failed=1 completed=0-3 failed-indexes=4 uncounted-succeeded=a,b uncounted-failed=c started=50
//! condition Suspended reason=JobSuspended
//! refused
//! pod a Running index=0 ready node=n going exit=1 ended=5 failures=1 ignored=1 untracked restarts=2 created=3
//! ```
//!
//! Times are seconds ago; `now` is 100 seconds after the Job was created. A pod is named as given, runs on a node unless it
//! is Pending, and carries the tracking finalizer unless it is `untracked`. With an exit code its container has ended, also in a
//! pod that still runs. `refused`: the server has refused to create a pod.

use std::fmt::Write;
use std::sync::Arc;

use expect_test::Expect;
use krafla_api::{Key, Kind, Time};
use krafla_cluster::Step;
use serde_json::{Value, json};

use crate::k8sjob::Managed;
use crate::podgc::PodGcController;
use crate::{Controller, Note, Object, Objects, Plan, Snapshot};

const START: i64 = 1_800_000_000;

pub(super) fn now() -> Time {
    Time::from_seconds(START + 100)
}

fn ago(seconds: i64) -> Time {
    Time::from_seconds(START + 100 - seconds)
}

/// What follows from a world, printed: the status patch, which pods go and come, when to look again, and what is said.
pub(super) fn check(text: &str, expected: &Expect) {
    let world = World::parse(text);
    expected.assert_eq(&shown(&world.plan()));
}

/// The plans that follow each other, the writes of each carried out before the next, until nothing is left to do at once.
pub(super) fn check_all(text: &str, expected: &Expect) {
    let mut world = World::parse(text);
    let mut story = String::new();
    for _ in 0..20 {
        let plan = world.plan();
        if plan.is_quiet() {
            break;
        }
        writeln!(story, "{}--", shown(&plan)).unwrap();
        plan.writes().for_each(|step| world.apply(step));
    }
    expected.assert_eq(&story);
}

/// The objects of a test, as JSON, so that plans can be carried out.
pub(super) struct World {
    objects: Vec<(Kind, Value)>,
    pub(super) was_refused: bool,
}

impl World {
    pub(super) fn parse(text: &str) -> World {
        let mut job = json!({});
        let (mut objects, mut was_refused) = (Vec::new(), false);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[0] {
                "job" => job = new_job(&words),
                "rule" => push(&mut job["spec"]["podFailurePolicy"]["rules"], new_rule(&words)),
                "success" => push(&mut job["spec"]["successPolicy"]["rules"], new_success(&words)),
                "status" => job["status"] = new_status(&words, &job["status"]),
                "condition" => push(&mut job["status"]["conditions"], new_condition(&words)),
                "refused" => was_refused = true,
                "pod" => objects.push((Kind::Pod, new_pod(&words))),
                other => panic!("unknown line {other:?}"),
            }
        }
        objects.push((Kind::Job, job));
        World { objects, was_refused }
    }

    /// The Job.
    pub(super) fn job(&self) -> Object {
        let (_, json) = self.objects.iter().find(|(kind, _)| *kind == Kind::Job).unwrap();
        Object::decode(Kind::Job, json.to_string().as_bytes())
    }

    fn objects(&self) -> Objects {
        let mut objects = Objects::default();
        for (kind, json) in &self.objects {
            objects.insert(Arc::new(Object::decode(*kind, json.to_string().as_bytes())));
        }
        objects
    }

    /// Removes the deleted pods whose node is not there, which is all of them: there are no nodes here.
    pub(super) fn collect_pods(&mut self) {
        let objects = self.objects();
        for pod in objects.all(Kind::Pod) {
            let snapshot = Snapshot::new(Kind::Pod, &pod.meta.key, now(), &objects);
            PodGcController.plan(&snapshot).writes().for_each(|step| self.apply(step));
        }
    }

    pub(super) fn plan(&self) -> Plan {
        let objects = self.objects();
        let key = Key::new("ns", "a");
        let snapshot = Snapshot::new(Kind::Job, &key, now(), &objects);
        let refusal = Note::warning("FailedCreate", String::new());
        let snapshot = Snapshot { refusal: self.was_refused.then_some(&refusal), ..snapshot };
        super::super::plan(&Managed::default(), &snapshot)
    }

    /// Carries out plan after plan until nothing is left to do at once, and returns what was written.
    pub(super) fn run_out(&mut self) -> Vec<Step> {
        let mut written = Vec::new();
        loop {
            let plan = self.plan();
            if plan.is_quiet() {
                return written;
            }
            plan.writes().for_each(|step| self.apply(step));
            written.extend(plan.writes().cloned());
        }
    }

    /// The pods that are there.
    pub(super) fn pods(&self) -> Vec<String> {
        let pods = self.objects.iter().filter(|(kind, _)| *kind == Kind::Pod);
        pods.map(|(_, pod)| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Changes some fields of the object of this UID, and removes it if it is gone then.
    pub(super) fn change(&mut self, uid: &str, patch: &Value) {
        let (_, object) = self.objects.iter_mut().find(|(_, it)| it["metadata"]["uid"] == uid).unwrap();
        merge(object, patch);
        self.objects.retain(|(_, object)| !is_gone(object));
    }

    /// The Job's status.
    pub(super) fn status(&self) -> &Value {
        let (_, job) = self.objects.iter().find(|(kind, _)| *kind == Kind::Job).unwrap();
        &job["status"]
    }

    /// Carries out a write as a server would, which takes no status that contradicts itself or what was reported before.
    pub(super) fn apply(&mut self, step: &Step) {
        match step {
            Step::Create { object, .. } => {
                let mut pod = object.clone();
                let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
                pod["metadata"]["uid"] = json!(name);
                pod["metadata"]["resourceVersion"] = json!("1");
                pod["metadata"]["creationTimestamp"] = json!(now());
                self.objects.push((Kind::Pod, pod));
            }
            Step::Patch { uid, patch, of_status, .. } => {
                let (kind, object) =
                    self.objects.iter_mut().find(|(_, object)| object["metadata"]["uid"] == *uid.0).unwrap();
                let before = object.clone();
                merge(object, patch);
                if *of_status && *kind == Kind::Job {
                    let wrong = krafla_admission::batch::validate_job_status(object, &before);
                    assert!(wrong.is_empty(), "{wrong:?}\n{before}\n{patch}");
                }
            }
            Step::Delete { uid, .. } => {
                let (_, object) =
                    self.objects.iter_mut().find(|(_, object)| object["metadata"]["uid"] == *uid.0).unwrap();
                object["metadata"]["deletionTimestamp"] = json!(now());
            }
            Step::CreateGenerated { .. } | Step::Bind { .. } => panic!("not for a Job: {step}"),
        }
        self.objects.retain(|(_, object)| !is_gone(object));
    }
}

/// A pod that is deleted and held by nothing goes; one on a node goes with its last process.
fn is_gone(object: &Value) -> bool {
    let metadata = &object["metadata"];
    !metadata["deletionTimestamp"].is_null()
        && metadata["finalizers"].as_array().is_none_or(Vec::is_empty)
        && object["spec"]["nodeName"].as_str().is_none_or(str::is_empty)
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

fn push(list: &mut Value, item: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().unwrap().push(item);
}

fn shown(plan: &Plan) -> String {
    let mut text = String::new();
    if let Some(Step::Patch { patch, .. }) = &plan.status {
        let wait = if plan.status_may_wait { " when convenient" } else { "" };
        writeln!(text, "status{wait} {}", patch["status"]).unwrap();
        let former = &patch["metadata"]["annotations"][krafla_api::labels::FORMER_PODS];
        if patch["metadata"].is_object() {
            writeln!(text, "former pods {former}").unwrap();
        }
    }
    for step in &plan.steps {
        match step {
            Step::Patch { key, patch, .. } if patch["metadata"]["ownerReferences"].is_null() => {
                writeln!(text, "let go of {}", key.name).unwrap();
            }
            Step::Patch { key, patch, .. } => writeln!(text, "patch {} {patch}", key.name).unwrap(),
            Step::Delete { key, .. } => writeln!(text, "delete {}", key.name).unwrap(),
            Step::Create { object, .. } => {
                let metadata = &object["metadata"];
                let failures = &metadata["annotations"]["batch.kubernetes.io/job-index-failure-count"];
                let failures = failures.as_str().map(|n| format!(" after {n} failures")).unwrap_or_default();
                let ignored = &metadata["annotations"]["batch.kubernetes.io/job-index-ignored-failure-count"];
                let ignored = ignored.as_str().map(|n| format!(" and {n} ignored")).unwrap_or_default();
                writeln!(text, "create {}?{failures}{ignored}", metadata["generateName"].as_str().unwrap())
                    .unwrap();
            }
            Step::CreateGenerated { .. } | Step::Bind { .. } => panic!("not for a Job: {step}"),
        }
    }
    if let Some(at) = plan.wake_at {
        writeln!(text, "look again in {} s", at.0.as_second() - now().0.as_second()).unwrap();
    }
    for Note { severity, reason, message, .. } in &plan.notes {
        if !["SuccessfulCreate", "SuccessfulDelete"].contains(reason) {
            writeln!(text, "{severity:?} {reason}: {message}").unwrap();
        }
    }
    text
}

fn value<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn number(words: &[&str], name: &str) -> Option<i64> {
    value(words, name).map(|text| text.parse().unwrap())
}

fn has(words: &[&str], name: &str) -> bool {
    words.contains(&name)
}

fn new_job(words: &[&str]) -> Value {
    let mut job = json!({
        "metadata": {
            "namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "7", "creationTimestamp": ago(100),
        },
        "spec": {
            "selector": { "matchLabels": { "batch.kubernetes.io/controller-uid": "u" } },
            "template": {
                "metadata": { "labels": { "batch.kubernetes.io/controller-uid": "u" } },
                "spec": {
                    "restartPolicy": value(words, "restart").unwrap_or("Never"),
                    "containers": [{ "name": "c", "image": "i" }],
                },
            },
        },
        "status": { "startTime": ago(100), "ready": 0, "terminating": 0, "uncountedTerminatedPods": {} },
    });
    let spec = &mut job["spec"];
    for (word, field) in [
        ("parallelism", "parallelism"),
        ("completions", "completions"),
        ("backoff", "backoffLimit"),
        ("per-index", "backoffLimitPerIndex"),
        ("max-failed", "maxFailedIndexes"),
        ("deadline", "activeDeadlineSeconds"),
    ] {
        if let Some(number) = number(words, word) {
            spec[field] = json!(number);
        }
    }
    spec["completionMode"] =
        json!(value(words, "mode").unwrap_or(if has(words, "indexed") { "Indexed" } else { "NonIndexed" }));
    spec["suspend"] = json!(has(words, "suspend"));
    if let Some(policy) = value(words, "replace") {
        spec["podReplacementPolicy"] = json!(policy);
    }
    if let Some(manager) = value(words, "managed-by") {
        spec["managedBy"] = json!(manager);
    }
    if has(words, "new") {
        job["status"] = json!({});
    }
    if has(words, "going") {
        job["metadata"]["deletionTimestamp"] = json!(ago(1));
        job["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    }
    job
}

fn new_rule(words: &[&str]) -> Value {
    let mut rule = json!({ "action": words[1] });
    if let Some(codes) = value(words, "exit").or(value(words, "not-exit")) {
        let values: Vec<i32> = codes.split(',').map(|code| code.parse().unwrap()).collect();
        let operator = if value(words, "exit").is_some() { "In" } else { "NotIn" };
        rule["onExitCodes"] = json!({ "operator": operator, "values": values });
        if let Some(container) = value(words, "container") {
            rule["onExitCodes"]["containerName"] = json!(container);
        }
    }
    if let Some(condition) = value(words, "condition") {
        rule["onPodConditions"] = json!([{ "type": condition, "status": "True" }]);
    }
    rule
}

fn new_success(words: &[&str]) -> Value {
    json!({ "succeededIndexes": value(words, "indexes"), "succeededCount": number(words, "count") })
}

fn new_status(words: &[&str], defaults: &Value) -> Value {
    let mut status = defaults.clone();
    for (word, field) in [
        ("active", "active"),
        ("ready", "ready"),
        ("succeeded", "succeeded"),
        ("failed", "failed"),
        ("terminating", "terminating"),
    ] {
        if let Some(number) = number(words, word) {
            status[field] = json!(number);
        }
    }
    for (word, field) in [("completed", "completedIndexes"), ("failed-indexes", "failedIndexes")] {
        if let Some(indexes) = value(words, word) {
            status[field] = json!(indexes);
        }
    }
    for list in ["succeeded", "failed"] {
        if let Some(uids) = value(words, &format!("uncounted-{list}")) {
            status["uncountedTerminatedPods"][list] = uids.split(',').collect();
        }
    }
    if let Some(seconds) = number(words, "started") {
        status["startTime"] = json!(ago(seconds));
    }
    if has(words, "not-started") {
        status.as_object_mut().unwrap().remove("startTime");
    }
    status
}

fn new_condition(words: &[&str]) -> Value {
    json!({
        "type": words[1],
        "status": value(words, "status").unwrap_or("True"),
        "reason": value(words, "reason").unwrap_or_default(),
        "message": value(words, "message").unwrap_or_default(),
        "lastTransitionTime": ago(50),
        "lastProbeTime": ago(50),
    })
}

fn new_pod(words: &[&str]) -> Value {
    let (name, phase) = (words[1], words[2]);
    let mut annotations = json!({});
    for (word, annotation) in [
        ("index", "batch.kubernetes.io/job-completion-index"),
        ("failures", "batch.kubernetes.io/job-index-failure-count"),
        ("ignored", "batch.kubernetes.io/job-index-ignored-failure-count"),
    ] {
        if let Some(value) = value(words, word) {
            annotations[annotation] = json!(value);
        }
    }
    let node = value(words, "node").unwrap_or(if phase == "Pending" { "" } else { "n" });
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": value(words, "owner").unwrap_or("u"), "controller": true,
    });
    let exit_code = number(words, "exit");
    let mut container = json!({ "name": "c", "restartCount": number(words, "restarts").unwrap_or(0) });
    if ["Succeeded", "Failed"].contains(&phase) || exit_code.is_some() {
        let exit_code = exit_code.unwrap_or(if phase == "Failed" { 1 } else { 0 });
        let ended = ago(number(words, "ended").unwrap_or(90));
        container["state"] = json!({ "terminated": { "exitCode": exit_code, "finishedAt": ended } });
    }
    let mut conditions = Vec::new();
    if has(words, "ready") {
        conditions.push(json!({ "type": "Ready", "status": "True", "lastTransitionTime": ago(number(words, "since").unwrap_or(20)) }));
    }
    if let Some(condition) = value(words, "condition") {
        conditions.push(json!({ "type": condition, "status": "True" }));
    }
    let mut pod = json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": name, "resourceVersion": "3", "annotations": annotations,
            "labels": { "batch.kubernetes.io/controller-uid": "u" }, "ownerReferences": [owner],
            "finalizers": ["batch.kubernetes.io/job-tracking"], "creationTimestamp": ago(number(words, "created").unwrap_or(95)),
        },
        "spec": { "nodeName": node, "containers": [{ "name": "c" }] },
        "status": { "phase": phase, "containerStatuses": [container], "conditions": conditions },
    });
    if has(words, "untracked") {
        pod["metadata"]["finalizers"] = json!([]);
    }
    if has(words, "stranger") {
        pod["metadata"]["labels"] = json!({ "other": "label" });
    }
    if has(words, "orphan") {
        pod["metadata"]["ownerReferences"] = json!([]);
        pod["metadata"]["finalizers"] = json!([]);
    }
    if has(words, "going") {
        let asked = number(words, "asked").unwrap_or(80);
        pod["metadata"]["deletionTimestamp"] = json!(ago(asked - 30));
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    }
    pod
}
