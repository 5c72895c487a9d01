//! A finished job whose time to live is over.

use krafla_api::volcano::JobSpec;

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "expired",
    shows: "a finished job goes when its time is over, with everything that is its own",
    script: || {
        let job = JobSpec { ttl_seconds_after_finished: Some(120), ..gang(vec![task("main", 2)]) };
        vec![create_job(When::Now, "expired", job)]
    },
    pod: |_| Life::succeeds_after(10),
    end: "",
};
