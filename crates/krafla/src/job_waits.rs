//! What a Job of Kubernetes itself says about why it runs nothing, or less than it wants.

use krafla_plan::k8sjob::Managed;
use krafla_plan::object::Job;

/// The field of the spec that keeps everything from running, if one does, and what to do about it.
pub(crate) fn reason(job: &Job) -> Option<String> {
    let (spec, status) = (&job.spec, &job.status);
    let is_looked_after = status.start_time.is_some() || !status.conditions.is_empty();
    match spec.managed_by.as_deref() {
        _ if status.finished().is_some() => None,
        manager @ Some(name) if !is_looked_after && !Managed::default().includes(manager) => {
            Some(format!("spec.managedBy leaves it to {name}"))
        }
        _ if spec.suspend == Some(true) => {
            Some("spec.suspend is true: nothing runs until it is false".to_owned())
        }
        _ if spec.parallelism == Some(0) => {
            Some("spec.parallelism is 0: nothing runs until it is more".to_owned())
        }
        _ => None,
    }
}

/// Whether fewer pods are there than should run now.
pub(crate) fn is_short_of_pods(job: &Job) -> bool {
    let (spec, status) = (&job.spec, &job.status);
    let left = spec.completions.map_or(i32::MAX, |wanted| wanted.saturating_sub(status.succeeded));
    let wanted = spec.parallelism.unwrap_or(1).min(left);
    status.finished().is_none() && status.active < wanted
}
