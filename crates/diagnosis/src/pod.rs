//! Why a pod does not run, or has failed.

use krafla_api::Time;
use krafla_why::Reason;
use serde_json::Value;

use crate::facts::{Facts, condition, count, field, list, text, time};
use crate::resource::Resource;
use crate::{Link, Subject, gang, nodes};

/// Within this time a scheduler has reported something about a new pod.
const SCHEDULED_WITHIN_SECONDS: u64 = 10;
/// Within this time a node has reported something about a new pod.
const TAKEN_WITHIN_SECONDS: u64 = 10;
/// Words that all containers go through.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// The annotations that name a pod's PodGroup.
const GROUP_NAMES: [&str; 2] = [krafla_api::labels::GROUP_NAME, krafla_api::labels::VOLCANO_GROUP_NAME];

/// The causes of a pod's state.
pub(crate) fn chain(facts: &Facts, pod: &Value) -> Vec<Link> {
    match text(pod, "status.phase") {
        "Succeeded" => Vec::new(),
        "Failed" => failed(pod),
        _ if text(pod, "spec.nodeName").is_empty() => unplaced(facts, pod),
        _ => placed(facts, pod),
    }
}

/// Whether a pod's state has a cause that is worth following.
pub(crate) fn waits(facts: &Facts, pod: &Value) -> bool {
    text(pod, "status.phase") != "Failed" && !chain(facts, pod).is_empty()
}

fn link(pod: &Value, reason: Reason, since: Option<Time>) -> Link {
    Link { about: Subject::new(Resource::Pod, pod), reason, since }
}

/// The name of the pod's gang.
pub(crate) fn group(pod: &Value) -> Option<&str> {
    let annotations = field(pod, "metadata.annotations");
    GROUP_NAMES.iter().find_map(|name| annotations.get(name)?.as_str())
}

fn unplaced(facts: &Facts, pod: &Value) -> Vec<Link> {
    let (namespace, name) = (text(pod, "metadata.namespace"), text(pod, "metadata.name"));
    let made = time(pod, "metadata.creationTimestamp");
    let gates: Vec<_> = list(pod, "spec.schedulingGates").map(|gate| text(gate, "name").into()).collect();
    if !gates.is_empty() {
        return vec![link(pod, Reason::Gated { pod: name.into(), gates }, made)];
    }
    if let Some(reason) = claims(facts, pod) {
        return vec![link(pod, reason, made)];
    }
    let scheduled = condition(pod, "PodScheduled").filter(|it| text(it, "status") == "False");
    let told = scheduled.map(|it| (text(it, "message").to_owned(), time(it, "lastTransitionTime")));
    let warned = || facts.warning(pod, None).map(|event| (event.message, event.at));
    let told = told.filter(|(message, _)| !message.is_empty()).or_else(warned);
    let group = group(pod).map(|name| (name, facts.get(Resource::PodGroup, namespace, name)));
    if let Some((message, since)) = told {
        let reason = Reason::parse(&message);
        let details = nodes::details(facts, pod, &reason, since);
        let gang = group.and_then(|(_, gang)| gang).filter(|_| details.is_empty());
        // The pod repeats what its gang says; the gang knows more.
        let of_gang = gang.map(|gang| gang::chain(facts, gang)).unwrap_or_default();
        let first = link(pod, reason, since);
        let rest = if details.is_empty() { of_gang } else { details.into_iter().take(1).collect() };
        return std::iter::once(first).chain(rest).collect();
    }
    match group {
        Some((name, None)) if facts.is_missing(Resource::PodGroup, namespace, name) => {
            return vec![link(pod, Reason::NotFound { kind: "podgroup".into(), name: name.into() }, made)];
        }
        Some((_, Some(gang))) => {
            let of_gang = gang::chain(facts, gang);
            if !of_gang.is_empty() {
                return of_gang;
            }
        }
        _ => {}
    }
    if facts.age_seconds(pod).is_some_and(|age| age < SCHEDULED_WITHIN_SECONDS) {
        return Vec::new();
    }
    let reason = nodes::without_scheduler(facts)
        .unwrap_or_else(|| Reason::NotHandled { scheduler: scheduler(pod).into() });
    vec![link(pod, reason, made)]
}

fn scheduler(pod: &Value) -> &str {
    Some(text(pod, "spec.schedulerName")).filter(|name| !name.is_empty()).unwrap_or("default-scheduler")
}

/// A claim that is missing or has no volume.
fn claims(facts: &Facts, pod: &Value) -> Option<Reason> {
    let (namespace, name) = (text(pod, "metadata.namespace"), text(pod, "metadata.name"));
    let claims = list(pod, "spec.volumes").map(|volume| text(volume, "persistentVolumeClaim.claimName"));
    claims.filter(|claim| !claim.is_empty()).find_map(|claim| {
        let stored = facts.get(Resource::PersistentVolumeClaim, namespace, claim);
        if facts.is_missing(Resource::PersistentVolumeClaim, namespace, claim) {
            return Some(Reason::ClaimMissing { pod: name.into(), claim: claim.into() });
        }
        let waits = stored.is_some_and(|it| matches!(text(it, "status.phase"), "Pending" | "Lost"));
        let event = stored.and_then(|it| facts.events(it).into_iter().next_back()).filter(|_| waits)?;
        // A claim that waits for its first pod is bound when that has a node.
        (event.reason != "WaitForFirstConsumer")
            .then(|| Reason::ClaimWaits { claim: claim.into(), why: event.message })
    })
}

fn placed(facts: &Facts, pod: &Value) -> Vec<Link> {
    let node_name = text(pod, "spec.nodeName");
    let started = time(pod, "status.startTime").or_else(|| time(pod, "metadata.creationTimestamp"));
    let node = facts.get(Resource::Node, "", node_name);
    if node.is_none() && facts.is_missing(Resource::Node, "", node_name) {
        return vec![link(pod, Reason::NodeMissing { node: node_name.into() }, started)];
    }
    let containers = list(pod, "status.initContainerStatuses").chain(list(pod, "status.containerStatuses"));
    let containers: Vec<&Value> = containers.collect();
    if let Some(links) = containers.iter().find_map(|container| waiting(facts, pod, container)) {
        return links;
    }
    if let Some(node) = node.filter(|node| !crate::amounts::is_ready(node)) {
        let nodes = vec![text(node, "metadata.name").into()];
        return vec![link(pod, Reason::NodesNotReady { nodes }, started)];
    }
    if let Some(reason) = references(facts, pod).filter(|_| text(pod, "status.phase") != "Running") {
        return vec![link(pod, reason, started)];
    }
    let is_pending = matches!(text(pod, "status.phase"), "" | "Pending");
    let is_old = |seconds: u64| facts.age_seconds(pod).is_none_or(|age| age >= seconds);
    if is_pending {
        if let Some(warning) = facts.warning(pod, None) {
            return vec![link(pod, Reason::parse(&warning.message), warning.at)];
        }
        let is_silent = containers.is_empty() && time(pod, "status.startTime").is_none();
        if is_silent && is_old(TAKEN_WITHIN_SECONDS) {
            return vec![link(pod, Reason::NodeSilent { node: node_name.into() }, started)];
        }
        return Vec::new();
    }
    let unready = containers.iter().find(|it| it.get("ready") == Some(&Value::Bool(false)));
    // Events are many: they are looked through for a pod that is not ready only.
    let unhealthy = || facts.events(pod).into_iter().rfind(|event| event.reason == "Unhealthy");
    if let Some(event) = unready.and_then(|_| unhealthy()) {
        return vec![link(pod, Reason::parse(&event.message), event.at)];
    }
    containers.iter().find_map(|it| restarted(pod, it)).into_iter().collect()
}

/// A container that runs now, and has failed before.
fn restarted(pod: &Value, container: &Value) -> Option<Link> {
    let restarts = count(container, "restartCount");
    let end = field(container, "lastState.terminated");
    let since = time(end, "finishedAt");
    (restarts > 0 && end.is_object()).then(|| {
        let reason = Reason::Restarts {
            container: text(container, "name").into(),
            count: restarts,
            end: end_in_words(end),
        };
        link(pod, reason, since)
    })
}

fn end_in_words(end: &Value) -> String {
    let code = end.get("exitCode").and_then(Value::as_i64).unwrap_or(0);
    match text(end, "reason") {
        "" | "Error" | "Completed" => format!("exit code {code}"),
        reason => format!("exit code {code} ({reason})"),
    }
}

/// Why a container waits.
fn waiting(facts: &Facts, pod: &Value, container: &Value) -> Option<Vec<Link>> {
    let state = field(container, "state.waiting");
    if !state.is_object() {
        return None;
    }
    let (reason, message) = (text(state, "reason"), text(state, "message"));
    let (name, pod_name) = (text(container, "name"), text(pod, "metadata.name"));
    let of_container = |reason: Reason| Reason::OfContainer {
        pod: pod_name.into(),
        container: name.into(),
        because: Box::new(reason),
    };
    let since = time(container, "lastState.terminated.finishedAt").or_else(|| time(pod, "status.startTime"));
    let found = match reason {
        "CrashLoopBackOff" => {
            let first = of_container(Reason::parse(message));
            let end = field(container, "lastState.terminated");
            let links = std::iter::once(link(pod, first, since));
            return Some(links.chain(ended(pod, container, end)).collect());
        }
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull"
        | "ImageInspectError" => {
            let image = Some(text(container, "image")).filter(|it| !it.is_empty());
            let of_spec = || {
                let all = list(pod, "spec.containers").chain(list(pod, "spec.initContainers"));
                all.into_iter().find(|it| text(it, "name") == name).map_or("?", |it| text(it, "image"))
            };
            let image = image.unwrap_or_else(of_spec).to_owned();
            match message {
                "" => Reason::ImagePull { image },
                why => Reason::ImagePullFailed { image, why: why.to_owned() },
            }
        }
        usual if USUAL.contains(&usual) && message.is_empty() => {
            let told = facts.warning(pod, None).filter(|it| it.reason != "FailedScheduling")?;
            return Some(vec![link(pod, Reason::parse(&told.message), told.at)]);
        }
        _ if message.is_empty() => Reason::Other { text: reason.to_owned() },
        _ => Reason::parse(message),
    };
    Some(vec![link(pod, of_container(found), since)])
}

/// Why a container ended, as a link.
fn ended(pod: &Value, container: &Value, end: &Value) -> Option<Link> {
    let name = text(container, "name");
    let code = end.get("exitCode").and_then(Value::as_i64).unwrap_or(0);
    let message = text(end, "message");
    let reason = match text(end, "reason") {
        _ if !end.is_object() => return None,
        "OOMKilled" => Reason::OutOfMemory { container: name.into() },
        "StartError" | "ContainerCannotRun" | "RunContainerError" => {
            Reason::StartFailed { container: name.into(), because: Box::new(Reason::parse(message)) }
        }
        _ if matches!(Reason::parse(message), Reason::CommandNotInImage { .. }) => {
            Reason::StartFailed { container: name.into(), because: Box::new(Reason::parse(message)) }
        }
        _ => Reason::Exited { container: name.into(), code: u32::try_from(code).unwrap_or(255) },
    };
    Some(link(pod, reason, time(end, "finishedAt")))
}

/// Why a pod failed.
pub(crate) fn failed(pod: &Value) -> Vec<Link> {
    let containers = list(pod, "status.initContainerStatuses").chain(list(pod, "status.containerStatuses"));
    let ends: Vec<Link> = containers
        .filter(|it| it.pointer("/state/terminated/exitCode").is_some_and(|code| code != 0))
        .filter_map(|it| ended(pod, it, field(it, "state.terminated")))
        .collect();
    let message = text(pod, "status.message");
    let of_pod = match text(pod, "status.reason") {
        "Evicted" | "Preempting" | "NodeShutdown" | "Terminated" => Some(Reason::Evicted {
            why: if message.is_empty() { "no more is reported" } else { message }.to_owned(),
        }),
        "DeadlineExceeded" => Some(Reason::PodDeadline),
        "" => disrupted(pod),
        reason if ends.is_empty() => Some(Reason::Other { text: format!("{reason}: {message}") }),
        _ => None,
    };
    let last_end = ends.last().and_then(|link| link.since);
    match of_pod {
        Some(reason) => vec![link(pod, reason, last_end)],
        None if ends.is_empty() => {
            let text = if message.is_empty() { "it failed, and no more is reported" } else { message };
            vec![link(pod, Reason::parse(text), None)]
        }
        None => ends.into_iter().take(1).collect(),
    }
}

/// A pod that something sent away.
fn disrupted(pod: &Value) -> Option<Reason> {
    let target = crate::facts::true_condition(pod, "DisruptionTarget")?;
    let why = [text(target, "message"), text(target, "reason")].into_iter().find(|it| !it.is_empty());
    Some(Reason::Evicted { why: why.unwrap_or("no more is reported").to_owned() })
}

/// The first ConfigMap, Secret or claim that a pod needs and that does not exist.
fn references(facts: &Facts, pod: &Value) -> Option<Reason> {
    let namespace = text(pod, "metadata.namespace");
    let missing = referenced(field(pod, "spec")).into_iter();
    let missing = missing.filter(|(_, _, is_optional)| !is_optional);
    let mut missing = missing.filter(|(resource, name, _)| facts.is_missing(*resource, namespace, name));
    let (resource, name, _) = missing.next()?;
    Some(Reason::NotFound { kind: resource.word().into(), name: name.into() })
}

/// The ConfigMaps and Secrets that a pod names, and whether it can do without them.
pub(crate) fn referenced(spec: &Value) -> Vec<(Resource, String, bool)> {
    let mut found = Vec::new();
    let mut add = |resource: Resource, reference: &Value, name: &str| {
        let name = text(reference, name);
        if !name.is_empty() {
            found.push((resource, name.to_owned(), reference.get("optional") == Some(&Value::Bool(true))));
        }
    };
    for container in list(spec, "containers").chain(list(spec, "initContainers")) {
        for variable in list(container, "env") {
            add(Resource::ConfigMap, field(variable, "valueFrom.configMapKeyRef"), "name");
            add(Resource::Secret, field(variable, "valueFrom.secretKeyRef"), "name");
        }
        for source in list(container, "envFrom") {
            add(Resource::ConfigMap, field(source, "configMapRef"), "name");
            add(Resource::Secret, field(source, "secretRef"), "name");
        }
    }
    for volume in list(spec, "volumes") {
        add(Resource::ConfigMap, field(volume, "configMap"), "name");
        add(Resource::Secret, field(volume, "secret"), "secretName");
        for source in list(volume, "projected.sources") {
            add(Resource::ConfigMap, field(source, "configMap"), "name");
            add(Resource::Secret, field(source, "secret"), "name");
        }
    }
    found
}
