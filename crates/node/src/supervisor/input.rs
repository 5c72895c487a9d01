//! The standard input of containers that ask for one.
//!
//! ```text
//!   krafla ──writes──> <place>.stdin ──reads──> the container
//!                                      └──────> supervisor ──> the container's terminal, if it has one
//! ```
//!
//! A named pipe, and not messages to the supervisor: whoever writes waits until somebody reads, and a krafla
//! that is killed leaves the container's input as it is.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use pty_process::OwnedWritePty;
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, open};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::task::AbortHandle;

use crate::container::ContainerId;

/// What a terminal takes at once.
const CHUNK_BYTES: usize = 4 << 10;
/// What a person types to say that there is no more to read.
const END_OF_INPUT: u8 = 0x04;

/// A container's standard input. It ends when this is dropped.
pub(super) struct Input {
    path: PathBuf,
    /// Keeps it open though nobody writes.
    _writer: OwnedFd,
}

impl Input {
    /// Makes an input, and returns it with the end that is read from.
    pub(super) fn make(pods: &Path, id: &ContainerId) -> io::Result<(Input, OwnedFd)> {
        let path = id.stdin_path(pods);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // Each end waits to be opened until the other one is, unless it is told not to.
        let reader = open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        let writer = open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        fcntl_setfl(&reader, OFlags::empty())?;
        Ok((Input { path, _writer: writer }, reader))
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // It goes with its pod's directory, if it can not go now.
        let _ = fs::remove_file(&self.path);
    }
}

/// Our side of a container's terminal.
pub(super) struct Terminal {
    window: OwnedFd,
    typing: Option<AbortHandle>,
}

impl Terminal {
    /// Begins to type what is read from `input`, if there is one. `window` is another handle on the terminal.
    pub(super) fn attend(
        window: OwnedFd,
        writer: OwnedWritePty,
        input: Option<OwnedFd>,
    ) -> io::Result<Terminal> {
        let input = input.map(Receiver::from_owned_fd).transpose()?;
        let typing = input.map(|input| tokio::task::spawn_local(type_in(input, writer)).abort_handle());
        Ok(Terminal { window, typing })
    }

    pub(super) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        // It has no other side any more when the container has ended.
        let _ = tcsetwinsize(&self.window, size);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.typing.iter().for_each(AbortHandle::abort);
    }
}

async fn type_in(mut input: Receiver, mut terminal: OwnedWritePty) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(n) = input.read(&mut chunk).await {
        let typed = if n == 0 { &[END_OF_INPUT][..] } else { chunk.get(..n).unwrap_or_default() };
        if terminal.write_all(typed).await.is_err() || n == 0 {
            return;
        }
    }
}
