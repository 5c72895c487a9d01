//! A CronJob that was suspended while its runs were due.

use serde_json::json;

use super::build::{create_cron_job, gang, suspend_cron_job, task};
use super::{Life, Scenario};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "cron-missed",
    shows: "of the runs that were missed only the latest is made up for, once, and none while suspended",
    script: || {
        vec![
            create_cron_job("hourly", json!({ "suspend": true }), gang(vec![task("main", 1)])),
            suspend_cron_job(2 * 3600 + 10 * 60, "hourly", false),
            suspend_cron_job(2 * 3600 + 50 * 60, "hourly", true),
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job hourly-29453880 Completed, retried 0, version 0: 1 succeeded
        pod hourly-29453880-main-0 Succeeded
        cronjob hourly 0 active, last 2026-01-01T02:00:00Z, has succeeded
    ",
};
