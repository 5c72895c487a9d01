//! A queue that is closed for an hour.

use std::time::Duration;

use krafla_api::volcano::{Action, JobSpec};
use serde_json::json;

use super::build::{create_job, create_queue, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "queue-opened",
    shows: "queues open again with the one above them, and then take jobs",
    script: || {
        let at = |minutes: u64| When::At(Duration::from_secs(60 * minutes));
        vec![
            create_queue("team", json!({ "weight": 1 })),
            create_queue("member", json!({ "weight": 1, "parent": "team" })),
            Act { when: at(60), deed: Deed::CommandQueue("team", Action::CloseQueue) },
            Act { when: at(120), deed: Deed::CommandQueue("team", Action::OpenQueue) },
            create_job(
                at(180),
                "next",
                JobSpec { queue: "member".to_owned(), ..gang(vec![task("main", 1)]) },
            ),
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job next Completed, retried 0, version 0: 1 succeeded
        pod next-main-0 Succeeded
        queue member Open
        queue team Open
    ",
};
