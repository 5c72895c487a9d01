//! Who manages which fields: what every write leaves in `metadata.managedFields`.
//!
//! Managers are found from what the client wants, before the server puts back what the client may not change. Those
//! fields are therefore named here, kind by kind, so that nobody comes to own what they could not set.

use krafla_schema::apply::{Merges, Writer};
use serde_json::Value;

use super::{Api, Part, WriteOptions};
use crate::kinds;
use crate::registry::Resource;

/// The manager of what this program writes by itself.
const OWN_MANAGER: &str = "krafla";

/// How the managers of a written object are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// Whoever changes a field manages it from now on.
    Tracked,
    /// The new state says it already, since an apply made it.
    Settled,
    /// They stay: the server itself writes, as when it binds a pod.
    Kept,
}

impl Ownership {
    /// What the server sets of its own accord is nobody's: a later apply takes it over without a conflict.
    fn for_writer(self, options: &WriteOptions) -> Ownership {
        let is_own = options.manager.is_none() && self == Ownership::Tracked;
        if is_own { Ownership::Kept } else { self }
    }
}

impl Api {
    /// The managers of a new state, given the one before it.
    pub(super) fn managers(
        &self,
        resource: &Resource,
        part: Part,
        ownership: Ownership,
        (old, new): (Option<&Value>, &Value),
        options: &WriteOptions,
    ) -> Vec<Value> {
        match (ownership.for_writer(options), resource.merges()) {
            (Ownership::Tracked, Some(merges)) => {
                self.with_writer(resource, part, options, |writer| merges.update(old, new, writer))
            }
            (Ownership::Settled, _) => named_in(Some(new)),
            (Ownership::Kept, _) | (Ownership::Tracked, None) => named_in(old),
        }
    }

    /// The managers of a new object, as text; none if there are none.
    pub(super) fn managers_of_new(
        &self,
        resource: &Resource,
        ownership: Ownership,
        new: &Value,
        options: &WriteOptions,
    ) -> Option<String> {
        match (ownership.for_writer(options), resource.merges()) {
            (Ownership::Tracked, Some(merges)) => {
                self.with_writer(resource, Part::Main, options, |writer| merges.create(new, writer))
            }
            (Ownership::Settled, _) => {
                let named = named_in(Some(new));
                (!named.is_empty()).then(|| Value::Array(named).to_string())
            }
            (Ownership::Kept, _) | (Ownership::Tracked, None) => None,
        }
    }

    /// Does something as the one who writes.
    pub(super) fn with_writer<T>(
        &self,
        resource: &Resource,
        part: Part,
        options: &WriteOptions,
        act: impl FnOnce(&Writer<'_>) -> T,
    ) -> T {
        act(&Writer {
            manager: options.manager.as_deref().unwrap_or(OWN_MANAGER),
            subresource: part.subresource(),
            api_version: &resource.names.api_version(),
            now: &self.env().now().to_string(),
            ignored: ignored(resource, part),
            renamed: &renamed(resource),
        })
    }
}

impl Part {
    /// The subresource that is written through; empty for the object itself.
    pub(super) fn subresource(self) -> &'static str {
        match self {
            Part::Main | Part::Bind => "",
            Part::Scale => "scale",
            Part::Status => "status",
            Part::Finalize => "finalize",
            Part::Own(subresource) => subresource,
        }
    }
}

impl Resource {
    /// How its objects merge; none for what is not stored.
    pub(crate) fn merges(&self) -> Option<Merges<'_>> {
        match (self.schema, &self.custom) {
            (Some(of), _) => Some(Merges::Builtin(of)),
            (None, Some(schema)) => Some(Merges::Custom(&schema.compiled)),
            (None, None) => None,
        }
    }
}

fn named_in(object: Option<&Value>) -> Vec<Value> {
    let managers = object.and_then(|object| object.pointer("/metadata/managedFields"));
    managers.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The fields that a kind's other version calls otherwise.
fn renamed(resource: &Resource) -> Vec<(&'static str, &'static str)> {
    let names = &resource.names;
    let (fields, is_stored): (&[(&str, &str)], bool) = match (&*names.group, &*names.version, &*names.kind) {
        ("", _, "Event") => (&kinds::event::FIELDS, true),
        ("events.k8s.io", _, "Event") => (&kinds::event::FIELDS, false),
        ("autoscaling", version, _) => (&kinds::autoscaler::FIELDS, version == "v2"),
        _ => (&[], true),
    };
    fields
        .iter()
        .map(|(shown, stored)| if is_stored { (*stored, *shown) } else { (*shown, *stored) })
        .collect()
}

/// The fields that a write to this part cannot set.
fn ignored(resource: &Resource, part: Part) -> &'static [&'static [&'static str]] {
    let names = &resource.names;
    match (part, &*names.group, &*names.kind) {
        (Part::Main | Part::Scale | Part::Finalize | Part::Own(_), ..) if resource.has_status() => {
            &[&["status"]]
        }
        (Part::Main | Part::Scale | Part::Finalize | Part::Bind | Part::Own(_), ..) => &[],
        (Part::Status, ..) if resource.is_custom => &[&["metadata"], &["spec"]],
        (Part::Status, "apiextensions.k8s.io", _) => &[&["metadata"], &["spec"]],
        (Part::Status, "", "Pod") => {
            &[&["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"], &["spec"]]
        }
        (Part::Status, "apps", "Deployment") => &[&["metadata", "labels"], &["spec"]],
        (Part::Status, ..) => &[&["spec"]],
    }
}
