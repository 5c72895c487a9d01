//! A CronJob that is deleted while a run of it goes on.

use std::time::Duration;

use krafla_api::Kind;
use serde_json::json;

use super::build::{create_cron_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "cron-deleted",
    shows: "a CronJob that is deleted takes its runs along, and no other follows",
    script: || {
        vec![
            create_cron_job("hourly", json!({}), gang(vec![task("main", 1)])),
            Act {
                when: When::At(Duration::from_secs(90 * 60)),
                deed: Deed::Delete(Kind::VcCronJob, "hourly"),
            },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "",
};
