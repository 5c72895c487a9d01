//! The recent events of one resource.
//!
//! ```text
//!            forgotten | known
//!   --------------- oldest --- event --- event --- event ---> newest
//!                      a watch may start here or later
//! ```
//!
//! A hundred events are always kept, more while they are young: a client that reads its list for a minute must still
//! find all that happened since.

use std::sync::Arc;
use std::time::Duration;

use imbl::Vector;

use super::event::StoredEvent;
use super::snapshot::Entries;
use super::watch::Expired;

/// How much of the past is kept, per resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retention {
    /// So many events are kept however old they are.
    pub(super) events_min: usize,
    /// No more events than this, however young.
    pub(super) events_max: usize,
    /// No more bytes of objects than this, however young (but `events_min`).
    pub(super) bytes_max: usize,
    /// How long an event is young.
    pub(super) young_for: Duration,
}

impl Retention {
    /// With a clock: Kubernetes' own numbers, and a bound on memory.
    pub(super) const BY_AGE: Retention = Retention {
        events_min: 100,
        events_max: 100_000,
        bytes_max: 128 << 20,
        young_for: Duration::from_secs(75),
    };

    /// Without a clock nothing ages, so the count alone decides.
    pub(super) const BY_COUNT: Retention = Retention { events_max: 8_192, ..Retention::BY_AGE };
}

/// The recent events of one resource, in order. Clones are cheap and independent.
#[derive(Clone, Debug)]
pub(super) struct History {
    events: Vector<Arc<StoredEvent>>,
    /// All events after this revision are in `events`.
    oldest: u64,
    bytes: usize,
}

impl History {
    /// Nothing has happened since `revision`.
    pub(super) fn since(revision: u64) -> History {
        History { events: Vector::new(), oldest: revision, bytes: 0 }
    }

    /// Adds what has just happened, and forgets what is too old or too much.
    pub(super) fn push(&mut self, event: Arc<StoredEvent>, retention: &Retention) {
        let now = event.happened_at;
        self.bytes += event.entry.bytes.len();
        self.events.push_back(event);
        self.forget(now, retention);
    }

    /// Forgets what is too old or too much.
    pub(super) fn forget(&mut self, now: Duration, retention: &Retention) {
        while self.events.len() > retention.events_min {
            let Some(event) = self.events.front() else { return };
            let is_young = now.saturating_sub(event.happened_at) <= retention.young_for;
            if is_young && self.events.len() <= retention.events_max && self.bytes <= retention.bytes_max {
                return;
            }
            self.oldest = event.revision;
            self.bytes -= event.entry.bytes.len();
            self.events.pop_front();
        }
    }

    /// Whether events will become too old as time goes by.
    pub(super) fn is_ageing(&self, retention: &Retention) -> bool {
        self.events.len() > retention.events_min
    }

    /// Whether everything after a revision is still known.
    pub(super) fn check(&self, after: u64) -> Result<(), Expired> {
        if after < self.oldest { Err(Expired { asked: after, oldest: self.oldest }) } else { Ok(()) }
    }

    /// The first event after a revision.
    pub(super) fn first_after(&self, revision: u64) -> Option<&Arc<StoredEvent>> {
        // Most who ask have seen everything.
        if self.events.last().is_none_or(|newest| newest.revision <= revision) {
            return None;
        }
        let (Ok(index) | Err(index)) =
            self.events.binary_search_by_key(&(revision + 1), |event| event.revision);
        self.events.get(index)
    }

    /// What the objects were at an earlier revision: what they are now, with every event since undone.
    pub(super) fn rewind(&self, mut entries: Entries, to: u64) -> Result<Entries, Expired> {
        self.check(to)?;
        let undone = self.events.iter().rev().take_while(|event| event.revision > to);
        for event in undone {
            let key = &event.entry.key;
            match &event.previous {
                Some(previous) => entries.insert(key.clone(), Arc::clone(previous)),
                None => entries.remove(key),
            };
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use krafla_api::Key;

    use super::*;
    use crate::store::entry::{Entry, EntryMeta};
    use crate::store::event::EventType;

    const SMALL: Retention =
        Retention { events_min: 2, events_max: 5, bytes_max: 100, young_for: Duration::from_secs(75) };

    /// One event per pair of seconds and bytes, with revisions 1, 2, 3... Returns which revisions are still there.
    fn kept(events: &[(u64, usize)]) -> Vec<u64> {
        let mut history = History::since(0);
        for (revision, (second, size)) in (1..).zip(events) {
            let bytes = vec![b' '; *size].into();
            let entry =
                Entry { key: Key::new("", "a"), uid: "".into(), revision, bytes, meta: EntryMeta::default() };
            let happened_at = Duration::from_secs(*second);
            let event = StoredEvent::new(EventType::Modified, Arc::new(entry), None, happened_at);
            history.push(Arc::new(event), &SMALL);
        }
        let kept: Vec<u64> = history.events.iter().map(|event| event.revision).collect();
        assert_eq!(history.oldest, kept[0] - 1, "exactly what is before the first event is forgotten");
        assert!(history.check(history.oldest).is_ok());
        assert!(history.oldest == 0 || history.check(history.oldest - 1).is_err());
        kept
    }

    #[test]
    fn young_events_are_kept_up_to_a_number() {
        assert_eq!(kept(&[(0, 1); 4]), [1, 2, 3, 4]);
        assert_eq!(kept(&[(0, 1); 9]), [5, 6, 7, 8, 9]);
    }

    #[test]
    fn old_events_are_kept_up_to_a_smaller_number() {
        assert_eq!(kept(&[(0, 1), (10, 1), (80, 1), (200, 1)]), [3, 4]);
        assert_eq!(kept(&[(0, 1), (10, 1), (80, 1), (86, 1)]), [3, 4]);
        assert_eq!(kept(&[(0, 1), (10, 1), (80, 1), (85, 1)]), [2, 3, 4]);
    }

    #[test]
    fn large_events_are_forgotten_early() {
        assert_eq!(kept(&[(0, 40); 4]), [3, 4]);
        assert_eq!(kept(&[(0, 400); 4]), [3, 4], "but never all of them");
    }
}
