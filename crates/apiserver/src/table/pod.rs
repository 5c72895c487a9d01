//! The columns of pods. The one word under STATUS sums up what all containers do.

use krafla_api::Time;
use krafla_schema::object::{self, at, text_at, time_at};
use serde_json::{Value, json};

use super::human::age;

/// The cells of a pod.
pub(super) fn cells(pod: &Value, now: Time) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match summary.last_restart {
        Some(at) if summary.restarts > 0 => format!("{} ({} ago)", summary.restarts, age(Some(at), now)),
        _ => summary.restarts.to_string(),
    };
    let none_if_empty = |text: String| if text.is_empty() { "<none>".to_owned() } else { text };
    vec![
        object::name(pod).into(),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        age(time_at(pod, "/metadata/creationTimestamp"), now).into(),
        none_if_empty(text_at(pod, "status.podIP")).into(),
        none_if_empty(text_at(pod, "spec.nodeName")).into(),
        none_if_empty(text_at(pod, "status.nominatedNodeName")).into(),
        readiness_gates(pod).into(),
    ]
}

/// What all containers together do.
#[derive(Default)]
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Time>,
}

impl Summary {
    fn of(pod: &Value) -> Summary {
        let phase = text_at(pod, "status.phase");
        let stated = text_at(pod, "status.reason");
        let mut summary = Summary {
            reason: if stated.is_empty() { phase.clone() } else { stated.clone() },
            total: list(pod, "/spec/containers").len(),
            ..Summary::default()
        };
        if condition(pod, "PodScheduled").is_some_and(|scheduled| scheduled["reason"] == "SchedulingGated") {
            summary.reason = "SchedulingGated".into();
        }
        let mut sidecars = Summary::default();
        let is_initializing = summary.take_init_containers(pod, &mut sidecars);
        let is_initialized =
            condition(pod, "Initialized").is_some_and(|initialized| initialized["status"] == "True");
        if !is_initializing || is_initialized {
            summary.restarts = sidecars.restarts;
            summary.last_restart = sidecars.last_restart;
            summary.take_containers(pod);
        }
        if object::is_deleting(pod) {
            match (&*stated, &*phase) {
                ("NodeLost", _) => summary.reason = "Unknown".into(),
                (_, "Succeeded" | "Failed") => {}
                _ => summary.reason = "Terminating".into(),
            }
        }
        summary
    }

    fn count_restarts(&mut self, status: &Value) {
        self.restarts += status["restartCount"].as_i64().unwrap_or(0);
        self.last_restart = self.last_restart.max(time_at(status, "/lastState/terminated/finishedAt"));
    }

    /// Looks at the init containers up to the first that is not done; whether there is one.
    fn take_init_containers(&mut self, pod: &Value, sidecars: &mut Summary) -> bool {
        let specs = list(pod, "/spec/initContainers");
        let is_sidecar = |name: &Value| {
            specs.iter().any(|container| container["name"] == *name && container["restartPolicy"] == "Always")
        };
        self.total += specs.iter().filter(|container| container["restartPolicy"] == "Always").count();
        for (index, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
            let is_sidecar = is_sidecar(&status["name"]);
            self.count_restarts(status);
            if is_sidecar {
                sidecars.count_restarts(status);
            }
            let (terminated, waiting) = (at(status, "/state/terminated"), at(status, "/state/waiting"));
            let waits_for = waiting["reason"].as_str().unwrap_or_default();
            if terminated.is_object() && terminated["exitCode"] == 0 {
                continue;
            }
            if is_sidecar && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            self.reason = if terminated.is_object() {
                format!("Init:{}", ended(terminated))
            } else if !waits_for.is_empty() && waits_for != "PodInitializing" {
                format!("Init:{waits_for}")
            } else {
                format!("Init:{index}/{}", specs.len())
            };
            return true;
        }
        false
    }

    /// Looks at the containers; the first with something to say has the last word.
    fn take_containers(&mut self, pod: &Value) {
        let (mut has_running, mut failure) = (false, None);
        for status in list(pod, "/status/containerStatuses").iter().rev() {
            self.count_restarts(status);
            let (terminated, waiting) = (at(status, "/state/terminated"), at(status, "/state/waiting"));
            let waits_for = waiting["reason"].as_str().unwrap_or_default();
            if !waits_for.is_empty() {
                self.reason = waits_for.to_owned();
            } else if terminated.is_object() {
                self.reason = ended(terminated);
                if terminated["exitCode"].as_i64().unwrap_or(0) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status["ready"] == true && at(status, "/state/running").is_object() {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            let is_ready = condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True");
            self.reason = match failure {
                _ if has_running && is_ready => "Running".into(),
                Some(failure) => failure,
                None if has_running => "NotReady".into(),
                None => return,
            };
        }
    }
}

/// Why a container ended.
fn ended(terminated: &Value) -> String {
    let number = |field: &str| terminated[field].as_i64().unwrap_or(0);
    match (terminated["reason"].as_str().unwrap_or_default(), number("signal")) {
        ("", 0) => format!("ExitCode:{}", number("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let is_open = |gate: &&Value| {
        let name = gate["conditionType"].as_str().unwrap_or_default();
        condition(pod, name).is_some_and(|condition| condition["status"] == "True")
    };
    format!("{}/{}", gates.iter().filter(is_open).count(), gates.len())
}

fn condition<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    list(pod, "/status/conditions").iter().find(|condition| condition["type"] == name)
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Rows of finished pods say so, so that clients can leave them out.
pub(super) fn row_conditions(object: &Value) -> Vec<Value> {
    if object["kind"] != "Pod" || object["apiVersion"] != "v1" {
        return Vec::new();
    }
    let completed = |reason: &str, message: &str| {
        vec![json!({"type": "Completed", "status": "True", "reason": reason, "message": message})]
    };
    match &*text_at(object, "status.phase") {
        "Succeeded" => completed("Succeeded", "The pod has completed successfully."),
        "Failed" => completed("Failed", "The pod failed."),
        _ => Vec::new(),
    }
}
