//! A CronJob that keeps one run.

use serde_json::json;

use super::build::{create_cron_job, gang, suspend_cron_job, task};
use super::{Life, Scenario};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "cron-history",
    shows: "runs may overlap, and when enough newer ones have completed or failed the older ones go",
    script: || {
        let policy = json!({ "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0 });
        vec![
            create_cron_job("hourly", policy, gang(vec![task("main", 1)])),
            suspend_cron_job(3 * 3600 + 30 * 60, "hourly", true),
        ]
    },
    // The first overlaps with the second, which fails.
    pod: |pod| match pod.job {
        "hourly-29453820" => Life::succeeds_after(90 * 60),
        "hourly-29453880" => Life::fails_after(10, 3),
        _ => Life::succeeds_after(10),
    },
    end: "
        job hourly-29453940 Completed, retried 0, version 0: 1 succeeded
        pod hourly-29453940-main-0 Succeeded
        cronjob hourly 0 active, last 2026-01-01T03:00:00Z, has succeeded
    ",
};
