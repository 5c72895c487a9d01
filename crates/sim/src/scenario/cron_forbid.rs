//! A CronJob whose runs last longer than the time between them, and must not overlap.

use serde_json::json;

use super::build::{create_cron_job, gang, suspend_cron_job, task};
use super::{Life, Scenario};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "cron-forbid",
    shows: "a run that is due while the one before it goes on is left out, and the next starts at its time",
    script: || {
        let policy = json!({ "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 1800 });
        vec![
            create_cron_job("hourly", policy, gang(vec![task("main", 1)])),
            // The runs of one and of three o'clock have started by then.
            suspend_cron_job(3 * 3600 + 50 * 60, "hourly", true),
        ]
    },
    pod: |_| Life::succeeds_after(100 * 60),
    end: "
        job hourly-29453820 Completed, retried 0, version 0: 1 succeeded
        job hourly-29453940 Completed, retried 0, version 0: 1 succeeded
        pod hourly-29453820-main-0 Succeeded
        pod hourly-29453940-main-0 Succeeded
        cronjob hourly 0 active, last 2026-01-01T03:00:00Z, has succeeded
    ",
};
