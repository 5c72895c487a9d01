//! Somebody removes a pod of a job that gives evictions a minute and a half to mend themselves, and the pod that is made instead
//! does not start.

use krafla_api::volcano::{Action, Event, JobPhase, JobSpec, LifecyclePolicy};
use krafla_api::{GoDuration, Kind};

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "overdue",
    shows: "an eviction whose policy has a time-out terminates the job if the pod that was made instead does not run by then",
    script: || {
        let timeout = Some(GoDuration::from_seconds(90));
        let policies = vec![LifecyclePolicy { timeout, ..on(Event::PodEvicted, Action::TerminateJob) }];
        let running = When::JobHasBeen("overdue", JobPhase::Running);
        vec![
            create_job(When::Now, "overdue", JobSpec { policies, ..gang(vec![task("main", 2)]) }),
            Act { when: running, deed: Deed::Delete(Kind::Pod, "overdue-main-1") },
        ]
    },
    pod: |pod| if pod.index == 1 && pod.n_ended > 0 { Life::NeverStarts } else { Life::RunsOn },
    end: "
        job overdue Terminated, retried 0, version 1: no pods
    ",
};
