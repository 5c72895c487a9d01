//! Label selectors: `app=x,tier in (a,b),!old`.
//!
//! A small lexer and a parser by recursive descent. The words of complaint are upstream's, since `kubectl` shows them.

use std::collections::BTreeSet;

use krafla_api::Pairs;
use krafla_schema::field::FieldError;
use krafla_schema::names;

use crate::status::Status;

/// A conjunction of conditions on labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<LabelSelector, Status> {
        Parser { tokens: lex(text), at: 0 }.selector().map(LabelSelector).map_err(Status::bad_request)
    }

    /// Reads a selector as it stands in objects, with `matchLabels` and `matchExpressions`.
    pub fn from_json(selector: &serde_json::Value) -> LabelSelector {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let labels = selector["matchLabels"].as_object().into_iter().flatten();
        let one = |(key, value): (&String, &serde_json::Value)| Requirement {
            key: key.clone(),
            test: Test::In([text(value)].into()),
        };
        let mut requirements: Vec<Requirement> = labels.map(one).collect();
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = krafla_schema::object::strings(expression.get("values"))
                .into_iter()
                .map(str::to_owned)
                .collect();
            let test = match expression["operator"].as_str().unwrap_or_default() {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "DoesNotExist" => Test::Absent,
                _ => Test::Exists,
            };
            requirements.push(Requirement { key: text(&expression["key"]), test });
        }
        LabelSelector(requirements)
    }

    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels fulfil all conditions.
    pub fn matches(&self, labels: &Pairs) -> bool {
        self.0.iter().all(|requirement| requirement.test.accepts(labels.get(&requirement.key)))
    }
}

impl Test {
    fn accepts(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Words, and signs of one or two characters. A word is whatever is not a sign.
fn lex(text: &str) -> Vec<&str> {
    const SIGNS: &[char] = &['=', '!', '(', ')', ',', '<', '>'];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let two = ["==", "!="].into_iter().find(|sign| rest.starts_with(sign)).map(str::len);
        let end = two.unwrap_or_else(|| {
            let word = rest.find(|c: char| SIGNS.contains(&c) || c.is_whitespace()).unwrap_or(rest.len());
            word.max(1)
        });
        let Some((token, after)) = rest.split_at_checked(end) else { break };
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

fn is_sign(token: &str) -> bool {
    matches!(token, "=" | "==" | "!" | "!=" | "(" | ")" | "," | "<" | ">" | "")
}

fn in_requirement(problem: impl std::fmt::Display) -> String {
    format!("unable to parse requirement: {problem}")
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// The next token; empty at the end.
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'a str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                "" => return Ok(requirements),
                token if token == "!" || !is_sign(token) => requirements.push(self.requirement()?),
                token => return Err(format!("found '{token}', expected: !, identifier, or 'end of string'")),
            }
            match self.next() {
                "" => return Ok(requirements),
                "," => {}
                token => return Err(format!("found '{token}', expected: ',' or 'end of string'")),
            }
            let after = self.peek();
            if after != "!" && is_sign(after) {
                return Err(format!("found '{after}', expected: identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let is_absent = self.peek() == "!";
        if is_absent {
            self.next();
        }
        let key = self.next();
        if is_sign(key) {
            return Err(in_requirement(format_args!("found '{key}', expected: identifier")));
        }
        if let Some(wrong) = names::qualified_name(key).into_iter().next() {
            return Err(in_requirement(FieldError::invalid("<nil>", key, wrong)));
        }
        let test = if is_absent { Test::Absent } else { self.test(key)? };
        Ok(Requirement { key: key.to_owned(), test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        match self.peek() {
            "" | "," => return Ok(Test::Exists),
            _ => {}
        }
        match self.next() {
            "in" => self.values().and_then(|values| checked(key, values)).map(Test::In),
            "notin" => self.values().and_then(|values| checked(key, values)).map(Test::NotIn),
            "=" | "==" => self.value(key).map(|value| Test::In(BTreeSet::from([value]))),
            "!=" => self.value(key).map(|value| Test::NotIn(BTreeSet::from([value]))),
            ">" => self.number(key).map(Test::Above),
            "<" => self.number(key).map(Test::Below),
            token => {
                Err(in_requirement(format_args!("found '{token}', expected: in, notin, =, ==, !=, gt, lt")))
            }
        }
    }

    /// A single value, which may be empty.
    fn value(&mut self, key: &str) -> Result<String, String> {
        let value = match self.peek() {
            "" | "," => "",
            token if is_sign(token) => {
                return Err(in_requirement(format_args!("found '{token}', expected: identifier")));
            }
            token => token,
        };
        if !value.is_empty() {
            self.next();
        }
        checked(key, BTreeSet::from([value.to_owned()]))?;
        Ok(value.to_owned())
    }

    fn number(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value(key)?;
        value.parse().map_err(|_| {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            in_requirement(FieldError::invalid("values[0]", value.as_str(), why))
        })
    }

    /// `(a, b)`; an empty value stands between two commas.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        match self.next() {
            "(" => {}
            token => return Err(in_requirement(format_args!("found '{token}' expected: '('"))),
        }
        match self.peek() {
            token if token != "," && token != ")" && is_sign(token) => {
                let message = format_args!("found '{token}', expected: ',', ')' or identifier");
                return Err(in_requirement(message));
            }
            _ => {}
        }
        let mut values = BTreeSet::new();
        loop {
            let value = match self.peek() {
                "," | ")" => "",
                token if is_sign(token) => {
                    let message = format_args!("found '{token}', expected: ',', or identifier");
                    return Err(in_requirement(message));
                }
                _ => self.next(),
            };
            values.insert(value.to_owned());
            match self.next() {
                ")" => return Ok(values),
                "," => {}
                token => return Err(in_requirement(format_args!("found '{token}', expected: ',' or ')'"))),
            }
        }
    }
}

/// The values of a condition, if all of them can be values of labels. They are checked in order, once all are read.
fn checked(key: &str, values: BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    let mut wrong = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let field = format!("values[{index}][{key}]");
        let faults = names::label_value(value).into_iter();
        wrong.extend(faults.map(|fault| FieldError::invalid(&*field, value.as_str(), fault).to_string()));
    }
    match wrong.as_slice() {
        [] => Ok(values),
        [one] => Err(in_requirement(one)),
        several => Err(in_requirement(format_args!("[{}]", several.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        LabelSelector::parse(selector).unwrap().matches(&labels.iter().copied().collect())
    }

    #[test]
    fn conditions_are_told_from_labels_alone() {
        let labels = [("app", "x"), ("tier", "2")];
        for selector in [
            "",
            "app=x",
            "app==x",
            "app!=y",
            "app in (x,z)",
            "app notin (y)",
            "tier",
            "!old",
            "tier>1",
            "tier<3",
            " app = x , tier in ( 1 , 2 ) ",
            "old!=z",
            "old notin (z)",
        ] {
            assert!(selects(selector, &labels), "{selector}");
        }
        for selector in
            ["app=y", "app!=x", "app in ()", "app notin (x)", "old", "!tier", "tier>2", "app>1", "app="]
        {
            assert!(!selects(selector, &labels), "{selector}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_why() {
        let cases = [
            ("app=x,", "found '', expected: identifier after ','"),
            ("app=x,,tier", "found ',', expected: identifier after ','"),
            ("app in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("app in x", "unable to parse requirement: found 'x' expected: '('"),
            ("=x", "found '=', expected: !, identifier, or 'end of string'"),
            (
                "tier>one",
                "unable to parse requirement: values[0]: Invalid value: \"one\": for 'Gt', 'Lt' operators, the value \
                 must be an integer",
            ),
        ];
        for (selector, message) in cases {
            assert_eq!(LabelSelector::parse(selector).unwrap_err().message, message, "{selector}");
        }
    }
}
