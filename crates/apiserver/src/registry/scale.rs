//! The `scale` subresource: how many replicas an object wants and has, whatever its kind calls that.

use krafla_schema::object;
use serde_json::{Map, Value, json};

use crate::status::Status;

/// Where an object says what its `Scale` shows. Paths are written as in CRDs: `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// How many it wants.
    pub wanted: String,
    /// How many it has.
    pub present: String,
    /// Which pods they are; empty if it does not say.
    pub selector: String,
}

impl Default for Scale {
    /// Where built-in kinds say it.
    fn default() -> Scale {
        Scale {
            wanted: ".spec.replicas".into(),
            present: ".status.replicas".into(),
            selector: ".spec.selector".into(),
        }
    }
}

impl Scale {
    /// What a version of a CRD says about it.
    pub fn of_version(version: &Value) -> Option<Scale> {
        let scale = version.pointer("/subresources/scale")?.as_object()?;
        let path = |name: &str| scale.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Scale {
            wanted: path("specReplicasPath"),
            present: path("statusReplicasPath"),
            selector: path("labelSelectorPath"),
        })
    }

    /// How many replicas an object wants.
    pub fn wanted_by<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        find(object, &self.wanted)
    }

    /// The `Scale` of an object.
    pub fn of(&self, object: &Value) -> Value {
        let metadata = &object["metadata"];
        let shown = ["creationTimestamp", "name", "namespace", "resourceVersion", "uid"];
        let shown = shown.iter().filter_map(|name| Some(((*name).to_owned(), metadata.get(*name)?.clone())));
        let wanted = self.wanted_by(object).and_then(Value::as_i64).unwrap_or(0);
        let present = find(object, &self.present).and_then(Value::as_i64).unwrap_or(0);
        let mut status = json!({"replicas": present});
        let selector = find(object, &self.selector).map(selector_text).unwrap_or_default();
        if !selector.is_empty() {
            object::set(&mut status, "selector", selector);
        }
        // Upstream leaves out a zero.
        let spec = if wanted == 0 { json!({}) } else { json!({"replicas": wanted}) };
        json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": shown.collect::<Map<_, _>>(), "spec": spec, "status": status,
        })
    }

    /// The `Scale` of an object that says how many replicas it wants.
    pub fn shown(&self, object: &Value) -> Result<Value, Status> {
        if self.wanted_by(object).is_none() {
            let why = format!("the spec replicas field {:?} does not exist", self.wanted);
            return Err(Status::internal(&why));
        }
        Ok(self.of(object))
    }

    /// Makes an object want what a `Scale` says, in the state that the `Scale` was computed from.
    pub fn set(&self, object: &mut Value, scale: &Value) {
        let replicas = object::at(scale, "/spec/replicas").as_i64().unwrap_or(0);
        let mut at = &mut *object;
        for name in names(&self.wanted) {
            at = object::fields(at).entry(name).or_insert(Value::Null);
        }
        *at = replicas.into();
        object::copy_meta(object, scale, &["resourceVersion"]);
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|name| !name.is_empty())
}

fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return None;
    }
    names(path).try_fold(object, |at, name| at.get(name))
}

/// A selector as one line: as it is, or as that of a label selector.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut parts: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = object::strings(expression.get("values")).join(",");
        parts.push(match expression["operator"].as_str().unwrap_or_default() {
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            "NotIn" => format!("{key} notin ({values})"),
            _ => format!("{key} in ({values})"),
        });
    }
    parts.sort();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_shows_where_its_kind_says_what_is_wanted_and_present() {
        let deployment = json!({
            "metadata": {"name": "a", "uid": "u", "generation": 3},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"b": "c", "a": "b"}}},
        });
        let scale = Scale::default().shown(&deployment).unwrap();
        assert_eq!(scale["metadata"], json!({"name": "a", "uid": "u"}));
        assert_eq!(scale["spec"], json!({"replicas": 2}));
        assert_eq!(scale["status"], json!({"replicas": 0, "selector": "a=b,b=c"}));
    }

    #[test]
    fn setting_a_scale_changes_the_wanted_number_and_no_more() {
        let own = Scale { wanted: ".spec.size.n".into(), ..Scale::default() };
        let mut object = json!({"metadata": {"name": "a"}, "spec": {"x": 1}});
        own.set(&mut object, &json!({"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 5}}));
        let expected =
            json!({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"x": 1, "size": {"n": 5}}});
        assert_eq!(object, expected);
    }
}
