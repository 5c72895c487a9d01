//! A CronJob that was suspended for longer than its runs may be late.

use std::time::Duration;

use krafla_api::Kind;
use serde_json::json;

use super::build::{create_cron_job, has_succeeded, suspend_cron_job};
use crate::scenario::{Act, Deed, Life, Scenario, When};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-cron-missed",
    shows: "runs that were missed for too long are not made up for; the next one is made",
    script: || {
        let fields =
            json!({ "suspend": true, "startingDeadlineSeconds": 30, "successfulJobsHistoryLimit": 1 });
        let later = When::At(Duration::from_secs(30 * 60));
        vec![
            create_cron_job("tick", fields),
            Act {
                when: later,
                deed: Deed::Patch(Kind::CronJob, "tick", json!({ "spec": { "suspend": false } })),
            },
            suspend_cron_job("tick", has_succeeded),
        ]
    },
    pod: |_| Life::succeeds_after(5),
    end: "
        cronjob tick 0 active
        jobs.batch tick-<run> SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 1 succeeded
        pod tick-<run>-<drawn> Succeeded
    ",
};
