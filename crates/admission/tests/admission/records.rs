//! The recorded answers of Volcano's webhooks, and the cluster that was behind them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use krafla_admission::{Cluster, Settings};
use krafla_api::volcano::Queue;
use serde::Deserialize;
use serde_json::Value;

/// What existed when the answers were recorded.
pub(crate) struct Environment {
    queues: Vec<Arc<Queue>>,
    namespaces: Vec<Value>,
}

impl Environment {
    pub(crate) fn of(file: &Value, case: &Value) -> Environment {
        let name = case["environment"].as_str().unwrap_or_default();
        let objects = file["environments"][name]["objects"].as_array().cloned().unwrap_or_default();
        let queues = objects.iter().filter(|object| object["kind"] == "Queue");
        let mut queues: Vec<Arc<Queue>> =
            queues.map(|object| Arc::new(Queue::deserialize(object).expect("a queue"))).collect();
        queues.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let namespaces = objects.into_iter().filter(|object| object["kind"] == "Namespace").collect();
        Environment { queues, namespaces }
    }
}

impl Cluster for Environment {
    fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        self.queues.iter().find(|queue| queue.metadata.name == name).cloned()
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        self.queues.clone()
    }

    fn namespace_annotation(&self, namespace: &str, key: &str) -> Option<String> {
        let found = self.namespaces.iter().find(|object| object["metadata"]["name"] == namespace)?;
        found["metadata"]["annotations"][key].as_str().map(str::to_owned)
    }

    fn has_time_zone(&self, name: &str) -> bool {
        let known = [
            "UTC",
            "Etc/UTC",
            "Asia/Shanghai",
            "America/New_York",
            "America/Argentina/Buenos_Aires",
            "Etc/GMT-14",
            "GMT",
            "EST5EDT",
            "Zulu",
            "Europe/Berlin",
        ];
        known.contains(&name)
    }
}

/// A recorded file.
pub(crate) fn recorded(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/admission");
    let text = fs::read_to_string(folder.join(name)).expect("a recorded file");
    serde_json::from_str(&text).expect("JSON")
}

/// The settings of the server that answered.
pub(crate) fn settings(case: &Value) -> Settings {
    if case["server"] != "strict" {
        return Settings::default();
    }
    Settings {
        scheduler_names: vec!["alpha".to_owned(), "volcano".to_owned()],
        queue_depth_max: 3,
        protects_root_queue: false,
        checks_allocated_pods: true,
        ..Settings::default()
    }
}
