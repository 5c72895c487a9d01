//! A pod fails and its task restarts alone: the other task is left running.

use krafla_api::volcano::{Action, Event, TaskSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "partial",
    shows: "a failed pod restarts its task once, the other task goes on, and the job runs to Completed",
    script: || {
        // What the restart removes is not evicted.
        let policies =
            vec![on(Event::PodFailed, Action::RestartTask), on(Event::PodEvicted, Action::TerminateJob)];
        let workers = TaskSpec { policies, ..task("worker", 2) };
        vec![create_job(When::Now, "partial", gang(vec![task("lead", 1), workers]))]
    },
    // A lead that was restarted would say so by failing.
    pod: |pod| match (pod.task, pod.index, pod.retry) {
        ("lead", _, 0) => Life::succeeds_after(30),
        ("lead", ..) => Life::fails_after(1, 1),
        (_, 0, 0) => Life::fails_after(5, 3),
        (_, _, 0) => Life::RunsOn,
        _ => Life::succeeds_after(10),
    },
    end: "
        job partial Completed, retried 1, version 0: 3 succeeded
        pod partial-lead-0 Succeeded
        pod partial-worker-0 Succeeded
        pod partial-worker-1 Succeeded
    ",
};
