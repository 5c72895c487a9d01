//! Events: one kind in two groups. They are stored as `v1` has them; `events.k8s.io/v1` calls many fields otherwise, and
//! is strict with what is new.

use krafla_schema::field::FieldError;
use krafla_schema::names;
use krafla_schema::object;
use serde_json::{Map, Value};

use super::Rules;
use crate::registry::conversion::{Conversion, rename};

/// The longest `note`, in bytes.
const NOTE_BYTES_MAX: usize = 1024;
/// The longest `action`, `reason` and `reportingInstance`, in bytes.
const WORD_BYTES_MAX: usize = 128;

/// Fields of `events.k8s.io/v1`, and what `v1` calls them.
pub const FIELDS: [(&str, &str); 7] = [
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
];

/// What events of `events.k8s.io/v1` can be selected by.
const SELECTABLE: [(&str, &str); 10] = [
    ("reason", "reason"),
    ("regarding.apiVersion", "involvedObject.apiVersion"),
    ("regarding.fieldPath", "involvedObject.fieldPath"),
    ("regarding.kind", "involvedObject.kind"),
    ("regarding.name", "involvedObject.name"),
    ("regarding.namespace", "involvedObject.namespace"),
    ("regarding.resourceVersion", "involvedObject.resourceVersion"),
    ("regarding.uid", "involvedObject.uid"),
    ("reportingController", "reportingComponent"),
    ("type", "type"),
];

/// How events of `events.k8s.io/v1` are stored.
pub fn conversion() -> Conversion {
    Conversion {
        to_stored,
        from_stored,
        stored_type: krafla_schema::builtin().kind("", "v1", "Event"),
        fields: &SELECTABLE,
    }
}

/// The fields of an event as `v1` calls them.
pub fn to_stored(event: &mut Map<String, Value>) {
    rename(event, FIELDS);
}

fn from_stored(event: &mut Map<String, Value>) {
    // One form prints these two though they are empty, the other does not.
    event.retain(|name, value| !(name.starts_with("reporting") && value == ""));
    rename(event, FIELDS.map(|(shown, stored)| (stored, shown)));
}

/// Events of one of the two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `v1`.
    Core,
    /// `events.k8s.io/v1`.
    New,
}

impl Rules for Event {
    fn validate(&self, event: &Value) -> Vec<FieldError> {
        let event = as_stored(event);
        let mut errors = self.check(&event);
        if *self == Event::New {
            errors.extend(check_new(&event));
        }
        errors
    }

    fn validate_update(&self, event: &Value, old: &Value) -> Vec<FieldError> {
        let (event, old) = (as_stored(event), as_stored(old));
        let mut errors = self.check(&event);
        if *self == Event::New {
            errors.extend(check_changed(&event, &old));
        }
        errors
    }

    fn selectable(&self, object: &Value, field: &str) -> String {
        let first_of = |paths: [&str; 2]| {
            paths
                .iter()
                .map(|path| object::text_at(object, path))
                .find(|text| !text.is_empty())
                .unwrap_or_default()
        };
        match field {
            "source" => first_of(["source.component", "reportingComponent"]),
            "reportingController" => object::text_at(object, "reportingComponent"),
            _ => object::text_at(object, field),
        }
    }
}

impl Event {
    /// What holds in both groups. An event with an `eventTime` is of the new kind, wherever it is written.
    fn check(self, event: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let is_of_new_kind = !object::text_at(event, "eventTime").is_empty();
        let (own, about) = (object::namespace(event), object::text_at(event, "involvedObject.namespace"));
        let belongs = match (about.as_str(), own) {
            ("", "default") => true,
            ("", "kube-system") => is_of_new_kind,
            ("", _) => false,
            (about, own) => is_of_new_kind || about == own,
        };
        if !belongs {
            let why = "does not match event.namespace";
            errors.push(FieldError::invalid("involvedObject.namespace", about, why));
        }
        if is_of_new_kind {
            errors.extend(self.check_words(event));
        }
        errors
    }

    /// An event of the new kind says who saw what and why, in words that are not too long.
    fn check_words(self, event: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let controller_field = match self {
            Event::Core => "reportingComponent",
            Event::New => "reportingController",
        };
        let controller = object::text_at(event, "reportingComponent");
        if controller.is_empty() {
            errors.push(FieldError::required(controller_field, ""));
        }
        let wrong = names::qualified_name(&controller).into_iter();
        errors.extend(wrong.map(|what| FieldError::invalid(controller_field, controller.as_str(), what)));
        for field in ["reportingInstance", "action", "reason"] {
            let word = object::text_at(event, field);
            if word.is_empty() {
                errors.push(FieldError::required(field, ""));
            }
            errors.extend(too_long(field, &word, WORD_BYTES_MAX));
        }
        errors.extend(too_long("message", &object::text_at(event, "message"), NOTE_BYTES_MAX));
        errors
    }
}

fn too_long(field: &str, text: &str, limit: usize) -> Option<FieldError> {
    let why = || FieldError::invalid(field, "", format!("can have at most {limit} characters"));
    (text.len() > limit).then(why)
}

/// What is created through the new group is of the new kind, and has none of the old one's fields.
fn check_new(event: &Value) -> Vec<FieldError> {
    let mut errors = check_series(event);
    if object::text_at(event, "eventTime").is_empty() {
        errors.push(FieldError::required("eventTime", ""));
    }
    match object::text_at(event, "type").as_str() {
        "Normal" | "Warning" => {}
        other => errors.push(FieldError::invalid("type", "", format!("has invalid value: {other}"))),
    }
    let is_set = |path: &str| !matches!(object::text_at(event, path).as_str(), "" | "0");
    let old_fields: [(&str, &[&str]); 4] = [
        ("firstTimestamp", &["firstTimestamp"]),
        ("lastTimestamp", &["lastTimestamp"]),
        ("count", &["count"]),
        ("source", &["source.component", "source.host"]),
    ];
    for (field, paths) in old_fields {
        if paths.iter().any(|path| is_set(path)) {
            errors.push(FieldError::invalid(field, "", "needs to be unset"));
        }
    }
    errors
}

/// Only the series of an event goes on through the new group.
fn check_changed(event: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = if event.get("series") == old.get("series") { Vec::new() } else { check_series(event) };
    let fixed = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (field, spoken) in fixed {
        let (new, old) = (event.get(field), old.get(field));
        if new != old {
            let shown = new.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(spoken, shown, "field is immutable"));
        }
    }
    errors
}

fn check_series(event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(series) = event.get("series").filter(|series| !series.is_null()) else { return errors };
    if series["count"].as_i64().unwrap_or(0) < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if series["lastObservedTime"].as_str().unwrap_or_default().is_empty() {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
    errors
}

fn as_stored(event: &Value) -> Value {
    let mut event = event.clone();
    to_stored(object::fields(&mut event));
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn new_event(change: impl FnOnce(&mut Value)) -> Value {
        let mut event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": "e", "namespace": "ns"},
            "eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "example.com/c",
            "reportingInstance": "c-1", "action": "Do", "reason": "Done", "type": "Normal", "note": "all is well",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "ns"},
        });
        change(&mut event);
        event
    }

    fn check(errors: Vec<FieldError>, expected: Expect) {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn an_event_is_the_same_in_both_forms() {
        let mut event = new_event(|event| event["series"] = json!({"count": 3}));
        let original = event.clone();
        to_stored(object::fields(&mut event));
        assert_eq!(event["involvedObject"]["name"], "p");
        assert_eq!(event["message"], "all is well");
        assert_eq!(event["reportingComponent"], "example.com/c");
        from_stored(object::fields(&mut event));
        assert_eq!(event, original);
    }

    #[test]
    fn what_is_new_says_who_saw_what() {
        check(Event::New.validate(&new_event(|_| {})), expect![""]);
        let event = new_event(|event| {
            event["reportingController"] = "".into();
            event["action"] = "x".repeat(129).into();
            event["note"] = "x".repeat(1025).into();
            event["reason"] = "".into();
            event["type"] = "Odd".into();
            event["deprecatedCount"] = 1.into();
            event["deprecatedSource"] = json!({"host": "h"});
            event["series"] = json!({"count": 1});
        });
        check(
            Event::New.validate(&event),
            expect![[r#"
            reportingController: Required value
            reportingController: Invalid value: "": name part must be non-empty
            reportingController: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            action: Invalid value: "": can have at most 128 characters
            reason: Required value
            message: Invalid value: "": can have at most 1024 characters
            series.count: Invalid value: "": should be at least 2
            series.lastObservedTime: Required value
            type: Invalid value: "": has invalid value: Odd
            count: Invalid value: "": needs to be unset
            source: Invalid value: "": needs to be unset"#]],
        );
    }

    #[test]
    fn only_its_series_goes_on() {
        let old = new_event(|_| {});
        let next = new_event(|event| {
            event["series"] = json!({"count": 2, "lastObservedTime": "2020-01-01T00:00:01.000000Z"});
        });
        check(Event::New.validate_update(&next, &old), expect![""]);
        let other = new_event(|event| event["note"] = "something else".into());
        check(
            Event::New.validate_update(&other, &old),
            expect![[r#"message: Invalid value: "something else": field is immutable"#]],
        );
        check(Event::Core.validate_update(&other, &old), expect![""]);
    }

    #[test]
    fn an_event_is_in_the_namespace_of_what_it_is_about() {
        let of = |namespace: &str, about: &str| {
            let event = json!({"metadata": {"namespace": namespace}, "involvedObject": {"namespace": about}});
            Event::Core.validate(&event).is_empty()
        };
        assert!(of("ns", "ns") && of("default", ""));
        assert!(!of("ns", "") && !of("ns", "other") && !of("kube-system", ""));
    }
}
