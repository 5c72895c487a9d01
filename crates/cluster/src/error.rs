//! Why a request failed.

use std::time::Duration;

use serde_json::{Map, Value};

/// Why a request did not succeed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClientError {
    /// There is no such object.
    #[error("not found: {0}")]
    NotFound(Refusal),
    /// An object of that name exists.
    #[error("already exists: {0}")]
    AlreadyExists(Refusal),
    /// The object is not what the write was computed from, or is another one of the same name.
    #[error("conflict: {0}")]
    Conflict(Refusal),
    /// The watch cannot continue from there: list again.
    #[error("expired: {0}")]
    Expired(Refusal),
    /// The server will not take this, now or later, unless something else changes.
    #[error("refused ({code}): {0}", code = .0.code)]
    Refused(Refusal),
    /// The server has too much to do.
    #[error("too many requests: {refusal}")]
    Busy {
        /// The server's words.
        refusal: Refusal,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// No answer, or a server error: the write may or may not have been made.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}

/// What a server says when it refuses: Kubernetes' `Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// One word for programs; empty if the server gives none.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// What it is about, and its causes.
    pub details: Option<Box<Details>>,
}

impl Refusal {
    fn new(code: u16, reason: &str, message: String) -> Refusal {
        Refusal { code, reason: reason.to_owned(), message, details: None }
    }

    /// The causes that the server names.
    pub fn causes(&self) -> &[Cause] {
        self.details.as_ref().map_or(&[], |details| &details.causes)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// API group of the resource or kind.
    pub group: String,
    /// The resource's plural or the object's kind, whichever upstream names here.
    pub kind: String,
    /// The object's name.
    pub name: String,
    /// The object's UID, for successes.
    pub uid: String,
    /// Single findings.
    pub causes: Vec<Cause>,
    /// When to ask again; zero for "no hint".
    pub retry_after_seconds: u32,
    /// How to get the rest of a list all the same. It is shown with the metadata, as that of lists is.
    pub continue_token: String,
}

/// One finding of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// One word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The field it is about.
    pub field: String,
}

impl Details {
    /// Details of another server; fields that cannot be read are left out.
    pub fn read(details: &Value) -> Details {
        let text =
            |of: &Value, field: &str| of.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let cause = |cause: &Value| Cause {
            reason: text(cause, "reason"),
            message: text(cause, "message"),
            field: text(cause, "field"),
        };
        Details {
            group: text(details, "group"),
            kind: text(details, "kind"),
            name: text(details, "name"),
            uid: text(details, "uid"),
            causes: details
                .get("causes")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(cause)
                .collect(),
            retry_after_seconds: details
                .get("retryAfterSeconds")
                .and_then(Value::as_u64)
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(0),
            continue_token: String::new(),
        }
    }

    /// As it goes over the wire.
    pub fn to_json(&self) -> Value {
        let mut details = Map::new();
        for (key, text) in
            [("group", &self.group), ("kind", &self.kind), ("name", &self.name), ("uid", &self.uid)]
        {
            if !text.is_empty() {
                details.insert(key.into(), text.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            details.insert("causes".into(), self.causes.iter().map(Cause::to_json).collect());
        }
        if self.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        Value::Object(details)
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut cause = Map::new();
        for (key, text) in [("field", &self.field), ("message", &self.message), ("reason", &self.reason)] {
            if !text.is_empty() {
                cause.insert(key.into(), text.as_str().into());
            }
        }
        Value::Object(cause)
    }
}

impl ClientError {
    /// What a server's refusal means.
    pub fn from_refusal(refusal: Refusal, retry_after: Option<Duration>) -> ClientError {
        match (refusal.code, &*refusal.reason) {
            (404, _) => ClientError::NotFound(refusal),
            (409, "AlreadyExists") => ClientError::AlreadyExists(refusal),
            (409, _) => ClientError::Conflict(refusal),
            (410, _) => ClientError::Expired(refusal),
            (429, _) => ClientError::Busy { refusal, retry_after },
            (400..500, _) => ClientError::Refused(refusal),
            _ => ClientError::Unknown(refusal.message),
        }
    }

    /// There is no such object.
    pub fn not_found(message: impl Into<String>) -> ClientError {
        ClientError::NotFound(Refusal::new(404, "NotFound", message.into()))
    }

    /// An object of that name exists.
    pub fn already_exists(message: impl Into<String>) -> ClientError {
        ClientError::AlreadyExists(Refusal::new(409, "AlreadyExists", message.into()))
    }

    /// The object is not what the write was computed from.
    pub fn conflict(message: impl Into<String>) -> ClientError {
        ClientError::Conflict(Refusal::new(409, "Conflict", message.into()))
    }

    /// The watch cannot continue from there.
    pub fn expired(message: impl Into<String>) -> ClientError {
        ClientError::Expired(Refusal::new(410, "Expired", message.into()))
    }

    /// The rules of the cluster do not allow it.
    pub fn forbidden(message: impl Into<String>) -> ClientError {
        ClientError::Refused(Refusal::new(403, "Forbidden", message.into()))
    }

    /// The server has too much to do.
    pub fn busy(message: impl Into<String>, retry_after: Option<Duration>) -> ClientError {
        ClientError::Busy { refusal: Refusal::new(429, "TooManyRequests", message.into()), retry_after }
    }

    /// What the server said, with its causes; nothing if there was no usable answer.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            ClientError::NotFound(refusal)
            | ClientError::AlreadyExists(refusal)
            | ClientError::Conflict(refusal)
            | ClientError::Expired(refusal)
            | ClientError::Refused(refusal)
            | ClientError::Busy { refusal, .. } => Some(refusal),
            ClientError::Unknown(_) => None,
        }
    }

    /// The words of the server or, without an answer, what went wrong.
    pub fn message(&self) -> &str {
        match self {
            ClientError::Unknown(why) => why,
            refused => refused.refusal().map_or("", |refusal| &refusal.message),
        }
    }

    /// Whether the namespace is being deleted and takes no new objects. Kubernetes names the cause in the message and
    /// in a detail that not every answer has.
    pub fn is_of_a_namespace_that_goes(&self) -> bool {
        matches!(self, ClientError::Refused(refusal)
            if refusal.message.ends_with("because it is being terminated"))
    }

    /// A stable word for metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            ClientError::NotFound(_) => "not_found",
            ClientError::AlreadyExists(_) => "already_exists",
            ClientError::Conflict(_) => "conflict",
            ClientError::Expired(_) => "expired",
            ClientError::Refused(_) => "refused",
            ClientError::Busy { .. } => "busy",
            ClientError::Unknown(_) => "unknown",
        }
    }
}
