//! Pods that nobody but the PodGroup controller groups.

use krafla_api::Kind;
use serde_json::json;

use super::{Act, Deed, Life, NAMESPACE, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "grouped",
    shows: "a pod of its own gets a PodGroup, runs, and takes the PodGroup along when it goes",
    script: || {
        vec![
            create_pod("alone"),
            create_pod("removed"),
            Act {
                when: When::At(std::time::Duration::from_secs(3600)),
                deed: Deed::Delete(Kind::Pod, "removed"),
            },
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        podgroup podgroup-<uid> Completed
        pod alone Succeeded
    ",
};

fn create_pod(name: &str) -> Act {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "schedulerName": "volcano", "restartPolicy": "Never",
            "containers": [{ "name": "main", "image": "busybox", "command": ["work"] }],
        },
    });
    Act { when: When::Now, deed: Deed::Create(Kind::Pod, pod) }
}
