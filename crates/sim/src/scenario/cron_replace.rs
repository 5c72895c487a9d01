//! A CronJob whose runs never end by themselves.

use serde_json::json;

use super::build::{create_cron_job, gang, suspend_cron_job, task};
use super::{Life, Scenario};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "cron-replace",
    shows: "a run that is due takes the place of the one before it, which goes with its pods",
    script: || {
        let policy = json!({ "concurrencyPolicy": "Replace" });
        vec![
            create_cron_job("hourly", policy, gang(vec![task("main", 1)])),
            suspend_cron_job(2 * 3600 + 50 * 60, "hourly", true),
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job hourly-29453880 Running, retried 0, version 0: 1 running
        podgroup hourly-29453880-<uid> Running
        pod hourly-29453880-main-0 Running
        cronjob hourly 1 active, last 2026-01-01T02:00:00Z
    ",
};
