//! What is wrong with a new job.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Quantity;
use krafla_api::volcano::{JobSpec, QueueState, TaskSpec, TopologyPolicy};

use super::{policy, validate_partitions, volume};
use crate::json::At;
use crate::podgroup::validate_tiers;
use crate::{Cluster, Path, Reason, Verdict, graph, names, pod};

/// The plugins that ship.
const PLUGINS: [&str; 8] = ["env", "svc", "ssh", "mpi", "pytorch", "tensorflow", "hcclrank", "ray"];
/// The plugins that make a Service of the job's name.
const SERVICE_PLUGINS: [&str; 5] = ["svc", "mpi", "pytorch", "tensorflow", "ray"];

/// A job as its rules see it.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) spec: &'a JobSpec,
}

/// What is wrong with a job, and, where there is a cluster to be asked, with its queue.
pub(super) fn validate(job: Candidate<'_>, cluster: Option<&dyn Cluster>, verdict: &mut Verdict) {
    let path = Path::new("spec");
    if job.spec.tasks.is_empty() {
        verdict.refuse(&path.field("tasks"), Reason::Required, "No task specified in job spec");
        return;
    }
    validate_tiers(job.spec.network_topology.as_ref(), "", &path, verdict);
    validate_tasks(job, &path.field("tasks"), verdict);
    validate_names(job, verdict);
    validate_min_available(job, &path, verdict);
    policy::validate(&job.spec.policies, &path.field("policies"), verdict);
    validate_plugins(job, &path.field("plugins"), verdict);
    volume::validate(&job.spec.volumes, &path.field("volumes"), verdict);
    if let Some(cluster) = cluster {
        validate_queue(&job.spec.queue, &path.field("queue"), cluster, verdict);
    }
    validate_dependencies(&job.spec.tasks, &path.field("tasks"), verdict);
}

fn validate_tasks(job: Candidate<'_>, path: &Path, verdict: &mut Verdict) {
    let mut seen = BTreeSet::new();
    for (index, task) in job.spec.tasks.iter().enumerate() {
        let path = path.index(index);
        validate_task_name(task, &mut seen, &path, verdict);
        validate_task(task, job, &path, verdict);
    }
}

/// Pods are named after their task, so that no two tasks can have one name.
fn validate_task_name<'a>(
    task: &'a TaskSpec,
    seen: &mut BTreeSet<&'a str>,
    path: &Path,
    verdict: &mut Verdict,
) {
    if !seen.insert(task.name.as_str()) {
        let message = format!("duplicated task name {}", task.name);
        verdict.refuse(&path.field("name"), Reason::Duplicate, message);
    }
}

/// What keeps tasks from ever running as they are written.
pub(super) fn validate_consistency(tasks: &[TaskSpec], verdict: &mut Verdict) {
    let (path, mut seen) = (Path::new("spec.tasks"), BTreeSet::new());
    for (index, task) in tasks.iter().enumerate() {
        validate_task_name(task, &mut seen, &path.index(index), verdict);
    }
    validate_dependencies(tasks, &path, verdict);
}

fn validate_task(task: &TaskSpec, job: Candidate<'_>, path: &Path, verdict: &mut Verdict) {
    let job_name = job.name;
    if task.min_available.is_some_and(|min_available| min_available > task.replicas) {
        let message =
            format!("'minAvailable' is greater than 'replicas' in task: {}, job: {job_name}", task.name);
        verdict.refuse(&path.field("minAvailable"), Reason::Invalid, message);
    }
    policy::validate(&task.policies, &path.field("policies"), verdict);
    let template = At::new(&task.template, path.field("template"));
    pod::template::validate(template, &task.name, job.namespace, path, verdict);
    validate_numa(task, path, verdict);
    validate_partitions(task, job_name, path, verdict);
}

/// NUMA cells are given out by whole CPUs.
fn validate_numa(task: &TaskSpec, path: &Path, verdict: &mut Verdict) {
    if matches!(task.topology_policy, TopologyPolicy::Unset | TopologyPolicy::None) {
        return;
    }
    let spec = At::new(&task.template, path.field("template")).get("spec");
    let containers = spec.items("containers").into_iter().chain(spec.items("initContainers"));
    for (index, container) in containers.enumerate() {
        let resources = container.get("resources");
        let requests = resources.get("requests");
        let amounts = if requests.is_empty() { resources.get("limits") } else { requests };
        let cpu: Option<Quantity> = amounts.get("cpu").quantity();
        let is_whole = |cpu: Quantity| cpu > Quantity::ZERO && cpu == Quantity::from_units(cpu.value());
        if !cpu.is_some_and(is_whole) {
            let place = path.as_str().replace("tasks", "task");
            let message = format!("the cpu request isn't an integer in {place} container[{index}]");
            verdict.refuse(&path.field("topologyPolicy"), Reason::Invalid, message);
        }
    }
}

/// Every pod of the job gets a name and a label made from the job's and the task's; the one with the longest index
/// must still fit.
fn validate_names(job: Candidate<'_>, verdict: &mut Verdict) {
    let name = job.name;
    for (index, task) in job.spec.tasks.iter().enumerate() {
        let last = task.replicas.saturating_sub(1).max(0);
        let pod_name = format!("{name}-{}-{last}", task.name);
        let wrong = names::qualified_name(&pod_name);
        if !wrong.is_empty() {
            let message = format!("create pod with name {pod_name} validate failed [{}]", wrong.join(" "));
            verdict.refuse(&Path::new("spec.tasks").index(index).field("name"), Reason::Invalid, message);
        }
    }
    let path = Path::new("metadata.name");
    let wrong = names::qualified_name(name);
    if !wrong.is_empty() {
        let message = format!("create job with name {name} validate failed [{}]", wrong.join(" "));
        verdict.refuse(&path, Reason::Invalid, message);
        return;
    }
    let makes_service = SERVICE_PLUGINS.iter().any(|plugin| job.spec.plugins.contains_key(*plugin));
    if !makes_service {
        return;
    }
    let wrong = names::dns_label(name);
    if !wrong.is_empty() {
        let message = format!("the plugins make a Service of the job's name: {}", wrong.join("; "));
        verdict.invalid(&path, name, message);
    } else if name.starts_with(|c: char| c.is_ascii_digit()) {
        let message = "the plugins make a Service of the job's name, and before Kubernetes 1.36 such a name must start \
            with a letter";
        verdict.warn(&path, message);
    }
}

fn validate_min_available(job: Candidate<'_>, path: &Path, verdict: &mut Verdict) {
    let n_pods: i64 = job.spec.tasks.iter().map(|task| i64::from(task.replicas)).sum();
    if n_pods < i64::from(job.spec.min_available) {
        let message = "job 'minAvailable' should not be greater than total replicas in tasks";
        verdict.refuse(&path.field("minAvailable"), Reason::Invalid, message);
    }
}

fn validate_plugins(job: Candidate<'_>, path: &Path, verdict: &mut Verdict) {
    for name in job.spec.plugins.keys().filter(|name| !PLUGINS.contains(&name.as_str())) {
        verdict.refuse(&path.field(name), Reason::NotFound, format!("unable to find job plugin: {name}"));
    }
    let Some(arguments) = job.spec.plugins.get("mpi") else { return };
    let master = flag(arguments, "master").unwrap_or("master");
    if !job.spec.tasks.iter().any(|task| task.name == master) {
        let message = "The specified mpi master task was not found";
        verdict.refuse(&path.field("mpi"), Reason::NotFound, message);
    }
}

/// The value of a flag of the mpi plugin in Go's notation: `--name=value` or `--name value`, one or two dashes. Go
/// stops reading at the first argument that is no flag, or no flag of the plugin.
fn flag<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let mut found = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else { break };
        let (flag, value) = match flag.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (flag, rest.next().map(String::as_str)),
        };
        let is_good = match flag {
            "master" | "worker" => value.is_some(),
            "port" => value.is_some_and(|port| port.parse::<i64>().is_ok()),
            _ => false,
        };
        if !is_good {
            break;
        }
        if flag == name {
            found = value;
        }
    }
    found
}

fn validate_queue(name: &str, path: &Path, cluster: &dyn Cluster, verdict: &mut Verdict) {
    let Some(queue) = cluster.queue(name) else {
        let message = format!("unable to find job queue: queue.scheduling.volcano.sh {name:?} not found");
        verdict.refuse(path, Reason::NotFound, message);
        return;
    };
    if queue.status.state != QueueState::Open {
        let state = &queue.status.state;
        let message =
            format!("can only submit job to queue with state `Open`, queue `{name}` status is `{state}`");
        verdict.refuse(path, Reason::Invalid, message);
    }
    if name == "root" {
        verdict.refuse(path, Reason::Invalid, "can not submit job to root queue");
        return;
    }
    let n_children = cluster.children(name).len();
    if n_children > 0 {
        let message =
            format!("can only submit job to leaf queue, queue `{name}` has {n_children} child queues");
        verdict.refuse(path, Reason::Invalid, message);
    }
}

/// Tasks that wait for each other must be able to start one day.
fn validate_dependencies(tasks: &[TaskSpec], path: &Path, verdict: &mut Verdict) {
    let targets = |task: &TaskSpec| {
        task.depends_on.as_ref().map(|depends_on| depends_on.name.clone()).unwrap_or_default()
    };
    let waits_for: Vec<(&str, Vec<String>)> =
        tasks.iter().map(|task| (task.name.as_str(), targets(task))).collect();
    let known: BTreeSet<&str> = waits_for.iter().map(|(name, _)| *name).collect();
    let mut wrong: Vec<(Path, String)> = Vec::new();
    for (index, (name, targets)) in waits_for.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for target in targets {
            let why = if !known.contains(target.as_str()) {
                format!("task {name} waits for {target}, which is no task of the job")
            } else if !seen.insert(target) {
                format!("task {name} waits for {target} twice")
            } else {
                continue;
            };
            wrong.push((path.index(index).field("dependsOn.name"), why));
        }
    }
    let graph: BTreeMap<&str, Vec<&str>> = waits_for
        .iter()
        .map(|(name, targets)| (*name, targets.iter().map(String::as_str).collect()))
        .collect();
    let ring = graph::ring(&graph);
    if !ring.is_empty() {
        wrong
            .push((path.clone(), format!("tasks wait for each other in a ring: {}", graph::describe(&ring))));
    }
    // Volcano says the same of all of them, once.
    if let Some((path, _)) = wrong.first() {
        let explained: Vec<&str> = wrong.iter().map(|(_, why)| why.as_str()).collect();
        let message = format!(
            "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): {}",
            explained.join(", ")
        );
        verdict.refuse(path, Reason::Invalid, message);
    }
}
