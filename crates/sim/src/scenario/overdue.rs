//! Somebody removes a pod of a job that gives evictions a minute and a half to mend themselves, and no node takes the pod that
//! is made instead.

use krafla_api::volcano::{Action, Event, JobPhase, JobSpec, LifecyclePolicy};
use krafla_api::{GoDuration, Kind};
use serde_json::json;

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "overdue",
    shows: "an eviction whose policy has a time-out terminates the job if the pod that was made instead does not run by then",
    script: || {
        let timeout = Some(GoDuration::from_seconds(90));
        let policies = vec![LifecyclePolicy { timeout, ..on(Event::PodEvicted, Action::TerminateJob) }];
        let running = When::JobHasBeen("overdue", JobPhase::Running);
        let cordon = Deed::Patch(Kind::Node, "node-1", json!({ "spec": { "unschedulable": true } }));
        vec![
            create_job(When::Now, "overdue", JobSpec { policies, ..gang(vec![task("main", 2)]) }),
            Act { when: running, deed: cordon },
            Act { when: When::Now, deed: Deed::Delete(Kind::Pod, "overdue-main-1") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job overdue Terminated, retried 0, version 1: no pods
    ",
};
