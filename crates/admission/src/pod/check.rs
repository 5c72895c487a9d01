//! Rules that many fields of a pod share.

use crate::json::At;
use crate::{Verdict, names};

/// A text must be there. Says whether it is.
pub(crate) fn text(at: &At<'_>, verdict: &mut Verdict) -> bool {
    let is_there = !at.text().is_empty();
    if !is_there {
        verdict.required(at.path(), "");
    }
    is_there
}

/// Each of these texts must be there.
pub(crate) fn texts(of: &At<'_>, names: &[&str], verdict: &mut Verdict) {
    for name in names {
        text(&of.get(name), verdict);
    }
}

/// A list must not be empty.
pub(crate) fn list(at: &At<'_>, verdict: &mut Verdict) {
    if at.is_empty() {
        verdict.required(at.path(), "");
    }
}

/// A name must follow its rule, if it is there.
pub(crate) fn name(at: &At<'_>, rule: fn(&str) -> Vec<String>, verdict: &mut Verdict) {
    if at.is_set() && !at.text().is_empty() {
        verdict.invalid_each(at.path(), at.text(), rule(at.text()));
    }
}

/// A name must be there and follow its rule.
pub(crate) fn required_name(at: &At<'_>, rule: fn(&str) -> Vec<String>, verdict: &mut Verdict) {
    if text(at, verdict) {
        name(at, rule, verdict);
    }
}

/// A word must be one of these, if it is there.
pub(crate) fn word(at: &At<'_>, words: &[&str], verdict: &mut Verdict) {
    let given = at.text();
    if at.is_set() && !words.contains(&given) {
        verdict.unsupported(at.path(), given, words);
    }
}

/// A word must be one of these; an empty one stands for its default.
pub(crate) fn word_or_default(at: &At<'_>, words: &[&str], verdict: &mut Verdict) {
    if !at.text().is_empty() {
        word(at, words, verdict);
    }
}

/// A number must be within these bounds, if it is there.
pub(crate) fn range(at: &At<'_>, min: i64, max: i64, verdict: &mut Verdict) {
    if let Some(number) = at.int().filter(|number| !(min..=max).contains(number)) {
        verdict.invalid(at.path(), number, format_args!("must be between {min} and {max}, inclusive"));
    }
}

/// A number must not be below zero.
pub(crate) fn not_negative(at: &At<'_>, verdict: &mut Verdict) {
    if let Some(number) = at.int().filter(|number| *number < 0) {
        verdict.invalid(at.path(), number, "must be greater than or equal to 0");
    }
}

/// The id of a user or group.
pub(crate) fn id(at: &At<'_>, verdict: &mut Verdict) {
    range(at, 0, i64::from(i32::MAX), verdict);
}

/// The permissions of a file.
pub(crate) fn file_mode(at: &At<'_>, verdict: &mut Verdict) {
    if let Some(mode) = at.int().filter(|mode| !(0..=0o777).contains(mode)) {
        verdict.invalid(at.path(), mode, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}

/// A path that does not climb.
pub(crate) fn no_backsteps(at: &At<'_>, verdict: &mut Verdict) {
    if at.text().split('/').any(|part| part == "..") {
        verdict.invalid(at.path(), at.text(), "must not contain '..'");
    }
}

/// A path below some directory.
pub(crate) fn local_path(at: &At<'_>, verdict: &mut Verdict) {
    if at.text().starts_with('/') {
        verdict.invalid(at.path(), at.text(), "must be a relative path");
    }
    no_backsteps(at, verdict);
}

/// A path below some directory, whose name is not one that Kubernetes keeps for itself.
pub(crate) fn local_free_path(at: &At<'_>, verdict: &mut Verdict) {
    local_path(at, verdict);
    let path = at.text();
    if path.starts_with("..") && !path.starts_with("../") {
        verdict.invalid(at.path(), path, "must not start with '..'");
    }
}

/// The name of a controller: a domain and a path, such as `acme.io/foo`.
pub(crate) fn domain_prefixed_path(at: &At<'_>, verdict: &mut Verdict) {
    const PATH: &str = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
    let is_path_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    match at.text().split_once('/') {
        _ if at.text().is_empty() => verdict.required(at.path(), ""),
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            verdict.invalid_each(at.path(), domain, names::dns_subdomain(domain));
            if !path.bytes().all(is_path_byte) {
                verdict.invalid(at.path(), path, PATH);
            }
        }
        _ => {
            let rule = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            verdict.invalid(at.path(), at.text(), rule);
        }
    }
}

/// An IP address.
pub(crate) fn ip_address(at: &At<'_>, verdict: &mut Verdict) {
    verdict.invalid_each(at.path(), at.text(), names::ip_address(at.text()));
}

/// Labels: their names and values.
pub(crate) fn labels(at: &At<'_>, verdict: &mut Verdict) {
    for (key, value) in at.entries() {
        verdict.invalid_each(at.path(), key, names::qualified_name(key));
        verdict.invalid_each(at.path(), value.text(), names::label_value(value.text()));
    }
}

/// Annotations: their names, and how much there is of them.
pub(crate) fn annotations(at: &At<'_>, verdict: &mut Verdict) {
    const N_BYTES_MAX: usize = 256 * 1024;
    let mut n_bytes = 0;
    for (key, value) in at.entries() {
        n_bytes += key.len() + value.text().len();
        verdict.invalid_each(at.path(), key, names::qualified_name(&key.to_lowercase()));
    }
    if n_bytes > N_BYTES_MAX {
        verdict.too_long(at.path(), N_BYTES_MAX);
    }
}

/// A selector of labels.
pub(crate) fn label_selector(at: &At<'_>, verdict: &mut Verdict) {
    labels(&at.get("matchLabels"), verdict);
    for requirement in at.items("matchExpressions") {
        let values = requirement.get("values");
        match requirement.str("operator") {
            "In" | "NotIn" if values.is_empty() => {
                verdict.required(values.path(), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                verdict.forbidden(
                    values.path(),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                );
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                verdict.invalid(requirement.get("operator").path(), other, "not a valid selector operator")
            }
        }
        label_key(&requirement.get("key"), verdict);
        label_values(&values, verdict);
    }
}

/// The name of a label.
pub(crate) fn label_key(at: &At<'_>, verdict: &mut Verdict) {
    verdict.invalid_each(at.path(), at.text(), names::qualified_name(at.text()));
}

/// Values of a label.
pub(crate) fn label_values(at: &At<'_>, verdict: &mut Verdict) {
    for value in at.list() {
        verdict.invalid_each(value.path(), value.text(), names::label_value(value.text()));
    }
}
