//! A job with plugins: what they need is there before the pods, once, and goes with the job.

use std::collections::BTreeMap;

use krafla_api::Kind;
use krafla_api::volcano::{JobPhase, JobSpec};

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "served",
    shows: "a job's Service, ConfigMap, Secret and NetworkPolicy are made once, and go with the job",
    script: || {
        let plugins = ["env", "ssh", "svc"].map(|plugin| (plugin.to_owned(), Vec::new()));
        let job = JobSpec { plugins: BTreeMap::from(plugins), ..gang(vec![task("main", 2)]) };
        let running = When::JobHasBeen("served", JobPhase::Running);
        vec![
            create_job(When::Now, "served", job),
            Act { when: running, deed: Deed::Delete(Kind::VcJob, "served") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "",
};
