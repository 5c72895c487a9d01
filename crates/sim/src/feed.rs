//! One kind as one process sees it: a list, then a watch, each in its own time.

use std::hash::{Hash, Hasher};

use krafla_api::{Kind, Time};
use krafla_apiserver::store::{EventType as StoredType, StoredEvent, Watcher};
use krafla_cluster::{Event, EventType};
use krafla_runtime::Engine;

use crate::clock;
use crate::fault::REVISIONS_BACK;
use crate::server::{Server, resource};

/// One kind as one process sees it.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) kind: Kind,
    /// Where it is in history; nowhere before the first list, and when its place has been forgotten.
    watcher: Option<Watcher>,
    next: Option<Event>,
    /// Up to which revision of the store `next` has been looked for.
    looked_at: u64,
    /// News wait until then.
    held_until: Time,
}

impl Feed {
    /// A feed that has shown nothing yet.
    pub(crate) fn new(kind: Kind) -> Feed {
        Feed { kind, watcher: None, next: None, looked_at: 0, held_until: clock::start() }
    }

    /// The same feed of a fork of its server.
    pub(crate) fn fork(&self, server: &Server) -> Feed {
        let watcher = self.watcher.as_ref().map(|watcher| watcher.in_fork(&server.store));
        Feed { watcher, next: self.next.clone(), ..*self }
    }

    /// Takes what is still to be shown, and when, into a number.
    pub(crate) fn digest(&self, now: Time, into: &mut impl Hasher) {
        self.watcher.as_ref().map(Watcher::revision).hash(into);
        self.next.as_ref().map(|event| event.revision).hash(into);
        Some(self.held_until).filter(|until| *until > now).hash(into);
    }

    /// Whether there is something to show now.
    pub(crate) fn is_ready(&mut self, server: &Server, now: Time) -> bool {
        now >= self.held_until && self.has_news(server)
    }

    /// When there will be something to show, if it is only held back.
    pub(crate) fn due_at(&mut self, server: &Server, now: Time) -> Option<Time> {
        (self.held_until > now && self.has_news(server)).then_some(self.held_until)
    }

    fn has_news(&mut self, server: &Server) -> bool {
        let Some(watcher) = &mut self.watcher else { return true };
        let revision = server.store.revision();
        if self.next.is_none() && self.looked_at < revision {
            self.looked_at = revision;
            match watcher.try_next() {
                Some(Ok(event)) => self.next = Some(as_event(&event)),
                // Its place has been forgotten: the next thing to show is a list.
                Some(Err(_)) => self.watcher = None,
                None => {}
            }
        }
        self.watcher.is_none() || self.next.is_some()
    }

    /// Shows the next thing to an engine: an event, or a list where there is no watch.
    pub(crate) fn show_next(&mut self, server: &Server, engine: &mut Engine, now: Time) {
        if let Some(event) = self.next.take() {
            engine.observed(self.kind, &event, now);
            // There may be more: look again, whether or not the store moves on.
            self.looked_at = 0;
        } else if self.watcher.is_none()
            && let Some(listed) = server.list(self.kind)
            && engine.listed(self.kind, &listed, now).is_ok()
        {
            self.follow(server, listed.revision);
        }
    }

    fn follow(&mut self, server: &Server, after: u64) {
        self.watcher = server.store.watch(&resource(self.kind), after).ok();
        self.next = None;
        self.looked_at = 0;
    }

    /// Holds news back until a moment.
    pub(crate) fn hold(&mut self, until: Time) {
        self.held_until = self.held_until.max(until);
    }

    /// The watch breaks, and its place in history is forgotten.
    pub(crate) fn forget_place(&mut self) {
        self.watcher = None;
        self.next = None;
    }

    /// The watch breaks, and resumes a little earlier.
    pub(crate) fn go_back(&mut self, server: &Server, engine: &Engine) {
        if self.watcher.is_some() {
            self.follow(server, engine.revision(self.kind).saturating_sub(REVISIONS_BACK));
        }
    }
}

fn as_event(stored: &StoredEvent) -> Event {
    let event_type = match stored.event_type {
        StoredType::Added => EventType::Added,
        StoredType::Modified => EventType::Modified,
        StoredType::Deleted => EventType::Deleted,
    };
    Event::new(event_type, stored.revision, stored.entry.bytes.clone())
}
