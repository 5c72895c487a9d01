//! What volumes and variables are made of: what ConfigMaps and Secrets hold, and tokens.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafla_api::Kind;
use krafla_api::meta::null_as_default;
use serde::Deserialize;

use super::references::Reference;
use crate::pod::AccountToken;

/// What a ConfigMap or Secret holds, by key.
pub type Data = BTreeMap<String, Vec<u8>>;

/// The fetched ConfigMaps and Secrets, none for those that do not exist, and tokens.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    objects: BTreeMap<Reference, Option<Data>>,
    tokens: BTreeMap<AccountToken, String>,
}

/// What a pod needs and there is not. The words are a kubelet's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// There is no such object.
    #[error("{} {name:?} not found", .kind.info().singular)]
    Object {
        /// ConfigMap or Secret.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// The object lacks a key.
    #[error("couldn't find key {key} in {} {name}", .kind.info().kind)]
    Key {
        /// ConfigMap or Secret.
        kind: Kind,
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
    /// A field is asked for that a pod does not have.
    #[error("{0}")]
    Field(String),
}

impl Sources {
    /// Takes in the answer to one reference.
    pub fn insert(&mut self, reference: Reference, data: Option<Data>) {
        self.objects.insert(reference, data);
    }

    /// Takes in a token.
    pub fn insert_token(&mut self, wanted: AccountToken, token: String) {
        self.tokens.insert(wanted, token);
    }

    /// A token; none if there is no server to talk to.
    pub fn token(&self, wanted: &AccountToken) -> Option<&str> {
        self.tokens.get(wanted).map(String::as_str)
    }

    /// All keys of an object; none if it is missing and may be.
    pub fn all(&self, kind: Kind, name: &str, optional: Option<bool>) -> Result<Option<&Data>, Missing> {
        match self.objects.get(&(kind, name.to_owned())) {
            Some(Some(data)) => Ok(Some(data)),
            _ if optional == Some(true) => Ok(None),
            _ => Err(Missing::Object { kind, name: name.to_owned() }),
        }
    }

    /// One key of an object; none if it is missing and may be.
    pub fn key(
        &self,
        kind: Kind,
        name: &str,
        key: &str,
        optional: Option<bool>,
    ) -> Result<Option<&[u8]>, Missing> {
        let Some(data) = self.all(kind, name, optional)? else { return Ok(None) };
        match data.get(key) {
            Some(value) => Ok(Some(value)),
            None if optional == Some(true) => Ok(None),
            None => Err(Missing::Key { kind, name: name.to_owned(), key: key.to_owned() }),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    #[serde(deserialize_with = "null_as_default")]
    data: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_default")]
    binary_data: BTreeMap<String, String>,
}

/// Reads a ConfigMap or Secret as the server has it.
pub fn decode(kind: Kind, json: &[u8]) -> serde_json::Result<Data> {
    let Object { data, binary_data } = serde_json::from_slice(json)?;
    Ok(if kind == Kind::Secret {
        data.into_iter().filter_map(bytes).collect()
    } else {
        let text = data.into_iter().map(|(key, text)| (key, text.into_bytes()));
        text.chain(binary_data.into_iter().filter_map(bytes)).collect()
    })
}

/// The same without what a ConfigMap says not to be text: that becomes files, but no variables.
pub fn decode_text(kind: Kind, json: &[u8]) -> serde_json::Result<Data> {
    let Object { data, .. } = serde_json::from_slice(json)?;
    Ok(if kind == Kind::Secret {
        data.into_iter().filter_map(bytes).collect()
    } else {
        data.into_iter().map(|(key, text)| (key, text.into_bytes())).collect()
    })
}

/// The server takes no other base64, so what can not be decoded is not there.
fn bytes((key, text): (String, String)) -> Option<(String, Vec<u8>)> {
    Some((key, STANDARD.decode(text).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_text_is_for_files_only() {
        let json = br#"{"data": {"a": "eHk="}, "binaryData": {"b": "eHk="}}"#;
        let of = |a: &str| Data::from([("a".to_owned(), a.as_bytes().to_vec())]);
        assert_eq!(decode_text(Kind::ConfigMap, json).unwrap(), of("eHk="));
        assert_eq!(decode_text(Kind::Secret, json).unwrap(), of("xy"));
        let mut with_binary = of("eHk=");
        with_binary.insert("b".to_owned(), b"xy".to_vec());
        assert_eq!(decode(Kind::ConfigMap, json).unwrap(), with_binary);
        assert_eq!(decode(Kind::Secret, json).unwrap(), of("xy"));
    }
}
