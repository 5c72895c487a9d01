//! A Command that comes while the job restarts (B22).

use krafla_api::volcano::{Action, JobPhase};

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "interrupted",
    shows: "a job that is aborted while it restarts is aborted, and starts no further try",
    script: || {
        let command = |phase: JobPhase, action: Action| Act {
            when: When::JobHasBeen("interrupted", phase),
            deed: Deed::Command("interrupted", action),
        };
        vec![
            create_job(When::Now, "interrupted", gang(vec![task("main", 2)])),
            command(JobPhase::Running, Action::RestartJob),
            command(JobPhase::Restarting, Action::AbortJob),
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job interrupted Aborted, retried 1, version 2: no pods
    ",
};
