//! Kinds that a CustomResourceDefinition defines.

use std::sync::Arc;

use krafla_api::Time;
use krafla_schema::field::{FieldError, Problem};
use krafla_schema::object;
use krafla_schema::rules::RuleTree;
use krafla_schema::structural::Structural;
use krafla_schema::table::ListType;
use serde_json::Value;

use super::{Rules, keep_all_but};

/// One version of a custom kind.
pub struct Custom {
    has_status: bool,
    schema: Arc<Structural>,
    /// What the schema says in expressions; most schemas do not.
    rules: Option<RuleTree>,
}

impl Custom {
    /// The rules that a version of a definition states.
    pub fn new(version: &Value, schema: Arc<Structural>) -> Custom {
        let has_status = version.pointer("/subresources/status").is_some_and(Value::is_object);
        let rules = version.pointer("/schema/openAPIV3Schema").and_then(RuleTree::compile);
        Custom { has_status, schema, rules }
    }

    /// The findings of the schema, and those of its rules if the object is one that rules can be asked about.
    fn with_rules(
        &self,
        mut findings: Vec<FieldError>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<FieldError> {
        let Some(rules) = &self.rules else { return findings };
        if findings.iter().any(is_in_the_way) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";
            findings.push(FieldError::invalid("<nil>", Value::Null, why));
        } else {
            findings.extend(rules.validate(object, old));
        }
        findings
    }
}

impl Rules for Custom {
    fn default(&self, object: &mut Value) {
        self.schema.fill_defaults(object);
    }

    /// With a status subresource, a new object has no status yet.
    fn on_create(&self, object: &mut Value, _now: Time) {
        if self.has_status {
            object::remove(object, "status");
        }
    }

    /// Only status changes: unlike built-in kinds, not even labels may come along.
    fn on_status_update(&self, object: &mut Value, old: &Value) {
        keep_all_but(object, old, &["status"]);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        self.with_rules(self.schema.validate(object, ""), object, None)
    }

    /// What was stored before the schema forbade it may stay for as long as nobody touches it.
    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut findings = self.schema.validate(object, "");
        findings.retain(|finding| !is_untouched(&self.schema, &finding.field, object, old));
        self.with_rules(findings, object, Some(old))
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut findings = match (self.schema.property("status"), object.get("status")) {
            (Some(schema), Some(status)) => schema.validate(status, "status"),
            _ => Vec::new(),
        };
        findings.retain(|finding| !is_untouched(&self.schema, &finding.field, object, old));
        self.with_rules(findings, object, Some(old))
    }
}

/// Whether a value is so wrong that rules about it would not know what to make of it.
fn is_in_the_way(finding: &FieldError) -> bool {
    matches!(
        finding.problem,
        Problem::Required
            | Problem::NotSupported(_)
            | Problem::TooLong
            | Problem::TooMany(_)
            | Problem::TypeInvalid(_)
    )
}

/// Whether a field, or something that it is part of, is what it was. Elements of a list are compared by what identifies
/// them; those of other lists that differ are not, since it is not known which belongs to which.
fn is_untouched(schema: &Structural, field: &str, object: &Value, old: &Value) -> bool {
    let (mut schema, mut new, mut old) = (Some(schema), object, old);
    for step in field.split(['.', '[']) {
        let before = match (step.strip_suffix(']'), schema) {
            (Some(index), Some(list)) => counterpart(list, new, old, index),
            (Some(_), None) => None,
            (None, _) => new.get(step).zip(old.get(step)),
        };
        match before {
            Some((new_value, old_value)) if new_value == old_value => return true,
            Some((new_value, old_value)) => (new, old) = (new_value, old_value),
            None => return false,
        }
        schema = schema.and_then(|schema| match step.ends_with(']') {
            true => schema.items(),
            false => schema.child(step),
        });
    }
    false
}

/// An element of a list, and the element that was identified in the same way before.
fn counterpart<'a>(
    list: &Structural,
    new: &'a Value,
    old: &'a Value,
    index: &str,
) -> Option<(&'a Value, &'a Value)> {
    let element = new.get(index.parse::<usize>().ok()?)?;
    if list.list_type() != Some(ListType::Map) {
        return None;
    }
    let is_same = |other: &&Value| list.list_keys().iter().all(|key| other.get(key) == element.get(key));
    Some((element, old.as_array()?.iter().find(is_same)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_nobody_touched_is_untouched() {
        let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}});
        let schema = Structural::compile(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"m": keyed}},
        }}));
        let old = json!({"spec": {
            "a": "long", "l": [1], "b": {"c": 1}, "m": [{"k": "x", "v": "1"}, {"k": "y", "v": "2", "w": "3"}],
        }});
        let new = json!({"spec": {
            "a": "long", "l": [1, 2], "b": {"c": 2}, "d": 1,
            "m": [{"k": "y", "v": "2", "w": "4"}, {"k": "x", "v": "1"}, {"k": "z", "v": "1"}],
        }});
        let cases = [
            ("spec.a", true),
            ("spec.a.x", true),
            ("spec.l[0]", false),
            ("spec.b.c", false),
            ("spec.d", false),
            ("spec.m", false),
            ("spec.m[0].v", true),
            ("spec.m[0].w", false),
            ("spec.m[1]", true),
            ("spec.m[1].v", true),
            ("spec.m[2].v", false),
        ];
        for (field, expected) in cases {
            assert_eq!(is_untouched(&schema, field, &new, &old), expected, "{field}");
        }
    }
}
