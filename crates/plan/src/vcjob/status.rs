//! The job's status: a recount of what is observed, and the phase that was decided.

use krafla_api::Kind;
use krafla_api::volcano::{JobCondition, JobPhase, JobStatus};
use serde_json::{Map, Value, json};

use super::Job;
use super::phase::Next;
use super::pods::Pods;
use crate::{Note, Plan, Severity, Step};

/// Puts the status write into the plan, if there is anything to write.
pub(super) fn write(job: &Job<'_>, pods: &Pods<'_>, next: &Next, plan: &mut Plan) {
    let before = job.status;
    let after = recount(job, pods, next);
    let Some(patch) = difference(&json!(before), &json!(after)) else { return };
    let is_new_phase = before.state.phase != after.state.phase;
    if is_new_phase {
        plan.notes.push(Note {
            severity: Severity::Normal,
            reason: "PhaseChanged",
            message: format!("{} -> {}", word(&before.state.phase), after.state.phase),
        });
    }
    // Counters follow the pods and may be a moment late; what decides does not wait.
    plan.status_may_wait = !is_new_phase && before.version == after.version;
    plan.status = Some(Step::Patch {
        kind: Kind::VcJob,
        key: job.meta.key.clone(),
        uid: job.meta.uid.clone(),
        revision: Some(job.meta.revision),
        of_status: true,
        patch: json!({ "status": patch }),
    });
}

fn recount(job: &Job<'_>, pods: &Pods<'_>, next: &Next) -> JobStatus {
    let mut status = job.status.clone();
    let counts = pods.counts();
    status.pending = counts.pending;
    status.running = counts.running;
    status.succeeded = counts.succeeded;
    status.failed = counts.failed;
    status.terminating = counts.terminating;
    status.unknown = counts.unknown;
    status.task_status_count = pods.task_status_count();
    status.version = next.version;
    status.retry_count = next.retry_count;
    if next.phase.is_finished() && status.state.phase.is_finished() {
        return status;
    }
    status.min_available = job.spec.min_available;
    if next.phase != status.state.phase {
        let now = job.now.whole_seconds();
        status.state.phase = next.phase.clone();
        status.state.last_transition_time = Some(now);
        status.conditions.retain(|condition| condition.status != next.phase);
        status.conditions.push(JobCondition { status: next.phase.clone(), last_transition_time: Some(now) });
        if next.phase.is_finished() {
            let created_at = job.meta.created_at.unwrap_or(now);
            status.running_duration = Some(now.since(created_at).into());
        }
    }
    status
}

fn word(phase: &JobPhase) -> String {
    if *phase == JobPhase::Unset { "new".to_owned() } else { phase.to_string() }
}

/// The JSON merge patch that leads from one value to the other; nothing if they are equal. Only our fields are in it.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch = Map::new();
    for (name, value) in new {
        match old.get(name) {
            Some(old_value) => {
                if let Some(change) = difference(old_value, value) {
                    patch.insert(name.clone(), change);
                }
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}
