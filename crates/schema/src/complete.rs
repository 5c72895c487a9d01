//! Sparse objects and complete ones.
//!
//! A sparse object has a field only if it says something. Go prints more: structs, times and required values appear
//! although they are empty (`status: {}`, `lastProbeTime: null`). [`complete`] adds that, last of all.

use serde_json::{Map, Value};

use super::table::{Field, Shape, TypeId, TypeRef};

/// Adds to a sparse object what Go prints although it is empty, so that it looks as kube-apiserver's answers do.
pub fn complete(object: &mut Value, of: TypeId) {
    let Value::Object(fields) = object else { return };
    // Only what has an inside can lack something there, and most fields have none.
    for (name, value) in fields.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
        if let Some(field) = of.field(name) {
            complete_value(value, &field.value);
        }
    }
    for field in of.shown_when_empty() {
        if !fields.contains_key(field.name) {
            let mut value = field.value.zero();
            complete_value(&mut value, &field.value);
            fields.insert(field.name.to_owned(), value);
        }
    }
}

fn complete_value(value: &mut Value, of: &TypeRef) {
    match (&of.shape, value) {
        (Shape::Struct(id), value) => complete(value, *id),
        (Shape::List(element), Value::Array(items)) => {
            items.iter_mut().for_each(|item| complete_value(item, element));
        }
        (Shape::Map(element), Value::Object(fields)) => {
            fields.values_mut().for_each(|value| complete_value(value, element));
        }
        _ => {}
    }
}

impl Field {
    /// Whether Go prints something for this field when it was never set.
    pub(super) fn is_shown_when_empty(&self) -> bool {
        if self.omit_zero {
            return false;
        }
        // Go's `omitempty` has no say over structs, and times, quantities and the like are structs to it.
        let is_struct = !self.value.is_pointer
            && matches!(
                self.value.shape,
                Shape::Struct(_)
                    | Shape::Time
                    | Shape::MicroTime
                    | Shape::Duration
                    | Shape::Quantity
                    | Shape::IntOrString
                    | Shape::RawExtension
                    | Shape::FieldsV1
                    | Shape::Json
            );
        is_struct || !self.omit_empty
    }
}

impl TypeRef {
    /// What Go prints for a value of this type that was never set; null where it prints nothing better.
    fn zero(&self) -> Value {
        match &self.shape {
            _ if self.is_pointer => Value::Null,
            Shape::String => "".into(),
            Shape::Bool => false.into(),
            Shape::Int32 | Shape::Int64 | Shape::Float64 | Shape::IntOrString => 0.into(),
            Shape::Duration => "0s".into(),
            Shape::Quantity => "0".into(),
            Shape::Struct(_) => Value::Object(Map::new()),
            Shape::SchemaOrBool => false.into(),
            Shape::Bytes
            | Shape::Any
            | Shape::Time
            | Shape::MicroTime
            | Shape::RawExtension
            | Shape::FieldsV1
            | Shape::Json
            | Shape::SchemaOrArray
            | Shape::SchemaOrStrings
            | Shape::List(_)
            | Shape::Map(_) => Value::Null,
        }
    }

    /// Elements of lists and maps are always there: what was null is zero.
    pub(super) fn or_zero(&self, value: Value) -> Value {
        if value.is_null() { self.zero() } else { value }
    }
}

impl Field {
    /// Whether a value of this field need not be kept, as its absence says the same.
    pub(super) fn says_nothing(&self, value: &Value) -> bool {
        if self.value.is_pointer {
            return value.is_null();
        }
        match (&self.value.shape, value) {
            (_, Value::Null) => true,
            (Shape::List(_), Value::Array(items)) => self.omit_empty && items.is_empty(),
            (Shape::Map(_), Value::Object(fields)) => self.omit_empty && fields.is_empty(),
            (Shape::Struct(_), Value::Object(fields)) => fields.is_empty(),
            (Shape::String, Value::String(text)) => text.is_empty(),
            (Shape::Bytes, Value::String(text)) => self.omit_empty && text.is_empty(),
            (Shape::Quantity, Value::String(text)) => text == "0",
            (Shape::Bool, Value::Bool(bool)) => !bool,
            (Shape::Int32 | Shape::Int64 | Shape::Float64 | Shape::IntOrString, Value::Number(number)) => {
                number.as_f64() == Some(0.0)
            }
            _ => false,
        }
    }
}
