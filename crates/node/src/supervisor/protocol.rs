//! What the node and the supervisor say to each other: one JSON document per line.
//!
//! Both directions are level-triggered. The supervisor reports a container's whole record whenever it
//! changes, and all records when a node attaches; a request that was already carried out is ignored. So a
//! lost connection is mended by connecting again, and nobody needs to know what was under way.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use krafla_api::Uid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use super::cgroup::Limits;
use super::stage::Sandbox;
use crate::container::{ContainerId, Record};

/// The longest line that is read. A container's environment is the biggest part; Linux itself allows about 2
/// MiB.
const LINE_BYTES_MAX: u64 = 8 << 20;

/// More than stands around a launch in the request for it.
const REQUEST_BYTES_MAX: usize = 64;

/// What the node asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Start a container, unless that attempt is known already.
    Start(Box<Launch>),
    /// Make a container end.
    Stop {
        /// Which.
        id: ContainerId,
        /// How.
        how: Stop,
    },
    /// Report whenever a container has written something, or no longer.
    Follow {
        /// Which.
        id: ContainerId,
        /// Whether to report.
        on: bool,
    },
    /// Let a container read to the end of its standard input. Nobody can write to it any more.
    CloseInput {
        /// Which.
        id: ContainerId,
    },
    /// Change the size of a container's terminal.
    Resize {
        /// Which.
        id: ContainerId,
        /// Its new width, in characters.
        columns: u16,
        /// Its new height, in lines.
        rows: u16,
    },
    /// Kill what is left of a pod, remove its files, and forget it.
    Forget {
        /// The pod.
        pod: Uid,
    },
}

/// How a container is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// SIGTERM to its main process, or what it has instead.
    Terminate,
    /// SIGKILL to all of its processes.
    Kill,
}

/// Everything that is needed to start a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Which attempt this is.
    pub id: ContainerId,
    /// The command and its arguments; empty for a pause, which needs no process at all.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub working_dir: PathBuf,
    /// What it sees differently from the rest of the machine, if anything.
    pub sandbox: Option<Sandbox>,
    /// What it may use at most, where this machine lets us limit it.
    pub limits: Limits,
    /// Whether the end of its log says why it failed, if nothing else does.
    pub explains_by_log: bool,
    /// Whether something can be written to it while it runs.
    #[serde(default)]
    pub stdin: bool,
    /// Whether it runs on a terminal, on which standard output and standard error are one.
    #[serde(default)]
    pub tty: bool,
    /// The name of the signal that asks it to end, if that is not SIGTERM.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stop_signal: String,
    /// How many files it may have open, if that is fewer than the supervisor may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Kept in the record: its pod's address, which the server is told only after the start.
    #[serde(default)]
    pub address: Option<Ipv4Addr>,
    /// Kept in the record: how long to wait before the next attempt.
    pub backoff_seconds: u32,
    /// Kept in the record: how long it has to end by itself.
    pub grace_seconds: u32,
}

impl Launch {
    /// Whether there is a process, and something that it may not do.
    pub(super) fn is_limited(&self) -> bool {
        !self.argv.is_empty() && !self.limits.is_empty()
    }

    /// Whether the supervisor would read this. It can not go on after a line that is too long, and all containers would suffer for one.
    pub(crate) fn can_be_sent(&self) -> bool {
        let n_bytes = serde_json::to_vec(self).map_or(usize::MAX, |launch| launch.len());
        n_bytes.saturating_add(REQUEST_BYTES_MAX) as u64 <= LINE_BYTES_MAX
    }
}

/// What a container sees of the machine, and what runs beside it must see too. What it is made of may have changed since the
/// container was started, so this is kept for as long as the container runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub working_dir: PathBuf,
    /// What it sees differently from the rest of the machine, if anything.
    pub sandbox: Option<Sandbox>,
    /// Whether there is a limit that it is to be held to. Its record says whether this machine can.
    pub is_limited: bool,
}

impl From<Launch> for Surroundings {
    fn from(launch: Launch) -> Surroundings {
        let is_limited = launch.is_limited();
        let Launch { env, working_dir, sandbox, .. } = launch;
        Surroundings { env, working_dir, sandbox, is_limited }
    }
}

/// What the supervisor reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// A container's record, new or changed.
    Record(Record),
    /// What a container sees that ran already when the node attached. Of all others the node knows it.
    Surroundings {
        /// Which.
        id: ContainerId,
        /// What it sees.
        seen: Surroundings,
    },
    /// All records have been reported that existed when the node attached.
    Synced,
    /// A followed container has written something.
    Grew(ContainerId),
}

/// One message as a line.
pub fn to_line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads the next message; none when the other side has closed the connection.
pub async fn read_message<T, R>(reader: &mut R) -> std::io::Result<Option<T>>
where
    T: for<'de> Deserialize<'de>,
    R: AsyncBufRead + Unpin,
{
    let mut line = Vec::new();
    let n_bytes = (&mut *reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await?;
    if n_bytes == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        let why =
            if n_bytes as u64 == LINE_BYTES_MAX { "a message is too long" } else { "a message is cut off" };
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
    }
    Ok(Some(serde_json::from_slice(&line)?))
}
