//! Kubernetes' own Jobs and CronJobs (batch/v1), checked as Kubernetes' API server checks them.
//!
//! ```text
//!   job ──┬─ failure_policy        cronjob ── job (the template)
//!         ├─ success_policy ─┐
//!         └─ selector        ├─ indexes     "1,3-5"
//!   update        status ────┘
//! ```
//!
//! All findings come at once, in upstream's order and words. Metadata is the server's to check.

mod cronjob;
mod failure_policy;
mod indexes;
mod job;
mod selector;
mod status;
mod success_policy;
#[cfg(test)]
mod tests;
mod update;

use serde_json::Value;

use crate::json::At;
use crate::look::findings;
use crate::{Finding, Path, Verdict};

pub use cronjob::{validate_cron_job, validate_cron_job_update};
pub use status::validate_job_status;
pub use update::validate_job_update;

/// Says everything that is wrong with a Job, apart from its metadata.
pub fn validate_job(job: &Value) -> Vec<Finding> {
    findings(job, |job, verdict| {
        validate_whole(job, None, verdict);
        job::validate_size(&job.get("spec"), None, verdict);
    })
}

/// Says what the author of a new Job should know, though it is allowed.
pub fn warnings_of_job(job: &Value) -> Vec<Finding> {
    let (mut verdict, job) = (Verdict::default(), At::new(job, Path::default()));
    job::warn(&job, &job, &mut verdict);
    verdict.warnings
}

/// Says what the author of a new CronJob should know, though it is allowed.
pub fn warnings_of_cron_job(cron_job: &Value) -> Vec<Finding> {
    let (mut verdict, cron_job) = (Verdict::default(), At::new(cron_job, Path::default()));
    job::warn(&cron_job, &cron_job.get("spec").get("jobTemplate"), &mut verdict);
    verdict.warnings
}

fn validate_whole(job: &At<'_>, stored: Option<&At<'_>>, verdict: &mut Verdict) {
    selector::validate_generated(job, stored, verdict);
    validate_spec(&job.get("spec"), verdict);
    job::validate_pod_names(job, verdict);
}

/// The spec of a Job that is an object of its own, and therefore has a selector.
fn validate_spec(spec: &At<'_>, verdict: &mut Verdict) {
    job::validate(spec, verdict);
    selector::validate(spec, verdict);
}
