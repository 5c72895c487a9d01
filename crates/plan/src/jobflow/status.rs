//! The flow's status: its phase, its jobs by phase, and each job's history.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::volcano::{
    FlowCondition, FlowJobStatus, JobFlowPhase, JobFlowState, JobFlowStatus, JobPhase, JobRunningHistory,
};
use krafla_api::{Kind, Time};
use serde_json::json;

use super::View;
use super::deploy::Hindrances;
use super::jobs::{Jobs, Seen};
use crate::Plan;
use crate::merge_patch::difference;

/// How many phases of one job are remembered, if the flow has few jobs. A job that is suspended and resumed for ever must not
/// fill the flow.
const HISTORY_MAX: usize = 100;

/// How many phases are remembered of all jobs of a flow together, as long as there are at least [`HISTORY_MIN`] for each: a
/// status that is too large is not stored, and the flow would stand still.
const HISTORIES_MAX: usize = 5000;

/// How many phases of one job are remembered however many there are: how it is, and how it came to that.
const HISTORY_MIN: usize = 2;

/// Puts the write of this status into the plan, if it says anything new.
pub(super) fn write(flow: &View<'_>, after: &JobFlowStatus, plan: &mut Plan) {
    let before = flow.status;
    let Some(patch) = difference(&json!(before), &json!(after)) else { return };
    // The counts of a job's pods may be a moment late; what its phase leads to does not wait, nor what keeps it from being made.
    let decides = |status: &JobFlowStatus| {
        let jobs = status.job_status_list.iter().map(|job| (job.name.clone(), job.state.clone()));
        let conditions = status.conditions.iter().map(|(name, job)| (name.clone(), job.phase.clone()));
        (status.state.clone(), jobs.collect::<Vec<_>>(), conditions.collect::<Vec<_>>())
    };
    plan.status_may_wait = decides(before) == decides(after) && plan.settled.is_empty();
    plan.status = Some(flow.meta.status_patch(Kind::JobFlow, &patch));
}

/// The status that follows from what is seen.
pub(super) fn recount(
    flow: &View<'_>,
    jobs: &Jobs<'_>,
    phase: &JobFlowPhase,
    hindrances: &Hindrances,
    now: Time,
) -> JobFlowStatus {
    let entries = job_status_list(flow, jobs, now);
    // A job that went away unfinished is still remembered, but it is in no list until it is made again.
    let listed = || entries.iter().filter(|job| is_there(job, jobs));
    let mut status = JobFlowStatus {
        state: JobFlowState { phase: phase.clone() },
        conditions: conditions(flow, jobs, listed()),
        ..JobFlowStatus::default()
    };
    for job in listed() {
        let list = match &job.state {
            JobPhase::Unset | JobPhase::Pending => &mut status.pending_jobs,
            JobPhase::Running => &mut status.running_jobs,
            JobPhase::Completing | JobPhase::Completed => &mut status.completed_jobs,
            JobPhase::Terminating | JobPhase::Terminated => &mut status.terminated_jobs,
            JobPhase::Failed => &mut status.failed_jobs,
            JobPhase::Aborting | JobPhase::Aborted | JobPhase::Restarting | JobPhase::Other(_) => {
                &mut status.unknown_jobs
            }
        };
        list.push(job.name.clone());
    }
    // The API has no field for why a job is not there, but room for a word where its phase would be.
    for (name, hindrance) in hindrances {
        let phase = JobPhase::from(hindrance.as_str());
        let hindered = FlowCondition { phase, ..FlowCondition::default() };
        status.conditions.entry(name.clone()).or_insert(hindered);
    }
    status.job_status_list = entries;
    status
}

/// Whether a job is there, or ended before it went away.
fn is_there(job: &FlowJobStatus, jobs: &Jobs<'_>) -> bool {
    job.state.is_finished() || jobs.seen().contains_key(job.name.as_str())
}

/// One entry per job: first those that were known before, in their order, then the new ones in the order of the spec. What is
/// neither there nor wanted any more is left out.
fn job_status_list(flow: &View<'_>, jobs: &Jobs<'_>, now: Time) -> Vec<FlowJobStatus> {
    let mut left = jobs.seen().clone();
    let mut list: Vec<FlowJobStatus> = Vec::new();
    let wanted: Vec<String> = flow.spec.flows.iter().map(|step| flow.job_name(&step.name)).collect();
    let is_wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
    for before in &flow.status.job_status_list {
        match left.remove(before.name.as_str()) {
            Some(seen) => list.push(entry(&seen, Some(before), now)),
            None if is_wanted.contains(before.name.as_str()) => list.push(before.clone()),
            None => {}
        }
    }
    for name in &wanted {
        if let Some(seen) = left.remove(name.as_str()) {
            list.push(entry(&seen, None, now));
        }
    }
    list.extend(left.values().map(|seen| entry(seen, None, now)));
    let n_histories = (HISTORIES_MAX / list.len().max(1)).clamp(HISTORY_MIN, HISTORY_MAX);
    for job in &mut list {
        let n_forgotten = job.running_histories.len().saturating_sub(n_histories);
        job.running_histories.drain(..n_forgotten);
    }
    list
}

fn entry(seen: &Seen<'_>, before: Option<&FlowJobStatus>, now: Time) -> FlowJobStatus {
    let status = &seen.job.status;
    let started_at = seen.object.meta.created_at;
    let ended_at = status.running_duration.and_then(|ran| Some(started_at?.after(ran.to_std())));
    FlowJobStatus {
        name: seen.object.meta.key.name.to_string(),
        state: seen.phase().clone(),
        start_timestamp: started_at,
        end_timestamp: ended_at.map(Time::whole_seconds),
        restart_count: status.retry_count,
        running_histories: histories(
            seen.phase(),
            before.map_or(&[], |before| &before.running_histories),
            now,
        ),
    }
}

/// The phases that the job went through: a new one closes the one before it.
fn histories(phase: &JobPhase, before: &[JobRunningHistory], now: Time) -> Vec<JobRunningHistory> {
    let mut histories = before.to_vec();
    match histories.last_mut() {
        Some(last) if last.state == *phase => return histories,
        Some(last) => last.end_timestamp = Some(now),
        None => {}
    }
    histories.push(JobRunningHistory {
        start_timestamp: Some(now),
        end_timestamp: None,
        state: phase.clone(),
    });
    histories
}

/// More on each job. What is gone stays as it was last seen.
fn conditions<'a>(
    flow: &View<'_>,
    jobs: &Jobs<'_>,
    listed: impl Iterator<Item = &'a FlowJobStatus>,
) -> BTreeMap<String, FlowCondition> {
    let condition = |name: &str| match jobs.seen().get(name) {
        Some(seen) => Some(FlowCondition {
            phase: seen.phase().clone(),
            create_time: seen.object.meta.created_at,
            running_duration: seen.job.status.running_duration,
            task_status_count: seen.job.status.task_status_count.clone(),
        }),
        None => flow.status.conditions.get(name).cloned(),
    };
    listed.filter_map(|job| Some((job.name.clone(), condition(&job.name)?))).collect()
}
