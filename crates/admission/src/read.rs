//! Reading an object, and finding the field at which that fails.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Path, Reason, Verdict};

/// Reads an object, or says what in it cannot be read. Null reads as an empty object, as in Kubernetes.
pub(crate) fn read<T: DeserializeOwned + Default>(object: &Value, verdict: &mut Verdict) -> Option<T> {
    if object.is_null() {
        return Some(T::default());
    }
    match T::deserialize(object) {
        Ok(object) => Some(object),
        Err(error) => {
            let place = locate(object, |part| T::deserialize(part).is_ok());
            verdict.refuse(&place, Reason::Invalid, format!("cannot be read: {error}"));
            None
        }
    }
}

/// One step into a document.
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

/// The place of what cannot be read: the innermost part that, left alone in the object, still cannot be.
pub fn locate(object: &Value, can_be_read: impl Fn(&Value) -> bool) -> Path {
    let (mut steps, mut at) = (Vec::new(), object);
    while let Some((step, part)) = bad_part(&steps, at, &can_be_read) {
        steps.push(step);
        at = part;
    }
    steps.iter().fold(Path::default(), |path, step| match step {
        Step::Field(name) => path.field(name),
        Step::Item(index) => path.index(*index),
    })
}

fn bad_part<'a>(
    steps: &[Step<'a>],
    at: &'a Value,
    can_be_read: &impl Fn(&Value) -> bool,
) -> Option<(Step<'a>, &'a Value)> {
    let is_bad = |alone: Value| !can_be_read(&wrapped(steps, alone));
    // Where something is required, no part can stand alone: the whole is the place then.
    match at {
        Value::Object(_) if is_bad(json!({})) => None,
        Value::Object(fields) => {
            let bad = fields.iter().find(|(name, part)| is_bad(json!({ name.as_str(): part })));
            bad.map(|(name, part)| (Step::Field(name), part))
        }
        Value::Array(items) => {
            let bad = items.iter().enumerate().find(|(_, part)| is_bad(json!([part])));
            bad.map(|(index, part)| (Step::Item(index), part))
        }
        _ => None,
    }
}

/// The part at the end of these steps, in an object that holds nothing else.
fn wrapped(steps: &[Step<'_>], part: Value) -> Value {
    steps.iter().rev().fold(part, |inner, step| match step {
        Step::Field(name) => json!({ *name: inner }),
        Step::Item(_) => json!([inner]),
    })
}

#[cfg(test)]
mod tests {
    use krafla_api::volcano::Job;
    use serde::Deserialize;

    use super::*;

    fn said(object: &Value) -> String {
        let mut verdict = Verdict::default();
        read::<Job>(object, &mut verdict);
        verdict.message()
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (spec, expected) in [
            (json!({ "tasks": [{ "replicas": 1 }, { "replicas": "2" }] }), "spec.tasks[1].replicas"),
            (json!({ "plugins": { "svc": "x" } }), "spec.plugins.svc"),
            (json!({ "policies": [{ "timeout": "5 minutes" }] }), "spec.policies[0].timeout"),
            (json!("none"), "spec"),
        ] {
            let said = said(&json!({ "spec": spec }));
            assert!(said.starts_with(&format!("{expected}: cannot be read: ")), "{said}");
        }
        assert_eq!(said(&json!({ "spec": { "queue": "a" } })), "");
    }

    #[test]
    fn where_something_is_required_the_whole_is_named() {
        #[derive(serde::Deserialize)]
        #[expect(dead_code, reason = "it is only read")]
        struct Header {
            name: String,
            value: String,
        }
        #[derive(serde::Deserialize)]
        #[expect(dead_code, reason = "it is only read")]
        struct Request {
            #[serde(default)]
            headers: Vec<Header>,
        }
        let request = json!({ "headers": [{ "name": "a", "value": 1 }] });
        let place = locate(&request, |part| Request::deserialize(part).is_ok());
        assert_eq!(place.to_string(), "headers[0]");
    }
}
