//! What attempts to take Jobs further do to the numbers at /metrics. Kubernetes: `pkg/controller/job/metrics`.
//!
//! The other numbers about Jobs follow what is stored (`measure`). These are about how the controller fares.

use krafla_cluster::Step;
use serde_json::Value;

use krafla_metrics::{Metric, MetricKind};

use super::condition::{FAILURE_TARGET, SUCCESS_CRITERIA_MET};
use super::managed::Managed;
use super::measure::{PODS_CREATED, creation_reason, has_failed, mode};
use crate::measure::{Attempt, Effect, Measure};
use crate::object::Job;
use crate::{Object, Plan};

const LABELS: &[&str] = &["completion_mode", "result", "action"];

static SYNCS: Metric = Metric::counter(
    "job_controller_job_syncs_total",
    "How many times Jobs were looked at, how that went and what was done about their pods.",
    LABELS,
);
static SYNC_SECONDS: Metric = Metric {
    name: "job_controller_job_sync_duration_seconds",
    help: "How long it took to carry out what was decided about a Job.",
    labels: LABELS,
    kind: MetricKind::Histogram(&[
        0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384, 32.768,
        65.536,
    ]),
};
static STALE_SYNC_SKIPS: Metric = Metric::counter(
    "job_controller_stale_sync_skips_total",
    "How many looks at Jobs were put off until the controller had seen its own writes to this resource.",
    &["group", "resource"],
);

/// What an attempt does to the numbers. Jobs that have ended or belong to others are not looked at.
pub(super) fn measure(managed: &Managed, attempt: &Attempt<'_>) -> Vec<Measure> {
    match attempt {
        Attempt::Skipped { unseen } => {
            let info = unseen.info();
            vec![Measure::new(&STALE_SYNC_SKIPS, [info.group, info.plural], Effect::Add(1.0))]
        }
        Attempt::Made { root, plan, is_success, n_creations_failed, took } => {
            let Some(job) = root.as_job().filter(|job| is_looked_at(managed, job)) else { return Vec::new() };
            let result = if *is_success { "success" } else { "error" };
            let labels = [mode(job), result, action(root, job, plan)];
            let mut measures = vec![
                Measure::new(&SYNCS, labels, Effect::Add(1.0)),
                Measure::new(&SYNC_SECONDS, labels, Effect::Observe(took.as_secs_f64())),
            ];
            measures.extend(creations_failed(job, plan, *n_creations_failed));
            measures
        }
    }
}

/// Pods that were asked for and did not come into being, by what they were wanted for.
fn creations_failed(job: &Job, plan: &Plan, n_failed: usize) -> Option<Measure> {
    // The plan may itself be the first to put a failure on record.
    let recorded = |field: &str| match &plan.status {
        Some(Step::Patch { patch, .. }) => patch.pointer(field),
        _ => None,
    };
    let counts = recorded("/status/failed").and_then(Value::as_u64).is_some_and(|n_pods| n_pods > 0);
    let lists = recorded("/status/uncountedTerminatedPods/failed").and_then(Value::as_array);
    let has_failed = counts || lists.is_some_and(|uids| !uids.is_empty()) || has_failed(job);
    let labels = [creation_reason(job, has_failed), "failed"];
    (n_failed > 0).then(|| Measure::new(&PODS_CREATED, labels, Effect::Add(n_failed as f64)))
}

fn is_looked_at(managed: &Managed, job: &Job) -> bool {
    managed.includes(job.spec.managed_by.as_deref())
        && job.status.finished().is_none()
        && super::is_known_mode(job.spec.completion_mode.as_deref())
}

/// What was done about the Job's pods, unless it is on its way out: then they only go.
fn action(root: &Object, job: &Job, plan: &Plan) -> &'static str {
    let is_ending =
        [FAILURE_TARGET, SUCCESS_CRITERIA_MET].iter().any(|name| job.status.condition(name).is_some());
    if root.meta.is_deleting() || is_ending || decides_the_end(plan) {
        return "reconciling";
    }
    let does = |is_such: fn(&Step) -> bool| plan.steps.iter().any(is_such);
    if does(|step| matches!(step, Step::Create { .. })) {
        "pods_created"
    } else if does(|step| matches!(step, Step::Delete { .. })) {
        "pods_deleted"
    } else {
        "tracking"
    }
}

/// Whether the plan puts on record how the Job will end, other than by having done all of its work.
fn decides_the_end(plan: &Plan) -> bool {
    let Some(Step::Patch { patch, .. }) = &plan.status else { return false };
    let conditions = patch.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let text =
        |condition: &Value, field: &str| condition.get(field).and_then(Value::as_str).map(str::to_owned);
    conditions.into_iter().any(|condition| match text(condition, "type").as_deref() {
        Some(FAILURE_TARGET) => true,
        Some(SUCCESS_CRITERIA_MET) => text(condition, "reason").as_deref() != Some("CompletionsReached"),
        _ => false,
    })
}
