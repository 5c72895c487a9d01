//! A CronJob whose runs may overlap.

use serde_json::json;

use super::build::{create_cron_job, has_succeeded, suspend_cron_job};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-cron-allow",
    shows: "a CronJob makes each run once and keeps as many that succeeded as it says",
    script: || {
        let fields = json!({ "concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 1 });
        vec![create_cron_job("tick", fields), suspend_cron_job("tick", has_succeeded)]
    },
    pod: |_| Life::succeeds_after(5),
    end: "
        cronjob tick 0 active
        jobs.batch tick-<run> SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 1 succeeded
        pod tick-<run>-<drawn> Succeeded
    ",
};
