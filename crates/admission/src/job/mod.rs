//! Volcano Jobs: what they leave out, and what is wrong with them.
//!
//! `default` completes a job, `create`, `update` and `size` check one; `policy` and `volume` are parts of them. The pod template
//! of a task is checked as a pod is ([`crate::pod::template`]).

mod create;
mod default;
mod policy;
mod same;
mod size;
mod update;
mod volume;

pub use default::{default, default_spec};

use krafla_api::volcano::{Job, JobSpec, TaskSpec};

use self::create::Candidate;
use crate::podgroup::validate_tiers;
use crate::{Cluster, Operation, Path, Reason, Request, Verdict, read};

/// Everything that is wrong with a new or changed job.
pub fn validate(request: Request<'_>, cluster: &dyn Cluster) -> Verdict {
    let mut verdict = Verdict::default();
    let Some(job) = read::<Job>(request.object, &mut verdict) else { return verdict };
    match request.operation {
        Operation::Create => {
            let Job { metadata, spec, .. } = &job;
            let candidate = Candidate { namespace: &metadata.namespace, name: &metadata.name, spec };
            create::validate(candidate, Some(cluster), &mut verdict);
            size::validate(&job.spec.tasks, &[], &mut verdict);
        }
        Operation::Update => {
            if let Some(old) = read::<Job>(request.old, &mut verdict) {
                update::validate(&job, &old, &mut verdict);
                size::validate(&job.spec.tasks, &old.spec.tasks, &mut verdict);
            }
        }
        Operation::Delete => {}
    }
    verdict
}

/// What keeps a stored job from ever running as it is written, however it came to be stored: two tasks whose pods would have
/// the same names, or tasks that wait for each other. The controller asks this of every job.
pub fn contradictions(tasks: &[TaskSpec]) -> Verdict {
    let mut verdict = Verdict::default();
    create::validate_consistency(tasks, &mut verdict);
    verdict
}

/// All that is wrong with a stored job by itself, were it new: what the job's controller tells of one that nobody was asked
/// about.
pub fn look_over(namespace: &str, name: &str, spec: &JobSpec) -> Verdict {
    let mut verdict = Verdict::default();
    create::validate(Candidate { namespace, name, spec }, None, &mut verdict);
    verdict
}

/// The partitions of a task must add up to its replicas.
fn validate_partitions(task: &TaskSpec, job_name: &str, path: &Path, verdict: &mut Verdict) {
    let Some(policy) = &task.partition_policy else { return };
    let path = path.field("partitionPolicy");
    let place = format!("in task: {}, job: {job_name}", task.name);
    let (total, size) = (i64::from(policy.total_partitions), i64::from(policy.partition_size));
    let n_needed = i64::from(policy.min_partitions) * size;
    let min_available = task.min_available.map(i64::from);
    let (field, message) = if total <= 0 {
        ("totalPartitions", "'TotalPartitions' must be greater than 0")
    } else if size <= 0 {
        ("partitionSize", "'PartitionSize' must be greater than 0")
    } else if total * size != i64::from(task.replicas) {
        ("totalPartitions", "'Replicas' are not equal to TotalPartitions*PartitionSize")
    } else if policy.min_partitions > 0
        && min_available.is_some_and(|min_available| min_available != n_needed)
    {
        ("minPartitions", "'MinAvailable' is not equal to MinPartitions*PartitionSize")
    } else {
        ("", "")
    };
    if !field.is_empty() {
        verdict.refuse(&path.field(field), Reason::Invalid, format!("{message} {place}"));
    }
    validate_tiers(policy.network_topology.as_ref(), "", &path, verdict);
}
