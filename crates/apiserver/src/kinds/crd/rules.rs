//! What is wrong with the rules of a schema: `x-kubernetes-validations`.
//!
//! Rules are read and checked against the types that the schema states, and what they could cost for the largest object that
//! the schema allows is added up. A definition that could keep the server busy is refused before there is any object.

use krafla_schema::field::FieldError;
use krafla_schema::object;
use krafla_schema::rules::{Rule, RuleFault, cardinality_max, stated, type_of};
use serde_json::{Map, Value};

use super::schema::children;

/// What one rule may cost, for all values that it is asked about.
const RULE_COST_MAX: u64 = 10_000_000;
/// What all rules of a schema may cost together.
const SCHEMA_COST_MAX: u64 = 100_000_000;
/// How many of the rules that cost most are named.
const NAMED_MAX: usize = 4;

/// All findings about the rules of a version's schema, which stands at `field`.
pub(super) fn check(schema: &Map<String, Value>, field: &str) -> Vec<FieldError> {
    let mut checker = Checker::default();
    let place = Place { field: field.to_owned(), cardinality: Some(1), uncorrelated: None, is_object: true };
    checker.check(schema, &place);
    checker.errors.extend(checker.costs.over_budget(field));
    checker.errors
}

/// Where a schema stands among the others.
struct Place {
    field: String,
    /// How many values of it one object can have; `None` if the schemas around it do not say.
    cardinality: Option<u64>,
    /// The list or map around it whose elements are not known again after a change.
    uncorrelated: Option<String>,
    is_object: bool,
}

#[derive(Default)]
struct Checker {
    errors: Vec<FieldError>,
    costs: Costs,
}

impl Checker {
    fn check(&mut self, schema: &Map<String, Value>, place: &Place) {
        // Few schemas state rules, so the copy is rare.
        if schema.contains_key("x-kubernetes-validations") {
            let node = Value::Object(schema.clone());
            let of = type_of(&node, place.is_object);
            let n_before = self.errors.len();
            let places = stated(&node).iter().enumerate();
            let places =
                places.map(|(at, rule)| (rule, format!("{}.x-kubernetes-validations[{at}]", place.field)));
            let places: Vec<(&Value, String)> = places.collect();
            places.iter().for_each(|(rule, field)| self.check_words(rule, schema, field));
            // What a rule means is asked when all that stands beside it makes sense.
            if self.errors.len() == n_before {
                for (rule, field) in &places {
                    self.check_rule(rule, Rule::compile(rule, &of), &node, place, field);
                }
            }
        }
        for (inner, field) in children(schema, &place.field) {
            self.check(inner, &place.within(schema, &field));
        }
    }

    /// What a rule says beside its expressions.
    fn check_words(&mut self, rule: &Value, schema: &Map<String, Value>, field: &str) {
        let text = |name: &str| rule[name].as_str().unwrap_or_default();
        let (source, message) = (text("rule"), text("message"));
        if source.trim().is_empty() {
            self.errors.push(FieldError::required(format!("{field}.rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            let why = "must be non-empty if specified";
            self.errors.push(FieldError::invalid(format!("{field}.message"), message, why));
        } else if message.trim().contains('\n') {
            let why = "must not contain line breaks";
            self.errors.push(FieldError::invalid(format!("{field}.message"), message, why));
        } else if source.trim().contains('\n') && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            self.errors.push(FieldError::required(format!("{field}.message"), why));
        }
        let made = text("messageExpression");
        if !made.is_empty() && made.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            self.errors.push(FieldError::required(format!("{field}.messageExpression"), why));
        }
        let reasons =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        let reason = text("reason");
        if !reason.is_empty() && !reasons.contains(&reason) {
            self.errors.push(FieldError::not_supported(format!("{field}.reason"), reason, &reasons));
        }
        let path = text("fieldPath");
        if !path.is_empty() && !is_field(schema, path) {
            let why = "must be a valid path";
            self.errors.push(FieldError::invalid(format!("{field}.fieldPath"), path, why));
        }
    }

    fn check_rule(
        &mut self,
        rule: &Value,
        compiled: Result<Rule, RuleFault>,
        schema: &Value,
        place: &Place,
        field: &str,
    ) {
        if rule["rule"].as_str().unwrap_or_default().trim().is_empty() {
            return;
        }
        let (at, why) = match compiled {
            Ok(compiled) => return self.check_compiled(&compiled, rule, schema, place, field),
            Err(RuleFault::Rule(error)) => ("rule", format!("compilation failed: {error}")),
            Err(RuleFault::NotBool) => ("rule", "cel expression must evaluate to a bool".to_owned()),
            Err(RuleFault::Message(error)) => {
                ("messageExpression", format!("messageExpression compilation failed: {error}"))
            }
            Err(RuleFault::NotText) => {
                ("messageExpression", "messageExpression must evaluate to a string".to_owned())
            }
        };
        self.errors.push(FieldError::invalid_as_shown(format!("{field}.{at}"), shown(rule), why));
        // Of a rule that cannot be read upstream does not know whether it is about a change.
        if at == "rule" && rule.get("optionalOldSelf").is_some() {
            let (field, is_optional) = (format!("{field}.optionalOldSelf"), rule["optionalOldSelf"] == true);
            self.errors.push(FieldError::invalid(
                field,
                is_optional,
                "may not be set if oldSelf is not used in rule",
            ));
        }
    }

    fn check_compiled(&mut self, rule: &Rule, stated: &Value, schema: &Value, place: &Place, field: &str) {
        if let Some(within) = place.uncorrelated.as_ref().filter(|_| rule.is_transition) {
            let why =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
            self.errors.push(FieldError::invalid(format!("{field}.rule"), rule.source.as_str(), why));
        }
        if !rule.is_transition && stated.get("optionalOldSelf").is_some() {
            let why = "may not be set if oldSelf is not used in rule";
            let field = format!("{field}.optionalOldSelf");
            self.errors.push(FieldError::invalid(field, rule.is_old_optional, why));
        }
        let n_times = place.cardinality.unwrap_or_else(|| cardinality_max(schema));
        let costs = [
            ("rule", "estimated rule cost", Some(&rule.program)),
            ("messageExpression", "estimated messageExpression cost", rule.message_program.as_ref()),
        ];
        for (at, what, program) in costs {
            let Some(program) = program else { continue };
            let cost = program.estimated_cost().saturating_mul(n_times);
            let field = format!("{field}.{at}");
            if cost > RULE_COST_MAX {
                self.errors
                    .push(FieldError::forbidden(field.as_str(), too_costly(what, cost, RULE_COST_MAX)));
            }
            self.costs.add(field, cost);
        }
    }
}

impl Place {
    /// The place of a schema within the one that stands here.
    fn within(&self, schema: &Map<String, Value>, field: &str) -> Place {
        let text = |word: &str| schema.get(word).and_then(Value::as_str).unwrap_or_default();
        let limit = |word: &str| schema.get(word).and_then(Value::as_u64);
        let is_one_of =
            |word: &str| field.strip_prefix(&self.field).is_some_and(|rest| rest.starts_with(word));
        let (is_items, is_additional) = (is_one_of(".items"), is_one_of(".additionalProperties"));
        let n_values = match (is_items, is_additional) {
            (true, _) => limit("maxItems"),
            (_, true) => limit("maxProperties"),
            _ => Some(1),
        };
        let is_unordered = is_items && text("x-kubernetes-list-type") != "map"
            || is_additional && text("x-kubernetes-map-type") == "atomic";
        Place {
            field: field.to_owned(),
            cardinality: self.cardinality.zip(n_values).map(|(outer, inner)| outer.saturating_mul(inner)),
            uncorrelated: self.uncorrelated.clone().or_else(|| is_unordered.then(|| self.field.clone())),
            is_object: false,
        }
    }
}

/// What all rules cost together, and which of them cost most.
#[derive(Default)]
struct Costs {
    total: u64,
    dearest: Vec<(u64, String)>,
}

impl Costs {
    fn add(&mut self, field: String, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < SCHEMA_COST_MAX / 100 {
            return;
        }
        let at = self.dearest.partition_point(|(other, _)| *other >= cost);
        self.dearest.insert(at, (cost, field));
        self.dearest.truncate(NAMED_MAX);
    }

    fn over_budget(&self, field: &str) -> Vec<FieldError> {
        if self.total <= SCHEMA_COST_MAX {
            return Vec::new();
        }
        let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<FieldError> =
            self.dearest.iter().map(|(_, field)| FieldError::forbidden(field.as_str(), why)).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(field, too_costly(what, self.total, SCHEMA_COST_MAX)));
        errors
    }
}

fn too_costly(what: &str, cost: u64, allowed: u64) -> String {
    let factor = cost as f64 / allowed as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// Whether a path such as `.a.b` or `['a']` leads to a field that the schema knows.
fn is_field(schema: &Map<String, Value>, path: &str) -> bool {
    let names = path.split(['.', '[', ']', '\'']).filter(|name| !name.is_empty());
    let mut at = Some(schema);
    for name in names {
        at = at.and_then(|schema| match schema.get("properties") {
            Some(properties) => properties.get(name)?.as_object(),
            None => schema.get("additionalProperties")?.as_object(),
        });
    }
    path.starts_with(['.', '[']) && at.is_some()
}

/// A rule as upstream quotes it: Go's names in the order of its struct, and its way to write JSON.
fn shown(rule: &Value) -> String {
    let text = |name: &str| rule.get(name).cloned().unwrap_or_else(|| "".into());
    let shown = format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        text("rule"),
        text("message"),
        text("messageExpression"),
        object::at(rule, "/reason"),
        text("fieldPath"),
        object::at(rule, "/optionalOldSelf"),
    );
    shown.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
