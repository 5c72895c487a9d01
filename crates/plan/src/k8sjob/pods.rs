//! The pods of a Job: which are its own, and how each of them is doing.

use std::sync::Arc;

use krafla_api::batch::{COMPLETION_INDEX, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, JOB_TRACKING};
use krafla_api::{Kind, OwnerReference, Time};
use krafla_cluster::Step;
use serde_json::json;

use super::Job;
use super::failure_policy::{self, Verdict};
use crate::Snapshot;
use crate::object::{Meta, Object, Pod, PodPhase};
use crate::placement::selects;

/// One pod of the Job.
pub(super) struct JobPod<'a> {
    pub(super) object: &'a Arc<Object>,
    pub(super) pod: &'a Pod,
    /// Its index, if the Job has indexes and this one among them.
    pub(super) index: Option<u32>,
    /// Whether its end counts: a pod of an Indexed Job must have an index.
    pub(super) counts: bool,
    /// Whether it has not been counted yet.
    pub(super) is_tracked: bool,
    pub(super) state: State,
    /// Whether the Job counts on it no more.
    pub(super) has_failed: bool,
    /// What the failure policy says about that.
    pub(super) verdict: Verdict,
}

/// How a pod is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It runs or will run.
    Active,
    /// It runs, and is being deleted.
    Terminating,
    /// It has succeeded.
    Succeeded,
    /// It will never run again, and has not succeeded.
    Failed,
}

/// A pod that has ended, as the failure policy sees it.
pub(super) struct Ended<'a> {
    pub(super) meta: &'a Meta,
    pub(super) pod: &'a Pod,
}

/// The pods of the Job, or what must be settled first.
pub(super) enum Claim<'a> {
    /// These are its pods.
    Pods(Vec<JobPod<'a>>),
    /// These writes make pods the Job's own, or let them go. After them, the Job looks again.
    Settle(Vec<Step>),
}

/// Finds the Job's pods: those that it controls and that its selector picks. One that it controls and does not pick is let
/// go; one that it picks and that nobody controls is taken in.
pub(super) fn claim<'a>(job: &Job<'_>, snapshot: &Snapshot<'a>) -> Claim<'a> {
    let picks = |object: &Object| {
        job.spec.selector.as_ref().is_none_or(|selector| selects(selector, &object.meta.labels))
    };
    let (own, strangers): (Vec<_>, Vec<_>) = snapshot.children(Kind::Pod).partition(|pod| picks(pod));
    if !job.meta.is_deleting() {
        let orphans = snapshot.objects.uncontrolled_pods(&job.meta.key.namespace);
        let found = orphans.filter(|pod| {
            job.spec.selector.is_some()
                && picks(pod)
                && !pod.meta.labels.is_empty()
                && !pod.meta.is_deleting()
        });
        let settle: Vec<Step> =
            strangers.iter().map(|pod| release(job, pod)).chain(found.map(|pod| adopt(job, pod))).collect();
        if !settle.is_empty() {
            return Claim::Settle(settle);
        }
    }
    Claim::Pods(own.into_iter().filter_map(|object| JobPod::observe(job, object)).collect())
}

fn release(job: &Job<'_>, pod: &Object) -> Step {
    let others: Vec<&OwnerReference> =
        pod.meta.owners.iter().filter(|owner| owner.uid != job.meta.uid).collect();
    patch(pod, json!({ "ownerReferences": others, "finalizers": finalizers_but_tracking(pod) }))
}

fn adopt(job: &Job<'_>, pod: &Object) -> Step {
    let mut owners: Vec<_> = pod.meta.owners.iter().map(|owner| json!(owner)).collect();
    owners.push(job.owner_reference());
    let mut finalizers = finalizers_but_tracking(pod);
    finalizers.push(JOB_TRACKING);
    patch(pod, json!({ "ownerReferences": owners, "finalizers": finalizers }))
}

/// Lets go of a pod that has been counted, or is not to be.
pub(super) fn untrack(pod: &Object) -> Step {
    patch(pod, json!({ "finalizers": finalizers_but_tracking(pod) }))
}

fn finalizers_but_tracking(pod: &Object) -> Vec<&str> {
    pod.meta.finalizers.iter().map(String::as_str).filter(|name| *name != JOB_TRACKING).collect()
}

/// Lists are replaced as a whole, so the change holds only for the revision that it was computed from.
fn patch(pod: &Object, metadata: serde_json::Value) -> Step {
    Step::Patch {
        kind: Kind::Pod,
        key: pod.meta.key.clone(),
        uid: pod.meta.uid.clone(),
        revision: Some(pod.meta.revision),
        of_status: false,
        patch: json!({ "metadata": metadata }),
    }
}

impl<'a> JobPod<'a> {
    pub(super) fn observe(job: &Job<'_>, object: &'a Arc<Object>) -> Option<JobPod<'a>> {
        let (meta, pod) = (&object.meta, object.as_pod()?);
        let state = match pod.status.phase {
            PodPhase::Succeeded => State::Succeeded,
            PodPhase::Failed => State::Failed,
            _ if !meta.is_deleting() => State::Active,
            // Without a node there is nobody who would ever say how it ended.
            _ if pod.spec.node_name.is_empty() => State::Failed,
            _ => State::Terminating,
        };
        let has_failed =
            state == State::Failed || (state == State::Terminating && !job.replaces_only_failed());
        let policy = job.spec.pod_failure_policy.as_ref().filter(|_| has_failed);
        let verdict = failure_policy::judge(policy, &Ended { meta, pod });
        let is_tracked = meta.finalizers.iter().any(|name| name == JOB_TRACKING);
        let index =
            index_in(meta).filter(|index| job.is_indexed() && *index < job.completions().unwrap_or(0));
        let counts = index.is_some() || !job.is_indexed();
        Some(JobPod { object, pod, index, counts, is_tracked, state, has_failed, verdict })
    }

    pub(super) fn meta(&self) -> &'a Meta {
        &self.object.meta
    }

    pub(super) fn is_active(&self) -> bool {
        self.state == State::Active
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_active() && self.ready_since().is_some()
    }

    /// Since when it is ready, if it is.
    pub(super) fn ready_since(&self) -> Option<Option<Time>> {
        let conditions = &self.pod.status.conditions;
        (conditions.statuses.get("Ready") == Some("True")).then_some(conditions.ready_changed_at)
    }

    /// When it ended, as well as can be known.
    pub(super) fn ended_at(&self) -> Time {
        let status = &self.pod.status;
        let is_sidecar = |name: &str| {
            self.pod.spec.init_containers.iter().any(|it| it.name == name && it.restart_policy == "Always")
        };
        let sidecars = status.init_container_statuses.iter().filter(|it| is_sidecar(&it.name));
        let ends: Option<Vec<Time>> = status
            .container_statuses
            .iter()
            .chain(sidecars)
            .map(|container| container.state.terminated.as_ref()?.finished_at)
            .collect();
        let not_ready = || {
            let changed_at = status.conditions.ready_changed_at;
            changed_at.filter(|_| status.conditions.statuses.get("Ready") == Some("False"))
        };
        ends.and_then(|ends| ends.into_iter().max())
            .or_else(not_ready)
            .or(self.meta().deletion_asked_at())
            .or(self.meta().created_at)
            .unwrap_or(Time::from_seconds(0))
    }

    /// How often pods of its index had failed before it, and how many failures were not counted.
    pub(super) fn failures_before(&self) -> [i32; 2] {
        [INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT].map(|annotation| {
            let count = self.meta().annotations.get(annotation).and_then(|text| text.parse::<i32>().ok());
            count.unwrap_or(0).max(0)
        })
    }

    /// Whether its failure is the last that its index may have.
    pub(super) fn fails_its_index(&self, backoff_limit_per_index: i32) -> bool {
        let [failures, _] = self.failures_before();
        let is_spent = self.verdict != Verdict::Ignore && failures >= backoff_limit_per_index;
        self.has_failed && (self.verdict == Verdict::FailIndex || is_spent)
    }
}

/// The index that an object's annotation names.
fn index_in(meta: &Meta) -> Option<u32> {
    meta.annotations.get(COMPLETION_INDEX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use krafla_api::batch::{JobSpec, JobStatus};
    use serde_json::{Value, json};

    use super::*;

    /// The second after 08:00:00 at which a pod with these fields ended.
    fn ended(fields: &Value) -> i64 {
        let mut pod = json!({ "metadata": { "name": "p", "creationTimestamp": "2027-01-15T08:00:01Z" } });
        for (field, value) in fields.as_object().unwrap() {
            match (field.as_str(), value) {
                ("metadata", Value::Object(more)) => {
                    pod["metadata"].as_object_mut().unwrap().extend(more.clone())
                }
                _ => pod[field] = value.clone(),
            }
        }
        let object = Arc::new(Object::decode(Kind::Pod, pod.to_string().as_bytes()));
        let job = Job {
            meta: &object.meta,
            spec: &JobSpec::default(),
            status: &JobStatus::default(),
            now: Time::from_seconds(0),
        };
        let pod = JobPod::observe(&job, &object).unwrap();
        pod.ended_at().0.as_second() - 1_800_000_000
    }

    fn terminated(name: &str, second: u32) -> Value {
        let end = json!({ "exitCode": 1, "finishedAt": format!("2027-01-15T08:00:{second:02}Z") });
        json!({ "name": name, "state": { "terminated": end } })
    }

    #[test]
    fn a_pod_ended_with_its_last_container_or_when_it_was_last_heard_of() {
        let status = |status: Value| json!({ "status": status });
        assert_eq!(
            ended(&status(json!({ "containerStatuses": [terminated("a", 5), terminated("b", 9)] }))),
            9
        );
        let one_runs = json!([terminated("a", 5), { "name": "b", "state": { "running": {} } }]);
        let not_ready =
            json!([{ "type": "Ready", "status": "False", "lastTransitionTime": "2027-01-15T08:00:07Z" }]);
        assert_eq!(ended(&status(json!({ "containerStatuses": one_runs, "conditions": not_ready }))), 7);
        let untold = json!([{ "name": "a", "state": { "terminated": { "exitCode": 1 } } }]);
        assert_eq!(ended(&status(json!({ "containerStatuses": untold, "conditions": not_ready }))), 7);
        assert_eq!(
            ended(&status(json!({ "conditions": not_ready }))),
            7,
            "nothing is known of its containers"
        );
        let ready =
            json!([{ "type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:00:07Z" }]);
        assert_eq!(ended(&status(json!({ "conditions": ready }))), 1, "it was still ready");
        assert_eq!(ended(&status(json!({ "containerStatuses": one_runs }))), 1, "when it was created");
        let asked = json!({ "metadata": { "deletionTimestamp": "2027-01-15T08:00:40Z", "deletionGracePeriodSeconds": 30 } });
        assert_eq!(ended(&asked), 10, "when it was asked to go");
        let mut both = asked.clone();
        both["status"] = json!({ "conditions": not_ready });
        assert_eq!(ended(&both), 7, "it was not ready any more before it was asked");
        let with_sidecar = json!({
            "spec": { "initContainers": [
                { "name": "setup" }, { "name": "sidecar", "restartPolicy": "Always" },
            ] },
            "status": {
                "containerStatuses": [terminated("a", 5)],
                "initContainerStatuses": [terminated("setup", 20), terminated("sidecar", 6)],
            },
        });
        assert_eq!(ended(&with_sidecar), 6, "a sidecar counts, and what ran before the containers does not");
    }
}
