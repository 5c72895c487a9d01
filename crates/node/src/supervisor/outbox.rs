//! What is to be told to the attached node.
//!
//! It holds names, not messages: however slowly the node reads, a container stands here once, and its newest
//! state is told. So the supervisor never waits for the node and never grows with what it could not say.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use tokio::sync::Notify;

use super::protocol::Report;
use crate::container::{ContainerId, Record};

/// Which of the nodes that attached one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Session(u64);

#[derive(Debug, Default)]
pub(super) struct Outbox {
    session: Cell<Session>,
    changed: RefCell<BTreeSet<ContainerId>>,
    /// Those of `changed` that have ended.
    ended: RefCell<BTreeSet<ContainerId>>,
    /// Whether only of those is told for now.
    only_ends: Cell<bool>,
    grown: RefCell<BTreeSet<ContainerId>>,
    followed: RefCell<BTreeSet<ContainerId>>,
    /// Whether the node has yet to hear that it was told all records.
    is_first: Cell<bool>,
    wake: Notify,
}

impl Outbox {
    /// Begins anew, for a node that knows nothing yet. The node before hears no more.
    pub(super) fn attach(&self, ids: impl Iterator<Item = ContainerId>) -> Session {
        let session = Session(self.session.get().0.wrapping_add(1));
        self.session.set(session);
        self.changed.replace(ids.collect());
        self.ended.take();
        self.grown.take();
        self.followed.take();
        self.is_first.set(true);
        self.wake.notify_waiters();
        session
    }

    pub(super) fn changed(&self, id: ContainerId, has_ended: bool) {
        if has_ended {
            self.ended.borrow_mut().insert(id.clone());
        }
        self.changed.borrow_mut().insert(id);
        self.wake.notify_waiters();
    }

    /// Whether there is an end to tell of.
    pub(super) fn has_ends(&self) -> bool {
        !self.ended.borrow().is_empty()
    }

    /// For now, only ends are told of. What has just started may end at once, and is then told of once.
    pub(super) fn tell_only_ends(&self, only_ends: bool) {
        self.only_ends.set(only_ends);
        self.wake.notify_waiters();
    }

    pub(super) fn grew(&self, id: &ContainerId) {
        if self.followed.borrow().contains(id) && self.grown.borrow_mut().insert(id.clone()) {
            self.wake.notify_waiters();
        }
    }

    pub(super) fn follow(&self, id: ContainerId, on: bool) {
        if on {
            self.followed.borrow_mut().insert(id.clone());
            // Whatever was written before this moment may not have been seen.
            self.grew(&id);
        } else {
            self.followed.borrow_mut().remove(&id);
        }
    }

    /// Waits until there is something to tell. False once another node has attached.
    pub(super) async fn news(&self, session: Session) -> bool {
        loop {
            if self.session.get() != session {
                return false;
            }
            if self.has_news() {
                return true;
            }
            // Single-threaded: nothing can have happened since there was nothing.
            self.wake.notified().await;
        }
    }

    fn has_news(&self) -> bool {
        if self.only_ends.get() {
            return self.has_ends();
        }
        self.is_first.get() || !self.grown.borrow().is_empty() || !self.changed.borrow().is_empty()
    }

    /// Everything there is to tell; a node that has just attached is told what there is `at_first`, too.
    pub(super) fn take(
        &self,
        record: impl Fn(&ContainerId) -> Option<Record>,
        at_first: impl FnOnce() -> Vec<Report>,
    ) -> Vec<Report> {
        // Growth comes first: a reader shall have the last output before it hears of the end.
        let mut reports: Vec<_> = self.grown.take().into_iter().map(Report::Grew).collect();
        let ended = self.ended.take();
        let told = if self.only_ends.get() {
            self.changed.borrow_mut().retain(|id| !ended.contains(id));
            ended
        } else {
            self.changed.take()
        };
        reports.extend(told.iter().filter_map(&record).map(Report::Record));
        if !self.only_ends.get() && self.is_first.take() {
            reports.extend(at_first());
            reports.push(Report::Synced);
        }
        reports
    }
}
