//! The object that everything is measured with: a pod of a Volcano Job, about as large as they are.

use serde_json::{Value, json};

/// Stands in the text where the name belongs.
const NAME: &str = "the-name-of-the-pod";

/// Text of pods that differ only in their names: made once, since what is measured is the server.
#[derive(Clone)]
pub(crate) struct Pods(String);

impl Pods {
    /// Pods that take about five kilobytes when they are stored, with their defaults and managers.
    pub(crate) fn new() -> Self {
        let environment: Vec<Value> = (0..16)
            .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "a value of ordinary length"}))
            .collect();
        let container = json!({
            "name": "main", "image": "registry.example.com/team/training:2026-11-15", "env": environment,
            "command": ["python3", "-m", "torch.distributed.run", "--nnodes=4", "train.py"],
            "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"cpu": "4", "memory": "16Gi"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": NAME,
                "labels": {"volcano.sh/job-name": "training", "volcano.sh/task-spec": "worker"},
                "annotations": {"scheduling.k8s.io/group-name": "training", "note": "n".repeat(700)},
            },
            "spec": {
                "containers": [container], "schedulerName": "volcano", "restartPolicy": "OnFailure",
                "volumes": [{"name": "data", "emptyDir": {}}],
            },
        });
        Self(pod.to_string())
    }

    /// One of them.
    pub(crate) fn named(&self, name: &str) -> String {
        self.0.replace(NAME, name)
    }
}
