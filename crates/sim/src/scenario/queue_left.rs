//! A queue that is closed, and is left by its last gang for another queue.

use krafla_api::Kind;
use krafla_api::volcano::Action;
use serde_json::{Value, json};

use super::build::{create_queue, is_open};
use super::{Act, Deed, Life, NAMESPACE, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "queue-left",
    shows: "a queue that closes is closed as soon as its last gang has moved to another queue",
    script: || {
        let group = json!({
            "apiVersion": Kind::PodGroup.info().api_version(), "kind": "PodGroup",
            "metadata": { "name": "nomad", "namespace": NAMESPACE },
            "spec": { "minMember": 1, "queue": "old" },
        });
        vec![
            create_queue("old", json!({ "weight": 1 })),
            create_queue("new", json!({ "weight": 1 })),
            Act { when: When::Shows(Kind::Queue, "old", is_open), deed: Deed::Create(Kind::PodGroup, group) },
            Act {
                when: When::Shows(Kind::Queue, "new", is_open),
                deed: Deed::CommandQueue("old", Action::CloseQueue),
            },
            Act {
                when: When::Shows(Kind::Queue, "old", is_no_longer_open),
                deed: Deed::Patch(Kind::PodGroup, "nomad", json!({ "spec": { "queue": "new" } })),
            },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        podgroup nomad Inqueue
        queue new Open
        queue old Closed
    ",
};

/// It is closed at once if the gang has not been seen yet.
fn is_no_longer_open(queue: &Value) -> bool {
    queue.pointer("/status/state").is_some_and(|state| state == "Closing" || state == "Closed")
}
