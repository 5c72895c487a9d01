//! One task waits for another: its pods come when the other's are ready.

use krafla_api::volcano::{DependsOn, JobSpec, TaskSpec};

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "depends",
    shows: "workers start once the server that they depend on is ready, and the job runs to Completed",
    script: || {
        let server = TaskSpec { min_available: Some(1), ..task("server", 1) };
        let depends_on = Some(DependsOn { name: vec!["server".to_owned()], ..DependsOn::default() });
        let workers = TaskSpec { depends_on, ..task("worker", 2) };
        let job = JobSpec { min_available: 1, ..gang(vec![server, workers]) };
        vec![create_job(When::Now, "depends", job)]
    },
    pod: |pod| Life::succeeds_after(if pod.task == "server" { 20 } else { 5 }),
    end: "
        job depends Completed, retried 0, version 0: 3 succeeded
        pod depends-server-0 Succeeded
        pod depends-worker-0 Succeeded
        pod depends-worker-1 Succeeded
    ",
};
