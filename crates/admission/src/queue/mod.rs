//! Queues: each by itself (`object`), and as part of the tree that they form (`tree`).

mod object;
mod tree;

use krafla_api::Quantity;
use krafla_api::labels::{HIERARCHY, HIERARCHY_WEIGHTS};
use krafla_api::volcano::Queue;
use serde_json::{Map, Value};

use crate::{Cluster, Operation, Path, Reason, Request, Settings, Verdict, read};

/// The queue above all others.
const ROOT: &str = "root";

/// Fills in what a new queue leaves out.
pub fn default(queue: &mut Value) {
    if queue.is_null() {
        *queue = Value::Object(Map::new());
    }
    let Some(queue) = queue.as_object_mut() else { return };
    if let Some(annotations) = queue.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    {
        default_hierarchy(annotations);
    }
    let spec = queue.entry("spec").or_insert(Value::Null);
    if spec.is_null() {
        *spec = Value::Object(Map::new());
    }
    let Some(spec) = spec.as_object_mut() else { return };
    if spec.get("reclaimable").is_none_or(Value::is_null) {
        spec.insert("reclaimable".to_owned(), true.into());
    }
    if spec.get("weight").is_none_or(|weight| weight.is_null() || *weight == 0) {
        spec.insert("weight".to_owned(), 1.into());
    }
}

/// A path of queues starts at the root.
fn default_hierarchy(annotations: &mut Value) {
    let text = |key: &str| annotations.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (path, weights) = (text(HIERARCHY), text(HIERARCHY_WEIGHTS));
    if path.is_empty() || weights.is_empty() || path.starts_with(ROOT) {
        return;
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(HIERARCHY.to_owned(), format!("{ROOT}/{path}").into());
        annotations.insert(HIERARCHY_WEIGHTS.to_owned(), format!("1/{weights}").into());
    }
}

/// Everything that is wrong with a new, changed or unwanted queue.
pub fn validate(request: Request<'_>, settings: &Settings, cluster: &dyn Cluster) -> Verdict {
    let mut verdict = Verdict::default();
    if request.operation == Operation::Delete {
        validate_delete(request.name, settings, cluster, &mut verdict);
        return verdict;
    }
    let Some(queue) = read::<Queue>(request.object, &mut verdict) else { return verdict };
    let is_new = request.operation == Operation::Create;
    let old = if is_new { None } else { read::<Queue>(request.old, &mut verdict) };
    object::validate(&queue, is_new, cluster, &mut verdict);
    tree::validate(&queue, old.as_ref(), settings, cluster, &mut verdict);
    verdict
}

fn validate_delete(name: &str, settings: &Settings, cluster: &dyn Cluster, verdict: &mut Verdict) {
    let path = Path::new("metadata.name");
    if [ROOT, "default"].contains(&name) {
        verdict.refuse(&path, Reason::Forbidden, format!("`{name}` queue can not be deleted"));
        return;
    }
    let Some(queue) = cluster.queue(name) else {
        verdict.refuse(&path, Reason::NotFound, format!("queue.scheduling.volcano.sh {name:?} not found"));
        return;
    };
    let n_pods = allocated_pods(&queue);
    if settings.checks_allocated_pods && n_pods > 0 {
        let message = format!("queue {name} cannot be deleted because it has allocated Pods: {n_pods}");
        verdict.refuse(&path, Reason::Forbidden, message);
    }
    let children = cluster.children(name);
    if !children.is_empty() {
        let names: Vec<&str> = children.iter().map(|child| child.metadata.name.as_str()).collect();
        let (n, names) = (names.len(), names.join(", "));
        let message = format!("queue {name} can not be deleted because it has {n} child queues: {names}");
        verdict.refuse(&path, Reason::Forbidden, message);
    }
}

/// How many pods run in a queue, as the scheduler says.
fn allocated_pods(queue: &Queue) -> i64 {
    queue.status.allocated.get("pods").copied().map_or(0, Quantity::value)
}
