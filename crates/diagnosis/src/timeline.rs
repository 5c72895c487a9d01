//! What happened to an object and to what belongs to it.

use std::collections::BTreeSet;

use krafla_api::Time;
use serde_json::Value;

use crate::Subject;
use crate::facts::{Facts, field, list, text, time};
use crate::resource::Resource;

/// How many moments are shown.
const MOMENTS_MAX: usize = 14;
/// How many pods are followed.
const PODS_MAX: usize = 200;

/// The rule of an object's first moment.
const CREATED: &str = "created";

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// The time.
    pub at: Time,
    /// The object.
    pub about: Subject,
    /// The rule: the reason of an Event, or the type of a condition.
    pub rule: String,
    /// What was seen, or what followed.
    pub what: String,
}

/// What happened to an object, the oldest first.
pub(crate) fn timeline(facts: &Facts, resource: Resource, object: &Value) -> Vec<Moment> {
    let mut moments = BTreeSet::new();
    of_object(facts, resource, object, &mut moments);
    for (child, of) in family(facts, resource, object) {
        of_object(facts, of, child, &mut moments);
    }
    // Times have whole seconds: of what happened in one, the creation was first.
    let mut moments: Vec<Moment> = moments.into_iter().collect();
    moments.sort_by_key(|it| (it.at, it.rule != CREATED));
    // The same message of many pods is one moment.
    let mut told = BTreeSet::new();
    let mut kept: Vec<Moment> = moments
        .into_iter()
        .filter(|it| told.insert((it.about.resource, it.rule.clone(), without_digits(&it.what))))
        .collect();
    let surplus = kept.len().saturating_sub(MOMENTS_MAX);
    // The beginning is of interest too.
    if surplus > 0 {
        kept.drain(1..=surplus);
    }
    kept
}

fn without_digits(text: &str) -> String {
    text.replace(|letter: char| letter.is_ascii_digit(), "")
}

/// What belongs to an object: its jobs, gangs and pods.
pub(crate) fn family<'a>(
    facts: &'a Facts,
    resource: Resource,
    object: &'a Value,
) -> Vec<(&'a Value, Resource)> {
    let kinds: &[Resource] = match resource {
        Resource::JobFlow | Resource::VcCronJob => &[Resource::VcJob],
        Resource::CronJob => &[Resource::Job],
        Resource::VcJob | Resource::Job => &[Resource::PodGroup, Resource::Pod],
        Resource::PodGroup => {
            return crate::gang::pods(facts, object).take(PODS_MAX).map(|pod| (pod, Resource::Pod)).collect();
        }
        _ => &[],
    };
    let mut found: Vec<(&Value, Resource)> = Vec::new();
    for kind in kinds {
        for child in facts.owned(object, *kind).take(PODS_MAX) {
            found.push((child, *kind));
            if matches!(kind, Resource::VcJob | Resource::Job) {
                found.extend(family(facts, *kind, child));
            }
        }
    }
    found
}

fn of_object(facts: &Facts, resource: Resource, object: &Value, moments: &mut BTreeSet<Moment>) {
    let about = Subject::new(resource, object);
    let mut add = |at: Option<Time>, rule: &str, what: String| {
        let Some(at) = at else { return };
        moments.insert(Moment { at, about: about.clone(), rule: rule.to_owned(), what });
    };
    add(time(object, "metadata.creationTimestamp"), CREATED, String::new());
    add(time(object, "metadata.deletionTimestamp"), "deleted", String::new());
    for condition in list(object, "status.conditions") {
        let is_phase = resource == Resource::VcJob;
        let rule = if is_phase { text(condition, "status") } else { text(condition, "type") };
        let holds = is_phase || text(condition, "status") == "True" || !text(condition, "message").is_empty();
        let is_news = !matches!(rule, "Initialized" | "PodReadyToStartContainers" | "ContainersReady" | "");
        if holds && is_news {
            add(time(condition, "lastTransitionTime"), rule, text(condition, "message").to_owned());
        }
    }
    for container in list(object, "status.containerStatuses") {
        for state in ["state.terminated", "lastState.terminated"] {
            let end = field(container, state);
            if end.is_object() {
                let code = end.get("exitCode").and_then(Value::as_i64).unwrap_or(0);
                let what = format!("container {} ended with exit code {code}", text(container, "name"));
                add(time(end, "finishedAt"), text(end, "reason"), what);
            }
        }
    }
    for event in facts.events(object) {
        let times = if event.count > 1 { format!(" ({} times)", event.count) } else { String::new() };
        add(event.at, &event.reason, format!("{}{times}", event.message));
    }
}
