//! ConfigMaps and Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafla_admission::names;
use krafla_schema::field::FieldError;
use krafla_schema::json::Node;
use krafla_schema::object;
use serde_json::{Map, Value};

use super::{Rules, default_to};

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
        let keys = object.get("data").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let in_both = keys.filter(|key| object["binaryData"].get(key.as_str()).is_some());
        errors.extend(in_both.map(|key| {
            FieldError::invalid(
                format!("data[{key}]"),
                key.as_str(),
                "duplicate of key present in binaryData",
            )
        }));
        // Base64 makes four characters of three bytes.
        if size(object, "data") + size(object, "binaryData") / 4 * 3 > MAX_BYTES {
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
        errors.extend(check_type(object));
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        let is_tls = object.get("type").is_some_and(|kind| kind == "kubernetes.io/tls");
        if is_tls { tls_fault(object).into_iter().collect() } else { Vec::new() }
    }

    fn warnings_of_change(&self, object: &Value, _old: &Value) -> Vec<String> {
        self.warnings(object)
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if object.get("type") != old.get("type") {
            let value = object.get("type").cloned().unwrap_or_default();
            errors.push(FieldError::invalid("type", value, "field is immutable"));
        }
        errors.extend(check_immutable(object, old, &["data"]));
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
    let keys = object.get(field).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    keys.flat_map(|key| {
        let wrong = names::config_key(key).into_iter();
        wrong.map(move |why| FieldError::invalid(format!("{field}[{key}]"), key.as_str(), why))
    })
    .collect()
}

/// What a Secret of a known type must have.
fn check_type(secret: &Value) -> Vec<FieldError> {
    let data = |key: &str| secret.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
    let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
    let missing = |keys: &[&str]| -> Vec<FieldError> {
        keys.iter().filter(|key| data(key).is_none()).map(|key| required(key)).collect()
    };
    match object::text_at(secret, "type").as_str() {
        "kubernetes.io/service-account-token" => {
            let account = secret.pointer("/metadata/annotations").and_then(|all| all.get(ACCOUNT));
            if account.and_then(Value::as_str).is_some_and(|name| !name.is_empty()) {
                return Vec::new();
            }
            vec![FieldError::required(format!("metadata.annotations[{ACCOUNT}]"), "")]
        }
        "kubernetes.io/dockercfg" => check_docker(".dockercfg", data(".dockercfg")),
        "kubernetes.io/dockerconfigjson" => check_docker(".dockerconfigjson", data(".dockerconfigjson")),
        "kubernetes.io/basic-auth" if data("username").is_none() && data("password").is_none() => {
            missing(&["username", "password"])
        }
        "kubernetes.io/ssh-auth" if data("ssh-privatekey").is_none_or(str::is_empty) => {
            vec![required("ssh-privatekey")]
        }
        "kubernetes.io/tls" => missing(&["tls.crt", "tls.key"]),
        _ => Vec::new(),
    }
}

const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// Credentials for registries are an object in JSON.
fn check_docker(key: &str, data: Option<&str>) -> Vec<FieldError> {
    let Some(data) = data else { return vec![FieldError::required(format!("data[{key}]"), "")] };
    let bytes = STANDARD.decode(data).unwrap_or_default();
    let why = match Node::parse(&bytes) {
        Ok(Node::Object(_) | Node::Null) => return Vec::new(),
        Ok(other) => {
            format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                other.go_kind()
            )
        }
        Err(why) => why,
    };
    vec![FieldError::invalid(format!("data[{key}]"), "<secret contents redacted>", why)]
}

/// What Go says of a certificate and its key that cannot be used together. Their contents are not looked at.
fn tls_fault(secret: &Value) -> Option<String> {
    let blocks = |key: &str| {
        let data = secret.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
        pem_types(&STANDARD.decode(data.unwrap_or_default()).unwrap_or_default())
    };
    let (certificates, keys) = (blocks("tls.crt"), blocks("tls.key"));
    let is_key = |kind: &String| kind == "PRIVATE KEY" || kind.ends_with(" PRIVATE KEY");
    if !certificates.iter().any(|kind| kind == "CERTIFICATE") {
        return Some(match certificates.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [only] if only.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate \
                 input, but did find a private key; PEM inputs may have been switched"
                    .to_owned()
            }
            others => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
                 following types: [{}]",
                others.join(" ")
            ),
        });
    }
    if keys.iter().any(is_key) {
        return None;
    }
    Some(match keys.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [only] if only == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        others => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks \
             of the following types: [{}]",
            others.join(" ")
        ),
    })
}

/// What the blocks of a PEM file hold.
fn pem_types(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut types = Vec::new();
    let mut rest = &*text;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let Some((kind, body)) = after.split_once("-----") else { break };
        match body.split_once(&format!("-----END {kind}-----")) {
            Some((_, after)) => {
                types.push(kind.to_owned());
                rest = after;
            }
            None => rest = body,
        }
    }
    types
}

/// Once `immutable` is set, nothing may be changed any more.
fn check_immutable(object: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let changed = ["immutable"].iter().chain(fields).filter(|field| object.get(**field) != old.get(**field));
    changed.map(|field| FieldError::forbidden(*field, why)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_become_names_of_files() {
        let said =
            |errors: Vec<FieldError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let keys = json!({"data": {".": "", "..": "", "..data": "", ".a": "", "a..b": "", "a/b": ""}});
        let expected = expect_test::expect![[r#"
            data[.]: Invalid value: ".": must not be '.'
            data[..]: Invalid value: "..": must not be '..'
            data[..data]: Invalid value: "..data": must not start with '..'
            data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"#]];
        expected.assert_eq(&said(ConfigMap.validate(&keys)));
        expected.assert_eq(&said(Secret.validate(&keys)));
        let twice = ConfigMap.validate(&json!({"data": {"a": ""}, "binaryData": {"a": "", "b": ""}}));
        assert_eq!(said(twice), "data[a]: Invalid value: \"a\": duplicate of key present in binaryData");
        let long = "a".repeat(254);
        let errors = ConfigMap.validate(&json!({"binaryData": {long: ""}}));
        assert!(said(errors).ends_with("must be no more than 253 characters"));
    }

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
