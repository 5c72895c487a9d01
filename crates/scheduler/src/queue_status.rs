//! What the scheduler writes to queues: it makes the two that must exist, and says how much each has in use and how its gangs are
//! doing.
//!
//! The state of a queue (Open, Closed) is the Queue controller's; neither touches what the other writes.

use std::collections::BTreeMap;

use krafla_api::Kind;
use krafla_api::volcano::{PodGroupPhase, QueueStatus, ResourceList};
use krafla_cluster::Step;
use krafla_plan::Object;
use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::podgroup::desired_phase;
use crate::queue::{Queue, ROOT};
use crate::resources::Names;

/// All that is to be written to queues.
pub(crate) fn writes(cluster: &Cluster<'_>) -> Vec<Step> {
    let Cluster { names, queues, .. } = cluster;
    let missing = queues.iter().filter_map(creation);
    let gangs = gangs_by_phase(cluster);
    let of_queue = |queue: &Queue<'_>| gangs.get(queue.name).copied().unwrap_or_default();
    missing.chain(queues.iter().filter_map(|queue| status_patch(queue, names, &of_queue(queue)))).collect()
}

/// The fields of a queue's status that say how many gangs of each phase it has.
const COUNTERS: [&str; 5] = ["pending", "inqueue", "running", "unknown", "completed"];

/// What [`COUNTERS`] count, in their order.
type Counts = [i32; COUNTERS.len()];

/// How many gangs of each phase each queue has once this decision is carried out. Those of the queues below it are not among
/// them: their jobs were submitted elsewhere.
fn gangs_by_phase<'a>(cluster: &Cluster<'a>) -> BTreeMap<&'a str, Counts> {
    let mut gangs: BTreeMap<&str, Counts> = BTreeMap::new();
    for gang in cluster.gangs.iter().filter(|gang| gang.podgroup.is_some()) {
        let Some(queue) = gang.queue else { continue };
        let counts = gangs.entry(cluster.queues.name(queue)).or_default();
        if let Some(count) = counter(&desired_phase(gang)).and_then(|counter| counts.get_mut(counter)) {
            *count = count.saturating_add(1);
        }
    }
    gangs
}

/// The place of a phase among [`COUNTERS`].
fn counter(phase: &PodGroupPhase) -> Option<usize> {
    match phase {
        PodGroupPhase::Unset | PodGroupPhase::Pending => Some(0),
        PodGroupPhase::Inqueue => Some(1),
        PodGroupPhase::Running => Some(2),
        PodGroupPhase::Unknown => Some(3),
        PodGroupPhase::Completed => Some(4),
        PodGroupPhase::Other(_) => None,
    }
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

/// The write that brings a queue's status up to date, if it is not. A counter that nobody has written is not known to be zero: it
/// is written too, so that a new queue shows zeros and not blanks. What `root` has in use is the whole cluster, which is no news.
fn status_patch(queue: &Queue<'_>, names: &Names, gangs: &Counts) -> Option<Step> {
    let object = queue.object?;
    let observed = &object.as_queue()?.status;
    let is_root = queue.name == ROOT;
    let allocated =
        if is_root { None } else { difference(&observed.allocated, &names.list(&queue.in_use())) };
    let mut patch: Map<String, Value> =
        allocated.map(|allocated| ("allocated".to_owned(), allocated.into())).into_iter().collect();
    let counted = COUNTERS.into_iter().zip(gangs).zip(observed_counts(observed));
    let changed = counted.filter(|((_, count), observed)| Some(**count) != *observed);
    patch.extend(changed.map(|((field, count), _)| (field.to_owned(), json!(count))));
    let Object { kind, meta, .. } = object;
    (!patch.is_empty()).then(|| Step::Patch {
        kind: *kind,
        key: meta.key.clone(),
        uid: meta.uid.clone(),
        revision: None,
        of_status: true,
        patch: json!({ "status": patch }),
    })
}

fn observed_counts(status: &QueueStatus) -> [Option<i32>; COUNTERS.len()] {
    [status.pending, status.inqueue, status.running, status.unknown, status.completed]
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
