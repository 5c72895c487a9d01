//! A queue that may use one core.

use std::time::Duration;

use krafla_api::volcano::JobSpec;
use serde_json::json;

use super::build::{create_job, create_queue, gang, needing, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "queue-full",
    shows: "a job that is larger than its queue may ever be waits, and keeps no smaller one from running",
    script: || {
        let in_small = |spec| JobSpec { queue: "small".to_owned(), ..spec };
        let later = When::At(Duration::from_secs(3600));
        vec![
            create_queue("small", json!({ "weight": 1, "capability": { "cpu": "1" } })),
            create_job(later, "large", in_small(gang(vec![needing("2", task("main", 1))]))),
            create_job(When::Now, "fitting", in_small(gang(vec![task("main", 1)]))),
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job fitting Completed, retried 0, version 0: 1 succeeded
        pod fitting-main-0 Succeeded
        job large Pending, retried 0, version 0: no pods
        podgroup large-<uid> Pending
        queue small Open
    ",
};
