//! The place of a gang in its queue.

use std::cmp::Reverse;

use serde_json::Value;

use crate::facts::{Facts, list, pairs, text, time};
use crate::gang::{is_waiting, queue_of};
use crate::resource::Resource;
use crate::{State, Subject};

/// How many of those ahead are named.
const NAMED_MAX: usize = 5;

/// The place of a gang among those that wait in its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The queue.
    pub queue: String,
    /// The place, from 1; 0 for the queue itself.
    pub position: usize,
    /// How many gangs wait.
    pub waiting: usize,
    /// The first of those ahead.
    pub ahead: Vec<Ahead>,
}

/// A gang ahead in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The gang's job, or the gang.
    pub name: String,
    /// What it needs at least.
    pub needs: String,
    /// Its priority class, if it has one.
    pub priority_class: String,
}

/// The gangs that wait in a queue, the first in line first.
pub(crate) fn waiting_in<'a>(facts: &'a Facts, queue: &str) -> Vec<&'a Value> {
    let mut waiting: Vec<&Value> =
        facts.all(Resource::PodGroup).filter(|it| is_waiting(it) && queue_of(it) == queue).collect();
    waiting.sort_by_key(|it| {
        let key = (text(it, "metadata.namespace"), text(it, "metadata.name"));
        (Reverse(priority(facts, it)), time(it, "metadata.creationTimestamp"), key)
    });
    waiting
}

fn priority(facts: &Facts, group: &Value) -> i64 {
    let class = text(group, "spec.priorityClassName");
    let class = facts.get(Resource::PriorityClass, "", class);
    class.and_then(|class| class.get("value")?.as_i64()).unwrap_or(0)
}

/// The place of an object's gang in its queue.
pub(crate) fn line(facts: &Facts, resource: Resource, object: &Value, state: State) -> Option<Line> {
    if resource == Resource::Queue {
        let queue = text(object, "metadata.name");
        let waiting = waiting_in(facts, queue);
        let ahead = waiting.iter().take(NAMED_MAX).map(|it| named(it)).collect();
        let n_waiting = waiting.len();
        return (n_waiting > 0).then(|| Line {
            queue: queue.to_owned(),
            position: 0,
            waiting: n_waiting,
            ahead,
        });
    }
    let group = match resource {
        Resource::PodGroup => object,
        Resource::VcJob | Resource::Job => facts.owned(object, Resource::PodGroup).next()?,
        Resource::Pod => {
            let subject = Subject::new(resource, object);
            facts.get(Resource::PodGroup, &subject.namespace, crate::pod::group(object)?)?
        }
        _ => return None,
    };
    if state != State::Waiting || !is_waiting(group) {
        return None;
    }
    let queue = queue_of(group);
    let waiting = waiting_in(facts, queue);
    let at = waiting.iter().position(|it| text(it, "metadata.uid") == text(group, "metadata.uid"))?;
    let ahead = waiting.iter().take(at).take(NAMED_MAX).map(|it| named(it)).collect();
    Some(Line { queue: queue.to_owned(), position: at + 1, waiting: waiting.len(), ahead })
}

fn named(group: &Value) -> Ahead {
    let namespace = text(group, "metadata.namespace");
    let owner = list(group, "metadata.ownerReferences").next();
    let name = match owner {
        Some(owner) => {
            let resource = Resource::from_manifest(text(owner, "apiVersion"), text(owner, "kind"));
            let word = resource.map_or_else(|| text(owner, "kind").to_lowercase(), |it| it.word().to_owned());
            format!("{word} {namespace}/{}", text(owner, "name"))
        }
        None => format!("podgroup {namespace}/{}", text(group, "metadata.name")),
    };
    // What quotas count is the same again.
    let is_plain = |(name, _): &(&str, &Value)| {
        !["requests.", "limits.", "count/"].iter().any(|it| name.starts_with(it))
    };
    let needs =
        pairs(group, "spec.minResources").filter(is_plain).map(|(name, value)| match value.as_str() {
            Some(amount) => format!("{amount} {name}"),
            None => format!("{value} {name}"),
        });
    let needs: Vec<String> = needs.take(4).collect();
    Ahead { name, needs: needs.join(", "), priority_class: text(group, "spec.priorityClassName").to_owned() }
}
