//! A CronJob whose runs take longer than the pause between them, and must not overlap.

use serde_json::json;

use super::build::{create_cron_job, has_succeeded, suspend_cron_job};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-cron-forbid",
    shows: "a run that is due while another runs waits for its end",
    script: || {
        let fields = json!({ "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1 });
        vec![create_cron_job("tick", fields), suspend_cron_job("tick", has_succeeded)]
    },
    pod: |_| Life::succeeds_after(700),
    end: "
        cronjob tick 0 active
        jobs.batch tick-<run> SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 1 succeeded
        pod tick-<run>-<drawn> Succeeded
    ",
};
