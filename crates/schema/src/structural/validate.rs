//! Everything that is wrong with a value, in the words of Kubernetes' OpenAPI validator.
//!
//! Names in messages begin at the validated value (`spec.x in body should be ...`); where only a part of an object is
//! validated, such as its status, the fields of the findings still begin at the object.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::{Additional, Combined, JsonType, Limits, Structural, formats};
use crate::field::{FieldError, Problem};
use crate::table::ListType;

/// What the validator says of things that have no place of their own.
const NOWHERE: &str = "<nil>";

impl Structural {
    /// All findings about a value that stands at `field` of its object; at the top if that is empty.
    pub fn validate(&self, value: &Value, field: &str) -> Vec<FieldError> {
        super::TEXT_LEFT.set(super::LARGE_PATTERN_TEXT_BYTES_MAX);
        let mut outcome = self.check(value, "");
        if outcome.findings.is_empty() {
            self.check_lists(value, "", &mut outcome.findings);
            self.check_embedded(value, "", true, &mut outcome.findings);
        }
        for finding in &mut outcome.findings {
            if finding.field != NOWHERE {
                finding.field = join(field, &finding.field);
            }
        }
        outcome.findings
    }

    fn check(&self, value: &Value, name: &str) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.count(self.check_type(value, name));
        if !value.is_null() {
            if !self.combined.is_empty() {
                outcome.merge(self.combined.check(value, name));
            }
            match value {
                Value::String(text) => {
                    outcome.count(self.limits.check_text(text, name));
                    outcome.count(self.check_format(text, name));
                }
                Value::Number(_) => outcome.count(self.check_number(value, name)),
                Value::Array(items) => {
                    outcome.count(self.limits.check_items(items.len(), name));
                    for (at, item) in items.iter().enumerate() {
                        if let Some(schema) = &self.items {
                            outcome.merge(schema.check(item, &format!("{name}[{at}]")));
                        }
                    }
                }
                Value::Object(fields) => outcome.merge(self.check_object(fields, name)),
                Value::Null | Value::Bool(_) => {}
            }
        }
        outcome.count(self.limits.check_enum(value, name));
        outcome
    }

    fn check_type(&self, value: &Value, name: &str) -> Vec<FieldError> {
        let found = JsonType::of(value);
        if self.types.is_empty() || (found == JsonType::Null && self.nullable) {
            return Vec::new();
        }
        let is_whole = whole(value).is_some();
        let fits = self.types.iter().any(|expected| match (expected, found) {
            (JsonType::Number, JsonType::Integer) => true,
            (JsonType::Integer, JsonType::Number) => is_whole,
            (expected, found) => *expected == found,
        });
        // Numbers that miss a format are told by its name, with Go's name for what they are.
        let is_plain = !matches!(found, JsonType::String | JsonType::Array | JsonType::Null);
        match &self.format {
            _ if fits => Vec::new(),
            Some(format) if is_plain => {
                let found = if found == JsonType::Number { "float64" } else { "" };
                vec![wrong_type(name, format, found)]
            }
            // A text with a format is the format's affair.
            Some(_) if !self.is_number() && matches!(found, JsonType::String | JsonType::Array) => Vec::new(),
            _ => {
                let expected: Vec<&str> = self.types.iter().map(|expected| expected.as_str()).collect();
                vec![wrong_type(name, &expected.join(","), found.as_str())]
            }
        }
    }

    fn is_number(&self) -> bool {
        self.types.iter().any(|expected| matches!(expected, JsonType::Number | JsonType::Integer))
    }

    fn check_format(&self, text: &str, name: &str) -> Vec<FieldError> {
        match &self.format {
            Some(format) if !formats::fits(format, text) => vec![FieldError {
                field: name.to_owned(),
                problem: Problem::TypeInvalid(text.into()),
                detail: format!("{name} in body must be of type {format}: {}", Value::from(text)),
            }],
            _ => Vec::new(),
        }
    }

    fn check_number(&self, value: &Value, name: &str) -> Vec<FieldError> {
        let mut findings = Vec::new();
        if let [JsonType::Integer] = self.types.as_slice() {
            let is_in_range = match self.format.as_deref() {
                Some("int32") => whole(value).is_some_and(|number| i32::try_from(number).is_ok()),
                _ => whole(value).is_some(),
            };
            if !is_in_range {
                let format = match &self.format {
                    Some(format) => format!("with format {format}"),
                    None => "(default format)".to_owned(),
                };
                findings.push(nowhere(format!("Checked value must be of type integer {format} in {name}")));
            }
        }
        let is_float = self.format.as_deref() == Some("float") && self.types.contains(&JsonType::Number);
        if is_float && value.as_f64().is_some_and(|number| number.abs() > f64::from(f32::MAX)) {
            let what = "Checked value must be of type number with format float in";
            findings.push(nowhere(format!("{what} {name}")));
        }
        findings.extend(self.limits.check_number(value, name));
        findings
    }

    fn check_object(&self, fields: &Map<String, Value>, name: &str) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.count(self.limits.check_properties(fields.len(), name));
        for required in self.required.iter().filter(|required| !fields.contains_key(*required)) {
            outcome.count(vec![FieldError::required(join(name, required), "")]);
        }
        for (key, value) in fields {
            if let Some(schema) = self.child(key) {
                outcome.merge(schema.check(value, &join(name, key)));
            }
        }
        outcome
    }

    /// Elements of sets and maps may not come twice.
    fn check_lists(&self, value: &Value, name: &str, findings: &mut Vec<FieldError>) {
        match value {
            Value::Array(items) => {
                match self.list_type {
                    Some(ListType::Set) => find_duplicates(items, name, Value::clone, findings),
                    Some(ListType::Map) => find_duplicates(items, name, |item| self.keys_of(item), findings),
                    Some(ListType::Atomic) | None => {}
                }
                for (at, item) in items.iter().enumerate() {
                    if let Some(schema) = &self.items {
                        schema.check_lists(item, &format!("{name}[{at}]"), findings);
                    }
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    if let Some(schema) = self.child(key) {
                        schema.check_lists(value, &join(name, key), findings);
                    }
                }
            }
            _ => {}
        }
    }

    /// The part of an element that identifies it.
    fn keys_of(&self, item: &Value) -> Value {
        let keys = self.list_keys.iter();
        keys.filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect::<Map<_, _>>().into()
    }

    /// An object within an object must say what it is.
    fn check_embedded(&self, value: &Value, name: &str, is_root: bool, findings: &mut Vec<FieldError>) {
        if self.embedded_resource && !is_root {
            for required in ["apiVersion", "kind"] {
                if value.get(required).and_then(Value::as_str).is_none_or(str::is_empty) {
                    findings.push(FieldError::required(join(name, required), ""));
                }
            }
        }
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    if let Some(schema) = &self.items {
                        schema.check_embedded(item, &format!("{name}[{at}]"), false, findings);
                    }
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    if let Some(schema) = self.child(key) {
                        schema.check_embedded(value, &join(name, key), false, findings);
                    }
                }
            }
            _ => {}
        }
    }
}

/// What checking a value has brought: findings, and how many checks were made. Of alternatives that all fail, the one
/// that got furthest is told.
#[derive(Default)]
struct Outcome {
    findings: Vec<FieldError>,
    /// Hashes of the places and details of findings: a list of many elements can have as many findings.
    known: HashSet<u64>,
    n_checks: usize,
}

impl Outcome {
    fn count(&mut self, findings: Vec<FieldError>) {
        self.n_checks += 1;
        self.add(findings);
    }

    fn merge(&mut self, other: Outcome) {
        self.n_checks += other.n_checks;
        if self.findings.is_empty() {
            (self.findings, self.known) = (other.findings, other.known);
        } else {
            self.add(other.findings);
        }
    }

    fn add(&mut self, findings: Vec<FieldError>) {
        for finding in findings {
            let mut hasher = DefaultHasher::new();
            (&finding.field, &finding.detail).hash(&mut hasher);
            let is_new = self.known.insert(hasher.finish());
            if is_new || !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
    }
}

impl Combined {
    fn is_empty(&self) -> bool {
        self.all_of.is_empty() && self.any_of.is_empty() && self.one_of.is_empty() && self.not.is_none()
    }

    fn check(&self, value: &Value, name: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let fail = |outcome: &mut Outcome, what: String| {
            outcome.add(vec![nowhere(format!("{name:?} must {what}"))]);
        };
        if !self.any_of.is_empty() {
            let (n_valid, best) = best_of(&self.any_of, value, name);
            if n_valid == 0 {
                fail(&mut outcome, "validate at least one schema (anyOf)".to_owned());
            }
            outcome.merge(best);
        }
        if !self.one_of.is_empty() {
            let (n_valid, best) = best_of(&self.one_of, value, name);
            match n_valid {
                0 => fail(
                    &mut outcome,
                    "validate one and only one schema (oneOf). Found none valid".to_owned(),
                ),
                1 => {}
                n => {
                    let found =
                        format!("validate one and only one schema (oneOf). Found {n} valid alternatives");
                    fail(&mut outcome, found);
                }
            }
            outcome.merge(best);
        }
        let mut n_valid = 0;
        for schema in &self.all_of {
            let result = schema.check(value, name);
            n_valid += usize::from(result.findings.is_empty());
            outcome.merge(result);
        }
        if n_valid < self.all_of.len() {
            let none = if n_valid == 0 { ". None validated" } else { "" };
            fail(&mut outcome, format!("validate all the schemas (allOf){none}"));
        }
        if self.not.as_ref().is_some_and(|schema| schema.check(value, name).findings.is_empty()) {
            fail(&mut outcome, "not validate the schema (not)".to_owned());
        }
        outcome.n_checks += 1;
        outcome
    }
}

/// How many of the schemas a value fulfils; and the first of them, or what the one that got furthest found.
fn best_of(schemas: &[Structural], value: &Value, name: &str) -> (usize, Outcome) {
    let (mut n_valid, mut best): (usize, Option<Outcome>) = (0, None);
    for schema in schemas {
        let result = schema.check(value, name);
        let is_valid = result.findings.is_empty();
        let is_better = match &best {
            None => true,
            Some(_) if n_valid > 0 => false,
            Some(best) => is_valid || result.n_checks > best.n_checks,
        };
        n_valid += usize::from(is_valid);
        if is_better {
            best = Some(result);
        }
    }
    (n_valid, best.unwrap_or_default())
}

impl Limits {
    fn check_enum(&self, value: &Value, name: &str) -> Vec<FieldError> {
        let Some(allowed) = &self.enum_values else { return Vec::new() };
        if allowed.iter().any(|allowed| same(allowed, value)) {
            return Vec::new();
        }
        let listed: Vec<String> = allowed
            .iter()
            .map(|allowed| {
                Value::from(allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned)).to_string()
            })
            .collect();
        vec![FieldError {
            field: name.to_owned(),
            problem: Problem::NotSupported(value.clone()),
            detail: format!("supported values: {}", listed.join(", ")),
        }]
    }

    /// The first thing that is wrong with a text; Kubernetes stops there.
    fn check_text(&self, text: &str, name: &str) -> Vec<FieldError> {
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        let finding = if let Some(most) = self.max_length.filter(|most| length > *most) {
            FieldError::too_long(name, usize::try_from(most).unwrap_or(usize::MAX))
        } else if let Some(least) = self.min_length.filter(|least| length < *least) {
            invalid(name, text.into(), format!("should be at least {least} chars long"))
        } else if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.matches(text)) {
            invalid(name, text.into(), format!("should match '{}'", pattern.text))
        } else {
            return Vec::new();
        };
        vec![finding]
    }

    fn check_number(&self, value: &Value, name: &str) -> Vec<FieldError> {
        let mut findings = Vec::new();
        let Some(number) = value.as_f64() else { return findings };
        let mut say = |what: String| findings.push(invalid(name, value.clone(), what));
        if let Some(factor) =
            self.multiple_of.filter(|factor| *factor > 0.0 && !is_nearly_whole(number / factor))
        {
            say(format!("should be a multiple of {factor}"));
        }
        match self.maximum {
            Some(most) if self.exclusive_maximum && number >= most => {
                say(format!("should be less than {most}"))
            }
            Some(most) if number > most => say(format!("should be less than or equal to {most}")),
            _ => {}
        }
        match self.minimum {
            Some(least) if self.exclusive_minimum && number <= least => {
                say(format!("should be greater than {least}"));
            }
            Some(least) if number < least => say(format!("should be greater than or equal to {least}")),
            _ => {}
        }
        findings
    }

    fn check_items(&self, count: usize, name: &str) -> Vec<FieldError> {
        check_count(count, self.min_items, self.max_items, "items", name)
    }

    fn check_properties(&self, count: usize, name: &str) -> Vec<FieldError> {
        check_count(count, self.min_properties, self.max_properties, "properties", name)
    }
}

fn check_count(
    count: usize,
    least: Option<u64>,
    most: Option<u64>,
    what: &str,
    name: &str,
) -> Vec<FieldError> {
    let mut findings = Vec::new();
    let counted = u64::try_from(count).unwrap_or(u64::MAX);
    if let Some(least) = least.filter(|least| counted < *least) {
        findings.push(invalid(name, count.into(), format!("should have at least {least} {what}")));
    }
    if let Some(most) = most.filter(|most| counted > *most) {
        findings.push(FieldError {
            field: name.to_owned(),
            problem: Problem::TooMany(count),
            detail: format!("must have at most {most} items"),
        });
    }
    findings
}

fn find_duplicates(
    items: &[Value],
    name: &str,
    key_of: impl Fn(&Value) -> Value,
    findings: &mut Vec<FieldError>,
) {
    let mut times = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        let key = key_of(item);
        let n_times: &mut usize = times.entry(key.to_string()).or_default();
        *n_times += 1;
        // That it comes once more says enough.
        if *n_times == 2 {
            findings.push(FieldError::duplicate(format!("{name}[{at}]"), key));
        }
    }
}

/// Whether a number is whole but for what dividing loses.
fn is_nearly_whole(number: f64) -> bool {
    let (rounded, distance) = (number.round(), (number - number.round()).abs());
    distance < f64::EPSILON * 4.0 || (rounded != 0.0 && distance / (number.abs() + rounded.abs()) < 1e-9)
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9.2e18)?;
        Some(number as i64)
    })
}

/// Equality as JSON has it: one number may be written in several ways.
fn same(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left == right,
        _ => left == right,
    }
}

fn wrong_type(name: &str, expected: &str, found: &str) -> FieldError {
    FieldError {
        field: name.to_owned(),
        problem: Problem::TypeInvalid(found.into()),
        detail: format!("{name} in body must be of type {expected}: {found:?}"),
    }
}

fn invalid(name: &str, value: Value, what: String) -> FieldError {
    FieldError::invalid(name, value, format!("{name} in body {what}"))
}

fn nowhere(detail: String) -> FieldError {
    FieldError::invalid(NOWHERE, "", detail)
}

pub(super) fn join(name: &str, key: &str) -> String {
    match (name.is_empty(), key.is_empty()) {
        (true, _) => key.to_owned(),
        (_, true) => name.to_owned(),
        _ if key.starts_with('[') => format!("{name}{key}"),
        _ => format!("{name}.{key}"),
    }
}

impl Additional {
    /// Whether properties that are not named stay.
    pub(super) fn keeps_unknown(&self) -> bool {
        !matches!(self, Additional::None)
    }
}
