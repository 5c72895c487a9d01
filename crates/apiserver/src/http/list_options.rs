//! How lists and watches are wanted, as query parameters say it.

use std::num::{IntErrorKind, ParseIntError};

use krafla_schema::field::FieldError;
use serde_json::json;

use super::query::{Query, not_a_number};
use crate::ops::{ListOptions, Match};
use crate::selector::Filter;
use crate::status::{Qualified, Status};

/// Reads the options of a list.
pub(super) fn list(filter: Filter, query: &Query) -> Result<ListOptions, Status> {
    refuse(check(query))?;
    let limit = query.number("limit")?.unwrap_or(0);
    let is_exact = query.text("resourceVersionMatch") == "Exact";
    let continue_token = query.get("continue").filter(|token| !token.is_empty()).map(str::to_owned);
    let mut options = ListOptions {
        filter,
        limit: usize::try_from(limit).unwrap_or(0),
        continue_token,
        revision: revision(query).map_err(bad_revision)?,
        revision_match: if is_exact { Match::Exact } else { Match::NotOlderThan },
    };
    match (&options.continue_token, options.revision) {
        // Who asks for any revision is answered from memory, where nothing is gained by pages.
        (_, Some(0)) => options.limit = 0,
        (Some(_), Some(_)) => {
            let message = "specifying resource version is not allowed when using continue";
            return Err(Status::bad_request(message));
        }
        (_, _) => {}
    }
    Ok(options)
}

/// Checks that the numbers among the parameters are numbers, which upstream does before it looks at anything else.
pub(super) fn check_numbers(query: &Query) -> Result<(), Status> {
    query.number("timeoutSeconds")?;
    query.number("limit")?;
    Ok(())
}

/// Checks the parameters of a list or a watch against each other.
pub(super) fn check_together(query: &Query) -> Result<(), Status> {
    refuse(check(query))
}

/// The revision of a request.
pub(super) fn revision(query: &Query) -> Result<Option<u64>, Status> {
    let text = query.text("resourceVersion");
    if text.is_empty() {
        return Ok(None);
    }
    let bad = |error: &IntErrorKind| {
        let why = not_a_number("ParseUint", text, error);
        Status::plain(format!("resourceVersion: Invalid value: {}: {why}", json!(text)))
    };
    if text.starts_with('+') {
        return Err(bad(&IntErrorKind::InvalidDigit));
    }
    text.parse().map(Some).map_err(|error: ParseIntError| bad(error.kind()))
}

/// Lists, unlike single objects and watches, say whose fault it is.
fn bad_revision(status: Status) -> Status {
    Status::bad_request(format!("invalid resource version: {}", status.message))
}

fn check(query: &Query) -> Vec<FieldError> {
    if query.flag("watch") { check_watch(query) } else { check_list(query) }
}

const MATCH: &str = "resourceVersionMatch";

fn check_list(query: &Query) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let wanted = query.text(MATCH);
    if !wanted.is_empty() {
        if query.text("resourceVersion").is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(MATCH, why));
        }
        if !query.text("continue").is_empty() {
            errors.push(with_continue());
        }
        match wanted {
            "Exact" if query.text("resourceVersion") == "0" => {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(MATCH, why));
            }
            "Exact" | "NotOlderThan" => {}
            other => errors.push(FieldError::not_supported(MATCH, other, &["Exact", "NotOlderThan", ""])),
        }
    }
    if query.get("sendInitialEvents").is_some() {
        let why = "sendInitialEvents is forbidden for list";
        errors.push(FieldError::forbidden("sendInitialEvents", why));
    }
    errors
}

/// A watch that does not say from when on begins with what there is, as if it had asked for a revision that is not older.
fn check_watch(query: &Query) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let said = query.text(MATCH);
    let sends_initial = query.get("sendInitialEvents").is_some();
    let begins_with_all = matches!(query.text("resourceVersion"), "" | "0");
    let is_implied = begins_with_all && !sends_initial && said.is_empty();
    let wanted = if is_implied { "NotOlderThan" } else { said };
    let sends_initial = sends_initial || is_implied;
    if sends_initial && wanted != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    if wanted.is_empty() {
        return errors;
    }
    if !sends_initial {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    if wanted != "NotOlderThan" {
        errors.push(FieldError::not_supported(MATCH, wanted, &["NotOlderThan"]));
    }
    if !query.text("continue").is_empty() {
        errors.push(with_continue());
    }
    errors
}

fn with_continue() -> FieldError {
    FieldError::forbidden(
        "resourceVersionMatch",
        "resourceVersionMatch is forbidden when continue is provided",
    )
}

fn refuse(errors: Vec<FieldError>) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&Qualified { group: "meta.k8s.io", what: "ListOptions" }, "", &errors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(query: &str, expected: Expect) {
        let said = match list(Filter::default(), &Query::parse(query)) {
            Ok(options) => format!("{:?} {:?} {}", options.revision, options.revision_match, options.limit),
            Err(status) => format!("{} {}", status.code, status.message),
        };
        expected.assert_eq(&said);
    }

    #[test]
    fn a_revision_is_taken_or_refused() {
        check("resourceVersion=7&limit=2", expect!["Some(7) NotOlderThan 2"]);
        check("resourceVersion=7&resourceVersionMatch=Exact", expect!["Some(7) Exact 0"]);
        check("resourceVersion=0&continue=x&limit=1", expect!["Some(0) NotOlderThan 0"]);
        check("limit=x", expect![[r#"400 strconv.ParseInt: parsing "x": invalid syntax"#]]);
        check(
            "resourceVersion=x",
            expect![[
                r#"400 invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax"#
            ]],
        );
        check(
            "resourceVersion=7&continue=x",
            expect!["400 specifying resource version is not allowed when using continue"],
        );
    }
}
