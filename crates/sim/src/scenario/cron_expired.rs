//! A CronJob whose jobs do not outlive their end.

use krafla_api::volcano::JobSpec;
use serde_json::json;

use super::build::{create_cron_job, gang, suspend_cron_job, task};
use super::{Life, Scenario};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "cron-expired",
    shows: "a job that goes as soon as it has completed is on record as a run, and as one that succeeded",
    script: || {
        let job = JobSpec { ttl_seconds_after_finished: Some(0), ..gang(vec![task("main", 1)]) };
        vec![create_cron_job("hourly", json!({}), job), suspend_cron_job(3600 + 30 * 60, "hourly", true)]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        cronjob hourly 0 active, last 2026-01-01T01:00:00Z, has succeeded
    ",
};
