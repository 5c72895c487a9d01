//! Somebody removes a pod of a job that gives evictions an hour to mend themselves.

use krafla_api::volcano::{Action, Event, JobPhase, JobSpec, LifecyclePolicy};
use krafla_api::{GoDuration, Kind};

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "forgiven",
    shows: "an eviction whose policy has a time-out is forgiven once the pod that was made instead runs",
    script: || {
        let timeout = Some(GoDuration::from_seconds(3600));
        let policies = vec![LifecyclePolicy { timeout, ..on(Event::PodEvicted, Action::TerminateJob) }];
        let running = When::JobHasBeen("forgiven", JobPhase::Running);
        vec![
            create_job(When::Now, "forgiven", JobSpec { policies, ..gang(vec![task("main", 2)]) }),
            Act { when: running, deed: Deed::Delete(Kind::Pod, "forgiven-main-1") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job forgiven Running, retried 0, version 0: 2 running
        podgroup forgiven-<uid> Running
        pod forgiven-main-0 Running
        pod forgiven-main-1 Running
    ",
};
