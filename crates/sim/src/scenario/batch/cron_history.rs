//! A CronJob whose runs all fail.

use serde_json::json;

use super::build::{create_cron_job, has_run_again, suspend_cron_job};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-cron-history",
    shows: "of the runs that failed one is kept, with its pod",
    script: || vec![create_cron_job("tick", json!({})), suspend_cron_job("tick", has_run_again)],
    pod: |_| Life::fails_after(5, 1),
    end: "
        cronjob tick 0 active
        jobs.batch tick-<run> FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded, 1 failed
        pod tick-<run>-<drawn> Failed
    ",
};
