//! A place in the history of a resource, from which its events are pulled.

use std::sync::Arc;

use super::event::StoredEvent;

/// A place in the history of a resource. It holds nothing and stops nobody: the store forgets old events whether or not
/// somebody still waits to see them.
#[derive(Debug)]
pub struct Watcher {
    position: u64,
}

/// The events asked for are forgotten: list again, and watch from there.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Expired {
    /// After which revision events were asked for.
    pub asked: u64,
    /// The oldest revision after which all events are known.
    pub oldest: u64,
}

impl Watcher {
    /// The next event, if it has happened.
    pub fn try_next(&mut self) -> Option<Result<Arc<StoredEvent>, Expired>> {
        None
    }

    /// The next event. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<StoredEvent>, Expired> {
        Err(Expired { asked: self.position, oldest: 0 })
    }

    /// Up to which revision this watcher has seen everything. It advances with the store even when nothing happens to
    /// this resource, so it is what a bookmark says.
    pub fn revision(&self) -> u64 {
        self.position
    }
}
