//! Values: JSON seen through its type, and what expressions make of it.
//!
//! Objects are not copied to be looked at: lists and maps point into the JSON that they came from, and an element becomes
//! a value when it is asked for.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use krafla_api::{GoDuration, Quantity};
use serde_json::Value as Json;

use crate::library::{Cidr, Semver, Url};
use crate::types::{ObjectType, Opaque, Order, Type};

/// A value. Copies are cheap.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number without a sign.
    Uint(u64),
    /// A floating number.
    Double(f64),
    /// A text.
    String(Text<'a>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A moment.
    Timestamp(Timestamp),
    /// A time between two moments.
    Duration(GoDuration),
    /// Elements in order.
    List(List<'a>),
    /// Values by key, or an object.
    Map(Map<'a>),
    /// An object that an expression built.
    Built(Arc<Built<'a>>),
    /// A value that may be absent.
    Optional(Option<Arc<Value<'a>>>),
    /// A type, by its name.
    Type(&'static str),
    /// An amount of a resource.
    Quantity(Quantity),
    /// The parts of a URL.
    Url(Arc<Url>),
    /// An IP address.
    Ip(IpAddr),
    /// A range of IP addresses.
    Cidr(Cidr),
    /// A version.
    Semver(Arc<Semver>),
    /// A format of texts, by its name.
    Format(&'static str),
}

/// An object that an expression built.
#[derive(Clone, Debug)]
pub struct Built<'a> {
    /// The name of its type: `Object.spec`.
    pub name: &'a str,
    /// Its fields.
    pub fields: BTreeMap<Arc<str>, Value<'a>>,
}

/// A text, of the JSON or made.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// As it stands in the JSON or in the expression.
    Borrowed(&'a str),
    /// Made by an expression.
    Made(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Made(text) => text,
        }
    }
}

/// Elements in order.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// In JSON, with the type of the elements.
    Json {
        /// The elements.
        items: &'a [Json],
        /// Their type.
        of: &'a Type,
        /// What makes two such lists equal.
        order: &'a Order,
    },
    /// Made by an expression.
    Made(Arc<[Value<'a>]>),
}

/// Values by key.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// In JSON, with named fields.
    Object {
        /// The fields.
        fields: &'a serde_json::Map<String, Json>,
        /// Which there are.
        of: &'a ObjectType,
    },
    /// In JSON, all values of one type.
    Json {
        /// The entries.
        fields: &'a serde_json::Map<String, Json>,
        /// The type of the values.
        of: &'a Type,
    },
    /// Made by an expression.
    Made(Arc<BTreeMap<Key, Value<'a>>>),
}

/// A key of a map. Whole numbers that are equal are one key, whatever their type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number too large to have a sign.
    Uint(u64),
    /// A text.
    String(Arc<str>),
}

impl<'a> Value<'a> {
    /// JSON as its type says. What does not fit its type is taken for what it is.
    pub fn from_json(json: &'a Json, of: &'a Type) -> Value<'a> {
        match (json, of) {
            (Json::Null, _) => Value::Null,
            (Json::Bool(value), _) => Value::Bool(*value),
            (Json::Number(number), Type::Double) => number.as_f64().map_or(Value::Null, Value::Double),
            (Json::Number(number), _) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Value::Int(whole),
                (None, Some(floating)) => Value::Double(floating),
                (None, None) => Value::Null,
            },
            (Json::String(text), Type::Timestamp) => match crate::library::parse_timestamp(text) {
                Some(at) => Value::Timestamp(at),
                None => Value::String(Text::Borrowed(text)),
            },
            (Json::String(text), Type::Duration) => match text.parse() {
                Ok(duration) => Value::Duration(duration),
                Err(_) => Value::String(Text::Borrowed(text)),
            },
            (Json::String(text), Type::Bytes(_)) => match BASE64_STANDARD.decode(text) {
                Ok(bytes) => Value::Bytes(bytes.into()),
                Err(_) => Value::String(Text::Borrowed(text)),
            },
            (Json::String(text), _) => Value::String(Text::Borrowed(text)),
            (Json::Array(items), Type::List(list)) => {
                Value::List(List::Json { items, of: &list.of, order: &list.order })
            }
            (Json::Array(items), _) => {
                Value::List(List::Json { items, of: &Type::Dyn, order: &Order::Sequence })
            }
            (Json::Object(fields), Type::Object(of)) => Value::Map(Map::Object { fields, of }),
            (Json::Object(fields), Type::Map(map)) => Value::Map(Map::Json { fields, of: &map.value }),
            (Json::Object(fields), _) => Value::Map(Map::Json { fields, of: &Type::Dyn }),
        }
    }

    /// The value as JSON, or the name of the type that has no such form. Durations and moments are texts there.
    pub fn to_json(&self) -> Result<Json, String> {
        Ok(match self {
            Value::Null => Json::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(number) => (*number).into(),
            Value::Uint(number) => (*number).into(),
            Value::Double(number) => (*number).into(),
            Value::String(text) => (**text).into(),
            Value::Bytes(bytes) => BASE64_STANDARD.encode(bytes).into(),
            Value::Timestamp(_) | Value::Duration(_) => crate::library::shown(self).into(),
            Value::List(list) => list.iter().map(|item| item.to_json()).collect::<Result<_, _>>()?,
            Value::Map(map) => {
                let entries = map.entries();
                let entries = entries.iter().map(|(key, value)| Ok((key.to_string(), value.to_json()?)));
                Json::Object(entries.collect::<Result<_, String>>()?)
            }
            Value::Built(built) => {
                let fields =
                    built.fields.iter().map(|(name, value)| Ok((name.to_string(), value.to_json()?)));
                Json::Object(fields.collect::<Result<_, String>>()?)
            }
            Value::Optional(Some(value)) => value.to_json()?,
            Value::Optional(None) => Json::Null,
            other => return Err(other.type_name().to_owned()),
        })
    }

    /// A text that an expression made.
    pub(crate) fn text(text: impl Into<Arc<str>>) -> Value<'a> {
        Value::String(Text::Made(text.into()))
    }

    /// A list that an expression made.
    pub(crate) fn list(items: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::Made(items.into()))
    }

    /// An optional that has a value.
    pub(crate) fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Arc::new(value)))
    }

    /// How large it is, as costs count it.
    pub(crate) fn size(&self) -> u64 {
        let count = match self {
            Value::String(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            _ => 1,
        };
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// The name of its type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Built(_) => "object",
            Value::Optional(_) => "optional_type",
            Value::Type(_) => "type",
            Value::Quantity(_) => Opaque::Quantity.name(),
            Value::Url(_) => Opaque::Url.name(),
            Value::Ip(_) => Opaque::Ip.name(),
            Value::Cidr(_) => Opaque::Cidr.name(),
            Value::Semver(_) => Opaque::Semver.name(),
            Value::Format(_) => Opaque::Format.name(),
        }
    }
}

impl<'a> List<'a> {
    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            List::Json { items, .. } => items.len(),
            List::Made(items) => items.len(),
        }
    }

    /// One element.
    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            List::Json { items, of, .. } => items.get(index).map(|item| Value::from_json(item, of)),
            List::Made(items) => items.get(index).cloned(),
        }
    }

    /// All elements.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// What makes two such lists equal.
    pub(crate) fn order(&self) -> &'a Order {
        match self {
            List::Json { order, .. } => order,
            List::Made(_) => &Order::Sequence,
        }
    }
}

impl<'a> Map<'a> {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Map::Object { fields, .. } | Map::Json { fields, .. } => fields.len(),
            Map::Made(entries) => entries.len(),
        }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &Key) -> Option<Value<'a>> {
        match (self, key) {
            (Map::Made(entries), key) => entries.get(key).cloned(),
            (Map::Object { .. } | Map::Json { .. }, Key::String(name)) => self.field(name),
            (Map::Object { .. } | Map::Json { .. }, _) => None,
        }
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Map::Object { fields, of } => {
                let field = of.fields.get(name)?;
                Some(Value::from_json(fields.get(&field.json_name)?, &field.of))
            }
            Map::Json { fields, of } => Some(Value::from_json(fields.get(name)?, of)),
            Map::Made(entries) => entries.get(&Key::String(name.into())).cloned(),
        }
    }

    /// All entries, in the order of their keys.
    pub fn entries(&self) -> Vec<(Key, Value<'a>)> {
        match self {
            Map::Object { fields, of } => {
                let known = of.fields.iter().filter_map(|(name, field)| {
                    let value = Value::from_json(fields.get(&field.json_name)?, &field.of);
                    Some((Key::String(name.as_str().into()), value))
                });
                known.collect()
            }
            Map::Json { fields, of } => fields
                .iter()
                .map(|(name, json)| (Key::String(name.as_str().into()), Value::from_json(json, of)))
                .collect(),
            Map::Made(entries) => entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        }
    }
}

impl Key {
    /// A value as a key, if it can be one.
    pub(crate) fn of(value: &Value<'_>) -> Option<Key> {
        Some(match value {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(number) => Key::Int(*number),
            Value::Uint(number) => i64::try_from(*number).map_or(Key::Uint(*number), Key::Int),
            // A floating number is the key of the whole number that it equals.
            Value::Double(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => {
                Key::Int(*number as i64)
            }
            Value::String(text) => Key::String((**text).into()),
            _ => return None,
        })
    }

    /// A key as a value.
    pub(crate) fn to_value<'a>(&self) -> Value<'a> {
        match self {
            Key::Bool(value) => Value::Bool(*value),
            Key::Int(number) => Value::Int(*number),
            Key::Uint(number) => Value::Uint(*number),
            Key::String(text) => Value::String(Text::Made(text.clone())),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Bool(value) => write!(f, "{value}"),
            Key::Int(number) => write!(f, "{number}"),
            Key::Uint(number) => write!(f, "{number}"),
            Key::String(text) => f.write_str(text),
        }
    }
}
