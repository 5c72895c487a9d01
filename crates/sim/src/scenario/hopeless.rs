//! A task whose dependency fails for good (B39).

use krafla_api::volcano::{DependsOn, JobSpec, TaskSpec};

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "hopeless",
    shows: "a job whose workers wait for a server that has failed for good fails, and does not wait with them",
    script: || {
        let server = TaskSpec { min_available: Some(1), ..task("server", 1) };
        let depends_on = Some(DependsOn { name: vec!["server".to_owned()], ..DependsOn::default() });
        let workers = TaskSpec { depends_on, ..task("worker", 2) };
        let lonely = TaskSpec { min_available: Some(0), ..task("lonely", 1) };
        let job = JobSpec { min_available: 1, ..gang(vec![server, workers, lonely]) };
        vec![create_job(When::Now, "hopeless", job)]
    },
    // A server that was ready once would have let its workers start.
    pod: |pod| if pod.task == "server" { Life::Rejected } else { Life::succeeds_after(5) },
    end: "
        job hopeless Failed, retried 0, version 0: 1 succeeded, 1 failed
        pod hopeless-lonely-0 Succeeded
        pod hopeless-server-0 Failed
    ",
};
