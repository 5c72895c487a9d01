//! A user deletes a job that still waits for its turn.

use std::collections::BTreeMap;

use krafla_api::Kind;
use krafla_api::volcano::{JobPhase, JobSpec};

use super::build::{create_job, gang, needing, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "withdrawn",
    shows: "a job that is deleted while it waits leaves nothing behind",
    script: || {
        let plugins = ["ssh", "svc"].map(|plugin| (plugin.to_owned(), Vec::new()));
        let tasks = vec![needing("1000", task("main", 2))];
        let job = JobSpec { plugins: BTreeMap::from(plugins), ..gang(tasks) };
        let pending = When::JobHasBeen("withdrawn", JobPhase::Pending);
        vec![
            create_job(When::Now, "withdrawn", job),
            Act { when: pending, deed: Deed::Delete(Kind::VcJob, "withdrawn") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "",
};
