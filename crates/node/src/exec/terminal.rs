//! Runs a command on a terminal of its own.

use std::os::fd::AsFd;

use futures_util::stream::StreamExt;
use rustix::termios::{Winsize, tcsetwinsize};

use super::beside::Running;
use super::{Output, Prepared, Session, chunks, end_of};

impl Prepared {
    /// Starts the command on a new terminal, which stays until the command has closed it.
    pub(super) fn start_on_terminal(&self) -> Result<Session, String> {
        let no_terminal = |error: String| format!("there is no terminal for it: {error}");
        let (terminal, other_side) = pty_process::open().map_err(|error| no_terminal(error.to_string()))?;
        let window = terminal.as_fd().try_clone_to_owned().map_err(|error| no_terminal(error.to_string()))?;
        let command = pty_process::Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            // What kubectl's side is, nobody says; every terminal of today understands this.
            .env("TERM", "xterm")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.start_dir);
        let entry = self.beside.enter();
        let spawned = entry.mark().put_on(|| command.spawn(other_side));
        let child = spawned.map_err(|error| format!("{:?} could not be started: {error}", self.name))?;
        let child = Running { child, _entry: entry };
        let (reader, writer) = terminal.into_split();
        let resize = move |columns: u16, rows: u16| {
            let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
            // It has no other side any more when the command has ended.
            let _ = tcsetwinsize(&window, size);
        };
        Ok(Session {
            stdin: Some(Box::new(writer)),
            output: chunks(Some(reader)).map(Output::Stdout).boxed(),
            resize: Some(Box::new(resize)),
            end: end_of(child),
        })
    }
}
