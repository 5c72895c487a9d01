//! What the scheduler writes to queues: it makes the two that must exist, and says how much each has in use.
//!
//! The state of a queue (Open, Closed) is the Queue controller's; neither touches what the other writes.

use krafla_api::Kind;
use krafla_api::volcano::ResourceList;
use krafla_plan::{Object, Step};
use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::queue::{Queue, ROOT};
use crate::resources::Names;

/// All that is to be written to queues.
pub(crate) fn writes(cluster: &Cluster<'_>) -> Vec<Step> {
    let Cluster { names, queues, .. } = cluster;
    let missing = queues.iter().filter_map(creation);
    missing.chain(queues.iter().filter_map(|queue| status_patch(queue, names))).collect()
}

/// Makes `root` or `default` where it is missing. Volcano's scheduler does so when it starts.
fn creation(queue: &Queue<'_>) -> Option<Step> {
    if queue.object.is_some() {
        return None;
    }
    let info = Kind::Queue.info();
    let spec = if queue.name == ROOT {
        json!({ "weight": 1, "reclaimable": false })
    } else {
        json!({ "weight": 1, "reclaimable": true, "parent": ROOT })
    };
    let object = json!({
        "apiVersion": info.api_version(),
        "kind": info.kind,
        "metadata": { "name": queue.name },
        "spec": spec,
    });
    Some(Step::Create { kind: Kind::Queue, object })
}

/// The write that brings `status.allocated` up to date, if it is not. `root` has the whole cluster, which is no news.
fn status_patch(queue: &Queue<'_>, names: &Names) -> Option<Step> {
    let object = queue.object.filter(|_| queue.name != ROOT)?;
    let observed = &object.as_queue()?.status.allocated;
    let allocated = difference(observed, &names.list(&queue.allocated))?;
    let Object { kind, meta, .. } = object;
    Some(Step::Patch {
        kind: *kind,
        key: meta.key.clone(),
        uid: meta.uid.clone(),
        revision: None,
        of_status: true,
        patch: json!({ "status": { "allocated": allocated } }),
    })
}

/// The amounts that differ, as a merge patch.
fn difference(observed: &ResourceList, desired: &ResourceList) -> Option<Map<String, Value>> {
    let changed = desired.iter().filter(|(name, amount)| observed.get(*name) != Some(*amount));
    let gone = observed.keys().filter(|name| !desired.contains_key(*name));
    let patch: Map<String, Value> = changed
        .map(|(name, amount)| (name.clone(), json!(amount)))
        .chain(gone.map(|name| (name.clone(), Value::Null)))
        .collect();
    (!patch.is_empty()).then_some(patch)
}
