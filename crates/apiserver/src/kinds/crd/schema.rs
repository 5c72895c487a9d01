//! What is wrong with a schema: a CRD's schemas must be structural, so that the server can prune and default by them.

use std::collections::HashSet;

use krafla_schema::field::FieldError;
use krafla_schema::object;
use krafla_schema::structural::Structural;
use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::rules;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// What OpenAPI knows and structural schemas do not.
const UNSUPPORTED: [&str; 6] =
    ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];
/// A pattern that compiles to more than this is refused; it would be a way to fill memory.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// All findings about the schema of a version, which stands at `field`.
pub(super) fn check(schema: &Map<String, Value>, field: &str) -> Vec<FieldError> {
    let mut checker = Checker::default();
    let unreadable = unreadable(schema);
    // Upstream reads a schema as structural before it looks at its words, and reads none with words that it does not know.
    if unreadable.is_none() {
        checker.check_structure(schema, field, "at the root");
        // As upstream sorts them, whose maps have no order.
        checker.errors.sort_by_cached_key(|error| error.to_string());
        if checker.errors.is_empty() {
            checker.check_defaults(schema, field, true);
        }
    }
    let is_structural = unreadable.is_none() && checker.errors.is_empty();
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        let error = FieldError::forbidden(format!("{field}.nullable"), "nullable cannot be true at the root");
        checker.errors.insert(0, error);
    }
    checker.check_words(schema, field);
    if is_structural && checker.errors.is_empty() {
        checker.errors.extend(rules::check(schema, field));
    }
    if let (true, Some(word)) = (checker.errors.is_empty(), unreadable) {
        let why = format!("OpenAPIV3Schema '{word}' is not supported");
        checker.errors.push(FieldError::invalid(field, "", why));
    }
    checker.errors
}

/// A word that keeps a schema from being read as structural.
fn unreadable(schema: &Map<String, Value>) -> Option<&'static str> {
    let is_said = |word: &&str| schema.get(*word).is_some_and(|value| !is_empty(value));
    let words = ["id", "$schema"].into_iter().chain(UNSUPPORTED.into_iter().filter(|word| *word != "id"));
    if let Some(word) = words.into_iter().find(is_said) {
        return Some(word.trim_start_matches(if word == "$schema" { "$" } else { "" }));
    }
    if matches!(schema.get("items"), Some(Value::Array(_))) {
        return Some("items");
    }
    children(schema, "").into_iter().find_map(|(inner, _)| unreadable(inner))
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
        if !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(field.as_str(), kind, &TYPES));
        }
        if kind == "null" {
            self.forbid(field, "type cannot be set to null, use nullable as an alternative");
        }
    }

    fn check_pattern(&mut self, schema: &'a Map<String, Value>, field: &str) {
        let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else { return };
        if self.good_patterns.contains(pattern) {
            return;
        }
        let built = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
        // Go refuses some patterns that can be built here.
        let why = krafla_admission::pattern::error(pattern).or_else(|| Some(built.err()?.to_string()));
        match why {
            None => {
                self.good_patterns.insert(pattern);
            }
            Some(why) => {
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
        let item_type = schema.get("items").and_then(|items| items.get("type")).and_then(Value::as_str);
        let must_be_map = "must be map if x-kubernetes-list-map-keys is non-empty";
        if list_type == "map" && keys.is_empty() {
            self.require(at_keys, "must not be empty if x-kubernetes-list-type is map");
        } else if list_type.is_empty() && !keys.is_empty() {
            self.require(at_type, must_be_map);
        } else if list_type != "map" && !keys.is_empty() {
            self.errors.push(FieldError::invalid(at_type, list_type, must_be_map));
        } else if let (true, Some(other)) = (list_type == "map", item_type.filter(|of| *of != "object")) {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            self.errors.push(FieldError::invalid(format!("{field}.items.type"), other, why));
        } else if list_type == "map" {
            self.check_keys(schema, &keys, field);
            let known = schema.get("items").and_then(|items| items.get("properties"));
            let is_known = |key: &str| known.is_some_and(|known| known.get(key).is_some());
            if !keys.iter().all(|key| is_known(key)) {
                let why = "entries must all be names of item properties";
                self.errors.push(FieldError::invalid(at_keys, keys, why));
            }
        }
        self.check_set_items(schema, field, list_type);
        let map_type = text("x-kubernetes-map-type");
        if !["", "atomic", "granular"].contains(&map_type) {
            let field = format!("{field}.x-kubernetes-map-type");
            self.errors.push(FieldError::not_supported(field, map_type, &["atomic", "granular"]));
        } else if !map_type.is_empty() && !["", "object"].contains(&text("type")) {
            let why = "must be object if x-kubernetes-map-type is specified";
            self.errors.push(FieldError::invalid(format!("{field}.type"), text("type"), why));
        }
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let field = format!("{field}.x-kubernetes-preserve-unknown-fields");
            self.errors.push(FieldError::invalid(field, false, "must be true or undefined"));
        }
    }

    /// What identifies an element is plain, and named once.
    fn check_keys(&mut self, schema: &Map<String, Value>, keys: &[&str], field: &str) {
        for (at, key) in keys.iter().enumerate() {
            let properties = schema.get("items").and_then(|items| items.get("properties"));
            let property = properties.and_then(|properties| properties.get(key));
            let kind = property.and_then(|property| property.get("type")).and_then(Value::as_str);
            if let Some(kind @ ("object" | "array")) = kind {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let field = format!("{field}.items.properties[{key}].type");
                self.errors.push(FieldError::invalid(field, kind, why));
            }
            if keys.iter().take(at).any(|earlier| earlier == key) {
                let field = format!("{field}.x-kubernetes-list-map-keys");
                let why = "must not contain duplicate entries";
                return self.errors.push(FieldError::invalid(field, keys.to_vec(), why));
            }
        }
    }

    /// The elements of a set are compared as a whole, so each is one value.
    fn check_set_items(&mut self, schema: &Map<String, Value>, field: &str, list_type: &str) {
        let Some(items) = schema.get("items").and_then(Value::as_object).filter(|_| list_type == "set")
        else {
            return;
        };
        let text = |name: &str| items.get(name).and_then(Value::as_str).unwrap_or_default();
        if items.get("nullable") == Some(&Value::Bool(true)) {
            let why = "cannot be nullable when x-kubernetes-list-type is set";
            self.forbid(format!("{field}.items.nullable"), why);
        }
        let shown = |name: &str| items.get(name).cloned().unwrap_or_default();
        match text("type") {
            "object" if text("x-kubernetes-map-type") != "atomic" => {
                let word = "x-kubernetes-map-type";
                let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
                self.errors.push(FieldError::invalid(format!("{field}.items.{word}"), shown(word), why));
            }
            "array" if !["", "atomic"].contains(&text("x-kubernetes-list-type")) => {
                let word = "x-kubernetes-list-type";
                let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
                self.errors.push(FieldError::invalid(format!("{field}.items.{word}"), shown(word), why));
            }
            _ => {}
        }
    }

    /// What schemas within `anyOf` and its like may not say: they add to what is said outside of them.
    fn check_nested(&mut self, schema: &Map<String, Value>, field: &str) {
        const EMPTY: &str = "must be empty to be structural";
        const UNDEFINED: &str = "must be undefined to be structural";
        const FALSE: &str = "must be false to be structural";
        for (word, why) in [
            ("type", EMPTY),
            ("additionalProperties", UNDEFINED),
            ("default", UNDEFINED),
            ("title", EMPTY),
            ("description", EMPTY),
            ("nullable", FALSE),
            ("x-kubernetes-preserve-unknown-fields", FALSE),
            ("x-kubernetes-embedded-resource", FALSE),
            ("x-kubernetes-int-or-string", FALSE),
            ("x-kubernetes-list-map-keys", EMPTY),
            ("x-kubernetes-list-type", UNDEFINED),
            ("x-kubernetes-map-type", UNDEFINED),
            ("x-kubernetes-validations", EMPTY),
        ] {
            if schema.get(word).is_some_and(|value| !is_empty(value) && *value != Value::Bool(false)) {
                self.forbid(format!("{field}.{word}"), why);
            }
        }
        if schema.get("properties").is_some_and(|properties| properties.get("metadata").is_some()) {
            let why = "must not be specified in a nested context";
            self.forbid(format!("{field}.properties[metadata]"), why);
        }
        let additional = format!("{field}.additionalProperties");
        for (inner, field) in children(schema, field).into_iter().filter(|(_, field)| *field != additional) {
            self.check_nested(inner, &field);
        }
    }

    /// The schemas within `anyOf` and its like. A value that is a number or a text may say so there.
    fn check_combined(&mut self, schema: &Map<String, Value>, field: &str) {
        let either = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
        for word in ["anyOf", "allOf", "oneOf"] {
            let list = schema.get(word).and_then(Value::as_array).into_iter().flatten();
            if word == "anyOf" && schema.get(word) == Some(&either) {
                continue;
            }
            for (at, inner) in list.enumerate() {
                let Some(inner) = inner.as_object() else { continue };
                let mut inner = inner.clone();
                if word == "allOf" && at == 0 && inner.get("anyOf") == Some(&either) {
                    inner.remove("anyOf");
                }
                self.check_nested(&inner, &format!("{field}.{word}[{at}]"));
            }
        }
        if let Some(Value::Object(inner)) = schema.get("not") {
            self.check_nested(inner, &format!("{field}.not"));
        }
    }

    /// Whether it is said of every value what it is.
    fn check_structure(&mut self, schema: &Map<String, Value>, field: &str, place: &str) {
        let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let says_enough = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
        let is_embedded = flag("x-kubernetes-embedded-resource");
        let must_be_object = "must be object if x-kubernetes-embedded-resource is true";
        if is_embedded && kind.is_empty() {
            self.require(format!("{field}.type"), must_be_object);
        } else if is_embedded && kind != "object" {
            self.errors.push(FieldError::invalid(format!("{field}.type"), kind, must_be_object));
        } else if kind.is_empty() && !says_enough {
            self.require(format!("{field}.type"), &format!("must not be empty {place}"));
        }
        let is_root = place == "at the root";
        if is_root && !["", "object"].contains(&kind) {
            let why = "must be object at the root";
            self.errors.push(FieldError::invalid(format!("{field}.type"), kind, why));
        }
        let has_properties = schema.get("properties").is_some_and(|properties| !is_empty(properties));
        if is_embedded && !flag("x-kubernetes-preserve-unknown-fields") && !has_properties {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                       x-kubernetes-preserve-unknown-fields";
            self.require(format!("{field}.properties"), why);
        }
        for (is_told, allowed) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
            let told = schema.get("properties").and_then(|properties| properties.get(is_told));
            let Some(told) = told.filter(|_| is_root || is_embedded) else { continue };
            let kind = told.get("type").and_then(Value::as_str).unwrap_or_default();
            if kind != allowed {
                let field = format!("{field}.properties[{is_told}].type");
                self.errors.push(FieldError::invalid(field, kind, format!("must be {allowed}")));
            }
            if is_root && told.get("default").is_some() {
                let field = format!("{field}.properties[{is_told}].default");
                self.forbid(field, format!("must not be set in top-level {is_told}"));
            }
        }
        self.check_combined(schema, field);
        let items = schema.get("items").and_then(Value::as_object);
        if kind == "array" && items.is_none() {
            self.require(format!("{field}.items"), "must be specified");
        }
        self.check_map_keys(schema, field);
        if is_root {
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
            let lacks_default = property.is_some_and(|property| property.get("default").is_none());
            if !required.contains(&key) && lacks_default {
                let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                           required property";
                self.require(format!("{field}.items.properties[{key}].default"), why);
            }
            if property.is_some_and(|property| property.get("nullable") == Some(&Value::Bool(true))) {
                let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(format!("{field}.items.properties[{key}].nullable"), why);
            }
        }
    }

    /// Metadata is the same for all kinds; only names may be limited further.
    fn check_metadata(&mut self, schema: &Map<String, Value>, field: &str) {
        let metadata = schema.get("properties").and_then(|properties| properties.get("metadata"));
        let is_allowed = |(name, _): (&str, _)| matches!(name, "name" | "generateName");
        let has_other_words = metadata.and_then(Value::as_object).is_some_and(|metadata| {
            let is_harmless = |word: &str| matches!(word, "type" | "properties" | "default");
            metadata.iter().any(|(word, value)| !is_harmless(word) && !is_empty(value) && *value != false)
        });
        let properties = metadata.and_then(|metadata| metadata.get("properties"));
        if has_other_words || !objects(properties).all(is_allowed) {
            let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            self.forbid(format!("{field}.properties[metadata]"), why);
        }
    }

    /// A default must be what its own schema allows.
    fn check_defaults(&mut self, schema: &Map<String, Value>, field: &str, is_root: bool) {
        if let Some(default) = schema.get("default") {
            for word in ["apiVersion", "kind"].into_iter().filter(|_| is_root) {
                if default.get(word).is_none() {
                    self.require(format!("{field}.default.{word}"), "");
                }
            }
            let compiled = Structural::compile(&Value::Object(schema.clone()));
            let mut pruned = default.clone();
            if !compiled.prune_part(&mut pruned).is_empty() {
                let why = "must not have unknown fields";
                self.errors.push(FieldError::invalid(format!("{field}.default"), default.clone(), why));
            }
            let findings = compiled.validate(default, "").into_iter();
            self.errors.extend(findings.map(|finding| {
                let dot = if finding.field.is_empty() || finding.field.starts_with('[') { "" } else { "." };
                FieldError { field: format!("{field}.default{dot}{}", finding.field), ..finding }
            }));
        }
        for (inner, field) in children(schema, field) {
            self.check_defaults(inner, &field, false);
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

/// Formats of texts that Kubernetes knows, without the dashes that may be in them.
const FORMATS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// The formats in a schema that say nothing to Kubernetes.
pub(super) fn unknown_formats(schema: &Map<String, Value>) -> Vec<&str> {
    let text = |word: &str| schema.get(word).and_then(Value::as_str).unwrap_or_default();
    let format = text("format");
    let is_known = match text("type") {
        "" | "string" => FORMATS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    let own = (!format.is_empty() && !is_known).then_some(format).into_iter();
    own.chain(children(schema, "").into_iter().flat_map(|(inner, _)| unknown_formats(inner))).collect()
}
