//! A part of a job that restarts while the others rely on what plugins made (B7).

use std::collections::BTreeMap;

use krafla_api::volcano::{Action, Event, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "keyed",
    shows: "a pod that is restarted alone finds the key and the hosts that the others have",
    script: || {
        let plugins = ["ssh", "svc"].map(|plugin| (plugin.to_owned(), Vec::new()));
        let policies = vec![on(Event::PodFailed, Action::RestartPod)];
        let job = JobSpec { plugins: BTreeMap::from(plugins), policies, ..gang(vec![task("main", 2)]) };
        vec![create_job(When::Now, "keyed", job)]
    },
    pod: |pod| match (pod.index, pod.retry) {
        (0, 0) => Life::fails_after(5, 1),
        (0, _) => Life::succeeds_after(10),
        _ => Life::succeeds_after(30),
    },
    end: "
        job keyed Completed, retried 1, version 0: 2 succeeded
        pod keyed-main-0 Succeeded
        pod keyed-main-1 Succeeded
    ",
};
