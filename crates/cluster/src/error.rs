//! Why a request failed.

use std::time::Duration;

/// Why a request did not succeed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClientError {
    /// There is no such object.
    #[error("not found: {0}")]
    NotFound(String),
    /// An object of that name exists.
    #[error("already exists: {0}")]
    AlreadyExists(String),
    /// The object is not what the write was computed from, or is another one of the same name.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The watch can not go on from there: list again.
    #[error("expired: {0}")]
    Expired(String),
    /// The server will not take this, now or later, unless something else changes.
    #[error("refused ({code}): {message}")]
    Refused {
        /// HTTP status.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// The server has too much to do.
    #[error("too many requests: {message}")]
    Busy {
        /// The server's words.
        message: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// No answer, or a server error: the write may or may not have been made.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}

impl ClientError {
    /// What a server's refusal means: its HTTP status, the one word for the reason, and its words.
    pub fn of_status(code: u16, reason: &str, message: String, retry_after: Option<Duration>) -> ClientError {
        match (code, reason) {
            (404, _) => ClientError::NotFound(message),
            (409, "AlreadyExists") => ClientError::AlreadyExists(message),
            (409, _) => ClientError::Conflict(message),
            (410, _) => ClientError::Expired(message),
            (429, _) => ClientError::Busy { message, retry_after },
            (400..500, _) => ClientError::Refused { code, message },
            _ => ClientError::Unknown(message),
        }
    }

    /// Whether it is refused because its namespace is going, which takes nothing new any more. Kubernetes tells the cause apart
    /// by these words and by a detail that not every answer has.
    pub fn is_of_a_namespace_that_goes(&self) -> bool {
        matches!(self, ClientError::Refused { message, .. } if message.ends_with("because it is being terminated"))
    }

    /// A stable word for metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            ClientError::NotFound(_) => "not_found",
            ClientError::AlreadyExists(_) => "already_exists",
            ClientError::Conflict(_) => "conflict",
            ClientError::Expired(_) => "expired",
            ClientError::Refused { .. } => "refused",
            ClientError::Busy { .. } => "busy",
            ClientError::Unknown(_) => "unknown",
        }
    }
}
