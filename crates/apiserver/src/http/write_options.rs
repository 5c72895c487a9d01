//! How an object is to be written, as query parameters and headers say it.

use krafla_schema::field::FieldError;
use serde_json::json;

use super::query::Query;
use crate::ops::{FieldValidation, Strictness, WriteOptions};
use crate::status::{Qualified, Status};

/// The longest name of a field manager.
const MANAGER_BYTES_MAX: usize = 128;

/// What kind of write the options are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    Create,
    Update,
    Patch,
    /// A patch that says who wants it.
    Apply,
}

/// Reads write options. Who does not name a field manager is known by its user agent.
pub(super) fn decode(kind: WriteKind, query: &Query, user_agent: &str) -> Result<WriteOptions, Status> {
    let errors = check(kind, query);
    if !errors.is_empty() {
        let what = match kind {
            WriteKind::Create => "CreateOptions",
            WriteKind::Update => "UpdateOptions",
            WriteKind::Patch | WriteKind::Apply => "PatchOptions",
        };
        return Err(Status::invalid(&Qualified { group: "meta.k8s.io", what }, "", &errors));
    }
    let manager = match query.text("fieldManager") {
        "" => manager_of_agent(user_agent),
        named => named.to_owned(),
    };
    Ok(WriteOptions {
        dry_run: query.get("dryRun").is_some(),
        manager: Some(manager),
        field_validation: FieldValidation { strictness: strictness(query), found: Vec::new() },
        ..WriteOptions::default()
    })
}

/// What is to be done about fields that nobody knows.
pub(super) fn strictness(query: &Query) -> Strictness {
    match query.text("fieldValidation") {
        "Strict" => Strictness::Refuse,
        "Ignore" => Strictness::Ignore,
        _ => Strictness::Warn,
    }
}

fn check(kind: WriteKind, query: &Query) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let manager = query.text("fieldManager");
    match kind {
        WriteKind::Apply if manager.is_empty() => {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        WriteKind::Patch if query.get("force").is_some() => {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        WriteKind::Create | WriteKind::Update | WriteKind::Patch | WriteKind::Apply => {}
    }
    errors.extend(check_manager(manager));
    errors.extend(check_dry_run(query.all("dryRun")));
    match query.text("fieldValidation") {
        "" | "Ignore" | "Strict" | "Warn" => {}
        other => {
            let supported = ["", "Ignore", "Strict", "Warn"];
            errors.push(FieldError::not_supported("fieldValidation", other, &supported));
        }
    }
    errors
}

/// Only a dry run of everything is known.
pub(super) fn check_dry_run<'a>(values: impl Iterator<Item = &'a str>) -> Option<FieldError> {
    let values: Vec<&str> = values.collect();
    let is_known = values.iter().all(|value| *value == "All");
    (!is_known).then(|| FieldError::not_supported("dryRun", json!(values), &["All"]))
}

/// Whether Go would print a character as it is. The letter before it keeps marks that combine from being escaped.
fn is_printable(character: char) -> bool {
    matches!(character, '"' | '\'' | '\\') || format!("a{character}").escape_debug().count() == 2
}

fn check_manager(manager: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long("fieldManager", MANAGER_BYTES_MAX));
    }
    for (position, character) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let why = format!("invalid character U+{:04X} (at position {position})", u32::from(character));
        errors.push(FieldError::invalid("fieldManager", manager, why));
    }
    errors
}

/// The program's name, as far as it can be printed.
fn manager_of_agent(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for character in name.chars().filter(|character| is_printable(*character)) {
        if manager.len() + character.len_utf8() > MANAGER_BYTES_MAX {
            break;
        }
        manager.push(character);
    }
    manager
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(query: &str, user_agent: &str) -> Option<String> {
        decode(WriteKind::Create, &Query::parse(query), user_agent).unwrap().manager
    }

    #[test]
    fn a_manager_is_named_or_known_by_its_user_agent() {
        assert_eq!(manager("fieldManager=me", "kubectl/v1.36.1"), Some("me".to_owned()));
        assert_eq!(manager("fieldManager=", "kubectl/v1.36.1 (linux)"), Some("kubectl".to_owned()));
        assert_eq!(manager("", "a\u{7}b"), Some("ab".to_owned()));
        assert_eq!(manager("", &"ä".repeat(100)).map(|name| name.len()), Some(MANAGER_BYTES_MAX));
        assert_eq!(manager("", ""), Some(String::new()));
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let query = Query::parse("force=true&dryRun=Some&fieldValidation=x&fieldManager=a%07");
        let status = decode(WriteKind::Patch, &query, "").unwrap_err();
        assert!(status.message.starts_with("PatchOptions.meta.k8s.io \"\" is invalid: [force: "), "{status}");
        assert_eq!(status.details.map(|details| details.causes.len()), Some(4));
    }
}
