//! Structural schemas: how a CRD describes its objects, and what the server does with them.
//!
//! ```text
//!   openAPIV3Schema --compile--> Structural --+-- prune     drops what the schema does not know, and says what
//!                                             +-- default   fills in what is missing
//!                                             +-- validate  everything that is wrong, in kube-apiserver's words
//!   table of built-in types --emit--> openAPIV3Schema       pod templates inside Volcano's CRDs
//! ```

mod emit;
mod formats;
mod prune;
mod validate;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::table::ListType;

pub use emit::of_type_named;

/// A compiled schema.
#[derive(Clone, Debug, Default)]
pub struct Structural {
    /// The JSON types that a value may have; empty: any.
    types: Vec<JsonType>,
    nullable: bool,
    format: Option<String>,
    default: Option<Value>,
    properties: BTreeMap<String, Structural>,
    /// The schema of properties that are not named.
    additional: Additional,
    items: Option<Box<Structural>>,
    required: Vec<String>,
    limits: Limits,
    combined: Combined,
    preserve_unknown: bool,
    embedded_resource: bool,
    list_type: Option<ListType>,
    list_keys: Vec<String>,
    is_map_atomic: bool,
}

/// What is said about properties that are not named.
#[derive(Clone, Debug, Default)]
enum Additional {
    /// Nothing: they are pruned.
    #[default]
    None,
    /// They may be anything.
    Any,
    /// They have this schema.
    Schema(Box<Structural>),
}

/// The limits on a value.
#[derive(Clone, Debug, Default)]
struct Limits {
    enum_values: Option<Vec<Value>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    multiple_of: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    pattern: Option<Pattern>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
}

/// A regular expression. Most of a schema's are never asked, so each is compiled when it first is.
#[derive(Clone, Debug)]
struct Pattern {
    text: String,
    /// None: it cannot be compiled, and nothing matches it.
    regex: OnceLock<Option<Compiled>>,
}

#[derive(Clone, Debug)]
struct Compiled {
    regex: Regex,
    /// Whether it takes long to look through a text.
    is_large: bool,
}

impl Compiled {
    fn new(text: &str) -> Option<Compiled> {
        let build = |bytes_max| RegexBuilder::new(text).size_limit(bytes_max).build().ok();
        let small = build(SMALL_PATTERN_BYTES_MAX).map(|regex| Compiled { regex, is_large: false });
        small.or_else(|| Some(Compiled { regex: build(PATTERN_BYTES_MAX)?, is_large: true }))
    }
}

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        let Some(Compiled { regex, is_large }) = self.regex.get_or_init(|| Compiled::new(&self.text)) else {
            return false;
        };
        let has_time = !is_large
            || TEXT_LEFT.with(|left| {
                let is_enough = left.get() >= text.len();
                left.set(left.get().saturating_sub(text.len()));
                is_enough
            });
        has_time && regex.is_match(text)
    }
}

/// A pattern that compiles to more than this is refused; it would be a way to fill memory.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// A pattern that compiles to more than this can take long: what it takes grows with its size and that of the text.
const SMALL_PATTERN_BYTES_MAX: usize = 64 << 10;
/// How much text of one object is compared with large patterns; nothing beyond it matches.
const LARGE_PATTERN_TEXT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// How much text of the object that is being validated may still be compared with large patterns. Validation is one call
    /// that begins with [`Structural::validate`].
    static TEXT_LEFT: Cell<usize> = const { Cell::new(LARGE_PATTERN_TEXT_BYTES_MAX) };
}

/// Schemas that a value must fulfil together.
#[derive(Clone, Debug, Default)]
struct Combined {
    all_of: Vec<Structural>,
    any_of: Vec<Structural>,
    one_of: Vec<Structural>,
    not: Option<Box<Structural>>,
}

/// A JSON type as schemas name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "JSON's own types")]
pub enum JsonType {
    String,
    Integer,
    Number,
    Boolean,
    Object,
    Array,
    Null,
}

impl JsonType {
    fn named(name: &str) -> Option<JsonType> {
        Some(match name {
            "string" => JsonType::String,
            "integer" => JsonType::Integer,
            "number" => JsonType::Number,
            "boolean" => JsonType::Boolean,
            "object" => JsonType::Object,
            "array" => JsonType::Array,
            "null" => JsonType::Null,
            _ => return None,
        })
    }

    fn of(value: &Value) -> JsonType {
        match value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            // A whole number beyond 64 bits is one of those that Go reads as floating.
            Value::Number(number) if number.as_i64().is_none() => JsonType::Number,
            Value::Number(_) => JsonType::Integer,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            JsonType::String => "string",
            JsonType::Integer => "integer",
            JsonType::Number => "number",
            JsonType::Boolean => "boolean",
            JsonType::Object => "object",
            JsonType::Array => "array",
            JsonType::Null => "null",
        }
    }
}

impl Structural {
    /// Compiles a CRD's `openAPIV3Schema`. What it does not understand says nothing; whether a schema is allowed is
    /// decided when the CRD is stored.
    pub fn compile(schema: &Value) -> Structural {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        let one = |key: &str| schema.get(key).map(|inner| Box::new(Structural::compile(inner)));
        let strings = |key: &str| {
            let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let types = match text("type").and_then(JsonType::named) {
            Some(named) => vec![named],
            None if flag("x-kubernetes-int-or-string") => vec![JsonType::Integer, JsonType::String],
            None => Vec::new(),
        };
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        Structural {
            types,
            nullable: flag("nullable"),
            format: text("format").map(str::to_owned),
            default: schema.get("default").cloned(),
            properties: properties.map(|(name, inner)| (name.clone(), Structural::compile(inner))).collect(),
            additional: Additional::compile(schema.get("additionalProperties")),
            items: one("items"),
            required: strings("required"),
            limits: Limits::compile(schema),
            combined: Combined::compile(schema),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            list_type: match text("x-kubernetes-list-type") {
                Some("set") => Some(ListType::Set),
                Some("map") => Some(ListType::Map),
                Some("atomic") => Some(ListType::Atomic),
                _ => None,
            },
            list_keys: strings("x-kubernetes-list-map-keys"),
            is_map_atomic: text("x-kubernetes-map-type") == Some("atomic"),
        }
    }

    /// The schema of one property, such as `status`.
    pub fn property(&self, name: &str) -> Option<&Structural> {
        self.properties.get(name)
    }

    /// The names of the properties that are named.
    pub fn property_names(&self) -> impl Iterator<Item = &str> {
        self.properties.keys().map(String::as_str)
    }

    /// The schema of properties that are not named.
    pub fn additional_property(&self) -> Option<&Structural> {
        match &self.additional {
            Additional::Schema(schema) => Some(schema),
            Additional::None | Additional::Any => None,
        }
    }

    /// Whether properties stay that no schema describes.
    pub fn keeps_unknown(&self) -> bool {
        self.preserve_unknown || matches!(self.additional, Additional::Any)
    }

    /// The schema of a list's elements.
    pub fn items(&self) -> Option<&Structural> {
        self.items.as_deref()
    }

    /// Which numbers or texts of their type are meant.
    pub fn format(&self) -> Option<&str> {
        self.format.as_deref()
    }

    /// The JSON types that a value may have; empty: any.
    pub fn types(&self) -> &[JsonType] {
        &self.types
    }

    /// How server-side apply merges a list.
    pub fn list_type(&self) -> Option<ListType> {
        self.list_type
    }

    /// What identifies an element of a list.
    pub fn list_keys(&self) -> &[String] {
        &self.list_keys
    }

    /// Whether server-side apply treats a map as one value.
    pub fn is_map_atomic(&self) -> bool {
        self.is_map_atomic
    }

    /// What a missing value is taken to be.
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// The schema of a property, named or not.
    pub fn child(&self, name: &str) -> Option<&Structural> {
        self.properties.get(name).or_else(|| self.additional_property())
    }
}

impl Additional {
    fn compile(schema: Option<&Value>) -> Additional {
        match schema {
            Some(Value::Bool(true)) => Additional::Any,
            Some(schema @ Value::Object(_)) => Additional::Schema(Box::new(Structural::compile(schema))),
            _ => Additional::None,
        }
    }
}

impl Limits {
    fn compile(schema: &Value) -> Limits {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        let pattern = schema.get("pattern").and_then(Value::as_str);
        Limits {
            enum_values: schema.get("enum").and_then(Value::as_array).cloned(),
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: pattern.map(|text| Pattern { text: text.to_owned(), regex: OnceLock::new() }),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
        }
    }
}

impl Combined {
    fn compile(schema: &Value) -> Combined {
        let list = |key: &str| {
            let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            list.map(Structural::compile).collect::<Vec<_>>()
        };
        Combined {
            all_of: list("allOf"),
            any_of: list("anyOf"),
            one_of: list("oneOf"),
            not: schema.get("not").map(|inner| Box::new(Structural::compile(inner))),
        }
    }
}

#[cfg(test)]
mod tests;
