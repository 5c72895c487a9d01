//! A queue that is closed while a job of a queue below it runs.

use krafla_api::volcano::{Action, JobPhase, JobSpec};
use serde_json::json;

use super::build::{create_job, create_queue, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "queue-closed",
    shows: "a queue and those below it close, and are closed when the last of their jobs has ended",
    script: || {
        let running = When::JobHasBeen("last", JobPhase::Running);
        vec![
            create_queue("team", json!({ "weight": 1 })),
            create_queue("member", json!({ "weight": 1, "parent": "team" })),
            create_job(
                When::At(std::time::Duration::from_secs(3600)),
                "last",
                JobSpec { queue: "member".to_owned(), ..gang(vec![task("main", 1)]) },
            ),
            Act { when: running, deed: Deed::CommandQueue("team", Action::CloseQueue) },
        ]
    },
    pod: |_| Life::succeeds_after(60),
    end: "
        job last Completed, retried 0, version 0: 1 succeeded
        pod last-main-0 Succeeded
        queue member Closed
        queue team Closed
    ",
};
