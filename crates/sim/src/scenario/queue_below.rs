//! Queues three levels deep that are closed and opened from above and by themselves.

use std::time::Duration;

use krafla_api::volcano::Action;
use serde_json::json;

use super::build::create_queue;
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "queue-below",
    shows: "a queue opens with the one above it and not before; one that was closed by itself stays closed",
    script: || {
        let at = |minutes: u64, queue, action| Act {
            when: When::At(Duration::from_secs(60 * minutes)),
            deed: Deed::CommandQueue(queue, action),
        };
        vec![
            create_queue("team", json!({ "weight": 1 })),
            create_queue("member", json!({ "weight": 1, "parent": "team" })),
            create_queue("leaf", json!({ "weight": 1, "parent": "member" })),
            create_queue("shut", json!({ "weight": 1, "parent": "team" })),
            at(60, "shut", Action::CloseQueue),
            at(120, "team", Action::CloseQueue),
            // Those above it are closed: it opens with them.
            at(180, "leaf", Action::OpenQueue),
            at(240, "team", Action::OpenQueue),
        ]
    },
    pod: |_| Life::NeverStarts,
    end: "
        queue leaf Open
        queue member Open
        queue shut Closed
        queue team Open
    ",
};
