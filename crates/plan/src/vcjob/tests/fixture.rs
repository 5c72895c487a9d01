//! A job and its world in a few words, one object per line:
//!
//! ```text
//! job phase=Running been=Pending min=2 retry=1 version=1 max-retry=3 policy=PodFailed:RestartJob policy=3:AbortJob queue=q
//! job counted=work:Succeeded*1 completed=work:0-2,5
//! job name=a class=high label=key:value annotation=key:value tier=1 tier-name=rack terminating=1
//! job since=TaskFailed/work:80
//! task work replicas=2 min=1 after=lead policy=PodFailed+PodEvicted:RestartJob limit=cpu*2 class=high max-retry=3
//! task work partitions=2x1 min-partitions=1 scheduler=mine numa=best-effort
//! task work replicas=2 no-min
//! group Inqueue says=1/2+tasks+unschedulable scheduled=70 needs=cpu name=a-u1 version=1
//! pod work-0 Running unready
//! pod work-0 Running restarts=3 restarted=80
//! pod work-0 Failed no-end changed=80 started=70
//! pod work-1 Failed exit=3 second=4 version=0 retry=0 partition=0 restarts=2 created=20 going marked
//! pod work-1 Pending evicted=90
//! pod work-2 Running index=two
//! pod work-3 Running unsaid
//! pod work-1 Succeeded ended=90 going=95 grace=30 was=asked
//! gone work-2 Running at=90
//! command AbortJob name=do-it revision=9
//! claim data
//! class high value=100
//! child configmap a-svc owner=u1
//! no-queue
//! queue-spans-clusters
//! first-look
//! refused FailedCreate exceeded quota
//! ```
//!
//! What is not said has the value that the server would give. `now` is 100 seconds after the job was created.

use std::sync::Arc;

use krafla_api::{Key, Kind, Time};
use krafla_cluster::Step;
use serde_json::{Value, json};

use crate::{Body, Departed, Note, Object, Objects, Plan, Snapshot};

/// The moment of every decision in these tests.
pub(super) fn now() -> Time {
    Time::from_seconds(1_800_000_100)
}

/// The world that a text describes.
pub(super) struct World {
    key: Key,
    objects: Objects,
    departed: Vec<Departed>,
    is_first_look: bool,
    refusal: Option<Note>,
}

impl World {
    /// Everything that a decision reads.
    pub(super) fn observed(&self) -> (&Objects, &[Departed]) {
        (&self.objects, &self.departed)
    }

    pub(super) fn plan(&self) -> Plan {
        let snapshot = Snapshot::new(Kind::VcJob, &self.key, now(), &self.objects);
        let World { departed, is_first_look, refusal, .. } = self;
        let (is_first_look, refusal) = (*is_first_look, refusal.as_ref());
        crate::vcjob::plan(&Snapshot { departed, is_first_look, refusal, ..snapshot })
    }
}

impl World {
    /// Stores the status that the plan for this world writes, and nothing else of it. Whether it writes one.
    pub(super) fn store_status(&mut self) -> bool {
        let Some(Step::Patch { patch, .. }) = self.plan().status else { return false };
        let mut job = self.objects.get(Kind::VcJob, &self.key).unwrap().as_ref().clone();
        let Body::VcJob(body) = &mut job.body else { panic!("no job") };
        let mut status = json!(body.status);
        merge(&mut status, &patch["status"]);
        body.status = serde_json::from_value(status).unwrap();
        self.objects.insert(Arc::new(job));
        true
    }
}

/// The plan for the world that `text` describes.
pub(super) fn plan(text: &str) -> Plan {
    parse(text).plan()
}

/// The objects of the world that `text` describes.
pub(super) fn objects(text: &str) -> Objects {
    parse(text).objects
}

/// The plan for the same world once the first plan's status is stored.
pub(super) fn plan_after_status(text: &str) -> Plan {
    let mut world = parse(text);
    assert!(world.store_status(), "no status");
    world.plan()
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
pub(super) fn parse(text: &str) -> World {
    let mut objects = Objects::default();
    let mut departed = Vec::new();
    let mut job = json!({});
    let (mut has_queue, mut is_first_look) = (true, false);
    let (mut queue_spec, mut refusal) = (json!({}), None);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let word = words.next().unwrap();
        let words: Vec<&str> = words.collect();
        match word {
            "job" => job = new_job(&words),
            "task" => job["spec"]["tasks"].as_array_mut().unwrap().push(new_task(&words)),
            "volume" => job["spec"]["volumes"].as_array_mut().unwrap().push(new_volume(&words)),
            "group" => insert(&mut objects, Kind::PodGroup, new_group(&words)),
            "pod" => drop(objects.insert(sight(&words))),
            "gone" => departed.push(new_departed(&words)),
            "command" => insert(&mut objects, Kind::Command, new_command(&words)),
            "claim" => {
                insert(
                    &mut objects,
                    Kind::PersistentVolumeClaim,
                    json!({ "metadata": metadata(words[0], "c") }),
                );
            }
            "child" => {
                let kind = Kind::ALL.into_iter().find(|kind| kind.info().singular == words[0]).unwrap();
                let owner = value(&words, "owner").unwrap_or("u1");
                insert(&mut objects, kind, json!({ "metadata": owned(words[1], owner), "data": {} }));
            }
            "class" => {
                let class = json!({ "metadata": { "name": words[0], "uid": words[0] }, "value": number(&words, "value", 0) });
                insert(&mut objects, Kind::PriorityClass, class);
            }
            "no-queue" => has_queue = false,
            "queue-spans-clusters" => queue_spec = json!({ "extendClusters": [{ "name": "east" }] }),
            "first-look" => is_first_look = true,
            "refused" => refusal = Some(new_refusal(&words)),
            other => panic!("unknown line {other:?}"),
        }
    }
    if has_queue {
        let queue = job["spec"]["queue"].clone();
        let queue = json!({ "metadata": { "name": queue, "uid": "q" }, "spec": queue_spec });
        insert(&mut objects, Kind::Queue, queue);
    }
    let key = Key::new("ns", job["metadata"]["name"].as_str().unwrap());
    insert(&mut objects, Kind::VcJob, job);
    World { key, objects, departed, is_first_look, refusal }
}

fn new_refusal(words: &[&str]) -> Note {
    let (reason, message) = words.split_first().unwrap();
    let reasons = ["FailedCreate", "FailedUpdate", "FailedDelete"];
    let reason = reasons.into_iter().find(|known| known == reason).unwrap();
    Note::warning(reason, message.join(" "))
}

fn new_departed(words: &[&str]) -> Departed {
    Departed { object: sight(words), at: Time::from_seconds(1_800_000_000 + number(words, "at", 95)) }
}

/// A pod as it is seen, after it has been seen running and asked to go (`was=asked`) or finished (`was=ended`).
fn sight(words: &[&str]) -> Arc<Object> {
    let decode = |pod: Value| Arc::new(Object::decode(Kind::Pod, pod.to_string().as_bytes()));
    let mut before = new_pod(words);
    match value(words, "was") {
        None => return decode(before),
        Some("asked") => before["status"] = json!({ "phase": "Running" }),
        Some("ended") => {
            before["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
        }
        Some(other) => panic!("unknown sight {other:?}"),
    }
    Object::following(decode(new_pod(words)), Some(&decode(before)))
}

fn new_command(words: &[&str]) -> Value {
    let uid = value(words, "uid").unwrap_or("u1");
    let kind = value(words, "kind").unwrap_or("Job");
    let mut metadata = metadata(value(words, "name").unwrap_or("do-it"), "cmd");
    if let Some(revision) = value(words, "revision") {
        metadata["resourceVersion"] = revision.into();
    }
    json!({
        "metadata": metadata,
        "action": words[0],
        "target": { "apiVersion": "batch.volcano.sh/v1alpha1", "kind": kind, "name": "a", "uid": uid },
    })
}

fn new_volume(words: &[&str]) -> Value {
    let mut volume = json!({ "mountPath": words[0] });
    if let Some(claim) = value(words, "claim") {
        volume["volumeClaimName"] = claim.into();
    }
    if let Some(field) = value(words, "newer") {
        volume[field] = json!({ "says": "much" });
    }
    if words.contains(&"made") {
        volume["volumeClaim"] = json!({ "accessModes": ["ReadWriteOnce"] });
    }
    volume
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
            Err(_) if on.contains('+') => {
                json!({ "events": on.split('+').collect::<Vec<_>>(), "action": action })
            }
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
        "metadata": metadata(value(words, "name").unwrap_or("a"), "u1"),
        "spec": {
            "queue": value(words, "queue").unwrap_or("default"), "schedulerName": "volcano", "tasks": [], "volumes": [],
            "minAvailable": number(words, "min", 1),
            "maxRetry": number(words, "max-retry", 3),
            "policies": policies(words),
        },
        "status": {
            "version": number(words, "version", 0),
            "retryCount": number(words, "retry", 0),
            "minAvailable": number(words, "status-min", number(words, "min", 1)),
            "terminating": number(words, "terminating", 0),
        },
    });
    if let Some(phase) = value(words, "phase") {
        job["status"]["state"] = json!({ "phase": phase, "lastTransitionTime": "2027-01-15T08:00:01Z" });
    }
    for phase in words.iter().filter_map(|word| word.strip_prefix("been=")) {
        let condition = json!({ "status": phase, "lastTransitionTime": "2027-01-15T08:00:01Z" });
        let conditions = job["status"]["conditions"].take();
        let mut conditions = conditions.as_array().cloned().unwrap_or_default();
        conditions.push(condition);
        job["status"]["conditions"] = conditions.into();
    }
    if let Some(reason) = value(words, "reason") {
        job["status"]["state"]["reason"] = reason.into();
        let message = value(words, "about")
            .map_or("because".to_owned(), |about| format!("{}: because", about.replace('+', " ")));
        job["status"]["state"]["message"] = message.into();
    }
    for counted in words.iter().filter_map(|word| word.strip_prefix("counted=")) {
        let (task, counts) = counted.split_once(':').unwrap();
        let (phase, n) = counts.split_once('*').unwrap();
        job["status"]["taskStatusCount"][task]["phase"][phase] = json!(n.parse::<i32>().unwrap());
    }
    for (task, indexes) in words.iter().filter_map(|word| word.strip_prefix("completed=")?.split_once(':')) {
        job["status"]["controlledResources"][format!("completed-{task}")] = indexes.into();
    }
    if let Some(duration) = value(words, "ran") {
        job["status"]["runningDuration"] = duration.into();
    }
    for (name, at) in words.iter().filter_map(|text| text.strip_prefix("since=")?.split_once(':')) {
        let at = Time::from_seconds(1_800_000_000 + at.parse::<i64>().unwrap());
        job["metadata"]["annotations"][krafla_api::labels::HOLDS_SINCE] =
            json!({ name: at }).to_string().into();
    }
    for field in ["labels", "annotations"] {
        let word = format!("{}=", field.trim_end_matches('s'));
        for (key, value) in words.iter().filter_map(|text| text.strip_prefix(&word)?.split_once(':')) {
            job["metadata"][field][key] = value.into();
        }
    }
    if let Some(class) = value(words, "class") {
        job["spec"]["priorityClassName"] = class.into();
    }
    if let Some(tier) = value(words, "tier") {
        job["spec"]["networkTopology"]["highestTierAllowed"] = json!(tier.parse::<i32>().unwrap());
    }
    if let Some(tier) = value(words, "tier-name") {
        job["spec"]["networkTopology"]["highestTierName"] = tier.into();
    }
    if let Some(min_success) = value(words, "min-success") {
        job["spec"]["minSuccess"] = json!(min_success.parse::<i32>().unwrap());
    }
    for plugin in words.iter().filter_map(|word| word.strip_prefix("plugin=")) {
        let (name, arguments) = plugin.split_once(':').unwrap_or((plugin, ""));
        let arguments: Vec<&str> = arguments.split(':').filter(|argument| !argument.is_empty()).collect();
        job["spec"]["plugins"][name] = json!(arguments);
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
        "maxRetry": number(words, "max-retry", 3),
        "policies": policies(words),
        "template": { "spec": { "containers": [{ "name": "main", "image": "img" }] } },
    });
    if !words.contains(&"no-min") {
        task["minAvailable"] = number(words, "min", number(words, "replicas", 1)).into();
    }
    if let Some(class) = value(words, "class") {
        task["template"]["spec"]["priorityClassName"] = class.into();
    }
    if let Some(scheduler) = value(words, "scheduler") {
        task["template"]["spec"]["schedulerName"] = scheduler.into();
    }
    if let Some(policy) = value(words, "numa") {
        task["topologyPolicy"] = policy.into();
    }
    if let Some((resource, amount)) = value(words, "limit").and_then(|limit| limit.split_once('*')) {
        task["template"]["spec"]["containers"][0]["resources"]["limits"][resource] = amount.into();
    }
    if let Some((total, size)) = value(words, "partitions").and_then(|partitions| partitions.split_once('x'))
    {
        let [total, size] = [total, size].map(|text| text.parse::<i32>().unwrap());
        let minimum = number(words, "min-partitions", 0);
        task["partitionPolicy"] =
            json!({ "totalPartitions": total, "partitionSize": size, "minPartitions": minimum });
    }
    let dependencies: Vec<&str> = words.iter().filter_map(|word| word.strip_prefix("after=")).collect();
    if !dependencies.is_empty() {
        let iteration = value(words, "iteration").unwrap_or("all");
        task["dependsOn"] = json!({ "name": dependencies, "iteration": iteration });
    }
    task
}

fn new_group(words: &[&str]) -> Value {
    let mut group = json!({
        "metadata": owned(value(words, "name").unwrap_or("a-u1"), value(words, "owner").unwrap_or("u1")),
        "spec": {},
        "status": { "phase": words[0] },
    });
    if words.contains(&"going") {
        group["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:01:00Z");
    }
    if let Some(version) = value(words, "version") {
        group["metadata"]["annotations"] = json!({ "volcano.sh/job-version": version });
    }
    let mut conditions: Vec<Value> = Vec::new();
    if let Some(message) = value(words, "says") {
        conditions.push(json!({ "type": "Unschedulable", "status": "True",
            "message": message.replace('+', " "), "lastTransitionTime": "2027-01-15T08:01:00Z" }));
    }
    if value(words, "scheduled").is_some() {
        let at = Time::from_seconds(1_800_000_000 + number(words, "scheduled", 0));
        conditions.push(json!({ "type": "Scheduled", "status": "True", "lastTransitionTime": at }));
    }
    group["status"]["conditions"] = conditions.into();
    for resource in words.iter().filter_map(|word| word.strip_prefix("needs=")) {
        group["spec"]["minResources"][resource] = "1".into();
    }
    group
}

fn new_pod(words: &[&str]) -> Value {
    let (task, index) = words[0].rsplit_once('-').unwrap();
    let mut metadata = owned(&format!("a-{}", words[0]), value(words, "owner").unwrap_or("u1"));
    metadata["annotations"] = json!({
        "volcano.sh/task-spec": task, "volcano.sh/task-index": index,
        "volcano.sh/job-version": number(words, "version", 0).to_string(),
        "volcano.sh/job-retry-count": number(words, "retry", 0).to_string(),
    });
    if let Some(index) = value(words, "index") {
        metadata["annotations"]["volcano.sh/task-index"] = index.into();
    }
    if words.contains(&"unsaid") {
        metadata["annotations"] = json!({});
    }
    if value(words, "evicted").is_some() {
        let evicted_at = Time::from_seconds(1_800_000_000 + number(words, "evicted", 0));
        metadata["annotations"][krafla_api::labels::EVICTED_AT] = evicted_at.to_micro_string().into();
    }
    if words.contains(&"marked") {
        metadata["annotations"]["volcano.sh/controller-out-of-sync"] = "true".into();
    }
    if let Some(partition) = value(words, "partition") {
        metadata["labels"] = json!({ "volcano.sh/partition-id": partition });
    }
    if words.contains(&"going") || value(words, "going").is_some() {
        let asked_at = Time::from_seconds(1_800_000_000 + number(words, "going", 60));
        let grace = number(words, "grace", 0);
        metadata["deletionTimestamp"] =
            json!(asked_at.after(std::time::Duration::from_secs(grace.unsigned_abs())));
        metadata["deletionGracePeriodSeconds"] = grace.into();
    }
    let exit = number(words, "exit", i64::from(words[1] == "Failed"));
    let state = match words[1] {
        "Succeeded" | "Failed" if words.contains(&"no-end") => json!({ "terminated": { "exitCode": exit } }),
        "Succeeded" | "Failed" => {
            let ended_at = Time::from_seconds(1_800_000_000 + number(words, "ended", 90));
            json!({ "terminated": { "exitCode": exit, "finishedAt": ended_at } })
        }
        _ => json!({}),
    };
    if value(words, "created").is_some() {
        let created_at = Time::from_seconds(1_800_000_000 + number(words, "created", 0));
        metadata["creationTimestamp"] = json!(created_at);
    }
    let mut statuses = vec![json!({
        "name": "main", "ready": !words.contains(&"unready"), "state": state, "restartCount": number(words, "restarts", 0) })];
    if value(words, "restarted").is_some() {
        let at = Time::from_seconds(1_800_000_000 + number(words, "restarted", 0));
        statuses[0]["lastState"] = json!({ "terminated": { "exitCode": 1, "finishedAt": at } });
    }
    if value(words, "second").is_some() {
        let exit = number(words, "second", 0);
        statuses.push(json!({ "name": "second", "state": { "terminated": { "exitCode": exit } } }));
    }
    let mut status = json!({ "phase": words[1], "containerStatuses": statuses });
    if value(words, "started").is_some() {
        status["startTime"] = json!(Time::from_seconds(1_800_000_000 + number(words, "started", 0)));
    }
    if value(words, "changed").is_some() {
        let at = Time::from_seconds(1_800_000_000 + number(words, "changed", 0));
        status["conditions"] = json!([{ "type": "Ready", "status": "False", "lastTransitionTime": at }]);
    }
    json!({ "metadata": metadata, "spec": { "nodeName": "n" }, "status": status })
}
