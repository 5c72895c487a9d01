//! Why a Volcano Job waits, restarts, stopped or failed.

use krafla_api::Time;
use krafla_why::Reason;
use serde_json::Value;

use crate::facts::{Facts, Happening, count, field, list, text, time};
use crate::resource::Resource;
use crate::{Link, Subject, gang, pod};

/// Within this time a controller has written the status of a new object.
pub(crate) const TAKEN_UP_WITHIN_SECONDS: u64 = 5;

fn link(job: &Value, reason: Reason, since: Option<Time>) -> Link {
    Link { about: Subject::new(Resource::VcJob, job), reason, since }
}

/// The causes of a job's state.
pub(crate) fn chain(facts: &Facts, job: &Value) -> Vec<Link> {
    let since = time(job, "status.state.lastTransitionTime");
    match text(job, "status.state.phase") {
        "Completed" => Vec::new(),
        "" => untouched(facts, job),
        "Failed" | "Terminated" | "Aborted" => ended(facts, job),
        "Restarting" | "Aborting" | "Terminating" | "Completing" => leaving(facts, job, since),
        "Running" => running(facts, job),
        _ => pending(facts, job),
    }
}

/// A job without a status.
fn untouched(facts: &Facts, job: &Value) -> Vec<Link> {
    let made = time(job, "metadata.creationTimestamp");
    if let Some(warning) = facts.warning(job, None) {
        return vec![link(job, Reason::parse(&warning.message), warning.at)];
    }
    let message = text(job, "status.state.message");
    if !message.is_empty() {
        return vec![link(job, Reason::parse(message), made)];
    }
    if facts.age_seconds(job).is_some_and(|age| age < TAKEN_UP_WITHIN_SECONDS) {
        return Vec::new();
    }
    vec![link(job, Reason::NoController { lease: facts.lease.clone() }, made)]
}

fn replicas(job: &Value) -> u32 {
    list(job, "spec.tasks").map(|task| task.get("replicas").map_or(1, |_| count(task, "replicas"))).sum()
}

fn pending(facts: &Facts, job: &Value) -> Vec<Link> {
    let made = time(job, "metadata.creationTimestamp");
    let (reason, message) = (text(job, "status.state.reason"), text(job, "status.state.message"));
    let since = time(job, "status.state.lastTransitionTime").or(made);
    let queue = Some(text(job, "spec.queue")).filter(|it| !it.is_empty()).unwrap_or(gang::DEFAULT_QUEUE);
    if let Some(links) = gang::queue_obstacle(facts, queue) {
        return links;
    }
    if replicas(job) == 0 {
        return vec![link(job, Reason::NoReplicas, made)];
    }
    if count(job, "spec.minAvailable") > replicas(job) {
        let (min, replicas) = (count(job, "spec.minAvailable"), replicas(job));
        return vec![link(job, Reason::MinAvailable { min, replicas }, made)];
    }
    // What the scheduler says of the gang, the gang says itself; an intent of a restart is no reason to wait.
    let is_hold =
        !message.is_empty() && !matches!(reason, "" | "PodGroupPending") && !reason.starts_with("Restart");
    if is_hold {
        return vec![link(job, Reason::parse(message), since)];
    }
    let of_gang =
        facts.owned(job, Resource::PodGroup).map(|group| gang::chain(facts, group)).find(|it| !it.is_empty());
    let refused = || refusal(facts, job).into_iter().collect::<Vec<_>>();
    match of_gang {
        // Pods are missing because they were refused.
        Some(links)
            if matches!(links.last().map(|it| it.reason.root()), Some(Reason::PodsMissing { .. })) =>
        {
            let more = of_tasks(facts, job).into_iter().next().map_or_else(refused, |_| of_tasks(facts, job));
            links.into_iter().chain(more).collect()
        }
        Some(links) => links,
        None => {
            let found = of_pods(facts, job);
            let found = if found.is_empty() { refused() } else { found };
            let found = if found.is_empty() { of_tasks(facts, job) } else { found };
            if !found.is_empty() || text(job, "status.state.phase") != "Pending" {
                found
            } else {
                unexplained(facts, job)
            }
        }
    }
}

/// A job that waits, and of which only its own state or an old Event speaks.
fn unexplained(facts: &Facts, job: &Value) -> Vec<Link> {
    let message = text(job, "status.state.message");
    if !message.is_empty() {
        return vec![link(job, Reason::parse(message), time(job, "status.state.lastTransitionTime"))];
    }
    let warning = facts.warning(job, None);
    warning.map(|it| link(job, Reason::parse(&it.message), it.at)).into_iter().collect()
}

/// The first pod that waits, and why.
fn of_pods(facts: &Facts, job: &Value) -> Vec<Link> {
    facts
        .owned(job, Resource::Pod)
        .map(|it| pod_chain(facts, it))
        .find(|it| !it.is_empty())
        .unwrap_or_default()
}

fn pod_chain(facts: &Facts, pod: &Value) -> Vec<Link> {
    if text(pod, "status.phase") == "Failed" { Vec::new() } else { crate::chain(facts, Resource::Pod, pod) }
}

/// What the API server refused to the job, as the last Event says.
fn refusal(facts: &Facts, job: &Value) -> Option<Link> {
    let is_refusal = |it: &Happening| it.is_warning && it.reason.starts_with("Failed");
    let event = facts.events(job).into_iter().rfind(is_refusal)?;
    Some(link(job, Reason::parse(&event.message), event.at))
}

/// A task without pods that depends on others, and why those are not ready.
fn of_tasks(facts: &Facts, job: &Value) -> Vec<Link> {
    let made = |task: &str| facts.owned(job, Resource::Pod).any(|pod| task_of(pod) == task);
    let waits = list(job, "spec.tasks")
        .find(|task| list(task, "dependsOn.name").next().is_some() && !made(text(task, "name")));
    let Some(task) = waits else { return Vec::new() };
    let on: Vec<&str> = list(task, "dependsOn.name").filter_map(Value::as_str).collect();
    let exists = |name: &&&str| list(job, "spec.tasks").any(|it| text(it, "name") == **name);
    if let Some(unknown) = on.iter().find(|name| !exists(name)) {
        let reason = Reason::TaskUnknown { task: text(task, "name").into(), on: (*unknown).into() };
        return vec![link(job, reason, None)];
    }
    let first = Reason::TaskDependsOn {
        task: text(task, "name").into(),
        on: on.iter().map(|name| (*name).into()).collect(),
    };
    let of_target = facts.owned(job, Resource::Pod).filter(|pod| on.contains(&task_of(pod)));
    let below = of_target.map(|pod| crate::chain(facts, Resource::Pod, pod)).find(|it| !it.is_empty());
    std::iter::once(link(job, first, None)).chain(below.unwrap_or_default()).collect()
}

fn task_of(pod: &Value) -> &str {
    let key = krafla_api::labels::TASK_SPEC;
    let of = |path: &str| field(pod, path).get(key).and_then(Value::as_str);
    of("metadata.annotations").or_else(|| of("metadata.labels")).unwrap_or_default()
}

/// A job that runs: parts of it may wait all the same.
fn running(facts: &Facts, job: &Value) -> Vec<Link> {
    let found = of_pods(facts, job);
    if !found.is_empty() {
        return found;
    }
    let reason = text(job, "status.state.reason");
    if reason.starts_with("Failed") && !text(job, "status.state.message").is_empty() {
        return vec![link(
            job,
            Reason::parse(text(job, "status.state.message")),
            time(job, "status.state.lastTransitionTime"),
        )];
    }
    let tasks = of_tasks(facts, job);
    if !tasks.is_empty() {
        return tasks;
    }
    // Nothing runs any more, and no policy says what to do.
    let pods: Vec<&Value> = facts.owned(job, Resource::Pod).collect();
    let is_over = |it: &&&Value| matches!(text(it, "status.phase"), "Succeeded" | "Failed");
    let failed = pods.iter().find(|it| text(it, "status.phase") == "Failed");
    match failed.filter(|_| pods.iter().filter(is_over).count() == pods.len()) {
        Some(failed) => {
            let below = pod::failed(failed);
            let why =
                below.last().map_or_else(|| "no more is reported".to_owned(), |it| it.reason.to_string());
            let reason = Reason::PodFailed { pod: text(failed, "metadata.name").into(), why };
            std::iter::once(link(job, reason, None)).chain(below).collect()
        }
        None => Vec::new(),
    }
}

/// A job that changes its phase: pods of the last try have to end first.
fn leaving(facts: &Facts, job: &Value, since: Option<Time>) -> Vec<Link> {
    let ending =
        facts.owned(job, Resource::Pod).filter(|it| time(it, "metadata.deletionTimestamp").is_some());
    let ending: Vec<&Value> = ending.collect();
    let mut links: Vec<Link> = cause_of_action(facts, job, since).into_iter().collect();
    if let Some(first) = ending.first() {
        let (pod, others) =
            (text(first, "metadata.name").into(), u32::try_from(ending.len()).unwrap_or(0) - 1);
        let reason = if others == 0 { Reason::PodEnding { pod } } else { Reason::PodsEnding { pod, others } };
        links.push(Link {
            about: Subject::new(Resource::Pod, first),
            reason,
            since: time(first, "metadata.deletionTimestamp"),
        });
    }
    links
}

/// The policy or command that changed the phase.
fn cause_of_action(facts: &Facts, job: &Value, since: Option<Time>) -> Option<Link> {
    let (action, message) = (text(job, "status.state.reason"), text(job, "status.state.message"));
    let is_action = action.ends_with("Job") || action.starts_with("Restart");
    if is_action && !message.is_empty() {
        return Some(acted(job, action, message, since));
    }
    // Volcano writes Events only.
    let events = facts.events(job);
    let event = events.iter().rfind(|it| matches!(it.reason.as_str(), "ExecuteAction" | "CommandIssued"))?;
    let action = actions(job).into_iter().find(|it| event.message.contains(it.as_str()));
    let action =
        action.or_else(|| ACTIONS.into_iter().find(|it| event.message.contains(it)).map(str::to_owned))?;
    Some(acted(job, &action, &event.message, event.at))
}

const ACTIONS: [&str; 6] =
    ["AbortJob", "RestartJob", "RestartTask", "RestartPod", "TerminateJob", "CompleteJob"];

fn acted(job: &Value, action: &str, message: &str, since: Option<Time>) -> Link {
    if message.starts_with("command ") || message.contains(" by command ") {
        let why = format!("{action}: {message}");
        return link(job, Reason::Commanded { why }, since);
    }
    let event = event_of(job, action, message);
    let reason =
        Reason::PolicyActed { action: action.into(), event: event.into(), object: message.to_owned() };
    link(job, reason, since)
}

fn policies(job: &Value) -> impl Iterator<Item = &Value> {
    list(job, "spec.policies").chain(list(job, "spec.tasks").flat_map(|task| list(task, "policies")))
}

fn actions(job: &Value) -> Vec<String> {
    policies(job).map(|policy| text(policy, "action").to_owned()).filter(|it| !it.is_empty()).collect()
}

/// The event that a policy with this action answers.
fn event_of<'a>(job: &'a Value, action: &str, message: &str) -> &'a str {
    let of_policy = |policy: &&'a Value| text(policy, "action") == action;
    let event = |policy: &'a Value| {
        Some(text(policy, "event"))
            .filter(|it| !it.is_empty())
            .or_else(|| list(policy, "events").next()?.as_str())
    };
    let evicted = message.contains("evicted");
    let events: Vec<&str> = policies(job).filter(of_policy).filter_map(event).collect();
    let fitting = events.iter().find(|it| evicted == (**it == "PodEvicted"));
    fitting.or_else(|| events.first()).copied().unwrap_or("Any")
}

/// A job that has ended, or is stopped.
fn ended(facts: &Facts, job: &Value) -> Vec<Link> {
    let since = time(job, "status.state.lastTransitionTime");
    let (reason, message) = (text(job, "status.state.reason"), text(job, "status.state.message"));
    let phase = text(job, "status.state.phase");
    let mut links = Vec::new();
    if phase == "Aborted" {
        links.push(link(job, Reason::Aborted, since));
    }
    let is_out_of_tries = || {
        let (retries, max) = (count(job, "status.retryCount"), count(job, "spec.maxRetry"));
        phase == "Failed" && max > 0 && retries >= max
    };
    if reason == "RetriesExhausted" || (reason.is_empty() && is_out_of_tries()) {
        let last = message.split_once("the last: ").map_or(message, |(_, last)| last);
        let last = if last.is_empty() { "no more is reported" } else { last }.to_owned();
        links.push(link(job, Reason::RetriesExhausted { retries: count(job, "spec.maxRetry"), last }, since));
    } else if let Some(action) = cause_of_action(facts, job, since) {
        links.push(action);
    } else if !message.is_empty() {
        links.push(link(job, Reason::parse(message), since));
    }
    let failed = facts.owned(job, Resource::Pod).find(|it| text(it, "status.phase") == "Failed");
    let is_commanded = links.iter().any(|it| matches!(it.reason, Reason::Commanded { .. }));
    if let Some(failed) = failed.filter(|_| !is_commanded) {
        links.extend(pod::failed(failed));
    }
    links
}
