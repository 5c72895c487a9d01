//! How values merge: what the type table or a CRD's schema says of one place in an object.

use std::borrow::Cow;

use serde_json::Value;

use super::set::{key_step, value_step};
use crate::structural::{JsonType, Structural};
use crate::table::{Field, ListType, META_V1, Shape, Type, TypeRef, builtin};

/// A place in an object, by its schema.
#[derive(Clone, Copy)]
pub(super) enum At<'s> {
    /// A struct of the table.
    Struct(&'s Type),
    /// A value of the table; the field holds how lists and maps merge.
    Value(&'s TypeRef, Option<&'s Field>),
    /// A whole object of a CRD's kind.
    Object(&'s Structural),
    /// A value in an object of a CRD's kind.
    Custom(&'s Structural),
    /// A value of no type: maps merge key by key, lists are one value.
    Deduced,
    /// A value of no type that is one, whatever is in it.
    Opaque,
}

/// What a value is to a merge.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Atom {
    /// A plain value, of this type if one is said.
    Scalar(Scalar),
    /// A map that merges key by key.
    Map,
    /// A list that merges element by element.
    List,
    /// A map or list that is one value.
    Whole(Container),
}

/// The plain types that an apply checks.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scalar {
    Text,
    Number,
    Boolean,
    Any,
}

/// Which of the two a value that is one is made as.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Container {
    Map,
    List,
    Any,
}

impl<'s> At<'s> {
    pub(super) fn atom(self, value: &Value) -> Atom {
        match self {
            At::Struct(found) if found.is_atomic => Atom::Whole(Container::Map),
            At::Struct(_) | At::Object(_) => Atom::Map,
            At::Value(of, field) => value_atom(of, field),
            At::Custom(schema) => custom_atom(schema, value),
            At::Deduced => match value {
                Value::Object(_) => Atom::Map,
                Value::Array(_) => Atom::Whole(Container::List),
                _ => Atom::Scalar(Scalar::Any),
            },
            At::Opaque => match value {
                Value::Object(_) | Value::Array(_) => Atom::Whole(Container::Any),
                _ => Atom::Scalar(Scalar::Any),
            },
        }
    }

    /// The place of a field, and whether the schema names it; none if there can be no such field.
    pub(super) fn field(self, name: &str) -> Option<(At<'s>, bool)> {
        match self {
            At::Struct(found) => found.field(name).map(|field| (At::of_field(field), true)),
            At::Value(of, _) => match &of.shape {
                Shape::Struct(id) => At::Struct(id.get()).field(name),
                Shape::Map(element) => Some((At::Value(element, None), false)),
                _ => Some((At::Opaque, false)),
            },
            At::Object(schema) => match name {
                "apiVersion" | "kind" => Some((At::Opaque, true)),
                "metadata" => Some((metadata().map_or(At::Deduced, At::Struct), true)),
                _ => At::Custom(schema).field(name),
            },
            At::Custom(schema) => match (schema.property(name), schema.additional_property()) {
                (Some(property), _) => Some((At::Custom(property), true)),
                (None, Some(additional)) => Some((At::Custom(additional), false)),
                (None, None) => schema.keeps_unknown().then_some((At::Deduced, false)),
            },
            At::Deduced => Some((At::Deduced, false)),
            At::Opaque => Some((At::Opaque, false)),
        }
    }

    fn of_field(field: &'s Field) -> At<'s> {
        match &field.value.shape {
            Shape::Struct(id) if !field.is_atomic && !field.is_granular => At::Struct(id.get()),
            _ => At::Value(&field.value, Some(field)),
        }
    }

    /// The place of a list's elements.
    pub(super) fn element(self) -> At<'s> {
        match self {
            At::Value(of, _) => match &of.shape {
                Shape::List(element) => match &element.shape {
                    Shape::Struct(id) => At::Struct(id.get()),
                    _ => At::Value(element, None),
                },
                _ => At::Opaque,
            },
            At::Custom(schema) => schema.items().map_or(At::Deduced, At::Custom),
            At::Struct(_) | At::Object(_) | At::Opaque => At::Opaque,
            At::Deduced => At::Deduced,
        }
    }

    /// The step to an element of a list that merges. The error says why the element cannot be told from others.
    pub(super) fn step_to(self, item: &Value) -> Result<String, String> {
        let mut keys = self.list_keys().peekable();
        if keys.peek().is_none() {
            return match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                plain => Ok(value_step(plain)),
            };
        }
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let mut found: Vec<(&str, Cow<'_, Value>)> = keys
            .filter_map(|key| {
                let given = fields.get(key).map(Cow::Borrowed);
                Some((key, given.or_else(|| self.key_default(key).map(Cow::Owned))?))
            })
            .collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        if found.is_empty() {
            let keys: Vec<String> = self.list_keys().map(|key| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] \
                 (and doesn't have default values for any key fields)",
                keys.join(" ")
            ));
        }
        Ok(key_step(found.iter().map(|(key, value)| (*key, value.as_ref()))))
    }

    fn list_keys(self) -> impl Iterator<Item = &'s str> {
        let (of_table, of_schema): (&[&str], &[String]) = match self {
            At::Value(_, Some(field)) => (&field.list_keys, &[]),
            At::Custom(schema) => (&[], schema.list_keys()),
            _ => (&[], &[]),
        };
        of_table.iter().copied().chain(of_schema.iter().map(String::as_str))
    }

    fn key_default(self, key: &str) -> Option<Value> {
        match self.element() {
            At::Struct(found) => serde_json::from_str(found.field(key)?.default?).ok(),
            At::Custom(schema) => schema.property(key)?.default_value().cloned(),
            _ => None,
        }
    }
}

fn metadata() -> Option<&'static Type> {
    builtin().type_named(&format!("{META_V1}.ObjectMeta")).map(|id| id.get())
}

fn value_atom(of: &TypeRef, field: Option<&Field>) -> Atom {
    let is_atomic = field.is_some_and(|field| field.is_atomic);
    match &of.shape {
        Shape::String | Shape::Bytes => Atom::Scalar(Scalar::Text),
        Shape::Int32 | Shape::Int64 | Shape::Float64 => Atom::Scalar(Scalar::Number),
        Shape::Bool => Atom::Scalar(Scalar::Boolean),
        Shape::Struct(_) if field.is_some_and(|field| field.is_granular) => Atom::Map,
        Shape::Struct(id) if !is_atomic && !id.is_atomic => Atom::Map,
        Shape::Map(_) if !is_atomic => Atom::Map,
        Shape::Struct(_) | Shape::Map(_) => Atom::Whole(Container::Map),
        Shape::List(_) => match field.and_then(|field| field.list_type) {
            Some(ListType::Map | ListType::Set) => Atom::List,
            Some(ListType::Atomic) | None => Atom::Whole(Container::List),
        },
        Shape::Any
        | Shape::RawExtension
        | Shape::FieldsV1
        | Shape::Json
        | Shape::SchemaOrArray
        | Shape::SchemaOrBool
        | Shape::SchemaOrStrings => Atom::Whole(Container::Any),
        Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Quantity | Shape::IntOrString => {
            Atom::Scalar(Scalar::Any)
        }
    }
}

fn custom_atom(schema: &Structural, value: &Value) -> Atom {
    match schema.types() {
        [JsonType::Object] if schema.is_map_atomic() => Atom::Whole(Container::Map),
        [JsonType::Object] => Atom::Map,
        [JsonType::Array] => match schema.list_type() {
            Some(ListType::Map | ListType::Set) => Atom::List,
            Some(ListType::Atomic) | None => Atom::Whole(Container::List),
        },
        [JsonType::String] => Atom::Scalar(Scalar::Text),
        [JsonType::Integer | JsonType::Number] => Atom::Scalar(Scalar::Number),
        [JsonType::Boolean] => Atom::Scalar(Scalar::Boolean),
        [] if schema.keeps_unknown() => At::Deduced.atom(value),
        [] => At::Opaque.atom(value),
        _ => Atom::Scalar(Scalar::Any),
    }
}
