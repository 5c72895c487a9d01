//! Pods of workloads whose controllers are not here: a ReplicaSet, and a StatefulSet that is scaled to nothing.

use std::time::Duration;

use krafla_api::{Kind, labels};
use serde_json::{Value, json};

use super::{Act, Deed, Life, NAMESPACE, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "owned",
    shows: "pods of one owner are one gang of as many as it says, and the gang goes when the owner wants no pods",
    script: || {
        let later = |deed| Act { when: When::At(Duration::from_secs(3600)), deed };
        vec![
            create_workload(Kind::ReplicaSet, "set"),
            create_pod(Kind::ReplicaSet, "set", "set-a"),
            create_pod(Kind::ReplicaSet, "set", "set-b"),
            create_workload(Kind::StatefulSet, "state"),
            create_pod(Kind::StatefulSet, "state", "state-0"),
            create_pod(Kind::StatefulSet, "state", "state-1"),
            later(Deed::Patch(Kind::StatefulSet, "state", json!({ "spec": { "replicas": 0 } }))),
            later(Deed::Delete(Kind::Pod, "state-1")),
            later(Deed::Delete(Kind::Pod, "state-0")),
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        podgroup podgroup-<uid> Running, of 2
        pod set-a Running
        pod set-b Running
        replicaset set
        statefulset state
    ",
};

fn create_workload(kind: Kind, name: &str) -> Act {
    let info = kind.info();
    let workload = json!({
        "apiVersion": info.api_version(), "kind": info.kind,
        "metadata": {
            "name": name, "namespace": NAMESPACE, "annotations": { labels::GROUP_MIN_MEMBER: "2" },
        },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": pod_spec() },
        },
    });
    Act { when: When::Now, deed: Deed::Create(kind, workload) }
}

fn create_pod(owner: Kind, of: &'static str, name: &str) -> Act {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "app": of } },
        "spec": pod_spec(),
    });
    Act { when: When::Now, deed: Deed::CreateFor(owner, of, Kind::Pod, pod) }
}

fn pod_spec() -> Value {
    json!({
        "schedulerName": "volcano",
        "containers": [{ "name": "main", "image": "busybox", "command": ["work"] }],
    })
}
