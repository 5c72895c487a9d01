//! Rules that definitions state as expressions: `x-kubernetes-validations`.
//!
//! ```text
//!   schema ──declare──> types ──┐
//!   rule   ─────────────────────┴──rule──> programs, where the schema has them ──run──> findings about an object
//! ```
//!
//! The language is in [`krafla_cel`]; whether a definition's rules are allowed is asked in [`crate::kinds::crd`].

mod declare;
mod rule;
mod run;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use krafla_cel::Type;
use serde_json::Value;

pub use declare::cardinality_max;
pub use rule::{Rule, RuleFault};

use crate::object;

/// The rules of a schema and of the schemas within it. Where there are none, there is no tree.
#[derive(Debug)]
pub struct RuleTree {
    /// What the values are.
    of: Type,
    /// The JSON type, as messages name it.
    json_type: String,
    rules: Vec<Rule>,
    properties: BTreeMap<String, RuleTree>,
    additional: Option<Box<RuleTree>>,
    items: Option<Box<RuleTree>>,
    /// The keys by which elements of a list are known again after a change.
    list_keys: Vec<String>,
}

impl RuleTree {
    /// The rules of a version's schema. Rules that cannot be read do not get into a definition, so none is expected here.
    pub fn compile(schema: &Value) -> Option<RuleTree> {
        RuleTree::of(schema, true)
    }

    fn of(schema: &Value, is_object: bool) -> Option<RuleTree> {
        let inner = |word: &str| schema.get(word).and_then(|inner| RuleTree::of(inner, false)).map(Box::new);
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let properties: BTreeMap<String, RuleTree> = properties
            .filter_map(|(name, inner)| Some((name.clone(), RuleTree::of(inner, false)?)))
            .collect();
        let (additional, items) = (inner("additionalProperties"), inner("items"));
        let stated = stated(schema);
        if stated.is_empty() && properties.is_empty() && additional.is_none() && items.is_none() {
            return None;
        }
        let of = if stated.is_empty() { Type::Dyn } else { type_of(schema, is_object) };
        Some(RuleTree {
            json_type: schema.get("type").and_then(Value::as_str).unwrap_or_default().to_owned(),
            rules: stated.iter().filter_map(|rule| Rule::compile(rule, &of).ok()).collect(),
            of,
            properties,
            additional,
            items,
            list_keys: match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("map") => {
                    let keys = object::strings(schema.get("x-kubernetes-list-map-keys"));
                    keys.into_iter().map(str::to_owned).collect()
                }
                _ => Vec::new(),
            },
        })
    }
}

/// The rules that a schema itself states.
pub fn stated(schema: &Value) -> &[Value] {
    schema.get("x-kubernetes-validations").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The type of a schema's values, as its rules see it.
pub fn type_of(schema: &Value, is_object: bool) -> Type {
    declare::declared(schema, "selfType", is_object).unwrap_or(Type::Dyn)
}
