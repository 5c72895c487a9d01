//! A place in a JSON document, and what is there.
//!
//! Pod templates are raw JSON, so that fields newer than this program survive. The rules read them through this cursor:
//! what is missing, null or of another type reads as nothing there; the schema has its own words for wrong types.

use krafla_api::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::path::Path;

/// A place in a document.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    value: &'a Value,
    path: Path,
}

impl<'a> At<'a> {
    pub(crate) fn new(value: &'a Value, path: Path) -> At<'a> {
        At { value, path }
    }

    /// The place of a field of this object.
    pub(crate) fn get(&self, name: &str) -> At<'a> {
        At { value: self.value.get(name).unwrap_or(&Value::Null), path: self.path.field(name) }
    }

    /// What is here, reported as if it were there.
    pub(crate) fn reported_at(self, path: Path) -> At<'a> {
        At { value: self.value, path }
    }

    /// The same place, if nothing were there.
    pub(crate) fn nothing(&self) -> At<'a> {
        At { value: &Value::Null, path: self.path.clone() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    /// Whether something is there.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether there is nothing, or an empty list, map or text.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// The text here; empty if there is none.
    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The text of a field; empty if there is none.
    pub(crate) fn str(&self, name: &str) -> &'a str {
        self.value.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number here.
    pub(crate) fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Whether this says true.
    pub(crate) fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    /// The amount here.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        if self.value.is_null() { None } else { Quantity::deserialize(self.value).ok() }
    }

    /// The items of a list field.
    pub(crate) fn items(&self, name: &str) -> Vec<At<'a>> {
        self.get(name).list()
    }

    /// The items of the list here.
    pub(crate) fn list(&self) -> Vec<At<'a>> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(|(index, value)| At { value, path: self.path.index(index) }).collect()
    }

    /// The fields of the object here.
    pub(crate) fn fields(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// The entries of the map here, with their places as `map[key]`.
    pub(crate) fn entries(&self) -> Vec<(&'a str, At<'a>)> {
        let fields = self.value.as_object().into_iter().flatten();
        fields.map(|(key, value)| (key.as_str(), At { value, path: self.path.key(key) })).collect()
    }
}
