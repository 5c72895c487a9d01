//! Many queues with a gang each, which come, close and go at the same time.

use krafla_api::Kind;
use krafla_api::volcano::Action;
use serde_json::json;

use super::build::{create_queue, is_open};
use super::{Act, Deed, Life, NAMESPACE, Scenario, When};

/// The queues; each has a gang of the same name.
const NAMES: [&str; 4] = ["q1", "q2", "q3", "q4"];

pub(super) static SCENARIO: Scenario = Scenario {
    name: "queue-crowd",
    shows: "queues and gangs that come and go in a crowd leave nothing behind, and none is confused with another",
    script: || {
        let queues = NAMES.map(|name| create_queue(name, json!({ "weight": 1 })));
        let gangs = NAMES.map(|name| {
            let group = json!({
                "apiVersion": Kind::PodGroup.info().api_version(), "kind": "PodGroup",
                "metadata": { "name": name, "namespace": NAMESPACE },
                "spec": { "minMember": 1, "queue": name },
            });
            Act { when: When::Shows(Kind::Queue, name, is_open), deed: Deed::Create(Kind::PodGroup, group) }
        });
        let now = |deed: Deed| Act { when: When::Now, deed };
        let closing = NAMES.map(|name| now(Deed::CommandQueue(name, Action::CloseQueue)));
        // Of every other queue the gang goes first, and of the others the queue.
        let going = NAMES.iter().enumerate().flat_map(|(index, name)| {
            let mut deeds = [Deed::Delete(Kind::PodGroup, name), Deed::Delete(Kind::Queue, name)];
            deeds.rotate_left(index % 2);
            deeds.map(now)
        });
        queues.into_iter().chain(gangs).chain(closing).chain(going.collect::<Vec<_>>()).collect()
    },
    pod: |_| Life::RunsOn,
    end: "
    ",
};
