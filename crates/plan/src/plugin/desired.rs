//! Objects that a plugin wants to exist, as data for the engine.

use krafla_api::Kind;
use krafla_cluster::Recipe;
use serde_json::{Map, Value, json};

/// What the values of a ConfigMap or Secret may take together, in bytes. Servers refuse more.
pub(super) const DATA_BYTES_MAX: usize = 1024 * 1024;

/// An object that should exist while the job may run.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// The manifest as it is created, without namespace and owner: those are the engine's to add.
    pub object: Value,
    /// Which part of it follows the job. Everything else is only written at creation.
    pub follows: Follows,
    /// How long it is kept.
    pub lifetime: Lifetime,
    /// What must be drawn at random and put into the manifest before it is created.
    pub generate: Option<Recipe>,
}

/// Which part of an object follows the job when the job changes or somebody else changed the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// No part.
    Nothing,
    /// All of `data`: keys that the job does not want are removed.
    Data,
    /// One key of `data`.
    DataKey(&'static str),
}

/// How long an object is kept. It goes with its job in any case, as the job owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as pods may use it: it goes whenever the whole job is stopped (restart, abort, any end) and is made anew for
    /// the next try. A restart of some of the pods leaves it alone.
    Try,
    /// Until the job has finished: it outlives restarts and abortion, because what was drawn at random must not change.
    Job,
}

impl Desired {
    /// An object that lives as long as a try and never changes.
    pub(super) fn new(kind: Kind, name: String, fields: Value) -> Desired {
        let info = kind.info();
        let mut object = json!({
            "apiVersion": info.api_version(),
            "kind": info.kind,
            "metadata": { "name": name },
        });
        if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
            object.extend(fields);
        }
        Desired { kind, name, object, follows: Follows::Nothing, lifetime: Lifetime::Try, generate: None }
    }

    /// The JSON merge patch that brings the observed object up to date; nothing if it is.
    pub fn repair(&self, observed: &Value) -> Option<Value> {
        let wanted = self.object.get("data").and_then(Value::as_object)?;
        let nothing = Map::new();
        let found = observed.get("data").and_then(Value::as_object).unwrap_or(&nothing);
        let changed =
            wanted.iter().filter(|(key, value)| self.follows_key(key) && found.get(*key) != Some(value));
        let changed = changed.map(|(key, value)| (key.clone(), value.clone()));
        let surplus = found.keys().filter(|key| self.follows_key(key) && !wanted.contains_key(*key));
        let surplus = surplus.map(|key| (key.clone(), Value::Null));
        let data: Map<String, Value> = changed.chain(surplus).collect();
        (!data.is_empty()).then(|| json!({ "data": data }))
    }

    fn follows_key(&self, key: &str) -> bool {
        match self.follows {
            Follows::Nothing => false,
            Follows::Data => true,
            Follows::DataKey(one) => key == one,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn only_what_follows_the_job_is_repaired() {
        let wanted = json!({ "data": { "a": "1", "b": "2" } });
        let observed = json!({ "data": { "a": "1", "b": "other", "c": "3" } });
        let repair = |follows| {
            let desired = Desired { follows, ..Desired::new(Kind::ConfigMap, "x".into(), wanted.clone()) };
            assert_eq!(desired.repair(&desired.object), None, "what is as it should be needs no write");
            desired.repair(&observed).unwrap_or_default().to_string()
        };
        expect!["null"].assert_eq(&repair(Follows::Nothing));
        expect![[r#"{"data":{"b":"2","c":null}}"#]].assert_eq(&repair(Follows::Data));
        expect!["null"].assert_eq(&repair(Follows::DataKey("a")));
        expect![[r#"{"data":{"b":"2"}}"#]].assert_eq(&repair(Follows::DataKey("b")));
    }
}
