//! What is wrong with a schema: a CRD's schemas must be structural, so that the server can prune and default by them.

use std::collections::HashSet;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::rules;
use crate::field::FieldError;
use crate::object;
use crate::schema::structural::Structural;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// What OpenAPI knows and structural schemas do not.
const UNSUPPORTED: [&str; 6] =
    ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];
/// A pattern that compiles to more than this is refused; it would be a way to fill memory.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// All findings about the schema of a version, which stands at `field`.
pub(super) fn check(schema: &Map<String, Value>, field: &str) -> Vec<FieldError> {
    let mut checker = Checker::default();
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind != "object" && TYPES.contains(&kind) {
        checker.errors.push(FieldError::invalid(format!("{field}.type"), kind, "must be object at the root"));
        return checker.errors;
    }
    checker.check_words(schema, field);
    // Only what is said in words that are known can be asked whether it makes sense.
    if checker.errors.is_empty() {
        checker.check_structure(schema, field, "at the root");
    }
    if checker.errors.is_empty() {
        checker.check_defaults(schema, field);
        checker.errors.extend(rules::check(schema, field));
    }
    checker.errors
}

#[derive(Default)]
struct Checker<'a> {
    errors: Vec<FieldError>,
    /// Schemas of pods say the same few patterns hundreds of times.
    good_patterns: HashSet<&'a str>,
}

impl<'a> Checker<'a> {
    fn forbid(&mut self, field: String, why: impl Into<String>) {
        self.errors.push(FieldError::forbidden(field, why));
    }

    fn require(&mut self, field: String, why: &str) {
        self.errors.push(FieldError::required(field, why));
    }

    /// Whether every word of a schema is allowed.
    fn check_words(&mut self, schema: &'a Map<String, Value>, field: &str) {
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(format!("{field}.uniqueItems"), why);
        }
        for word in UNSUPPORTED.iter().filter(|word| schema.get(**word).is_some_and(|value| !is_empty(value)))
        {
            self.forbid(format!("{field}.{word}"), format!("{word} is not supported"));
        }
        let has_properties = schema.get("properties").is_some_and(|properties| !is_empty(properties));
        if has_properties && schema.contains_key("additionalProperties") {
            let why = "additionalProperties and properties are mutual exclusive";
            self.forbid(format!("{field}.additionalProperties"), why);
        }
        if let Some(Value::Array(_)) = schema.get("items") {
            self.forbid(format!("{field}.items"), "items must be a schema object and not an array");
        }
        self.check_type_word(schema, field);
        self.check_pattern(schema, field);
        self.check_list_words(schema, field);
        for (inner, field) in children(schema, field) {
            self.check_words(inner, &field);
        }
    }

    fn check_type_word(&mut self, schema: &Map<String, Value>, field: &str) {
        let Some(kind) = schema.get("type").and_then(Value::as_str).filter(|kind| !kind.is_empty()) else {
            return;
        };
        let field = format!("{field}.type");
        if kind == "null" {
            self.forbid(field, "type cannot be set to null, use nullable as an alternative");
        } else if !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(field, kind, &TYPES));
        }
    }

    fn check_pattern(&mut self, schema: &'a Map<String, Value>, field: &str) {
        let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else { return };
        if self.good_patterns.contains(pattern) {
            return;
        }
        match RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build() {
            Ok(_) => {
                self.good_patterns.insert(pattern);
            }
            Err(error) => {
                let why = krafla_admission::pattern::error(pattern).unwrap_or_else(|| error.to_string());
                let why = format!("must be a valid regular expression, but isn't: {why}");
                self.errors.push(FieldError::invalid(format!("{field}.pattern"), pattern, why));
            }
        }
    }

    /// How lists and maps are merged.
    fn check_list_words(&mut self, schema: &Map<String, Value>, field: &str) {
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        let list_type = text("x-kubernetes-list-type");
        let keys = object::strings(schema.get("x-kubernetes-list-map-keys"));
        let at_type = format!("{field}.x-kubernetes-list-type");
        let at_keys = format!("{field}.x-kubernetes-list-map-keys");
        match list_type {
            "" => {}
            "atomic" | "set" | "map" if text("type") != "array" => {
                let why = "must be array if x-kubernetes-list-type is specified";
                self.errors.push(FieldError::invalid(format!("{field}.type"), text("type"), why));
            }
            "atomic" | "set" | "map" => {}
            other => {
                self.errors.push(FieldError::not_supported(at_type, other, &["atomic", "set", "map"]));
                return;
            }
        }
        if list_type == "map" && keys.is_empty() {
            self.require(at_keys, "must not be empty if x-kubernetes-list-type is map");
        } else if list_type != "map" && !keys.is_empty() {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.errors.push(FieldError::invalid(at_type, list_type, why));
        } else if list_type == "map" {
            let known = schema.get("items").and_then(|items| items.get("properties"));
            let is_known = |key: &str| known.is_some_and(|known| known.get(key).is_some());
            if let Some(unknown) = keys.iter().position(|key| !is_known(key)) {
                let why = "entries must all be names of item properties";
                let key = keys.get(unknown).copied().unwrap_or_default();
                self.errors.push(FieldError::invalid(format!("{at_keys}[{unknown}]"), key, why));
            }
        }
        let map_type = text("x-kubernetes-map-type");
        if !["", "atomic", "granular"].contains(&map_type) {
            let field = format!("{field}.x-kubernetes-map-type");
            self.errors.push(FieldError::not_supported(field, map_type, &["granular", "atomic"]));
        }
    }

    /// Whether it is said of every value what it is.
    fn check_structure(&mut self, schema: &Map<String, Value>, field: &str, place: &str) {
        let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let says_enough = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
        if kind.is_empty() && !says_enough {
            self.require(format!("{field}.type"), &format!("must not be empty {place}"));
        }
        if flag("x-kubernetes-embedded-resource") && kind != "object" {
            let why = "must be object if x-kubernetes-embedded-resource is true";
            self.errors.push(FieldError::invalid(format!("{field}.type"), kind, why));
        }
        let items = schema.get("items").and_then(Value::as_object);
        if kind == "array" && items.is_none() {
            self.require(format!("{field}.items"), "must be specified");
        }
        self.check_map_keys(schema, field);
        if place == "at the root" {
            self.check_metadata(schema, field);
        }
        for (name, property) in objects(schema.get("properties")) {
            let place = "for specified object fields";
            self.check_structure(property, &format!("{field}.properties[{name}]"), place);
        }
        if let Some(Value::Object(additional)) = schema.get("additionalProperties") {
            let field = format!("{field}.additionalProperties");
            self.check_structure(additional, &field, "for specified object fields");
        }
        if let Some(items) = items {
            self.check_structure(items, &format!("{field}.items"), "for specified array items");
        }
    }

    /// What identifies an element must be there, or have a default.
    fn check_map_keys(&mut self, schema: &Map<String, Value>, field: &str) {
        let items = schema.get("items").unwrap_or(&Value::Null);
        let required = object::strings(items.get("required"));
        for key in object::strings(schema.get("x-kubernetes-list-map-keys")) {
            let property = items.get("properties").and_then(|properties| properties.get(key));
            let has_default = property.is_some_and(|property| property.get("default").is_some());
            if !required.contains(&key) && !has_default {
                let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                           required property";
                self.require(format!("{field}.items.properties[{key}].default"), why);
            }
        }
    }

    /// Metadata is the same for all kinds; only names may be limited further.
    fn check_metadata(&mut self, schema: &Map<String, Value>, field: &str) {
        let metadata = schema.get("properties").and_then(|properties| properties.get("metadata"));
        let is_allowed = |(name, _): (&str, _)| matches!(name, "name" | "generateName");
        if !objects(metadata.and_then(|metadata| metadata.get("properties"))).all(is_allowed) {
            let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            self.forbid(format!("{field}.properties[metadata]"), why);
        }
    }

    /// A default must be what its own schema allows.
    fn check_defaults(&mut self, schema: &Map<String, Value>, field: &str) {
        if let Some(default) = schema.get("default") {
            let compiled = Structural::compile(&Value::Object(schema.clone()));
            let findings = compiled.validate(default, "").into_iter();
            self.errors.extend(findings.map(|finding| {
                let dot = if finding.field.is_empty() || finding.field.starts_with('[') { "" } else { "." };
                FieldError { field: format!("{field}.default{dot}{}", finding.field), ..finding }
            }));
        }
        for (inner, field) in children(schema, field) {
            self.check_defaults(inner, &field);
        }
    }
}

/// The schemas within a schema, and where they stand.
pub(super) fn children<'a>(
    schema: &'a Map<String, Value>,
    field: &str,
) -> Vec<(&'a Map<String, Value>, String)> {
    let mut children = Vec::new();
    for (name, property) in objects(schema.get("properties")) {
        children.push((property, format!("{field}.properties[{name}]")));
    }
    for word in ["additionalProperties", "items", "not"] {
        if let Some(Value::Object(inner)) = schema.get(word) {
            children.push((inner, format!("{field}.{word}")));
        }
    }
    for word in ["allOf", "anyOf", "oneOf"] {
        let list = schema.get(word).and_then(Value::as_array).into_iter().flatten().enumerate();
        children.extend(
            list.filter_map(|(at, inner)| Some((inner.as_object()?, format!("{field}.{word}[{at}]")))),
        );
    }
    children
}

fn objects(value: Option<&Value>) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(name, value)| Some((name.as_str(), value.as_object()?)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
