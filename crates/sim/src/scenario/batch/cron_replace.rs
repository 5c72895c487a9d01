//! A CronJob whose runs never end, each of which takes the place of the one before.

use serde_json::json;

use super::build::{create_cron_job, has_run_again, suspend_cron_job};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-cron-replace",
    shows: "a run takes the place of the one before, of which nothing is left",
    script: || {
        let fields = json!({ "concurrencyPolicy": "Replace" });
        vec![create_cron_job("tick", fields), suspend_cron_job("tick", has_run_again)]
    },
    pod: |_| Life::RunsOn,
    end: "
        cronjob tick 1 active
        jobs.batch tick-<run> 1 active
        pod tick-<run>-<drawn> Running
    ",
};
