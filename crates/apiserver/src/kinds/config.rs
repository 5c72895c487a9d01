//! ConfigMaps and Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Rules, default_to};
use crate::field::FieldError;
use crate::object;

/// What the values of a ConfigMap or Secret may take together.
const MAX_BYTES: usize = 1024 * 1024;

/// ConfigMaps.
pub struct ConfigMap;

impl Rules for ConfigMap {
    fn default(&self, object: &mut Value) {
        nulls_are_empty(object, "data");
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = check_keys(object, "data");
        errors.extend(check_keys(object, "binaryData"));
        if size(object, "data") + size(object, "binaryData") > MAX_BYTES {
            errors.push(FieldError::too_long("[]", MAX_BYTES));
        }
        errors
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = check_immutable(object, old, &["data", "binaryData"]);
        errors.extend(self.validate(object));
        errors
    }
}

/// Secrets.
pub struct Secret;

impl Rules for Secret {
    fn default(&self, object: &mut Value) {
        nulls_are_empty(object, "data");
        merge_string_data(object);
        default_to(object::fields(object), "type", "Opaque");
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = check_keys(object, "data");
        // Base64 makes four characters of three bytes.
        if size(object, "data") / 4 * 3 > MAX_BYTES {
            errors.push(FieldError::too_long("data", MAX_BYTES));
        }
        errors
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = check_immutable(object, old, &["data"]);
        if object.get("type") != old.get("type") {
            let value = object.get("type").cloned().unwrap_or_default();
            errors.push(FieldError::invalid("type", value, "field is immutable"));
        }
        errors.extend(self.validate(object));
        errors
    }
}

/// `stringData` is a convenience for writers: it is encoded into `data` and never stored.
fn merge_string_data(secret: &mut Value) {
    let Some(Value::Object(plain)) = object::remove(secret, "stringData") else { return };
    let data = object::part(secret, "data");
    for (key, value) in plain {
        data.insert(key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
    }
}

fn nulls_are_empty(object: &mut Value, field: &str) {
    let values = object.get_mut(field).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
    values.filter(|value| value.is_null()).for_each(|value| *value = Value::String(String::new()));
}

fn size(object: &Value, field: &str) -> usize {
    let values = object.get(field).and_then(Value::as_object).into_iter().flat_map(Map::values);
    values.filter_map(Value::as_str).map(str::len).sum()
}

fn check_keys(object: &Value, field: &str) -> Vec<FieldError> {
    const RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
        'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    let is_good = |key: &str| {
        !key.is_empty() && key.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
    };
    let keys = object.get(field).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let bad = keys.filter(|key| !is_good(key));
    bad.map(|key| FieldError::invalid(format!("{field}[{key}]"), key.as_str(), RULE)).collect()
}

/// Once `immutable` is set, nothing may be changed any more.
fn check_immutable(object: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let changed =
        fields.iter().chain(["immutable"].iter()).filter(|field| object.get(**field) != old.get(**field));
    changed.map(|field| FieldError::forbidden(*field, why)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_text_of_a_secret_is_stored_encoded() {
        let mut secret = json!({"data": {"a": "eA=="}, "stringData": {"b": "y"}});
        Secret.default(&mut secret);
        assert_eq!(secret, json!({"data": {"a": "eA==", "b": "eQ=="}, "type": "Opaque"}));
    }

    #[test]
    fn an_immutable_map_stays_as_it_is() {
        let old = json!({"data": {"a": "1"}, "immutable": true});
        let errors = ConfigMap.validate_update(&json!({"data": {"a": "2"}, "immutable": true}), &old);
        let words: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        assert_eq!(words, ["data: Forbidden: field is immutable when `immutable` is set"]);
    }
}
