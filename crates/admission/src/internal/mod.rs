//! Objects in the form that kube-apiserver's messages quote them: with the names and the order of its internal types.
//!
//! A message about a whole object, such as "field is immutable", shows it as Go encodes the internal type: every field in
//! the order of its declaration, under its name in Go, and null or zero where nothing is set. `types.txt` holds these
//! declarations, one type per line:
//!
//! ```text
//!   core.Toleration Key:string Operator:string TolerationSeconds:*int64
//!                       |             |                          + the type: *pointer, []list, {}map, a basic or special type
//!                       |             + a field as messages name it; "?" after the name: left out where it is empty
//!                       + a field of a manifest has the same name but for upper and lower case
//! ```

mod diff;

use std::collections::HashMap;
use std::sync::LazyLock;

use krafla_api::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The declarations, by the name of their type.
static TYPES: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let lines = include_str!("types.txt").lines().filter(|line| !line.starts_with('#'));
    let types = lines.map(|line| line.split_once(' ').unwrap_or((line, "")));
    types.map(|(name, fields)| (name, fields.split_whitespace().map(Field::parse).collect())).collect()
});

/// Fields that a manifest has in the pod's spec and the internal type in its security context.
const HOST_FIELDS: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];

/// One field of an internal type.
struct Field {
    name: &'static str,
    /// The name in lower case, by which the field of the manifest is found.
    folded: String,
    is_omitted_when_empty: bool,
    type_name: &'static str,
}

impl Field {
    fn parse(text: &'static str) -> Field {
        let (name, type_name) = text.split_once(':').unwrap_or((text, "string"));
        let short = name.trim_end_matches('?');
        Field {
            name: short,
            folded: short.to_lowercase(),
            is_omitted_when_empty: short.len() < name.len(),
            type_name,
        }
    }
}

/// A value of an internal type on one line, as messages quote it: `quoted("core.PodSpec", spec)`.
pub fn quoted(type_name: &str, value: &Value) -> String {
    let mut writer = Writer { text: String::new(), is_indented: false, depth: 0 };
    writer.write(type_name, value);
    writer.text
}

/// The lines in which two values of an internal type differ, as a unified diff with three lines around each change.
pub fn difference(type_name: &str, old: &Value, new: &Value) -> String {
    let lines = |value: &Value| {
        let mut writer = Writer { text: String::new(), is_indented: true, depth: 0 };
        writer.write(type_name, value);
        writer.text
    };
    diff::unified(&lines(old), &lines(new))
}

/// Writes values as Go's encoding/json does.
struct Writer {
    text: String,
    is_indented: bool,
    depth: usize,
}

impl Writer {
    fn write(&mut self, type_name: &str, value: &Value) {
        if let Some(target) = type_name.strip_prefix('*') {
            return if value.is_null() { self.text.push_str("null") } else { self.write(target, value) };
        }
        if let Some(element) = type_name.strip_prefix("[]") {
            return self.write_list(element, value);
        }
        if let Some(element) = type_name.strip_prefix("{}") {
            return self.write_map(element, value);
        }
        match TYPES.get(type_name) {
            Some(fields) => self.write_object(type_name, fields, value),
            None => self.write_scalar(type_name, value),
        }
    }

    fn write_list(&mut self, element: &str, value: &Value) {
        let Some(items) = value.as_array() else { return self.text.push_str("null") };
        self.open('[');
        for (index, item) in items.iter().enumerate() {
            self.next(index == 0);
            self.write(element, item);
        }
        self.close(']', items.is_empty());
    }

    fn write_map(&mut self, element: &str, value: &Value) {
        let Some(entries) = value.as_object() else { return self.text.push_str("null") };
        self.open('{');
        for (index, (key, item)) in entries.iter().enumerate() {
            self.next(index == 0);
            self.write_key(key);
            self.write(element, item);
        }
        self.close('}', entries.is_empty());
    }

    fn write_object(&mut self, type_name: &str, fields: &[Field], value: &Value) {
        let moved = (type_name == "core.PodSpec").then(|| with_host_fields(value));
        let value = moved.as_ref().unwrap_or(value);
        let given = folded(value, fields);
        self.open('{');
        let mut is_first = true;
        for field in fields {
            let value = given.get(&field.folded).copied().unwrap_or(&Value::Null);
            if field.is_omitted_when_empty && is_empty(value) {
                continue;
            }
            self.next(is_first);
            is_first = false;
            self.write_key(field.name);
            self.write(field.type_name, value);
        }
        self.close('}', is_first);
    }

    fn write_scalar(&mut self, type_name: &str, value: &Value) {
        let written = match (type_name, value) {
            ("string", Value::Null) => "\"\"".to_owned(),
            ("bool", Value::Null) => "false".to_owned(),
            ("int" | "int32" | "int64" | "float64" | "intorstring", Value::Null) => "0".to_owned(),
            ("quantity", value) => amount(value),
            (_, Value::String(text)) => go_text(text),
            (_, value) => value.to_string(),
        };
        self.text.push_str(&written);
    }

    fn write_key(&mut self, name: &str) {
        self.text.push_str(&go_text(name));
        self.text.push_str(if self.is_indented { ": " } else { ":" });
    }

    fn open(&mut self, bracket: char) {
        self.text.push(bracket);
        self.depth += 1;
    }

    fn next(&mut self, is_first: bool) {
        if !is_first {
            self.text.push(',');
        }
        self.new_line();
    }

    fn close(&mut self, bracket: char, is_empty: bool) {
        self.depth -= 1;
        if !is_empty {
            self.new_line();
        }
        self.text.push(bracket);
    }

    fn new_line(&mut self) {
        if self.is_indented {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n(' ', self.depth));
        }
    }
}

/// What a manifest has for the fields of a type, by their names in lower case. Metadata is no field of its own there.
fn folded<'a>(value: &'a Value, fields: &[Field]) -> HashMap<String, &'a Value> {
    let entries = value.as_object().into_iter().flatten();
    let is_lifted = !fields.iter().any(|field| field.folded == "metadata");
    let metadata = value.get("metadata").filter(|_| is_lifted).and_then(Value::as_object);
    let entries = metadata.into_iter().flatten().chain(entries);
    entries.map(|(name, value)| (internal_name(name, fields), value)).collect()
}

/// What a field of a manifest is called inside, in lower case.
fn internal_name(name: &str, fields: &[Field]) -> String {
    const OTHERS: [(&str, &str); 9] = [
        ("diskURI", "datadiskuri"),
        ("endpoints", "endpointsname"),
        ("chapAuthDiscovery", "discoverychapauth"),
        ("chapAuthSession", "sessionchapauth"),
        ("monitors", "cephmonitors"),
        ("image", "rbdimage"),
        ("pool", "rbdpool"),
        ("user", "radosuser"),
        ("externalID", "donotuseexternalid"),
    ];
    let has = |folded: &str| fields.iter().any(|field| field.folded == folded);
    let other = OTHERS.iter().find(|(manifest, internal)| *manifest == name && has(internal));
    other.map_or_else(|| name.to_lowercase(), |(_, internal)| (*internal).to_owned())
}

/// The pod's spec with the fields about its host where the internal type has them.
fn with_host_fields(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(fields) = spec.as_object_mut() else { return spec };
    let moved: Vec<(&str, Value)> =
        HOST_FIELDS.iter().filter_map(|name| Some((*name, fields.remove(*name)?))).collect();
    let context = fields.entry("securityContext").or_insert(Value::Null);
    if context.is_null() {
        *context = Value::Object(Map::new());
    }
    if let Some(context) = context.as_object_mut() {
        context.extend(moved.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    spec
}

/// An amount in its shortest form.
fn amount(value: &Value) -> String {
    let amount = if value.is_null() { Ok(Quantity::default()) } else { Quantity::deserialize(value) };
    amount.map_or_else(|_| value.to_string(), |amount| go_text(&amount.to_string()))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
    }
}

/// A text in quotes as Go's encoding/json writes it: safe within HTML too.
pub(crate) fn go_text(text: &str) -> String {
    let plain = Value::from(text).to_string();
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    let mut safe = String::with_capacity(plain.len() + 16);
    for character in plain.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            character => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_quoted_with_all_fields_of_its_type() {
        let port = json!({"port": 80, "protocol": "TCP", "targetPort": "web"});
        expect![[
            r#"{"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":"web","NodePort":0}"#
        ]]
        .assert_eq(&quoted("core.ServicePort", &port));
    }

    #[test]
    fn fields_about_the_host_stand_in_the_security_context() {
        let written = quoted("core.PodSpec", &json!({"hostPID": true, "containers": []}));
        assert!(written.contains(r#""SecurityContext":{"HostNetwork":false,"HostPID":true,"#), "{written}");
        assert!(written.contains(r#""Containers":[]"#), "{written}");
    }

    #[test]
    fn texts_are_safe_within_html() {
        assert_eq!(go_text("a<b>&\"c\""), r#""a\u003cb\u003e\u0026\"c\"""#);
    }

    #[test]
    fn a_change_is_shown_with_the_lines_around_it() {
        let claim = |size: &str| json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}});
        expect![[r#"
            @@ -6,7 +6,7 @@
              "Resources": {
               "Limits": null,
               "Requests": {
            -   "storage": "1Gi"
            +   "storage": "2Gi"
               }
              },
              "VolumeName": "",
        "#]]
        .assert_eq(&difference("core.PersistentVolumeClaimSpec", &claim("1Gi"), &claim("2Gi")));
    }

    /// Every type that a line of the table names is in the table.
    #[test]
    fn the_table_is_whole() {
        for field in TYPES.values().flatten() {
            let named = field.type_name.trim_start_matches(['*', '[', ']', '{', '}']);
            assert!(!named.contains('.') || TYPES.contains_key(named), "{}: {named}", field.name);
        }
    }
}
