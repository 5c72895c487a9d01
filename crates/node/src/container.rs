//! One attempt at running one container: which one it is, and what became of it.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use krafla_api::Uid;
use serde::{Deserialize, Serialize};

/// The environment variable by which a process, and all that it starts, is known to belong to a container. It
/// says where the container's files are: its value and `.log` is the log.
///
/// Process groups and parents change hands when programs turn themselves into daemons; the environment mostly stays. Where it does not, a mark
/// says the same.
pub const CONTAINER_VARIABLE: &str = "KRAFLA_CONTAINER";

/// The name of the directory, in the root directory, in which containers may write why they ended.
pub(crate) const MESSAGES: &str = "messages";

/// Which attempt at which container of which pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContainerId {
    /// The pod.
    pub pod: Uid,
    /// The container's name, unique within its pod.
    pub name: String,
    /// How often the container had been started before.
    pub attempt: u32,
}

impl ContainerId {
    /// Whether all parts may be used as file names: they come from outside.
    pub fn is_safe(&self) -> bool {
        is_file_name(&self.pod.0) && is_file_name(&self.name)
    }

    /// What the names of all files of this attempt begin with, below the directory of all pods. It tells
    /// apart the containers of all kraflas of a machine, even of two with copies of the same data.
    pub fn place(&self, pods: &Path) -> PathBuf {
        // A container's name has no dots, so the other files of a pod are never mistaken for a container's.
        pods.join(&*self.pod.0).join(format!("{}.{}", self.name, self.attempt))
    }

    /// The container of a place below the directory of all pods; none if it is not one.
    pub fn of_place(pods: &Path, place: &Path) -> Option<ContainerId> {
        let (pod, file) = place.strip_prefix(pods).ok()?.to_str()?.split_once('/')?;
        let (name, attempt) = file.rsplit_once('.')?;
        Some(ContainerId { pod: pod.into(), name: name.to_owned(), attempt: attempt.parse().ok()? })
    }

    /// What this attempt wrote to its standard output and standard error; not there until it writes
    /// something.
    pub fn log_path(&self, pods: &Path) -> PathBuf {
        self.place(pods).with_added_extension("log")
    }

    /// The pipe through which this attempt can be written to, if it asks for that and has not ended.
    pub fn stdin_path(&self, pods: &Path) -> PathBuf {
        self.place(pods).with_added_extension("stdin")
    }

    /// As it stands in the pod's status.
    pub fn reported(&self) -> String {
        format!("krafla://{self}")
    }

    /// Where this attempt may write why it ended, below the root directory.
    pub fn message_path(&self, root: &Path) -> PathBuf {
        root.join(MESSAGES).join(format!("{}.{}.{}", self.pod, self.name, self.attempt))
    }
}

impl std::fmt::Display for ContainerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.pod, self.name, self.attempt)
    }
}

/// Whether `text` names a file and nothing else: no separators, no way up, not hidden, not overlong.
pub(crate) fn is_file_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= 253 && !text.starts_with('.') && text.bytes().all(plain)
}

/// What is known of one attempt: the supervisor keeps it on disk, and the node decides by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which attempt this is.
    #[serde(flatten)]
    pub id: ContainerId,
    /// How long to wait before the next attempt if this one fails.
    #[serde(default)]
    pub backoff_seconds: u32,
    /// Its pod's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// Whether it has limits that this machine can not keep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unlimited: bool,
    /// How long it has between being asked to end and being killed when nobody is left to decide that.
    #[serde(default)]
    pub grace_seconds: u32,
    /// Its main process; none for a pause and for what could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// When it started; none if it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it was first asked to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping_at: Option<Timestamp>,
    /// How it ended; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

impl Record {
    /// Whether it has not ended.
    pub fn is_running(&self) -> bool {
        self.end.is_none()
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// When.
    pub at: Timestamp,
    /// The exit code; 128 and the signal's number if a signal ended it.
    pub exit_code: i32,
    /// Why.
    pub cause: Cause,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Why an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The process ended, by itself or by a signal.
    Exited,
    /// There never was a process.
    NotStarted,
    /// Nobody was there to see how it ended.
    Lost,
    /// It wanted more memory than its limit.
    OutOfMemory,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_known_by_its_place() {
        let pods = Path::new("/data/pods");
        let id = ContainerId { pod: "0a1b".into(), name: "main".into(), attempt: 3 };
        let place = id.place(pods);
        assert_eq!(place, Path::new("/data/pods/0a1b/main.3"));
        assert_eq!(ContainerId::of_place(pods, &place), Some(id));
        for elsewhere in [
            "",
            "/copy/pods/0a1b/main.3",
            "/data/pods/0a1b",
            "/data/pods/0a1b/volumes",
            "/data/pods/a/main.x",
        ] {
            assert_eq!(ContainerId::of_place(pods, Path::new(elsewhere)), None, "{elsewhere}");
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_not_a_file_name() {
        for bad in ["", ".", "..", "../x", "a/b", ".hidden", "a\0b"] {
            assert!(!is_file_name(bad), "{bad}");
        }
        assert!(is_file_name("6f1f4c2e-0c1b-4b7e-9d3e-000000000001"));
    }
}
