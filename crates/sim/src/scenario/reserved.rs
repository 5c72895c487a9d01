//! A job with plugins is restarted as a whole.

use std::collections::BTreeMap;

use krafla_api::volcano::{Action, Event, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "reserved",
    shows: "what plugins made is there again for the second try, and gone at the end",
    script: || {
        let plugins = ["ssh", "svc"].map(|plugin| (plugin.to_owned(), Vec::new()));
        let policies = vec![on(Event::PodFailed, Action::RestartJob)];
        let job = JobSpec { plugins: BTreeMap::from(plugins), policies, ..gang(vec![task("main", 1)]) };
        vec![create_job(When::Now, "reserved", job)]
    },
    pod: |pod| if pod.retry == 0 { Life::fails_after(5, 1) } else { Life::succeeds_after(10) },
    end: "
        job reserved Completed, retried 1, version 1: 1 succeeded
        pod reserved-main-0 Succeeded
    ",
};
