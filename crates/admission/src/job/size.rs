//! How many pods a job may have. Volcano sets no limit; here the server that is asked runs the pods as well.

use krafla_api::volcano::TaskSpec;

use crate::{PODS_MAX, Path, Reason, Verdict};

/// Refuses a job that has, or grows to, more pods than one may have. One that was stored with more may stay, and shrink.
pub(super) fn validate(tasks: &[TaskSpec], old: &[TaskSpec], verdict: &mut Verdict) {
    let n_pods = total(tasks);
    if n_pods <= PODS_MAX.max(total(old)) {
        return;
    }
    let mut n_so_far = 0;
    let beyond = tasks.iter().position(|task| {
        n_so_far += n_pods_of(task);
        n_so_far > PODS_MAX
    });
    let path = Path::new("spec.tasks").index(beyond.unwrap_or_default()).field("replicas");
    let message = format!(
        "the replicas of all tasks of a job must be at most {PODS_MAX} together, and are {n_pods}: divide it into several jobs"
    );
    verdict.refuse(&path, Reason::Invalid, message);
}

fn total(tasks: &[TaskSpec]) -> i64 {
    tasks.iter().map(n_pods_of).sum()
}

fn n_pods_of(task: &TaskSpec) -> i64 {
    i64::from(task.replicas.max(0))
}
