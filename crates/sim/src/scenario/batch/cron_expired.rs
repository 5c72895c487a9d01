//! A CronJob whose Jobs do not outlive their end.

use serde_json::json;

use super::build::{create_cron_job_of, has_run_again, suspend_cron_job};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-cron-expired",
    shows: "a Job that goes as soon as it has completed is on record as a run, and as one that succeeded",
    script: || {
        let job = json!({ "ttlSecondsAfterFinished": 0 });
        vec![create_cron_job_of("tick", json!({}), job), suspend_cron_job("tick", has_run_again)]
    },
    pod: |_| Life::succeeds_after(5),
    end: "
        cronjob tick 0 active
    ",
};
