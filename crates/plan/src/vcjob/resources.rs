//! `spec.minResources` of the PodGroup: the minimum that the gang needs.
//!
//! Mirrors the quota usage that Kubernetes computes for a pod, summed over the pods that make up the job's minimum, taken
//! from the tasks of the highest priority first.

use std::collections::BTreeMap;

use krafla_api::quantity::Quantity;
use krafla_api::volcano::{JobSpec, TaskSpec};
use krafla_api::{Key, Kind};
use serde_json::Value;

use crate::object::{Body, Container, PodSpec, Resources};
use crate::{Object, Snapshot};

/// Amounts by resource name.
type Amounts = BTreeMap<String, Quantity>;

/// The resources of the job's minimum of pods.
pub(super) fn minimum(spec: &JobSpec, snapshot: &Snapshot<'_>) -> Amounts {
    let mut total = Amounts::new();
    for (task, n_pods) in minimum_pods(spec, snapshot) {
        for (resource, amount) in usage(task) {
            *total.entry(resource).or_default() += amount.times(i64::from(n_pods));
        }
    }
    total
}

/// How many pods of each task belong to the minimum.
fn minimum_pods<'a>(spec: &'a JobSpec, snapshot: &Snapshot<'_>) -> Vec<(&'a TaskSpec, i32)> {
    let mut tasks: Vec<&TaskSpec> = spec.tasks.iter().collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(priority(task, snapshot)));
    let minima = tasks.iter().map(|task| task.min_available.unwrap_or(task.replicas));
    let mut remaining = spec.min_available;
    let mut taken: Vec<(&TaskSpec, i32)> = Vec::new();
    let mut take = |task, n_wanted: i32, remaining: &mut i32| {
        let n = n_wanted.min(*remaining).max(0);
        *remaining = remaining.saturating_sub(n);
        if n > 0 {
            taken.push((task, n));
        }
    };
    if spec.min_available < minima.fold(0, i32::saturating_add) {
        // Volcano counts replicas here, not the tasks' own minima.
        for task in &tasks {
            take(task, task.replicas, &mut remaining);
        }
    } else {
        for task in &tasks {
            take(task, task.min_available.unwrap_or(0), &mut remaining);
        }
        for task in &tasks {
            take(task, task.replicas.saturating_sub(task.min_available.unwrap_or(0)), &mut remaining);
        }
    }
    taken
}

fn priority(task: &TaskSpec, snapshot: &Snapshot<'_>) -> i32 {
    let class = task.template.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default();
    let class = snapshot.objects.get(Kind::PriorityClass, &Key::new("", class));
    match class.map(AsRef::<Object>::as_ref).map(|class| &class.body) {
        Some(Body::PriorityClass(class)) => class.value,
        _ => 0,
    }
}

/// What Kubernetes' quota would count for one pod of the task.
fn usage(task: &TaskSpec) -> Amounts {
    let template = task.template.get("spec").cloned().unwrap_or_default();
    pod_usage(&serde_json::from_value(template).unwrap_or_default())
}

/// What Kubernetes' quota would count for one pod.
pub(crate) fn pod_usage(spec: &PodSpec) -> Amounts {
    let mut usage =
        Amounts::from(["pods", "count/pods"].map(|name| (name.to_owned(), Quantity::from_units(1))));
    for (resource, amount) in pod_requests(spec) {
        usage.insert(format!("requests.{resource}"), amount);
        usage.insert(resource, amount);
    }
    let limits = of_pod(spec, |resources| resources.limits.clone());
    let overhead = spec.overhead.iter().filter(|(name, _)| limits.contains_key(*name));
    let overhead = overhead.map(|(name, amount)| (name.clone(), *amount)).collect();
    for (resource, amount) in sum(&limits, &overhead) {
        if matches!(resource.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.insert(format!("limits.{resource}"), amount);
        }
    }
    usage
}

/// What a pod asks of its node: the sum of its containers, or its init containers where one of them needs more, plus the
/// sidecars that run beside both; where the pod asks as a whole, that instead; plus its overhead.
pub fn pod_requests(spec: &PodSpec) -> Amounts {
    sum(&of_pod(spec, request), &spec.overhead)
}

/// What the pod says for itself goes before what its containers add up to.
fn of_pod(spec: &PodSpec, part: impl Fn(&Resources) -> Amounts) -> Amounts {
    let can_be_shared = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    let mut amounts = of_containers(spec, |container| part(&container.resources));
    let whole = spec.resources.as_deref().map(part).unwrap_or_default();
    amounts.extend(whole.into_iter().filter(|(name, _)| can_be_shared(name)));
    amounts
}

/// Containers run side by side, and sidecars beside them; init containers run one after the other, each beside the
/// sidecars started before it. The pod needs the larger of the two.
fn of_containers(spec: &PodSpec, of_container: impl Fn(&Container) -> Amounts) -> Amounts {
    let mut sidecars = Amounts::new();
    let mut at_start = Amounts::new();
    for container in &spec.init_containers {
        if container.restart_policy == "Always" {
            sidecars = sum(&sidecars, &of_container(container));
            at_start = larger(&at_start, &sidecars);
        } else {
            at_start = larger(&at_start, &sum(&sidecars, &of_container(container)));
        }
    }
    let running =
        spec.containers.iter().fold(sidecars, |total, container| sum(&total, &of_container(container)));
    larger(&running, &at_start)
}

/// What is asked for: the request, or the limit where there is only that, as the API server would fill in.
fn request(resources: &Resources) -> Amounts {
    let mut request = resources.limits.clone();
    request.extend(resources.requests.clone());
    request
}

fn sum(one: &Amounts, other: &Amounts) -> Amounts {
    merge(one, other, |a, b| a + b)
}

fn larger(one: &Amounts, other: &Amounts) -> Amounts {
    merge(one, other, Ord::max)
}

fn merge(one: &Amounts, other: &Amounts, both: impl Fn(Quantity, Quantity) -> Quantity) -> Amounts {
    let mut merged = one.clone();
    for (resource, amount) in other {
        let together = merged.get(resource).map_or(*amount, |before| both(*before, *amount));
        merged.insert(resource.clone(), together);
    }
    merged
}
