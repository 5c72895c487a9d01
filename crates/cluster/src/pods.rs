//! What can be asked of a running pod: its logs, and commands in its containers.

use krafla_api::Time;

/// Which part of a container's log to read, as in the query of a log request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogOptions {
    /// Continue until the container ends.
    pub follow: bool,
    /// Read the attempt before the current one. If the container waits for a restart, that is the last attempt.
    pub previous: bool,
    /// Read this attempt, by its restartCount. Kubernetes has no such parameter and reads the current or the previous
    /// attempt; an embedded server ignores `previous` if this is set.
    pub attempt: Option<u32>,
    /// Begin each line with its time.
    pub timestamps: bool,
    /// At most this many lines from the end.
    pub tail_lines: Option<u64>,
    /// At most this many bytes.
    pub limit_bytes: Option<u64>,
    /// Only output of the last seconds.
    pub since_seconds: Option<u64>,
    /// Only output after this time.
    pub since_time: Option<Time>,
    /// Only output to this stream.
    pub stream: Option<Stream>,
}

/// One of the two standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, and everything that is written to a terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Its name in a log.
    pub const fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// A command in a container, and the streams to connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOptions {
    /// The command and its arguments; empty to attach to the running process.
    pub command: Vec<String>,
    /// Connect standard input.
    pub stdin: bool,
    /// Connect standard output.
    pub stdout: bool,
    /// Connect standard error.
    pub stderr: bool,
    /// Give the command a terminal, on which standard output and standard error are one stream.
    pub tty: bool,
}
