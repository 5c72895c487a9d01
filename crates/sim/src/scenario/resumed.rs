//! A job whose second task waits for its first is suspended once the first has succeeded, and resumed.

use krafla_api::Kind;
use krafla_api::volcano::{Action, DependsOn, JobPhase, JobSpec, TaskSpec};
use serde_json::Value;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "resumed",
    shows: "what succeeded before a job was suspended is still what other tasks waited for when it is resumed",
    script: || {
        let depends_on = Some(DependsOn { name: vec!["first".to_owned()], ..DependsOn::default() });
        let second = TaskSpec { depends_on, ..task("second", 1) };
        let job = JobSpec { min_available: 1, ..gang(vec![task("first", 1), second]) };
        let has_succeeded = |job: &Value| job.pointer("/status/succeeded") == Some(&1.into());
        let aborted = When::JobHasBeen("resumed", JobPhase::Aborted);
        vec![
            create_job(When::Now, "resumed", job),
            Act {
                when: When::Shows(Kind::VcJob, "resumed", has_succeeded),
                deed: Deed::Command("resumed", Action::AbortJob),
            },
            Act { when: aborted, deed: Deed::Command("resumed", Action::ResumeJob) },
        ]
    },
    pod: |pod| match (pod.task, pod.version) {
        ("second", 0) => Life::RunsOn,
        _ => Life::succeeds_after(10),
    },
    end: "
        job resumed Completed, retried 0, version 2: 2 succeeded
        pod resumed-first-0 Succeeded
        pod resumed-second-0 Succeeded
    ",
};
