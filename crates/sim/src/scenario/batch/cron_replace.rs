//! A CronJob whose runs never end, each of which takes the place of the one before.

use std::time::Duration;

use krafla_api::Kind;
use serde_json::json;

use super::build::create_cron_job;
use crate::scenario::{Act, Deed, Life, Scenario, When};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-cron-replace",
    shows: "a run takes the place of the one before, of which nothing is left",
    script: || {
        // It is stopped long after one run and long before the next, whatever holds the controllers up: whoever stops it
        // between the end of one run and the start of the next is left without any.
        let hourly = json!({ "concurrencyPolicy": "Replace", "schedule": "0 * * * *" });
        let suspend = Deed::Patch(Kind::CronJob, "tick", json!({ "spec": { "suspend": true } }));
        let when = When::At(Duration::from_mins(2 * 60 + 50));
        vec![create_cron_job("tick", hourly), Act { when, deed: suspend }]
    },
    pod: |_| Life::RunsOn,
    end: "
        cronjob tick 1 active
        jobs.batch tick-<run> 1 active
        pod tick-<run>-<drawn> Running
    ",
};
