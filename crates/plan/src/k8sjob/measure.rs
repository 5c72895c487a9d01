//! What Jobs do to the numbers at /metrics. Kubernetes: `pkg/controller/job/metrics`.

use krafla_api::Kind;
use krafla_api::batch::JOB_TRACKING;
use krafla_metrics::Metric;

use super::failure_policy;
use super::managed::Managed;
use super::pods::Ended;
use crate::indexes::Indexes;
use crate::measure::{Effect, Measure, Stored};
use crate::object::{Job, PodPhase};
use crate::{Object, controlling_keys};

static JOBS_FINISHED: Metric = Metric::counter(
    "job_controller_jobs_finished_total",
    "How many Jobs have ended, and how.",
    &["completion_mode", "result", "reason"],
);
static PODS_FINISHED: Metric = Metric::counter(
    "job_controller_job_pods_finished_total",
    "How many pods of Jobs have been counted as ended.",
    &["completion_mode", "result"],
);
static INDEXES_FINISHED: Metric = Metric::counter(
    "job_controller_job_finished_indexes_total",
    "How many indexes of Jobs have ended for good.",
    &["status", "backoffLimit"],
);
pub(super) static PODS_CREATED: Metric = Metric::counter(
    "job_controller_job_pods_creation_total",
    "How many pods were created for Jobs, or could not be, and what for.",
    &["reason", "status"],
);
static FAILURES_HANDLED: Metric = Metric::counter(
    "job_controller_pod_failures_handled_by_failure_policy_total",
    "How many pod failures a rule of a failure policy decided about.",
    &["action"],
);
static ENDED_AND_TRACKED: Metric = Metric::counter(
    "job_controller_terminated_pods_tracking_finalizer_total",
    "How many ended pods came to wait for their count, and ceased to.",
    &["event"],
);
static MANAGED_ELSEWHERE: Metric = Metric::counter(
    "job_controller_jobs_by_external_controller_total",
    "How many Jobs asked for another controller.",
    &["controller_name"],
);

/// What a stored change of a Job or a pod does to the numbers.
pub(super) fn measure(managed: &Managed, stored: &Stored<'_>) -> Vec<Measure> {
    match stored.after.or(stored.before).map(|object| object.kind) {
        Some(Kind::Job) => of_job(managed, stored),
        Some(Kind::Pod) => of_pod(managed, stored),
        _ => Vec::new(),
    }
}

fn of_job(managed: &Managed, stored: &Stored<'_>) -> Vec<Measure> {
    let Some(after) = stored.after.and_then(Object::as_job) else { return Vec::new() };
    let Some(before) = stored.before.and_then(Object::as_job) else {
        let manager = after.spec.managed_by.as_deref();
        let is_elsewhere = stored.is_news && !managed.includes(manager);
        let came = is_elsewhere.then(|| one(&MANAGED_ELSEWHERE, [manager.unwrap_or_default()]));
        return came.into_iter().collect();
    };
    if !managed.includes(after.spec.managed_by.as_deref()) {
        return Vec::new();
    }
    let mode = mode(after);
    let mut measures = Vec::new();
    if let (None, Some(end)) = (before.status.finished(), after.status.finished()) {
        let result = if end.condition_type == "Complete" { "succeeded" } else { "failed" };
        measures.push(one(&JOBS_FINISHED, [mode, result, &end.reason]));
    }
    let counters = [
        ("succeeded", before.status.succeeded, after.status.succeeded),
        ("failed", before.status.failed, after.status.failed),
    ];
    measures.extend(counters.into_iter().filter_map(|(result, from, to)| {
        grown(&PODS_FINISHED, [mode, result], i64::from(to) - i64::from(from))
    }));
    measures.extend(indexes_finished(before, after));
    measures
}

fn indexes_finished(before: &Job, after: &Job) -> Vec<Measure> {
    let completions = after.spec.completions.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let n_indexes = |text: &str| Indexes::parse(text, completions).len();
    let limit = if after.spec.backoff_limit_per_index.is_some() { "perIndex" } else { "global" };
    let failed = |job: &Job| n_indexes(job.status.failed_indexes.as_deref().unwrap_or_default());
    let completed = |job: &Job| n_indexes(&job.status.completed_indexes);
    let grown = |status, by| grown(&INDEXES_FINISHED, [status, limit], by);
    [
        grown("succeeded", completed(after) - completed(before)),
        grown("failed", failed(after) - failed(before)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_pod(managed: &Managed, stored: &Stored<'_>) -> Vec<Measure> {
    // A pod without a Job is Kubernetes' own, like a Job without a manager.
    let job = stored.after.or(stored.before).and_then(|pod| owner(pod, stored)?.as_job());
    if !managed.includes(job.and_then(|job| job.spec.managed_by.as_deref())) {
        return Vec::new();
    }
    let (was_waiting, is_waiting) =
        (stored.before.is_some_and(awaits_count), stored.after.is_some_and(awaits_count));
    let mut measures = Vec::new();
    match (was_waiting, is_waiting) {
        (false, true) => measures.push(one(&ENDED_AND_TRACKED, ["add"])),
        (true, false) => {
            measures.push(one(&ENDED_AND_TRACKED, ["delete"]));
            measures.extend(stored.before.and_then(|pod| failure_handled(pod, stored)));
        }
        (false, false) | (true, true) => {}
    }
    if let (None, Some(pod), true) = (stored.before, stored.after, stored.is_news) {
        measures.extend(created(pod, stored));
    }
    measures
}

/// Whether a pod has ended and waits for its count.
fn awaits_count(pod: &Object) -> bool {
    let has_ended =
        pod.as_pod().is_some_and(|pod| matches!(pod.status.phase, PodPhase::Succeeded | PodPhase::Failed));
    has_ended && pod.meta.finalizers.iter().any(|name| name == JOB_TRACKING)
}

/// A failed pod is let go once it has been judged.
fn failure_handled(pod: &Object, stored: &Stored<'_>) -> Option<Measure> {
    let body = pod.as_pod().filter(|body| body.status.phase == PodPhase::Failed)?;
    let policy = owner(pod, stored)?.as_job()?.spec.pod_failure_policy.as_ref()?;
    let action = failure_policy::matched_action(policy, &Ended { meta: &pod.meta, pod: body })?;
    Some(one(&FAILURES_HANDLED, [action]))
}

/// A pod that is new says what it was created for.
fn created(pod: &Object, stored: &Stored<'_>) -> Option<Measure> {
    let job = owner(pod, stored)?.as_job()?;
    Some(one(&PODS_CREATED, [creation_reason(job, has_failed(job)), "succeeded"]))
}

/// Whether a pod of the Job is known to have failed.
pub(super) fn has_failed(job: &Job) -> bool {
    let uncounted = job.status.uncounted_terminated_pods.as_ref();
    job.status.failed > 0 || uncounted.is_some_and(|pods| !pods.failed.is_empty())
}

/// What a Job wants another pod for.
pub(super) fn creation_reason(job: &Job, has_failed: bool) -> &'static str {
    let (status, spec) = (&job.status, &job.spec);
    let replaces_failed =
        spec.pod_failure_policy.is_some() || spec.pod_replacement_policy.as_deref() == Some("Failed");
    match (has_failed, status.terminating.unwrap_or(0) > 0) {
        (true, _) if replaces_failed => "recreate_failed",
        (false, false) => "new",
        (true, _) | (_, true) => "recreate_terminating_or_failed",
    }
}

/// The Job that controls a pod.
fn owner<'a>(pod: &Object, stored: &Stored<'a>) -> Option<&'a Object> {
    let key = controlling_keys(Kind::Job, pod).into_iter().next()?;
    let job = stored.objects.get(Kind::Job, &key)?;
    (Some(&job.meta.uid) == pod.meta.controller_uid()).then_some(job)
}

pub(super) fn mode(job: &Job) -> &'static str {
    if job.spec.completion_mode.as_deref() == Some("Indexed") { "Indexed" } else { "NonIndexed" }
}

fn one<const N: usize>(metric: &'static Metric, labels: [&str; N]) -> Measure {
    Measure::new(metric, labels, Effect::Add(1.0))
}

/// A counter follows only what has grown: an elastic Job may come to have fewer indexes.
fn grown<const N: usize>(metric: &'static Metric, labels: [&str; N], by: i64) -> Option<Measure> {
    (by > 0).then(|| Measure::new(metric, labels, Effect::Add(by as f64)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;
    use crate::Objects;

    fn job(spec: &Value, status: Value) -> Object {
        let job = json!({ "metadata": { "namespace": "n", "name": "a", "uid": "u" }, "spec": spec, "status": status });
        Object::decode(Kind::Job, job.to_string().as_bytes())
    }

    fn pod(phase: &str, finalizers: &[&str]) -> Object {
        let owner =
            json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u", "controller": true }]);
        let container = json!({ "name": "main", "state": { "terminated": { "exitCode": 42 } } });
        let pod = json!({
            "metadata": { "namespace": "n", "name": "p", "uid": "p", "ownerReferences": owner, "finalizers": finalizers },
            "status": { "phase": phase, "containerStatuses": [container] },
        });
        Object::decode(Kind::Pod, pod.to_string().as_bytes())
    }

    #[test]
    fn pods_are_counted_by_the_manager_of_their_job() {
        let ours = Managed::By("acme.io/jobs".to_owned());
        let new = pod("Pending", &[JOB_TRACKING]);
        let (waiting, gone) = (pod("Failed", &[JOB_TRACKING]), pod("Failed", &[]));
        let n_measures = |managed: &Managed, spec: Value, before: Option<&Object>, after: &Object| {
            let mut objects = Objects::default();
            objects.insert(job(&spec, json!({})).into());
            let stored = Stored { before, after: Some(after), objects: &objects, is_news: true };
            measure(managed, &stored).len()
        };
        for (before, after) in [(None, &new), (Some(&new), &waiting), (Some(&waiting), &gone)] {
            let theirs = || json!({ "managedBy": "acme.io/jobs" });
            assert_eq!(n_measures(&Managed::Unclaimed, json!({}), before, after), 1);
            assert_eq!(n_measures(&Managed::Unclaimed, theirs(), before, after), 0);
            assert_eq!(n_measures(&ours, json!({}), before, after), 0);
            assert_eq!(n_measures(&ours, theirs(), before, after), 1);
        }
    }

    fn check(known: Option<Object>, before: Option<Object>, after: Option<Object>, expected: &Expect) {
        let mut objects = Objects::default();
        known.into_iter().for_each(|object| drop(objects.insert(object.into())));
        let stored =
            Stored { before: before.as_ref(), after: after.as_ref(), objects: &objects, is_news: true };
        let measures = measure(&Managed::default(), &stored);
        let measures: Vec<String> = measures.iter().map(ToString::to_string).collect();
        expected.assert_eq(&measures.join("\n"));
    }

    #[test]
    fn a_job_and_its_pods_are_counted_when_they_have_ended() {
        let spec = json!({});
        let end = json!([{ "type": "Complete", "status": "True", "reason": "CompletionsReached" }]);
        let ended = job(&spec, json!({ "succeeded": 3, "failed": 1, "conditions": end }));
        let counted = expect![[r#"
            job_controller_jobs_finished_total["NonIndexed", "succeeded", "CompletionsReached"] Add(1.0)
            job_controller_job_pods_finished_total["NonIndexed", "succeeded"] Add(2.0)
            job_controller_job_pods_finished_total["NonIndexed", "failed"] Add(1.0)"#]];
        check(None, Some(job(&spec, json!({ "succeeded": 1 }))), Some(ended.clone()), &counted);
        check(None, Some(ended.clone()), Some(ended), &expect![""]);
    }

    #[test]
    fn indexes_are_counted_as_they_end() {
        let spec = json!({ "completionMode": "Indexed", "completions": 9, "backoffLimitPerIndex": 1 });
        let before = job(&spec, json!({ "completedIndexes": "0,1", "succeeded": 2, "failedIndexes": "" }));
        let after = job(&spec, json!({ "completedIndexes": "0-3", "succeeded": 4, "failedIndexes": "5" }));
        let counted = expect![[r#"
            job_controller_job_pods_finished_total["Indexed", "succeeded"] Add(2.0)
            job_controller_job_finished_indexes_total["succeeded", "perIndex"] Add(2.0)
            job_controller_job_finished_indexes_total["failed", "perIndex"] Add(1.0)"#]];
        check(None, Some(before.clone()), Some(after.clone()), &counted);
        check(None, Some(after), Some(before), &expect![""]);
    }

    #[test]
    fn a_job_of_another_manager_is_only_said_to_be_one() {
        let spec = json!({ "managedBy": "acme.io/jobs" });
        let came = expect![[r#"job_controller_jobs_by_external_controller_total["acme.io/jobs"] Add(1.0)"#]];
        check(None, None, Some(job(&spec, json!({}))), &came);
        check(None, Some(job(&spec, json!({}))), Some(job(&spec, json!({ "failed": 1 }))), &expect![""]);
    }

    #[test]
    fn a_pod_says_what_it_was_created_for() {
        for (spec, status, reason) in [
            (json!({}), json!({}), "new"),
            (json!({}), json!({ "failed": 1 }), "recreate_terminating_or_failed"),
            (json!({}), json!({ "terminating": 1 }), "recreate_terminating_or_failed"),
            (json!({ "podReplacementPolicy": "Failed" }), json!({ "failed": 1 }), "recreate_failed"),
        ] {
            let objects = {
                let mut objects = Objects::default();
                objects.insert(job(&spec, status).into());
                objects
            };
            let pod = pod("Pending", &[JOB_TRACKING]);
            let stored = Stored { before: None, after: Some(&pod), objects: &objects, is_news: true };
            let measures: Vec<String> =
                measure(&Managed::default(), &stored).iter().map(ToString::to_string).collect();
            assert_eq!(
                measures,
                [format!(r#"job_controller_job_pods_creation_total["{reason}", "succeeded"] Add(1.0)"#)]
            );
        }
    }

    #[test]
    fn a_pod_that_has_ended_waits_for_its_count_and_its_failure_is_judged() {
        let rule = json!({ "action": "Ignore", "onExitCodes": { "operator": "In", "values": [42] } });
        let judged = || Some(job(&json!({ "podFailurePolicy": { "rules": [rule.clone()] } }), json!({})));
        let (running, waiting, gone) =
            (pod("Running", &[JOB_TRACKING]), pod("Failed", &[JOB_TRACKING]), pod("Failed", &[]));
        let waits = expect![[r#"job_controller_terminated_pods_tracking_finalizer_total["add"] Add(1.0)"#]];
        check(judged(), Some(running), Some(waiting.clone()), &waits);
        let let_go = expect![[r#"
            job_controller_terminated_pods_tracking_finalizer_total["delete"] Add(1.0)
            job_controller_pod_failures_handled_by_failure_policy_total["Ignore"] Add(1.0)"#]];
        check(judged(), Some(waiting.clone()), Some(gone.clone()), &let_go);
        for action in ["FailJob", "FailIndex", "Count"] {
            let mut objects = Objects::default();
            let mut rule = rule.clone();
            rule["action"] = json!(action);
            objects.insert(job(&json!({ "podFailurePolicy": { "rules": [rule] } }), json!({})).into());
            let stored =
                Stored { before: Some(&waiting), after: Some(&gone), objects: &objects, is_news: true };
            let said = measure(&Managed::default(), &stored).last().map(ToString::to_string);
            let handled = "job_controller_pod_failures_handled_by_failure_policy_total";
            assert_eq!(said, Some(format!(r#"{handled}["{action}"] Add(1.0)"#)));
        }
    }
}
