//! What is known about a cluster: objects as the API server returns them, and a time.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::{Quantity, Time};
use krafla_why::Lease;
use serde_json::Value;

use crate::resource::Resource;

/// Objects that were read, and what is known of the rest.
#[derive(Debug)]
pub struct Facts {
    /// The time of the diagnosis.
    pub now: Time,
    /// The lease of Volcano's controllers.
    pub lease: Lease,
    objects: BTreeMap<Resource, Vec<Value>>,
    /// Objects that were asked for one by one and do not exist.
    absent: BTreeSet<(Resource, String, String)>,
    /// The resources of which all objects were read: what is not among them does not exist.
    complete: BTreeSet<Resource>,
}

impl Facts {
    /// Nothing yet.
    pub fn new(now: Time) -> Facts {
        Facts {
            now,
            lease: Lease::default(),
            objects: BTreeMap::new(),
            absent: BTreeSet::new(),
            complete: BTreeSet::new(),
        }
    }

    /// Adds one object.
    pub fn add(&mut self, resource: Resource, mut object: Value) {
        // Items of lists need not say what they are.
        if let Some(fields) = object.as_object_mut() {
            fields.entry("kind").or_insert_with(|| resource.kind().into());
        }
        self.objects.entry(resource).or_default().push(object);
    }

    /// Adds all objects of a resource, in the namespace of the diagnosis or in all.
    pub fn add_all(&mut self, resource: Resource, objects: Vec<Value>) {
        self.complete.insert(resource);
        objects.into_iter().for_each(|object| self.add(resource, object));
    }

    /// Notes that an object does not exist.
    pub fn add_absent(&mut self, resource: Resource, namespace: &str, name: &str) {
        self.absent.insert((resource, namespace.to_owned(), name.to_owned()));
    }

    /// All objects of a resource.
    pub fn all(&self, resource: Resource) -> impl Iterator<Item = &Value> {
        self.objects.get(&resource).into_iter().flatten()
    }

    /// One object.
    pub fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<&Value> {
        self.all(resource).find(|it| {
            text(it, "metadata.name") == name
                && (!resource.is_namespaced() || text(it, "metadata.namespace") == namespace)
        })
    }

    /// The names of all objects of a resource.
    pub fn names(&self, resource: Resource) -> impl Iterator<Item = &str> {
        self.all(resource).map(|it| text(it, "metadata.name"))
    }

    /// Whether it is known that an object does not exist.
    pub fn is_missing(&self, resource: Resource, namespace: &str, name: &str) -> bool {
        let is_absent = self.absent.contains(&(resource, namespace.to_owned(), name.to_owned()));
        is_absent || (self.complete.contains(&resource) && self.get(resource, namespace, name).is_none())
    }

    /// The objects that another one owns.
    pub(crate) fn owned<'a>(
        &'a self,
        owner: &'a Value,
        resource: Resource,
    ) -> impl Iterator<Item = &'a Value> {
        let uid = text(owner, "metadata.uid");
        self.all(resource).filter(move |it| {
            !uid.is_empty() && list(it, "metadata.ownerReferences").any(|owner| text(owner, "uid") == uid)
        })
    }

    /// The Events about an object, the oldest first.
    pub(crate) fn events(&self, object: &Value) -> Vec<Happening> {
        let (uid, name) = (text(object, "metadata.uid"), text(object, "metadata.name"));
        let kind = text(object, "kind");
        let is_about = |event: &&Value| {
            let about = text(event, "involvedObject.uid");
            if about.is_empty() || uid.is_empty() {
                text(event, "involvedObject.name") == name && text(event, "involvedObject.kind") == kind
            } else {
                about == uid
            }
        };
        let mut events: Vec<Happening> = self.all(Resource::Event).filter(is_about).map(happening).collect();
        events.sort_by_key(|event| event.at);
        events
    }

    /// The newest warning about an object, if it happened at a time or later.
    pub(crate) fn warning(&self, object: &Value, since: Option<Time>) -> Option<Happening> {
        let mut events = self.events(object).into_iter();
        events.rfind(|event| event.is_warning && (since.is_none() || event.at >= since))
    }

    /// The age of an object.
    pub(crate) fn age_seconds(&self, object: &Value) -> Option<u64> {
        time(object, "metadata.creationTimestamp").map(|made| self.now.since(made).as_secs())
    }
}

/// What an Event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Happening {
    pub(crate) at: Option<Time>,
    pub(crate) is_warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) count: u64,
}

fn happening(event: &Value) -> Happening {
    let times = ["series.lastObservedTime", "lastTimestamp", "eventTime", "firstTimestamp"];
    let at = times.into_iter().filter_map(|field| time(event, field)).max();
    Happening {
        at: at.or_else(|| time(event, "metadata.creationTimestamp")),
        is_warning: text(event, "type") == "Warning",
        reason: text(event, "reason").to_owned(),
        message: text(event, "message").to_owned(),
        count: number(event, "count")
            .or_else(|| number(event, "series.count"))
            .map_or(1, |n| n.max(1).unsigned_abs()),
    }
}

/// The field at a path; null if there is none.
pub(crate) fn field<'a>(object: &'a Value, path: &str) -> &'a Value {
    let found = path.split('.').try_fold(object, |value, name| value.get(name));
    found.unwrap_or(&Value::Null)
}

/// The text at a path; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    field(object, path).as_str().unwrap_or_default()
}

/// The number at a path.
pub(crate) fn number(object: &Value, path: &str) -> Option<i64> {
    field(object, path).as_i64()
}

/// The number at a path; 0 if there is none.
pub(crate) fn count(object: &Value, path: &str) -> u32 {
    number(object, path).and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

/// The elements of the list at a path.
pub(crate) fn list<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    field(object, path).as_array().into_iter().flatten()
}

/// The fields of the map at a path.
pub(crate) fn pairs<'a>(
    object: &'a Value,
    path: &str,
) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
    field(object, path).as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// The time at a path.
pub(crate) fn time(object: &Value, path: &str) -> Option<Time> {
    text(object, path).parse().ok().map(Time)
}

/// An amount of a resource.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    serde_json::from_value(value.clone()).ok()
}

/// The condition of a type.
pub(crate) fn condition<'a>(object: &'a Value, of_type: &str) -> Option<&'a Value> {
    let all: Vec<&Value> = list(object, "status.conditions").collect();
    all.into_iter().rfind(|it| text(it, "type") == of_type)
}

/// The condition of a type, if it is true.
pub(crate) fn true_condition<'a>(object: &'a Value, of_type: &str) -> Option<&'a Value> {
    let all: Vec<&Value> = list(object, "status.conditions").collect();
    all.into_iter().rfind(|it| text(it, "type") == of_type && text(it, "status") == "True")
}
