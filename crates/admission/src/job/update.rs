//! What may change in a job: how many pods, how many of them are needed, and the priority.

use krafla_api::volcano::{Job, JobSpec};

use super::same;
use super::validate_partitions;
use crate::podgroup::validate_tiers;
use crate::{Path, Reason, Verdict};

pub(super) fn validate(job: &Job, old: &Job, verdict: &mut Verdict) {
    let path = Path::new("spec");
    let mut n_pods = 0i64;
    for (index, task) in job.spec.tasks.iter().enumerate() {
        let path = path.field("tasks").index(index);
        let place = format!("in task: {}", task.name);
        n_pods += i64::from(task.replicas);
        if task.replicas < 0 {
            verdict.refuse(
                &path.field("replicas"),
                Reason::Invalid,
                format!("'replicas' must be >= 0 {place}"),
            );
        }
        let min_available = path.field("minAvailable");
        match task.min_available {
            Some(minimum) if minimum < 0 => {
                verdict.refuse(
                    &min_available,
                    Reason::Invalid,
                    format!("'minAvailable' must be >= 0 {place}"),
                );
            }
            Some(minimum) if minimum > task.replicas => {
                let message = format!("'minAvailable' must be <= 'replicas' {place}");
                verdict.refuse(&min_available, Reason::Invalid, message);
            }
            Some(_) | None => {}
        }
        validate_partitions(task, &job.metadata.name, &path, verdict);
    }
    let min_available = path.field("minAvailable");
    if i64::from(job.spec.min_available) > n_pods {
        let message = "job 'minAvailable' must not be greater than total replicas";
        verdict.refuse(&min_available, Reason::Invalid, message);
    }
    if job.spec.min_available < 0 {
        verdict.refuse(&min_available, Reason::Invalid, "job 'minAvailable' must be >= 0");
    }
    validate_tiers(job.spec.network_topology.as_ref(), "", &path, verdict);
    validate_fixed_fields(&job.spec, &old.spec, &path, verdict);
}

fn validate_fixed_fields(spec: &JobSpec, old: &JobSpec, path: &Path, verdict: &mut Verdict) {
    if spec.tasks.len() != old.tasks.len() {
        verdict.refuse(&path.field("tasks"), Reason::Forbidden, "job updates may not add or remove tasks");
    } else if !same::is_same(&fixed(spec), &fixed(old)) {
        let message = "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and \
            `PriorityClassName`";
        verdict.refuse(path, Reason::Forbidden, message);
    }
}

/// The spec without what may change. The controller itself names the claims that it made.
fn fixed(spec: &JobSpec) -> JobSpec {
    let mut fixed = spec.clone();
    fixed.min_available = 0;
    fixed.priority_class_name.clear();
    for task in &mut fixed.tasks {
        task.replicas = 0;
        task.min_available = None;
        // A task that is divided is scaled by whole partitions.
        if let Some(policy) = &mut task.partition_policy {
            (policy.total_partitions, policy.min_partitions) = (0, 0);
        }
    }
    for volume in fixed.volumes.iter_mut().filter(|volume| volume.volume_claim.is_some()) {
        volume.volume_claim_name.clear();
    }
    fixed
}
