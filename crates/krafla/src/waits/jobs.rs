//! What a Job of Kubernetes itself says about why it runs nothing, or less than it wants.

use krafla_plan::k8sjob::Managed;
use krafla_plan::object::Job;

use super::Why;

/// What keeps everything from running, if anything does, and what to do about it.
pub(super) fn reason(job: &Job) -> Option<Why> {
    let (spec, status) = (&job.spec, &job.status);
    let is_looked_after = status.start_time.is_some() || !status.conditions.is_empty();
    match spec.managed_by.as_deref() {
        _ if status.finished().is_some() => None,
        manager @ Some(name) if !is_looked_after && !Managed::default().includes(manager) => {
            Some(Why::lasting(format!("spec.managedBy names the controller {name}")))
        }
        _ if spec.suspend == Some(true) => {
            Some(Why::lasting("spec.suspend is true: nothing runs until it is false"))
        }
        _ if spec.parallelism == Some(0) => {
            Some(Why::lasting("spec.parallelism is 0: nothing runs until it is more"))
        }
        _ if is_between_tries(job) => {
            let retries = match spec.backoff_limit {
                Some(limit) if spec.backoff_limit_per_index.is_none() => {
                    format!("spec.backoffLimit is {limit}")
                }
                _ => "it is retried".to_owned(),
            };
            let failed = match status.failed {
                1 => "a pod has failed".to_owned(),
                n => format!("{n} pods have failed"),
            };
            let pause =
                "the next try follows after a back-off of 10 s to 10 min, which doubles with each failure";
            Some(Why::passing(format!("{failed}; {pause}; {retries}")))
        }
        _ => None,
    }
}

/// Whether pods have failed, none runs now, and more are wanted.
fn is_between_tries(job: &Job) -> bool {
    let status = &job.status;
    let n_leaving = status.terminating.unwrap_or(0);
    status.failed > 0 && status.active == 0 && n_leaving == 0 && is_short_of_pods(job)
}

/// Whether fewer pods are there than should run now.
pub(super) fn is_short_of_pods(job: &Job) -> bool {
    let (spec, status) = (&job.spec, &job.status);
    let left = spec.completions.map_or(i32::MAX, |wanted| wanted.saturating_sub(status.succeeded));
    let wanted = spec.parallelism.unwrap_or(1).min(left);
    status.finished().is_none() && status.active < wanted
}
