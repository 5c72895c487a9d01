//! What is wrong with a queue's place among the others.
//!
//! ```text
//!   root
//!    └─ org        capability: not above that of the nearest queue over it that has one
//!        ├─ a      deserved, guarantee: those of a and b together not above those of org
//!        └─ b
//! ```
//!
//! Every walk is bounded: a tree may already hold a ring, made by an older program.

use std::collections::BTreeSet;

use krafla_api::Quantity;
use krafla_api::volcano::{Queue, ResourceList};

use crate::{Cluster, Path, Reason, Settings, Verdict};

use super::{ROOT, allocated_pods};

pub(super) fn validate(
    queue: &Queue,
    old: Option<&Queue>,
    settings: &Settings,
    cluster: &dyn Cluster,
    verdict: &mut Verdict,
) {
    let (name, parent) = (queue.metadata.name.as_str(), queue.spec.parent.as_str());
    let is_moved = old.is_none_or(|old| old.spec.parent != parent);
    let is_resized = old.is_none_or(|old| has_other_resources(queue, old));
    if name == ROOT {
        if settings.protects_root_queue && old.is_some_and(|old| has_other_resources(queue, old)) {
            let message =
                "root queue's resource attributes (capability, deserved, guarantee) cannot be modified";
            verdict.refuse(&Path::new("spec"), Reason::Forbidden, message);
        }
        if !parent.is_empty() && is_moved {
            verdict.refuse(&Path::new("spec.parent"), Reason::Forbidden, "root queue cannot have a parent");
        }
        return;
    }
    let n_before = verdict.refusals.len();
    if is_moved && !is_top(parent) {
        validate_parent(name, parent, settings, cluster, verdict);
    }
    let is_well_placed = verdict.refusals.len() == n_before;
    if is_moved || is_resized {
        if is_well_placed && !is_top(parent) {
            validate_below_parent(queue, cluster, verdict);
        }
        validate_above_children(queue, cluster, verdict);
    }
}

/// Whether this parent is the root, said or unsaid.
fn is_top(parent: &str) -> bool {
    parent.is_empty() || parent == ROOT
}

fn has_other_resources(queue: &Queue, old: &Queue) -> bool {
    let (a, b) = (&queue.spec, &old.spec);
    a.capability != b.capability || a.deserved != b.deserved || a.guarantee != b.guarantee
}

/// A queue may go below another if that exists, is no leaf with pods, and the tree stays shallow and without rings.
fn validate_parent(
    name: &str,
    parent: &str,
    settings: &Settings,
    cluster: &dyn Cluster,
    verdict: &mut Verdict,
) {
    let path = Path::new("spec.parent");
    if parent == name {
        verdict.refuse(&path, Reason::Invalid, format!("queue {name} cannot use itself as parent"));
        return;
    }
    let too_deep = format!("queue {name} exceeds the maximum allowed depth of {}", settings.queue_depth_max);
    let mut n_above = 0;
    let mut above = parent.to_owned();
    while !is_top(&above) {
        n_above += 1;
        if above == name {
            let message = format!("{too_deep}: it cannot go below queue {parent}, which is below it");
            verdict.refuse(&path, Reason::Invalid, message);
            return;
        }
        if n_above >= settings.queue_depth_max {
            verdict.refuse(&path, Reason::Invalid, too_deep);
            return;
        }
        let Some(queue) = cluster.queue(&above) else {
            let missing = format!("queue.scheduling.volcano.sh {above:?} not found");
            let message = format!("failed to get parent queue {above} of queue {name}: {missing}");
            verdict.refuse(&path, Reason::NotFound, message);
            return;
        };
        above.clone_from(&queue.spec.parent);
    }
    if n_above + height(name, settings.queue_depth_max, cluster) > settings.queue_depth_max {
        let message = format!("{too_deep}, with the queues below it");
        verdict.refuse(&path, Reason::Invalid, message);
    }
    let n_pods = cluster.queue(parent).map_or(0, |queue| allocated_pods(&queue));
    if n_pods > 0 && cluster.children(parent).is_empty() {
        let message = format!(
            "queue {parent} cannot be the parent queue of queue {name} because it has allocated Pods: {n_pods}"
        );
        verdict.refuse(&path, Reason::Forbidden, message);
    }
}

/// How many levels a queue and all below it take; never more than one above the limit.
fn height(name: &str, max: usize, cluster: &dyn Cluster) -> usize {
    let mut level = vec![name.to_owned()];
    let mut n_levels = 0;
    while !level.is_empty() && n_levels <= max {
        n_levels += 1;
        let below = level.iter().flat_map(|name| cluster.children(name));
        level = below.map(|child| child.metadata.name.clone()).collect();
    }
    n_levels
}

fn validate_below_parent(queue: &Queue, cluster: &dyn Cluster, verdict: &mut Verdict) {
    let (name, parent) = (&queue.metadata.name, &queue.spec.parent);
    let path = Path::new("spec");
    let Some(above) = cluster.queue(parent) else {
        let missing = format!("queue.scheduling.volcano.sh {parent:?} not found");
        let message = format!("parent queue {parent} not found: {missing}");
        verdict.refuse(&path.field("parent"), Reason::NotFound, message);
        return;
    };
    for (resource, amount) in &queue.spec.capability {
        if let Some(limit) = limit_above(queue, resource, cluster).filter(|limit| amount > limit) {
            let message = format!(
                "queue {name} capability[{resource}]={amount} exceeds its ancestor's capability={limit}"
            );
            verdict.refuse(&path.field("capability").field(resource), Reason::Invalid, message);
        }
    }
    let siblings: Vec<_> =
        cluster.children(parent).into_iter().filter(|child| child.metadata.name != *name).collect();
    let family: Vec<&Queue> = siblings.iter().map(|sibling| &**sibling).chain([queue]).collect();
    validate_sums(&above, &family, &format!("parent queue {parent}"), verdict);
}

/// The capability of the nearest queue above that has one.
fn limit_above(queue: &Queue, resource: &str, cluster: &dyn Cluster) -> Option<Quantity> {
    let mut seen = BTreeSet::from([queue.metadata.name.clone()]);
    let mut above = queue.spec.parent.clone();
    while !is_top(&above) && seen.insert(above.clone()) {
        let queue = cluster.queue(&above)?;
        if let Some(limit) = queue.spec.capability.get(resource).filter(|limit| **limit > Quantity::ZERO) {
            return Some(*limit);
        }
        above.clone_from(&queue.spec.parent);
    }
    None
}

fn validate_above_children(queue: &Queue, cluster: &dyn Cluster, verdict: &mut Verdict) {
    let name = &queue.metadata.name;
    let children = cluster.children(name);
    if children.is_empty() {
        return;
    }
    for (resource, amount) in &queue.spec.capability {
        let mut seen = BTreeSet::from([name.clone()]);
        let largest = largest_below(name, resource, cluster, &mut seen);
        if let Some(largest) = largest.filter(|largest| *largest > *amount) {
            let message = format!(
                "queue {name} capability[{resource}]={amount} is smaller than its descendants' max capability={largest}"
            );
            verdict.refuse(&Path::new("spec.capability").field(resource), Reason::Invalid, message);
        }
    }
    let family: Vec<&Queue> = children.iter().map(|child| &**child).collect();
    validate_sums(queue, &family, &format!("queue {name}"), verdict);
}

/// The largest capability below a queue. A child's own hides those below it.
fn largest_below(
    name: &str,
    resource: &str,
    cluster: &dyn Cluster,
    seen: &mut BTreeSet<String>,
) -> Option<Quantity> {
    let mut largest: Option<Quantity> = None;
    for child in cluster.children(name) {
        if !seen.insert(child.metadata.name.clone()) {
            continue;
        }
        let own = child.spec.capability.get(resource).copied().filter(|amount| *amount > Quantity::ZERO);
        let amount = own.or_else(|| largest_below(&child.metadata.name, resource, cluster, seen));
        largest = largest.max(amount);
    }
    largest
}

/// What the children of a queue may claim and keep, together, is part of what the queue may.
fn validate_sums(parent: &Queue, children: &[&Queue], who: &str, verdict: &mut Verdict) {
    type Share = fn(&Queue) -> &ResourceList;
    let shares: [(&str, Share); 2] =
        [("guarantee", |queue| &queue.spec.guarantee.resource), ("deserved", |queue| &queue.spec.deserved)];
    for (what, share) in shares {
        let mut sum = ResourceList::new();
        for (name, amount) in children.iter().flat_map(|child| share(child)) {
            *sum.entry(name.clone()).or_default() += *amount;
        }
        let limit = share(parent);
        // CPU and memory that a queue does not mention are none; of any other resource, it has no notion at all.
        let is_above = |(name, amount): (&String, &Quantity)| match limit.get(name) {
            Some(limit) => amount > limit,
            None => {
                is_compared(name) && (!["cpu", "memory"].contains(&name.as_str()) || *amount > Quantity::ZERO)
            }
        };
        if sum.iter().any(is_above) {
            let (sum, limit) = (shown(&sum), shown(limit));
            let message = format!(
                "{who} validation failed: sum of children's {what} ({sum}) exceeds parent's {what} limit ({limit})"
            );
            verdict.refuse(&Path::new("spec").field(what), Reason::Invalid, message);
        }
    }
}

/// The scheduler does not know other resources, nor quotas of objects.
fn is_compared(name: &str) -> bool {
    let is_known = ["cpu", "memory", "pods", "ephemeral-storage"].contains(&name);
    is_known || name.starts_with("hugepages-") || (name.contains('/') && !name.starts_with("count/"))
}

fn shown(amounts: &ResourceList) -> String {
    amounts.iter().map(|(name, amount)| format!("{name} {amount}")).collect::<Vec<_>>().join(", ")
}
