//! Kubernetes' `Status`: the one form in which the server says no.
//!
//! Clients decide by `code` and `reason`, people read `message`, and `kubectl` prints the causes. All three are as
//! kube-apiserver words them, because scripts match on them.

use std::borrow::Cow;
use std::collections::HashSet;

use krafla_cluster::{Cause, Details};
use krafla_schema::apply::Conflict;
use krafla_schema::field::FieldError;
use krafla_schema::json::go_quote;
use krafla_schema::object;
use serde_json::{Value, json};

/// An answer other than the object that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// One word for programs; empty where upstream gives none.
    pub reason: Cow<'static, str>,
    /// A sentence for people.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
}

/// A resource or kind with its group, as messages name it: `pods`, `jobs.batch.volcano.sh`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qualified<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Plural of the resource, or the kind.
    pub what: &'a str,
}

impl std::fmt::Display for Qualified<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.what)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

fn details_of(what: &Qualified<'_>, name: &str) -> Details {
    Details { group: what.group.into(), kind: what.what.into(), name: name.into(), ..Details::default() }
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status { code, reason: reason.into(), message: message.into(), details: None }
    }

    fn with(self, details: Details) -> Status {
        Status { details: Some(Box::new(details)), ..self }
    }

    fn about(self, what: &Qualified<'_>, name: &str) -> Status {
        self.with(details_of(what, name))
    }

    fn with_cause(mut self, reason: &str, message: &str, field: &str) -> Status {
        let cause = Cause { reason: reason.into(), message: message.into(), field: field.into() };
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// There is no such object.
    pub fn not_found(resource: &Qualified<'_>, name: &str) -> Status {
        Status::new(404, "NotFound", format!("{resource} \"{name}\" not found")).about(resource, name)
    }

    /// There is no such resource, or it does not have that subresource.
    pub fn unknown_resource() -> Status {
        Status::new(404, "NotFound", "the server could not find the requested resource")
            .with(Details::default())
    }

    /// An object of that name exists.
    pub fn already_exists(resource: &Qualified<'_>, name: &str) -> Status {
        Status::new(409, "AlreadyExists", format!("{resource} \"{name}\" already exists"))
            .about(resource, name)
    }

    /// The object is not what the client believes it to be.
    pub fn conflict(resource: &Qualified<'_>, name: &str, why: &str) -> Status {
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Status::new(409, "Conflict", message).about(resource, name)
    }

    /// The object changed since the client read it.
    pub fn stale(resource: &Qualified<'_>, name: &str) -> Status {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(resource, name, why)
    }

    /// Other managers own fields that an apply would change.
    pub fn apply_conflict(conflicts: &[Conflict]) -> Status {
        let cause = |conflict: &Conflict| Cause {
            reason: "FieldManagerConflict".into(),
            message: format!("conflict with {}", conflict.manager),
            field: conflict.field.clone(),
        };
        let causes = conflicts.iter().map(cause).collect();
        Status::new(409, "Conflict", Conflict::message(conflicts))
            .with(Details { causes, ..Details::default() })
    }

    /// The request does not make sense.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// The object breaks rules of its kind. All of them are named at once.
    pub fn invalid(kind: &Qualified<'_>, name: &str, errors: &[FieldError]) -> Status {
        let cause = |error: &FieldError| Cause {
            reason: error.reason().into(),
            message: error.message(),
            field: error.field.clone(),
        };
        Status::invalid_for(kind, name, errors.iter().map(cause).collect())
    }

    /// The object is invalid for these reasons.
    pub fn invalid_for(kind: &Qualified<'_>, name: &str, causes: Vec<Cause>) -> Status {
        // Equal findings are said once in the sentence, but each is listed.
        let mut sentences: Vec<String> = Vec::new();
        let mut said = HashSet::new();
        for Cause { field, message, .. } in &causes {
            if said.insert((field, message)) {
                sentences.push(if field.is_empty() {
                    message.clone()
                } else {
                    format!("{field}: {message}")
                });
            }
        }
        let list = match sentences.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let status = Status::new(422, "Invalid", format!("{kind} {} is invalid: {list}", go_quote(name)));
        status.with(Details { causes, ..details_of(kind, name) })
    }

    /// A patch cannot be applied; upstream does not say why.
    pub fn patch_refused() -> Status {
        let message = "the server rejected our request due to an error in our request";
        Status::new(422, "Invalid", message).with(Details::default())
    }

    /// The rules of the cluster do not allow it.
    pub fn forbidden(resource: &Qualified<'_>, name: &str, why: &str) -> Status {
        let object = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
        Status::new(403, "Forbidden", format!("{resource}{object} is forbidden: {why}")).about(resource, name)
    }

    /// Whoever asks may not see this path.
    pub fn forbidden_path(why: &str) -> Status {
        Status::new(403, "Forbidden", format!("forbidden: {why}")).with(Details::default())
    }

    /// Nothing new may be put into a namespace that is going away.
    pub fn namespace_terminating(resource: &Qualified<'_>, name: &str, namespace: &str) -> Status {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Status::forbidden(resource, name, &why).with_cause(
            "NamespaceTerminating",
            &format!("namespace {namespace} is being terminated"),
            "metadata.namespace",
        )
    }

    /// Nobody knows who asks.
    pub fn unauthorized() -> Status {
        Status::new(401, "Unauthorized", "Unauthorized")
    }

    /// The resource does not have this verb.
    pub fn method_not_allowed() -> Status {
        let message = "the server does not allow this method on the requested resource";
        Status::new(405, "MethodNotAllowed", message).with(Details::default())
    }

    /// Objects of this resource cannot be treated so.
    pub fn verb_not_supported(resource: &Qualified<'_>, verb: &str) -> Status {
        let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Status::new(405, "MethodNotAllowed", message).about(resource, "")
    }

    /// None of the media types that the client accepts can be offered.
    pub fn not_acceptable(accepted: &str) -> Status {
        Status::new(406, "NotAcceptable", format!("only the following media types are accepted: {accepted}"))
    }

    /// The client accepts no media type that is known here.
    pub fn nothing_acceptable(offered: &str) -> Status {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {offered}");
        Status::new(406, "NotAcceptable", message).with(Details::default())
    }

    /// A single form was asked of a list, or the reverse.
    pub fn wrong_form(message: String) -> Status {
        Status::new(406, "NotAcceptable", message)
    }

    /// The body is in a media type that nobody here reads.
    pub fn unsupported_media_type(accepted: &str) -> Status {
        let message = "the body of the request was in an unknown format - accepted media types include";
        Status::new(415, "UnsupportedMediaType", format!("{message}: {accepted}"))
    }

    /// The patch is in a media type that the resource does not know.
    pub fn unsupported_patch_type() -> Status {
        Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with(Details::default())
    }

    /// The body is larger than the server reads.
    pub fn too_large(why: impl std::fmt::Display) -> Status {
        Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
    }

    /// The object is larger than a store holds, in etcd's words.
    pub fn object_too_large() -> Status {
        Status::plain("etcdserver: request is too large")
    }

    /// The history that was asked for is no longer known: list again.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, "Expired", message)
    }

    /// The rest of a list is no longer known as it was; as it is now it can still be had.
    pub fn page_expired(message: impl Into<String>, continue_token: String) -> Status {
        Status::expired(message).with(Details { continue_token, ..Details::default() })
    }

    /// The client knows a revision that the server has not reached.
    pub fn revision_too_large(asked: u64, current: u64) -> Status {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Status::new(504, "Timeout", message).with_cause(
            "ResourceVersionTooLarge",
            "Too large resource version",
            "",
        );
        status.details.get_or_insert_default().retry_after_seconds = 1;
        status
    }

    /// The server has too much to do.
    pub fn too_many_requests(message: &str, retry_after_seconds: u32) -> Status {
        let details = Details { retry_after_seconds, ..Details::default() };
        Status::new(429, "TooManyRequests", message).with(details)
    }

    /// Something did not happen in time.
    pub fn timeout(message: impl Into<String>) -> Status {
        Status::new(504, "Timeout", message)
    }

    /// Something is broken on our side.
    pub fn internal(why: &str) -> Status {
        Status::new(500, "InternalError", format!("Internal error occurred: {why}")).with_cause("", why, "")
    }

    /// A refusal to which upstream gives code 500 and no reason.
    pub fn plain(message: impl Into<String>) -> Status {
        Status::new(500, "", message)
    }

    /// This server does not have what others have.
    pub fn not_implemented(why: &str) -> Status {
        Status::new(501, "NotImplemented", why)
    }

    /// The server is stopping, or its store is.
    pub fn unavailable(message: impl Into<String>) -> Status {
        Status::new(503, "ServiceUnavailable", message)
    }

    /// As it goes over the wire.
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            object::set(&mut status, "reason", &*self.reason);
        }
        match &self.details {
            Some(details) if !details.continue_token.is_empty() => {
                object::set(&mut status, "metadata", json!({"continue": details.continue_token}));
            }
            Some(details) => object::set(&mut status, "details", details.to_json()),
            None => {}
        }
        status
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// The answer to a deletion that left nothing behind.
pub fn deleted(resource: &Qualified<'_>, name: &str, uid: &str) -> Value {
    let details = Details { uid: uid.into(), ..details_of(resource, name) };
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success", "details": details.to_json(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_custom_object_is_named_with_its_group() {
        let status = Status::not_found(&Qualified { group: "batch.volcano.sh", what: "jobs" }, "a");
        assert_eq!(status.message, "jobs.batch.volcano.sh \"a\" not found");
        assert_eq!(
            status.to_json()["details"],
            json!({"group": "batch.volcano.sh", "kind": "jobs", "name": "a"})
        );
    }

    #[test]
    fn several_findings_are_listed_in_brackets_and_equal_ones_once() {
        let twice =
            [FieldError::required("a", ""), FieldError::required("b", "why"), FieldError::required("a", "")];
        let status = Status::invalid(&Qualified { group: "", what: "Pod" }, "p", &twice);
        assert_eq!(status.message, "Pod \"p\" is invalid: [a: Required value, b: Required value: why]");
        assert_eq!(status.details.map(|d| d.causes.len()), Some(3));
    }
}
