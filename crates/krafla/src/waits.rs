//! Why jobs wait, in the words of whoever holds them up: the scheduler, the node, or the server that refuses their pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use krafla_api::{Key, Kind};
use krafla_node::NO_MOUNTS;
use krafla_plan::{Object, vcjob};
use serde::Deserialize;
use tokio::time::Instant;

use crate::doctor::{remedy_of_container, remedy_of_scheduling, remedy_of_warning};
use crate::job_waits;
use crate::warnings::Warnings;

/// How long a reason must last before it is worth telling: every job waits for a moment at its start.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Where Jobs of Kubernetes itself come from.
const KUBERNETES_JOBS: &str = "batch/v1";

/// Why each job waits.
#[derive(Default)]
pub(crate) struct Waits {
    /// By job, then by what waits.
    reasons: BTreeMap<Key, BTreeMap<Key, Reason>>,
    /// What the server said when it refused pods of a Job of Kubernetes.
    refusals: BTreeMap<Key, Reason>,
    /// What the server said when it refused a pod the PodGroup that it needs.
    refused_pods: BTreeMap<Key, String>,
    /// Pods that no scheduler has said anything about yet, and whose they are.
    unseen_pods: BTreeMap<Key, Key>,
    /// The Jobs of Kubernetes that have fewer pods than they want: what was refused to others is past.
    short_of_pods: BTreeSet<Key>,
    /// What is wrong with pods that run all the same.
    pub(crate) warnings: Warnings,
    told: BTreeMap<Key, String>,
}

struct Reason {
    text: String,
    since: Instant,
}

impl Waits {
    /// Takes in a PodGroup, a pod or an Event, as it is now or was last.
    pub(crate) fn observe(&mut self, kind: Kind, json: &[u8], is_deleted: bool, now: Instant) {
        let Ok(seen) = serde_json::from_slice::<Seen>(json) else { return };
        if kind == Kind::Event {
            return self.observe_event(seen, now);
        }
        let Some(waiter) = Waiter::read(kind, seen) else { return };
        let job = Key::new(&waiter.key.namespace, &waiter.owner);
        if kind == Kind::Pod {
            self.warnings.observe_pod(&waiter.key, &job);
        }
        let is_unseen = waiter.is_unseen && !is_deleted;
        if is_unseen {
            self.unseen_pods.insert(waiter.key.clone(), job.clone());
        } else {
            self.unseen_pods.remove(&waiter.key);
        }
        let refusal = || self.refused_pods.get(&waiter.key).filter(|_| is_unseen).cloned();
        let text = waiter.reason.filter(|_| !is_deleted).or_else(refusal);
        self.note(job, waiter.key, text, now);
    }

    /// Takes in a Job, which may itself say why it runs nothing.
    pub(crate) fn observe_job(&mut self, object: &Object, now: Instant) {
        let key = &object.meta.key;
        if let Some(job) = object.as_vcjob() {
            let text = vcjob::waits_for(&job.status.state).map(|why| with_remedy(why.to_owned()));
            return self.note(key.clone(), key.clone(), text, now);
        }
        let Some(job) = object.as_job() else { return };
        self.note(key.clone(), key.clone(), job_waits::reason(job), now);
        if job_waits::is_short_of_pods(job) {
            self.short_of_pods.insert(key.clone());
        } else {
            self.short_of_pods.remove(key);
        }
    }

    fn observe_event(&mut self, event: Seen, now: Instant) {
        let Seen { metadata, involved_object: about, reason, message, .. } = event;
        if event.event_type != "Warning" {
            return;
        }
        let key = Key::new(&metadata.namespace, &about.name);
        match (reason.as_str(), about.kind.as_str()) {
            ("FailedCreate", "Job") if about.api_version == KUBERNETES_JOBS => {
                let text = with_remedy(message);
                self.refusals.entry(key).or_insert(Reason { text, since: now });
            }
            ("FailedCreate", "Pod") => {
                let text = format!("pod {}: {}", about.name, with_remedy(message));
                if let Some(job) = self.unseen_pods.get(&key).cloned() {
                    self.note(job, key.clone(), Some(text.clone()), now);
                }
                self.refused_pods.insert(key, text);
            }
            // A volume that is only late is a reason to wait, and told as such.
            ("FailedMount", "Pod") if message.contains(NO_MOUNTS) => self.warnings.observe(key, message),
            _ => {}
        }
    }

    fn note(&mut self, job: Key, waiter: Key, text: Option<String>, now: Instant) {
        let reasons = self.reasons.entry(job).or_default();
        match text {
            None => drop(reasons.remove(&waiter)),
            Some(text) => {
                let reason = reasons.entry(waiter).or_insert(Reason { text: String::new(), since: now });
                reason.text = text;
            }
        }
    }

    /// Why a job waits, if it has done so for a while.
    pub(crate) fn reason(&self, job: &Key, now: Instant) -> Option<&str> {
        let refusal = self.refusals.get(job).filter(|_| self.short_of_pods.contains(job));
        let reasons = self.reasons.get(job).into_iter().flat_map(BTreeMap::values).chain(refusal);
        let lasting = reasons.filter(|reason| now.duration_since(reason.since) >= TOLD_AFTER);
        lasting.min_by_key(|reason| reason.since).map(|reason| reason.text.as_str())
    }

    /// What has not been told yet: a job and its reason.
    pub(crate) fn news(&mut self, now: Instant) -> Vec<(Key, String)> {
        let mut news = Vec::new();
        let jobs: BTreeSet<&Key> = self.reasons.keys().chain(self.refusals.keys()).collect();
        for job in jobs {
            let Some(reason) = self.reason(job, now) else { continue };
            if self.told.get(job).is_none_or(|told| told != reason) {
                news.push((job.clone(), reason.to_owned()));
            }
        }
        self.told.extend(news.iter().cloned());
        news
    }
}

/// A PodGroup or a pod of a job, and why it waits, if it does.
struct Waiter {
    key: Key,
    owner: String,
    reason: Option<String>,
    /// Whether it is a pod that has no node, and of which no scheduler has said why.
    is_unseen: bool,
}

impl Waiter {
    /// None for what is nobody's.
    fn read(kind: Kind, seen: Seen) -> Option<Waiter> {
        let Seen { metadata, spec, status, .. } = seen;
        let owner = metadata.owner_references.into_iter().next()?;
        let reason = match kind {
            Kind::PodGroup => of_podgroup(&status),
            _ => of_pod(&metadata.name, &spec, &status),
        };
        let is_unseen = kind == Kind::Pod && spec.node_name.is_empty() && reason.is_none();
        let key = Key::new(&metadata.namespace, &metadata.name);
        Some(Waiter { key, owner: owner.name, reason, is_unseen })
    }
}

/// What is looked at of a PodGroup, a pod or an Event. It is little, because every change of every pod comes by here.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Seen {
    metadata: Metadata,
    spec: Spec,
    status: Status,
    involved_object: Owner,
    #[serde(rename = "type")]
    event_type: String,
    reason: String,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    owner_references: Vec<Owner>,
}

/// Whom a pod belongs to, or an Event is about.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Owner {
    api_version: String,
    kind: String,
    name: String,
}

/// Where a pod runs, and when its containers are started again.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: String,
    restart_policy: String,
    init_containers: Vec<InitContainer>,
}

impl Spec {
    /// What holds for a container: a sidecar says it itself.
    fn restart_policy(&self, container: &str) -> &str {
        let mut init = self.init_containers.iter();
        let own = init.find(|it| it.name == container).and_then(|it| it.restart_policy.as_deref());
        own.unwrap_or(&self.restart_policy)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InitContainer {
    name: String,
    restart_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    conditions: Vec<Condition>,
    init_container_statuses: Vec<ContainerStatus>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    state: ContainerState,
    last_state: ContainerState,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: String,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terminated {
    exit_code: i32,
    reason: String,
    message: String,
}

/// What the scheduler says of a gang that finds no place.
fn of_podgroup(status: &Status) -> Option<String> {
    of_scheduler(status, "Unschedulable", "True")
}

/// What the scheduler says of a pod in no gang, or the node of a container that does not start or stay.
fn of_pod(name: &str, spec: &Spec, status: &Status) -> Option<String> {
    let unscheduled = of_scheduler(status, "PodScheduled", "False");
    unscheduled.map(|why| format!("pod {name}: {why}")).or_else(|| of_containers(name, spec, status))
}

/// What a condition of the scheduler says, and what to do about it.
fn of_scheduler(status: &Status, condition_type: &str, bad: &str) -> Option<String> {
    let mut conditions = status.conditions.iter();
    let waiting = conditions.find(|it| it.condition_type == condition_type && it.status == bad)?;
    let why = if waiting.message.is_empty() { &waiting.reason } else { &waiting.message };
    Some(format!("{why}; to do: {}", remedy_of_scheduling(why)))
}

fn of_containers(name: &str, spec: &Spec, status: &Status) -> Option<String> {
    let mut containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    containers.find_map(|container| {
        let waiting = container.state.waiting.as_ref()?;
        let place = format!("pod {name}, container {}", container.name);
        match container.last_state.terminated.as_ref().filter(|_| waiting.reason == "CrashLoopBackOff") {
            Some(end) => Some(format!("{place} {}", of_restart(end, spec.restart_policy(&container.name)))),
            // A word alone (ContainerCreating, PodInitializing) is the way of all pods.
            None if waiting.message.is_empty() => None,
            // What the node can not do it says with the remedy; of what is missing it only says that.
            None if waiting.message.ends_with("not found") => {
                let remedy = remedy_of_container(name, &container.name, &waiting.reason);
                Some(format!("{place}: {}; to do: {remedy}", waiting.message))
            }
            None => Some(format!("{place}: {}", waiting.message)),
        }
    })
}

/// What somebody warned of, and what to do about it.
fn with_remedy(message: String) -> String {
    remedy_of_warning(&message).map_or(message.clone(), |remedy| format!("{message}; to do: {remedy}"))
}

/// Why a container that has ended is started again and again. How long it waits in between is left out: it is another
/// time each time.
fn of_restart(end: &Terminated, policy: &str) -> String {
    let again = format!("is started again because restartPolicy is {policy}");
    let instead = "set restartPolicy to Never if it should not be tried again";
    match end {
        Terminated { reason, message, .. } if reason == "StartError" => {
            format!("can not be started ({message}) and {again}; to do: correct its command, or {instead}")
        }
        Terminated { exit_code: 0, .. } => {
            format!("ended with exit code 0 and {again}; to do: set restartPolicy to OnFailure or Never")
        }
        Terminated { exit_code, reason, .. } => {
            let why =
                if ["", "Error"].contains(&reason.as_str()) { String::new() } else { format!(" ({reason})") };
            format!(
                "ended with exit code {exit_code}{why} and {again}; to do: see with --logs what it wrote, or {instead}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    fn owned(name: &str, status: Value) -> Vec<u8> {
        let owner = json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": "1", "controller": true});
        let metadata = json!({"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]});
        json!({"metadata": metadata, "spec": {}, "status": status}).to_string().into_bytes()
    }

    fn check(waits: &mut Waits, now: Instant, expected: Expect) {
        let news = waits.news(now).into_iter().map(|(job, reason)| format!("{}: {reason}\n", job.name));
        expected.assert_eq(&news.collect::<String>());
    }

    #[tokio::test]
    async fn a_reason_is_told_once_and_only_if_it_lasts() {
        let (mut waits, start) = (Waits::default(), Instant::now());
        let condition = json!({"type": "Unschedulable", "status": "True", "message": "not enough cpu"});
        let podgroup = owned("a-1", json!({"conditions": [condition]}));
        waits.observe(Kind::PodGroup, &podgroup, false, start);
        check(&mut waits, start, expect![[""]]);
        check(
            &mut waits,
            start + TOLD_AFTER,
            expect![[r#"
                a: not enough cpu; to do: ask for less in resources.requests, lower spec.minAvailable, or wait until others have ended
            "#]],
        );
        waits.observe(Kind::PodGroup, &podgroup, false, start + TOLD_AFTER);
        check(&mut waits, start + 2 * TOLD_AFTER, expect![[""]]);
        waits.observe(Kind::PodGroup, &owned("a-1", json!({})), false, start);
        assert_eq!(waits.reason(&Key::new("default", "a"), start + 3 * TOLD_AFTER), None);
    }

    #[tokio::test]
    async fn a_pod_in_no_gang_says_why_it_has_no_node_and_what_to_do() {
        let (mut waits, start) = (Waits::default(), Instant::now());
        let why = "0/1 nodes are available: persistentvolumeclaim \"data\" not found";
        let condition = json!({"type": "PodScheduled", "status": "False", "message": why});
        waits.observe(Kind::Pod, &owned("a-x7f2k", json!({"conditions": [condition]})), false, start);
        check(
            &mut waits,
            start + TOLD_AFTER,
            expect![[r#"
            a: pod a-x7f2k: 0/1 nodes are available: persistentvolumeclaim "data" not found; to do: create the PersistentVolumeClaim, or correct spec.volumes
        "#]],
        );
        let bound = owned("a-x7f2k", json!({"conditions": [{"type": "PodScheduled", "status": "True"}]}));
        waits.observe(Kind::Pod, &bound, false, start);
        assert_eq!(waits.reason(&Key::new("default", "a"), start + TOLD_AFTER), None);
    }

    #[tokio::test]
    async fn a_container_that_can_not_start_says_why() {
        let (mut waits, start) = (Waits::default(), Instant::now());
        let container =
            |waiting: Value| json!({"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]});
        let usual = container(json!({"reason": "ContainerCreating"}));
        waits.observe(Kind::Pod, &owned("a-work-0", usual), false, start);
        check(&mut waits, start + TOLD_AFTER, expect![[""]]);
        let stuck =
            container(json!({"reason": "ContainerCreating", "message": "volume \"data\" can not be made"}));
        let stuck = owned("a-work-0", stuck);
        waits.observe(Kind::Pod, &stuck, false, start);
        check(
            &mut waits,
            start + TOLD_AFTER,
            expect![[r#"
            a: pod a-work-0, container main: volume "data" can not be made
        "#]],
        );
        waits.observe(Kind::Pod, &stuck, true, start);
        assert_eq!(waits.reason(&Key::new("default", "a"), start + TOLD_AFTER), None);
        let missing =
            container(json!({"reason": "CreateContainerConfigError", "message": "secret \"s\" not found"}));
        waits.observe(Kind::Pod, &owned("a-work-0", missing), false, start);
        check(
            &mut waits,
            start + TOLD_AFTER,
            expect![[r#"
            a: pod a-work-0, container main: secret "s" not found; to do: create what is missing, or mark the reference as optional
        "#]],
        );
    }

    #[tokio::test]
    async fn a_pod_whose_podgroup_is_refused_says_so_until_it_has_a_node() {
        let about = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "a-x7f2k"});
        let event = json!({"metadata": {"name": "e", "namespace": "default"}, "involvedObject": about, "type": "Warning",
            "reason": "FailedCreate", "message": "podgroups \"a\" is forbidden: exceeded quota: small"});
        let event = event.to_string().into_bytes();
        let (pod, start) = (owned("a-x7f2k", json!({})), Instant::now());
        // The news may come in any order.
        for event_first in [true, false] {
            let mut waits = Waits::default();
            let news = [(Kind::Event, &event), (Kind::Pod, &pod)];
            let order = if event_first { [0, 1] } else { [1, 0] };
            for (kind, json) in order.map(|index| news[index]) {
                waits.observe(kind, json, false, start);
            }
            check(
                &mut waits,
                start + TOLD_AFTER,
                expect![[r#"
                a: pod a-x7f2k: podgroups "a" is forbidden: exceeded quota: small; to do: wait until others have ended, ask for less, or raise the ResourceQuota of the namespace
            "#]],
            );
            let mut bound: Value = serde_json::from_slice(&pod).unwrap();
            bound["spec"] = json!({"nodeName": "n"});
            waits.observe(Kind::Pod, bound.to_string().as_bytes(), false, start);
            waits.observe(Kind::Event, &event, false, start);
            assert_eq!(waits.reason(&Key::new("default", "a"), start + TOLD_AFTER), None);
        }
    }

    #[tokio::test]
    async fn a_container_that_is_started_again_and_again_says_how_it_ended_and_why() {
        let told = |spec: Value, back_off: &str, end: Value| {
            let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": back_off}});
            let container = json!({"name": "main", "state": waiting, "lastState": {"terminated": end}});
            let statuses =
                if spec["initContainers"].is_null() { "containerStatuses" } else { "initContainerStatuses" };
            let status: Status = serde_json::from_value(json!({statuses: [container]})).unwrap();
            of_pod("p", &serde_json::from_value(spec).unwrap(), &status).unwrap() + "\n"
        };
        let on_failure = json!({"restartPolicy": "OnFailure"});
        let end = json!({"exitCode": 128, "reason": "StartError", "message": "exec \"pythn\": not found"});
        let missing = told(on_failure.clone(), "back-off 10s", end.clone());
        expect![[r#"
            pod p, container main can not be started (exec "pythn": not found) and is started again because restartPolicy is OnFailure; to do: correct its command, or set restartPolicy to Never if it should not be tried again
        "#]]
        .assert_eq(&missing);
        assert_eq!(told(on_failure.clone(), "back-off 20s", end), missing, "it is told once");
        expect![[r#"
            pod p, container main ended with exit code 137 (OOMKilled) and is started again because restartPolicy is OnFailure; to do: see with --logs what it wrote, or set restartPolicy to Never if it should not be tried again
        "#]]
        .assert_eq(&told(on_failure, "", json!({"exitCode": 137, "reason": "OOMKilled"})));
        let sidecar = json!({"restartPolicy": "Never", "initContainers": [{"name": "main", "restartPolicy": "Always"}]});
        for spec in [json!({"restartPolicy": "Always"}), sidecar] {
            expect![[r#"
                pod p, container main ended with exit code 0 and is started again because restartPolicy is Always; to do: set restartPolicy to OnFailure or Never
            "#]]
            .assert_eq(&told(spec, "", json!({"exitCode": 0, "reason": "Completed"})));
        }
    }

    fn job(spec: Value, status: Value) -> Object {
        let metadata = json!({"name": "a", "namespace": "default", "uid": "1"});
        let job = json!({"metadata": metadata, "spec": spec, "status": status});
        Object::decode(Kind::Job, job.to_string().as_bytes())
    }

    #[tokio::test]
    async fn a_job_that_can_run_nothing_says_why() {
        for (spec, reason) in [
            (json!({"suspend": true}), "spec.suspend is true: nothing runs until it is false"),
            (json!({"parallelism": 0}), "spec.parallelism is 0: nothing runs until it is more"),
            (json!({"managedBy": "acme.io/jobs"}), "spec.managedBy leaves it to acme.io/jobs"),
        ] {
            let (mut waits, start) = (Waits::default(), Instant::now());
            waits.observe_job(&job(spec.clone(), json!({})), start);
            let later = start + TOLD_AFTER;
            assert_eq!(waits.reason(&Key::new("default", "a"), later), Some(reason), "{spec}");
            waits.observe_job(&job(json!({}), json!({"startTime": "2027-01-15T08:00:00Z"})), later);
            assert_eq!(waits.reason(&Key::new("default", "a"), later), None, "{spec}");
        }
    }

    #[tokio::test]
    async fn a_job_of_volcano_says_in_its_state_why_it_waits() {
        let told = |state: Value| {
            let job = json!({"metadata": {"name": "a", "namespace": "default"}, "status": {"state": state}});
            let (mut waits, start) = (Waits::default(), Instant::now());
            waits.observe_job(&Object::decode(Kind::VcJob, job.to_string().as_bytes()), start);
            waits.reason(&Key::new("default", "a"), start + TOLD_AFTER).unwrap_or_default().to_owned()
        };
        let refused = "podgroups \"a\" is forbidden: exceeded quota: small";
        for phase in ["Pending", "Running"] {
            assert_eq!(
                told(json!({"phase": phase, "reason": "FailedCreate", "message": refused})),
                format!(
                    "{refused}; to do: wait until others have ended, ask for less, or raise the ResourceQuota of the namespace"
                )
            );
        }
        let missing =
            json!({"phase": "Pending", "reason": "QueueNotFound", "message": "queue q does not exist"});
        assert_eq!(told(missing), "queue q does not exist");
        for state in [
            json!({"phase": "Running", "reason": "InvalidSpec", "message": "odd"}),
            json!({"phase": "Pending", "reason": "PodGroupPending", "message": "the gang says it"}),
            json!({"phase": "Pending", "reason": "PodFailed", "message": "pod a-0 failed"}),
        ] {
            assert_eq!(told(state.clone()), "", "{state}");
        }
    }

    #[tokio::test]
    async fn what_the_server_refused_is_told_for_as_long_as_pods_are_missing() {
        let event = |api_version: &str, reason: &str| {
            let about =
                json!({"apiVersion": api_version, "kind": "Job", "namespace": "default", "name": "a"});
            let metadata = json!({"name": "a.1", "namespace": "default"});
            let event = json!({"metadata": metadata, "involvedObject": about, "type": "Warning", "reason": reason, "message": "no room"});
            event.to_string().into_bytes()
        };
        let wanting =
            |n_active: i32| job(json!({"parallelism": 2, "completions": 2}), json!({"active": n_active}));
        for (event, told) in [
            (event("batch/v1", "FailedCreate"), Some("no room")),
            (event("batch/v1", "DeadlineExceeded"), None),
            (event("batch.volcano.sh/v1alpha1", "FailedCreate"), None),
        ] {
            let (mut waits, start) = (Waits::default(), Instant::now());
            let told_at = |waits: &Waits| {
                waits.reason(&Key::new("default", "a"), start + TOLD_AFTER).map(str::to_owned)
            };
            // The news may come in any order.
            waits.observe(Kind::Event, &event, false, start);
            assert_eq!(told_at(&waits), None);
            waits.observe_job(&wanting(2), start);
            assert_eq!(told_at(&waits), None);
            waits.observe_job(&wanting(1), start);
            assert_eq!(told_at(&waits).as_deref(), told);
        }
    }
}
