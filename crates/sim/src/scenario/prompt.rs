//! Pods that run before a policy for pending ones acts (B3, B16).

use krafla_api::GoDuration;
use krafla_api::volcano::{Action, Event, JobSpec, LifecyclePolicy};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "prompt",
    shows: "pods that run in time are not taken for pending ones, however long they run and however often the controllers start",
    script: || {
        // Longer than any outage, wrong clock and slowness together: a pod that runs is seen to run by then.
        let timeout = Some(GoDuration::from_seconds(2 * 3600));
        let policies = vec![LifecyclePolicy { timeout, ..on(Event::PodPending, Action::AbortJob) }];
        vec![create_job(When::Now, "prompt", JobSpec { policies, ..gang(vec![task("main", 2)]) })]
    },
    pod: |_| Life::succeeds_after(3 * 3600),
    end: "
        job prompt Completed, retried 0, version 0: 2 succeeded
        pod prompt-main-0 Succeeded
        pod prompt-main-1 Succeeded
    ",
};
