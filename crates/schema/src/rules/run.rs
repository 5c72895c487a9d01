//! Asks the rules about an object.

use krafla_cel::{Budget, EvalError, Value as CelValue};
use serde_json::Value;

use super::{Rule, RuleTree};
use crate::field::{FieldError, Problem};

/// What all rules together may cost for one object, and one rule for one value. An object that costs more is refused.
const OBJECT_COST_MAX: u64 = 10_000_000;
const RULE_COST_MAX: u64 = 1_000_000;
/// The longest message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

impl RuleTree {
    /// What the rules find wrong with an object, or with how it changes. A value that was there before and has not changed is
    /// left in peace by rules that came after it.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut run = Run { findings: Vec::new(), left: OBJECT_COST_MAX };
        // Running out of budget is a finding already; the rest is not asked.
        let _ = run.check(self, object, old, "");
        run.findings
    }
}

struct Run {
    findings: Vec<FieldError>,
    left: u64,
}

/// The budget is spent.
struct Spent;

impl Run {
    fn check(
        &mut self,
        tree: &RuleTree,
        value: &Value,
        old: Option<&Value>,
        field: &str,
    ) -> Result<(), Spent> {
        let is_unchanged = old == Some(value);
        for rule in &tree.rules {
            let has_what_it_needs = !rule.is_transition || rule.is_old_optional || old.is_some();
            if has_what_it_needs && (rule.is_transition || !is_unchanged) {
                self.ask(tree, rule, value, old, field)?;
            }
        }
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(tree) = tree.properties.get(name) {
                        self.check(tree, inner, old, &join(field, name))?;
                    } else if let Some(tree) = &tree.additional {
                        self.check(tree, inner, old, &format!("{field}[{name}]"))?;
                    }
                }
            }
            Value::Array(items) => {
                if let Some(inner) = &tree.items {
                    for (at, item) in items.iter().enumerate() {
                        let old = tree.counterpart(item, old);
                        self.check(inner, item, old, &format!("{field}[{at}]"))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn ask<'a>(
        &mut self,
        tree: &'a RuleTree,
        rule: &'a Rule,
        value: &'a Value,
        old: Option<&'a Value>,
        field: &str,
    ) -> Result<(), Spent> {
        let allowed = self.left.min(RULE_COST_MAX);
        let mut budget = Budget::new(allowed);
        let variables = tree.variables(rule, value, old);
        let outcome = rule.program.evaluate(&variables, &mut budget);
        let finding = match &outcome {
            Ok(CelValue::Bool(true)) => None,
            Ok(_) => Some(failed(rule, value, rule.says(&variables, &mut budget), field)),
            Err(error) => {
                let why = in_words(error, rule, self.left < RULE_COST_MAX);
                Some(FieldError::invalid(field, tree.json_type.as_str(), why))
            }
        };
        self.left -= allowed - budget.left();
        self.findings.extend(finding);
        if matches!(outcome, Err(EvalError::OverBudget)) { Err(Spent) } else { Ok(()) }
    }
}

impl RuleTree {
    fn variables<'a>(
        &'a self,
        rule: &Rule,
        value: &'a Value,
        old: Option<&'a Value>,
    ) -> Vec<(&'a str, CelValue<'a>)> {
        let old = old.map(|old| CelValue::from_json(old, &self.of));
        let old = match (rule.is_old_optional, old) {
            (true, old) => Some(CelValue::Optional(old.map(Into::into))),
            (false, old) => old,
        };
        let own = ("self", CelValue::from_json(value, &self.of));
        std::iter::once(own).chain(old.map(|old| ("oldSelf", old))).collect()
    }

    /// What an element of a list was before. Only keys tell; an element of any other list is always a new one.
    fn counterpart<'a>(&self, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
        if self.list_keys.is_empty() {
            return None;
        }
        let is_same = |other: &&Value| self.list_keys.iter().all(|key| other.get(key) == item.get(key));
        old?.as_array()?.iter().find(is_same)
    }
}

impl Rule {
    /// What to tell whoever broke the rule.
    fn says<'a>(&'a self, variables: &[(&'a str, CelValue<'a>)], budget: &mut Budget) -> String {
        self.made_message(variables, budget).unwrap_or_else(|| match self.message.as_str() {
            "" => format!("failed rule: {}", self.source),
            message => message.to_owned(),
        })
    }

    /// A message that its expression makes, if it makes one that can be shown.
    fn made_message<'a>(
        &'a self,
        variables: &[(&'a str, CelValue<'a>)],
        budget: &mut Budget,
    ) -> Option<String> {
        let made = self.message_program.as_ref()?.evaluate(variables, budget).ok()?;
        let CelValue::String(text) = made else { return None };
        let text = text.trim();
        let is_shown = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
        is_shown.then(|| text.to_owned())
    }
}

fn failed(rule: &Rule, value: &Value, message: String, field: &str) -> FieldError {
    let field = format!("{field}{}", rule.field_path);
    let field = field.trim_start_matches('.').to_owned();
    let is_large = value.is_object() || value.is_array();
    let problem = match rule.reason.as_str() {
        "FieldValueRequired" => Problem::Required,
        "FieldValueForbidden" => Problem::Forbidden,
        "FieldValueDuplicate" => Problem::Duplicate(value.clone()),
        _ if is_large => Problem::InvalidUnquoted,
        _ => Problem::Invalid(value.clone()),
    };
    // What is there twice needs no more words.
    let detail = if rule.reason == "FieldValueDuplicate" { String::new() } else { message };
    FieldError { field, problem, detail }
}

fn in_words(error: &EvalError, rule: &Rule, is_object_spent: bool) -> String {
    let source = &rule.source;
    match error {
        EvalError::NoSuchOverload => format!(
            "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {source}"
        ),
        EvalError::OverBudget if is_object_spent => {
            "validation failed due to running out of cost budget, no further validation rules will be run"
                .to_owned()
        }
        EvalError::OverBudget => {
            format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {source}"
            )
        }
        EvalError::Failed(_) => {
            let named = if rule.message.is_empty() { source } else { &rule.message };
            format!("{error} evaluating rule: {named}")
        }
    }
}

fn join(field: &str, name: &str) -> String {
    if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") }
}
