//! Ctrl-C and SIGTERM, which ask a run or a cluster to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What somebody sends who wants an end.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Returns when one has come.
    pub(crate) async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// What something comes to, if none comes before.
    pub(super) async fn until_one<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.any() => None,
        }
    }
}
