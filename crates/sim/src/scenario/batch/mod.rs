//! Scenarios of Kubernetes' own Jobs and CronJobs.

mod build;
pub(super) mod cron_allow;
pub(super) mod cron_forbid;
pub(super) mod cron_history;
pub(super) mod cron_missed;
pub(super) mod cron_replace;
pub(super) mod deadline;
pub(super) mod deleted;
pub(super) mod elastic;
pub(super) mod expired;
pub(super) mod failed_indexes;
pub(super) mod failure_policy;
pub(super) mod gang;
pub(super) mod indexed;
pub(super) mod orphaned;
pub(super) mod parallel;
pub(super) mod plain;
pub(super) mod replaced;
pub(super) mod success_policy;
pub(super) mod suspended;
pub(super) mod unschedulable;
pub(super) mod work_queue;
