//! Why a PodGroup does not start, and why a queue takes no jobs.

use krafla_api::{Quantity, Time};
use krafla_why::Reason;
use serde_json::Value;

use crate::amounts::{allocatable, is_alive, is_cordoned, is_open};
use crate::facts::{Facts, count, field, list, pairs, quantity, text, time, true_condition};
use crate::resource::Resource;
use crate::{Link, Subject, nodes, pod};

/// Within this time a scheduler has reported something about a new gang.
const SCHEDULED_WITHIN_SECONDS: u64 = 10;
/// The queue of gangs that name none.
pub(crate) const DEFAULT_QUEUE: &str = "default";
/// The queue above all others.
const ROOT_QUEUE: &str = "root";

fn link(group: &Value, reason: Reason, since: Option<Time>) -> Link {
    Link { about: Subject::new(Resource::PodGroup, group), reason, since }
}

/// The queue of a gang.
pub(crate) fn queue_of(group: &Value) -> &str {
    Some(text(group, "spec.queue")).filter(|name| !name.is_empty()).unwrap_or(DEFAULT_QUEUE)
}

/// The pods of a gang.
pub(crate) fn pods<'a>(facts: &'a Facts, group: &'a Value) -> impl Iterator<Item = &'a Value> {
    let (namespace, name) = (text(group, "metadata.namespace"), text(group, "metadata.name"));
    let is_member =
        move |it: &&Value| text(it, "metadata.namespace") == namespace && pod::group(it) == Some(name);
    facts.all(Resource::Pod).filter(is_member)
}

/// Whether a gang waits for its queue or for nodes.
pub(crate) fn is_waiting(group: &Value) -> bool {
    matches!(text(group, "status.phase"), "" | "Pending" | "Inqueue")
}

/// The causes of a gang's state.
pub(crate) fn chain(facts: &Facts, group: &Value) -> Vec<Link> {
    let made = time(group, "metadata.creationTimestamp");
    if text(group, "status.phase") == "Completed" {
        return Vec::new();
    }
    if is_waiting(group)
        && let Some(links) = queue_obstacle(facts, queue_of(group))
    {
        return links;
    }
    let waits = true_condition(group, "Unschedulable");
    // Volcano leaves the condition when the gang is placed later, and adds another one.
    let placed = true_condition(group, "Scheduled").and_then(|it| time(it, "lastTransitionTime"));
    let is_over = |it: &Value| placed.is_some_and(|placed| Some(placed) >= time(it, "lastTransitionTime"));
    let told = waits.filter(|it| !is_over(it)).map(|it| {
        let message = [text(it, "message"), text(it, "reason")].into_iter().find(|text| !text.is_empty());
        (message.unwrap_or_default().to_owned(), time(it, "lastTransitionTime"))
    });
    let warned = || {
        let warning = facts.warning(group, None).filter(|_| is_waiting(group) && placed.is_none())?;
        Some((warning.message, warning.at))
    };
    if let Some((message, since)) = told.or_else(warned) {
        let reason = Reason::parse(&message);
        let mut links = vec![link(group, reason.clone(), since)];
        links.extend(detail(facts, group, &reason, since));
        return links;
    }
    // The scheduler is content; a pod may not be.
    let of_pod =
        pods(facts, group).filter(|it| is_alive(it)).map(|it| own_chain(facts, it)).find(|it| !it.is_empty());
    if let Some(links) = of_pod {
        return links;
    }
    let missing = missing_members(facts, group);
    if text(group, "status.phase") == "Inqueue" && missing > 0 {
        let summary = krafla_why::Tally(summary(facts, group));
        return vec![link(group, Reason::PodsMissing { summary, missing }, made)];
    }
    let is_unseen = matches!(text(group, "status.phase"), "" | "Pending") && !has_conditions(group);
    if is_unseen && facts.age_seconds(group).is_none_or(|age| age >= SCHEDULED_WITHIN_SECONDS) {
        let scheduler = pods(facts, group).map(|it| text(it, "spec.schedulerName")).find(|it| !it.is_empty());
        let reason = Reason::NotHandled { scheduler: scheduler.unwrap_or("volcano").into() };
        return vec![link(group, reason, made)];
    }
    Vec::new()
}

/// The causes of a pod's state, unless they are only its gang's again.
fn own_chain(facts: &Facts, pod: &Value) -> Vec<Link> {
    let is_placed = !text(pod, "spec.nodeName").is_empty();
    let is_gated = list(pod, "spec.schedulingGates").next().is_some();
    let says = crate::facts::condition(pod, "PodScheduled").is_some_and(|it| text(it, "status") == "False");
    if is_placed || is_gated || says { pod::chain(facts, pod) } else { Vec::new() }
}

fn has_conditions(group: &Value) -> bool {
    list(group, "status.conditions").next().is_some()
}

fn missing_members(facts: &Facts, group: &Value) -> u32 {
    let n_pods = pods(facts, group).filter(|it| text(it, "status.phase") != "Failed").count();
    count(group, "spec.minMember").saturating_sub(u32::try_from(n_pods).unwrap_or(u32::MAX))
}

fn summary(facts: &Facts, group: &Value) -> Vec<(u32, String)> {
    let mut tally = std::collections::BTreeMap::<String, u32>::new();
    for pod in pods(facts, group) {
        let phase = Some(text(pod, "status.phase")).filter(|it| !it.is_empty()).unwrap_or("Pending");
        *tally.entry(phase.to_owned()).or_default() += 1;
    }
    tally.into_iter().map(|(phase, n)| (n, phase)).collect()
}

/// What a scheduler's sentence about a gang comes down to.
fn detail(facts: &Facts, group: &Value, reason: &Reason, since: Option<Time>) -> Vec<Link> {
    let waiting = || pods(facts, group).filter(|it| is_alive(it) && text(it, "spec.nodeName").is_empty());
    match reason.root() {
        // Gates, missing claims and the like keep a pod from being counted at all.
        _ if let Some(gated) = waiting().find(|it| list(it, "spec.schedulingGates").next().is_some()) => {
            pod::chain(facts, gated)
        }
        Reason::NoNode { .. } | Reason::Unstated | Reason::GangNotReady { .. } => {
            let details = waiting().find_map(|pod| {
                let own = nodes::details(facts, pod, reason, since);
                let own = if own.is_empty() { spoken(facts, pod) } else { own };
                (!own.is_empty()).then_some(own)
            });
            let details = details.unwrap_or_default().into_iter().take(1);
            details.collect()
        }
        Reason::QueueLimit { queue, resource }
        | Reason::QueueFull { queue, resource, .. }
        | Reason::NeverFitsQueue { queue, resource, .. } => {
            let (queue, own) = (queue.as_str(), queue_of(group));
            let limit = facts
                .get(Resource::Queue, "", queue)
                .and_then(|it| of_map(it, "spec.capability", resource.as_str()));
            let reason = match (queue == own, limit) {
                (true, _) => return Vec::new(),
                (false, limit) => Reason::ParentQueue {
                    queue: own.into(),
                    parent: queue.into(),
                    because: Box::new(limit.map_or(Reason::Unstated, |_| Reason::QueueLimit {
                        queue: queue.into(),
                        resource: resource.clone(),
                    })),
                },
            };
            let about =
                Subject { resource: Resource::Queue, namespace: String::new(), name: queue.to_owned() };
            vec![Link { about, reason, since }]
        }
        Reason::ClusterFull { need, resource, limit } | Reason::NeverFitsNodes { need, resource, limit } => {
            let amount = |text: &str| text.parse::<Quantity>().unwrap_or(Quantity::ZERO);
            let lacks = amount(need.as_str()) - amount(limit.as_str()).max(Quantity::ZERO);
            let closed = closed_nodes(facts, resource.as_str(), lacks, since);
            closed.or_else(|| too_large(facts, group, resource.as_str(), since)).into_iter().collect()
        }
        // Volcano does not name the queue.
        Reason::QueueQuota { resource, .. } => {
            let about = Subject {
                resource: Resource::Queue,
                namespace: String::new(),
                name: queue_of(group).to_owned(),
            };
            let reason = Reason::QueueLimit { queue: queue_of(group).into(), resource: resource.clone() };
            vec![Link { about, reason, since }]
        }
        // A gang that lacks pods: a pod may be held back, or was refused.
        Reason::PodsMissing { .. } | Reason::PodsOfTaskMissing { .. } => {
            refused_owner(facts, group).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A task of the gang's job whose pods are larger than every node. The pods do not exist before the gang is admitted.
fn too_large(facts: &Facts, group: &Value, resource: &str, since: Option<Time>) -> Option<Link> {
    let owner = list(group, "metadata.ownerReferences").next()?;
    let of = Resource::from_manifest(text(owner, "apiVersion"), text(owner, "kind"))?;
    let job = facts.get(of, text(group, "metadata.namespace"), text(owner, "name"))?;
    let templates = list(job, "spec.tasks").map(|task| field(task, "template.spec"));
    let templates = templates.chain([field(job, "spec.template.spec")]);
    let mut found = templates.filter_map(|spec| nodes::short(facts, spec, resource));
    let is_lasting =
        |it: &Reason| matches!(it, Reason::LargerThanNodes { .. } | Reason::ResourceUnknown { .. });
    let reason = found.find(is_lasting)?;
    Some(Link { about: Subject::new(of, job), reason, since })
}

/// Nodes that take no pods, if their resources would be enough.
fn closed_nodes(facts: &Facts, resource: &str, lacks: Quantity, since: Option<Time>) -> Option<Link> {
    let closed: Vec<&Value> = facts.all(Resource::Node).filter(|node| !is_open(node)).collect();
    let has: Quantity = closed.iter().map(|node| allocatable(node, resource)).sum();
    let first = closed.first().filter(|_| has >= lacks)?;
    let are_cordoned = closed.iter().any(|node| is_cordoned(node));
    let named = closed.iter().filter(|node| is_cordoned(node) == are_cordoned).take(3);
    let nodes = named.map(|node| text(node, "metadata.name").into()).collect();
    let reason = if are_cordoned { Reason::NodesCordoned { nodes } } else { Reason::NodesNotReady { nodes } };
    Some(Link { about: Subject::new(Resource::Node, first), reason, since })
}

/// What a pod's own condition says about nodes.
fn spoken(facts: &Facts, pod: &Value) -> Vec<Link> {
    let scheduled = crate::facts::condition(pod, "PodScheduled");
    let Some(said) = scheduled.filter(|it| text(it, "status") == "False") else { return Vec::new() };
    let since = time(said, "lastTransitionTime");
    nodes::details(facts, pod, &Reason::parse(text(said, "message")), since)
}

/// The owner's last warning about pods that could not be created.
fn refused_owner(facts: &Facts, group: &Value) -> Option<Link> {
    let owner = list(group, "metadata.ownerReferences").next()?;
    let resource = Resource::from_manifest(text(owner, "apiVersion"), text(owner, "kind"))?;
    let object = facts.get(resource, text(group, "metadata.namespace"), text(owner, "name"))?;
    let warning = facts
        .events(object)
        .into_iter()
        .rfind(|it| it.is_warning && it.reason.starts_with("FailedCreate"))?;
    let reason = Reason::parse(&warning.message);
    Some(Link { about: Subject::new(resource, object), reason, since: warning.at })
}

/// An amount in a map of an object.
pub(crate) fn of_map(object: &Value, path: &str, name: &str) -> Option<Quantity> {
    pairs(object, path).find(|(key, _)| *key == name).and_then(|(_, value)| quantity(value))
}

/// Why a queue takes no gangs: it is missing or closed, or one above it is.
pub(crate) fn queue_obstacle(facts: &Facts, name: &str) -> Option<Vec<Link>> {
    let about =
        |name: &str| Subject { resource: Resource::Queue, namespace: String::new(), name: name.to_owned() };
    if facts.is_missing(Resource::Queue, "", name) {
        let reason = Reason::QueueMissing { queue: name.into() };
        return Some(vec![Link { about: about(name), reason, since: None }]);
    }
    let mut links = Vec::new();
    let mut at = name.to_owned();
    // A ring of parents must not be followed for ever.
    for _ in 0..16 {
        let queue = facts.get(Resource::Queue, "", &at)?;
        let state = text(queue, "status.state");
        if matches!(state, "Closed" | "Closing") {
            let reason = Reason::QueueClosed { queue: at.as_str().into(), state: state.into() };
            links.push(Link { about: about(&at), reason, since: None });
            // Whether the queue was closed with its parent is seen at the parent.
            if let Some(above) = parent(queue).and_then(|above| queue_obstacle(facts, above)) {
                links.extend(above);
            }
            return Some(links);
        }
        let above = parent(queue)?;
        if above == ROOT_QUEUE && facts.get(Resource::Queue, "", above).is_none() {
            return None;
        }
        if facts.is_missing(Resource::Queue, "", above) {
            let because = Box::new(Reason::QueueMissing { queue: above.into() });
            let reason = Reason::ParentQueue { queue: at.as_str().into(), parent: above.into(), because };
            return Some(vec![Link { about: about(&at), reason, since: None }]);
        }
        at = above.to_owned();
    }
    None
}

fn parent(queue: &Value) -> Option<&str> {
    Some(text(queue, "spec.parent")).filter(|name| !name.is_empty() && *name != text(queue, "metadata.name"))
}

/// The causes of a queue's state.
pub(crate) fn queue_chain(facts: &Facts, queue: &Value) -> Vec<Link> {
    let name = text(queue, "metadata.name");
    if let Some(links) = queue_obstacle(facts, name) {
        return links;
    }
    if text(queue, "status.state").is_empty() && facts.age_seconds(queue).is_none_or(|age| age >= 5) {
        let reason = Reason::NoController { lease: facts.lease.clone() };
        return vec![Link { about: Subject::new(Resource::Queue, queue), reason, since: None }];
    }
    // A queue waits as its first gang does.
    let first = crate::line::waiting_in(facts, name).into_iter().next();
    first.map(|group| chain(facts, group)).unwrap_or_default()
}
