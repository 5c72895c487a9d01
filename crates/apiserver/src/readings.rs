//! What components of this process have read of what they were told last.
//!
//! Each of them watches for itself, and most of what happens, happens to pods, which all of them watch. The first one that is
//! told of a change reads the object, and the others take what it has read.

use std::collections::BTreeMap;

use krafla_cluster::Reading;
use parking_lot::Mutex;

/// So many changes are remembered: a component that is further behind reads for itself. A reading holds nothing but the
/// room of an object that others may have dropped, so this bounds what is held for nobody.
const REMEMBERED_MAX: usize = 1024;

/// The readings of the latest changes, by the revision that each change made.
#[derive(Debug, Default)]
pub(crate) struct Readings(Mutex<BTreeMap<u64, Reading>>);

impl Readings {
    /// Where whoever is told of the change of this revision puts what it has read, or finds what another one has. Every
    /// change has a revision of its own, whatever it changes.
    pub(crate) fn of(&self, revision: u64) -> Reading {
        let mut readings = self.0.lock();
        let reading = readings.entry(revision).or_default().clone();
        if readings.len() > REMEMBERED_MAX {
            readings.pop_first();
        }
        reading
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use krafla_cluster::{Event, EventType};

    use super::*;

    fn told(readings: &Readings, revision: u64) -> Event {
        Event {
            reading: readings.of(revision),
            ..Event::new(EventType::Added, revision, b"object".as_slice().into())
        }
    }

    fn decode() -> String {
        "decoded".to_owned()
    }

    #[test]
    fn an_object_is_read_once_for_all_who_are_told_of_it() {
        let readings = Readings::default();
        let [first, second, later] = [1, 1, 2].map(|revision| told(&readings, revision));
        let object = first.reading.get_or_decode(decode);
        assert!(Arc::ptr_eq(&object, &second.reading.get_or_decode(decode)));
        assert!(!Arc::ptr_eq(&object, &later.reading.get_or_decode(decode)));
        // Nobody has it any more, and it is read again.
        let was = Arc::downgrade(&object);
        drop(object);
        assert!(was.upgrade().is_none());
        assert_eq!(*second.reading.get_or_decode(decode), "decoded");
    }

    #[test]
    fn only_the_latest_changes_are_remembered() {
        let readings = Readings::default();
        let first = told(&readings, 1).reading.get_or_decode(decode);
        (2..=REMEMBERED_MAX as u64 + 1).for_each(|revision| drop(readings.of(revision)));
        assert_eq!(readings.0.lock().len(), REMEMBERED_MAX);
        assert!(!Arc::ptr_eq(&first, &told(&readings, 1).reading.get_or_decode(decode)));
    }
}
