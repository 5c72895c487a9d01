//! Why an everyday command did not do what it was asked, and the exit code that says so.

use std::error::Error;
use std::io;

use krafla_apiserver::store::OpenError;
use krafla_cluster::{ClientError, Refusal};

use crate::run::BadInput;

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
    /// Another program uses the address or the data directory: exit code 7.
    #[error("{0}")]
    InUse(String),
    /// The disk is full or read-only: exit code 8.
    #[error("{0}")]
    Disk(String),
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
            Failure::InUse(_) => 7,
            Failure::Disk(_) => 8,
        }
    }

    /// Why a program that stays, such as `krafla up`, did not start. A scripted restart helps against some of these and not
    /// against others. What is not known by its cause is taken for a wrong flag or file.
    pub(crate) fn at_start(error: anyhow::Error) -> anyhow::Error {
        if error.is::<Failure>() {
            return error;
        }
        let message = format!("{error:#}");
        match error.chain().find_map(StartProblem::of) {
            Some(StartProblem::InUse) => Failure::InUse(message).into(),
            Some(StartProblem::Disk) => Failure::Disk(format!("{message}; fix: free some space")).into(),
            Some(StartProblem::ReadOnly) => {
                Failure::Disk(format!("{message}; fix: choose a directory that can be written")).into()
            }
            Some(StartProblem::Unreachable) => Failure::Unreachable(message).into(),
            Some(StartProblem::Refused) => Failure::Refused(message).into(),
            None => BadInput(error).into(),
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

/// What kept a program from starting, as far as its cause says so.
enum StartProblem {
    InUse,
    Disk,
    ReadOnly,
    Unreachable,
    Refused,
}

impl StartProblem {
    fn of(cause: &(dyn Error + 'static)) -> Option<StartProblem> {
        if let Some(OpenError::InUse { .. }) = cause.downcast_ref() {
            return Some(StartProblem::InUse);
        }
        if let Some(error) = cause.downcast_ref::<ClientError>() {
            return Some(match error {
                ClientError::Busy { .. } | ClientError::Unknown(_) => StartProblem::Unreachable,
                ClientError::NotFound(_)
                | ClientError::AlreadyExists(_)
                | ClientError::Conflict(_)
                | ClientError::Expired(_)
                | ClientError::Refused(_) => StartProblem::Refused,
            });
        }
        match cause.downcast_ref::<io::Error>()?.kind() {
            io::ErrorKind::AddrInUse => Some(StartProblem::InUse),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(StartProblem::Disk),
            io::ErrorKind::ReadOnlyFilesystem => Some(StartProblem::ReadOnly),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, Result, anyhow};

    use super::*;

    /// The exit code for an error, and the message.
    fn told(error: impl Into<anyhow::Error>) -> (u8, String) {
        let error = Failure::at_start(Err::<(), _>(error.into()).context("cannot start").unwrap_err());
        let code = error.downcast_ref::<Failure>().map_or(2, Failure::code);
        (code, format!("{error:#}"))
    }

    #[test]
    fn a_start_that_fails_has_an_exit_code_for_its_cause() {
        let io = |kind: io::ErrorKind| told(io::Error::from(kind));
        let dir = "/data".into();
        for ((code, message), expected, words) in [
            (told(anyhow!("--listen: not an address")), 2, "cannot start: --listen: not an address"),
            (told(io::Error::from(io::ErrorKind::NotFound)), 2, "cannot start: entity not found"),
            (told(ClientError::Unknown("connection refused".to_owned())), 3, "connection refused"),
            (told(ClientError::busy("later", None)), 3, "later"),
            (told(ClientError::forbidden("no rights")), 6, "no rights"),
            (io(io::ErrorKind::AddrInUse), 7, "cannot start: address in use"),
            (told(OpenError::InUse { dir, holder: String::new() }), 7, "/data is in use"),
            (io(io::ErrorKind::StorageFull), 8, "fix: free some space"),
            (io(io::ErrorKind::QuotaExceeded), 8, "fix: free some space"),
            (io(io::ErrorKind::ReadOnlyFilesystem), 8, "fix: choose a directory that can be written"),
        ] {
            assert_eq!(code, expected, "{message}");
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn the_page_names_every_exit_code() -> Result<()> {
        let page = include_str!("../../../docs/commands.md");
        let (_, table) = page.split_once("## Exit codes").context("no table")?;
        let every = [
            Failure::Failed,
            Failure::Usage,
            Failure::Unreachable,
            Failure::NotFound,
            Failure::TimedOut,
            Failure::Refused,
            Failure::InUse,
            Failure::Disk,
        ];
        for failure in every {
            let code = failure(String::new()).code();
            assert!(table.contains(&format!("\n| {code} | ")), "{code} is missing");
        }
        Ok(())
    }
}
