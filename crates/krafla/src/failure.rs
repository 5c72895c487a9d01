//! Why an everyday command did not do what it was asked, and the exit code that says so.

use krafla_cluster::{ClientError, Refusal};

/// A failure, by what a script may want to do about it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// The object failed, or a part of what was asked for did: exit code 1.
    #[error("{0}")]
    Failed(String),
    /// The command line or a file that it names is wrong: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The cluster cannot be reached: exit code 3.
    #[error("{0}")]
    Unreachable(String),
    /// The object or its kind does not exist: exit code 4.
    #[error("{0}")]
    NotFound(String),
    /// The time given was not enough: exit code 5.
    #[error("{0}")]
    TimedOut(String),
    /// The API server refused the request: exit code 6.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Unreachable(_) => 3,
            Failure::NotFound(_) => 4,
            Failure::TimedOut(_) => 5,
            Failure::Refused(_) => 6,
        }
    }

    /// A command line that cannot be used.
    pub(crate) fn usage(message: impl std::fmt::Display) -> Failure {
        Failure::Usage(message.to_string())
    }

    /// An answer of a cluster.
    pub(crate) fn from_client(cluster: &str, error: ClientError) -> Failure {
        match error {
            ClientError::NotFound(refusal) => Failure::NotFound(refusal.message),
            ClientError::Refused(Refusal { code: 401, .. }) => Failure::Refused(format!(
                "{cluster} does not accept the credentials; fix: log in again, or use another --context"
            )),
            ClientError::AlreadyExists(refusal)
            | ClientError::Conflict(refusal)
            | ClientError::Expired(refusal)
            | ClientError::Refused(refusal) => Failure::Refused(refusal.message),
            ClientError::Busy { refusal, .. } => {
                Failure::Unreachable(format!("{cluster} is busy: {refusal}; fix: try again later"))
            }
            ClientError::Unknown(why) => Failure::Unreachable(format!("cannot use {cluster}: {why}")),
        }
    }
}
