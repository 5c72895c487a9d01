//! Pruning and defaulting: an object as its schema knows it.

use serde_json::{Map, Value};

use super::validate::join;
use super::{Additional, Structural};

/// How many bytes of defaults one object gets: more than is ever stored of an object.
const DEFAULT_BYTES_MAX: usize = 2 << 20;

/// How many bytes of defaults still fit.
struct Room {
    n_bytes: usize,
}

impl Room {
    /// Whether there is room for so many bytes. The value that goes beyond still fits, so that the object is too large then.
    fn take(&mut self, n_bytes: usize) -> bool {
        let had_room = self.n_bytes > 0;
        self.n_bytes = self.n_bytes.saturating_sub(n_bytes);
        had_room
    }
}

/// How many bytes of JSON a value has at least.
fn n_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| n_bytes(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(key, value)| key.len() + 3 + n_bytes(value)).sum::<usize>()
        }
    }
}

/// The fields that every object has; a schema says nothing about them.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// The metadata that an embedded object may have is all that metadata has; the rest is checked where it is used.
const METADATA_FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

impl Structural {
    /// Drops what the schema does not know, and names it, sorted: `spec.l[0].b`. The object's own metadata is left to
    /// the decoder.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut dropped = Vec::new();
        self.prune_value(object, "", true, &mut dropped);
        dropped.sort();
        dropped
    }

    /// The same for a value that need not be a whole object.
    pub fn prune_part(&self, value: &mut Value) -> Vec<String> {
        let mut dropped = Vec::new();
        self.prune_value(value, "", self.embedded_resource, &mut dropped);
        dropped
    }

    fn prune_value(&self, value: &mut Value, name: &str, is_root: bool, dropped: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    match &self.items {
                        Some(schema) => schema.prune_value(item, &format!("{name}[{at}]"), false, dropped),
                        None if self.preserve_unknown => {}
                        None => {
                            Structural::default().prune_value(item, &format!("{name}[{at}]"), false, dropped)
                        }
                    }
                }
            }
            Value::Object(fields) => self.prune_fields(fields, name, is_root, dropped),
            _ => {}
        }
    }

    fn prune_fields(
        &self,
        fields: &mut Map<String, Value>,
        name: &str,
        is_root: bool,
        dropped: &mut Vec<String>,
    ) {
        let is_object = is_root || self.embedded_resource;
        fields.retain(|key, _| {
            let is_known = self.properties.contains_key(key)
                || self.additional.keeps_unknown()
                || self.preserve_unknown
                || (is_object && OBJECT_FIELDS.contains(&key.as_str()));
            if !is_known {
                dropped.push(join(name, key));
            }
            is_known
        });
        for (key, value) in fields.iter_mut() {
            let name = join(name, key);
            if is_object && OBJECT_FIELDS.contains(&key.as_str()) {
                if !is_root && key == "metadata" {
                    prune_metadata(value, &name, dropped);
                }
            } else if let Some(schema) = self.child(key) {
                schema.prune_value(value, &name, false, dropped);
            }
        }
    }

    /// Fills in defaults. A null counts as missing where the schema does not allow null; without a default, such a
    /// null is dropped.
    ///
    /// A short list of empty items can ask for gigabytes of defaults. What goes beyond [`DEFAULT_BYTES_MAX`] is not filled
    /// in: the object is too large to be stored by then.
    pub fn fill_defaults(&self, value: &mut Value) {
        self.fill(value, &mut Room { n_bytes: DEFAULT_BYTES_MAX });
    }

    fn fill(&self, value: &mut Value, room: &mut Room) {
        match value {
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for item in items {
                        schema.fill(item, room);
                    }
                }
            }
            Value::Object(fields) => {
                for (key, schema) in &self.properties {
                    let is_missing = match fields.get(key) {
                        None => true,
                        Some(value) => value.is_null() && !schema.nullable,
                    };
                    match &schema.default {
                        Some(default) if is_missing && room.take(key.len() + n_bytes(default)) => {
                            fields.insert(key.clone(), default.clone());
                        }
                        None if is_missing && !schema.accepts_anything() => {
                            fields.remove(key);
                        }
                        _ => {}
                    }
                }
                for (key, value) in fields.iter_mut() {
                    if let Some(schema) = self.child(key) {
                        schema.fill(value, room);
                    }
                }
                if let Additional::Schema(schema) = &self.additional
                    && !schema.nullable
                {
                    self.default_additional(fields, schema, room);
                }
            }
            _ => {}
        }
    }

    fn default_additional(&self, fields: &mut Map<String, Value>, schema: &Structural, room: &mut Room) {
        fields.retain(|key, value| {
            if !value.is_null() || self.properties.contains_key(key) {
                return true;
            }
            if let Some(default) = schema.default.as_ref().filter(|default| room.take(n_bytes(default))) {
                *value = default.clone();
            }
            !value.is_null()
        });
    }

    /// Whether null is as good as any value: the schema says nothing about what may be there.
    fn accepts_anything(&self) -> bool {
        self.types.is_empty() && self.preserve_unknown
    }
}

fn prune_metadata(metadata: &mut Value, name: &str, dropped: &mut Vec<String>) {
    if let Value::Object(fields) = metadata {
        fields.retain(|key, _| {
            let is_known = METADATA_FIELDS.contains(&key.as_str());
            if !is_known {
                dropped.push(join(name, key));
            }
            is_known
        });
    }
}
