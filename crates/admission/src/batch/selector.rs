//! How a Job knows its pods: by a selector that the server makes, or that the user vouches for.

use serde_json::{Map, Value};

use crate::json::At;
use crate::pod::check;
use crate::{Reason, Verdict};

/// The labels that the server gives to the pods of a Job, by the part of its metadata that they repeat.
const GENERATED: [(&str, &str); 4] = [
    ("controller-uid", "uid"),
    ("job-name", "name"),
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
];

/// Checks that a selector is there, makes sense, and selects the Job's own pods.
pub(super) fn validate(spec: &At<'_>, verdict: &mut Verdict) {
    let selector = spec.get("selector");
    if selector.is_set() {
        check::label_selector(&selector, verdict);
    } else {
        verdict.required(selector.path(), "");
    }
    let labels = spec.get("template").get("metadata").get("labels");
    // A selector that makes no sense is told as such, and one that is missing selects nothing.
    let is_told = selector.is_set() && !is_valid(&selector);
    if !is_told && (!selector.is_set() || !matches(&selector, labels.fields())) {
        verdict.invalid(labels.path(), labels.value(), "`selector` does not match template `labels`");
    }
}

/// Checks what the server makes, where the user does not ask for a selector of their own. A Job that was stored before labels had a
/// prefix need not have those that do.
pub(super) fn validate_generated(job: &At<'_>, stored: Option<&At<'_>>, verdict: &mut Verdict) {
    let (metadata, spec) = (job.get("metadata"), job.get("spec"));
    let selector = spec.get("selector");
    if spec.get("manualSelector").is_true() || !selector.is_set() {
        return;
    }
    let labels = spec.get("template").get("metadata").get("labels");
    let mut expected = Map::new();
    let needs_prefixed = stored.is_none_or(has_prefixed_labels);
    for (label, part) in GENERATED.into_iter().filter(|(label, _)| needs_prefixed || !is_prefixed(label)) {
        let (wanted, place) = (metadata.str(part), labels.path().key(label));
        expected.insert(label.to_owned(), wanted.into());
        match labels.value().get(label).and_then(Value::as_str) {
            Some(value) if value == wanted => {}
            Some(_) => verdict.invalid(&place, labels.value(), format!("must be '{wanted}'")),
            None => verdict.refuse(&place, Reason::Required, format!("Required value: must be '{wanted}'")),
        }
    }
    if is_valid(&selector) && !matches(&selector, Some(&expected)) {
        verdict.invalid(selector.path(), selector.value(), "`selector` not auto-generated");
    }
}

fn is_prefixed(label: &str) -> bool {
    label.contains('/')
}

fn has_prefixed_labels(job: &At<'_>) -> bool {
    let labels = job.get("spec").get("template").get("metadata").get("labels");
    GENERATED.iter().all(|(label, _)| !is_prefixed(label) || labels.value().get(*label).is_some())
}

/// Whether a selector can select at all.
fn is_valid(selector: &At<'_>) -> bool {
    let mut verdict = Verdict::default();
    check::label_selector(selector, &mut verdict);
    verdict.is_allowed()
}

/// Whether a selector selects what has these labels. One without requirements selects everything.
fn matches(selector: &At<'_>, labels: Option<&Map<String, Value>>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let mut wanted = selector.get("matchLabels").entries().into_iter();
    let holds = |expression: &At<'_>| {
        let values = expression.items("values");
        let value = label(expression.str("key"));
        let is_listed = value.is_some_and(|value| values.iter().any(|listed| listed.text() == value));
        match expression.str("operator") {
            "In" => is_listed,
            "NotIn" => !is_listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    wanted.all(|(key, value)| label(key) == Some(value.text()))
        && selector.items("matchExpressions").iter().all(holds)
}
