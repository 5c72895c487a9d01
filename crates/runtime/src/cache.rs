//! The only cache: watch events go in, in order; decisions read.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use krafla_api::{Key, Kind};
use krafla_cluster::{Event, EventType, Listed};
use krafla_plan::{Object, Objects};

/// An object that is new, changed or gone.
#[derive(Debug, PartialEq)]
pub(crate) struct Change {
    /// As it is now, or as it last was.
    pub(crate) object: Arc<Object>,
    /// As it was known before.
    pub(crate) before: Option<Arc<Object>>,
    pub(crate) is_gone: bool,
    /// Whether it happened after the first list: what that shows may have been there for long.
    pub(crate) is_news: bool,
}

/// What has been observed, and up to which revision of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    objects: Objects,
    revisions: BTreeMap<Kind, u64>,
}

impl Cache {
    /// Takes in one event and returns what changed.
    ///
    /// An event at or before a revision already seen is a repetition (a watch resumed, a list that overlapped) and
    /// concerns nobody.
    pub(crate) fn observe(&mut self, kind: Kind, event: &Event) -> Option<Change> {
        let seen = self.revisions.entry(kind).or_default();
        if event.revision <= *seen {
            return None;
        }
        *seen = event.revision;
        match event.event_type {
            EventType::Bookmark => None,
            EventType::Added | EventType::Modified => {
                let object = self.following(Object::from_event(kind, event));
                let before = self.objects.insert(object.clone());
                Some(Change { object, before, is_gone: false, is_news: true })
            }
            EventType::Deleted => {
                let object = self.following(Object::from_event(kind, event));
                let before = self.objects.remove(kind, &object.meta.key);
                Some(Change { object, before, is_gone: true, is_news: true })
            }
        }
    }

    /// Takes in a whole list and returns what changed. Old and new copies never stand side
    /// by side: objects are replaced one by one, then what the list did not name is removed.
    ///
    /// A list older than what was seen (a server that lags behind) is not taken in: time does not run backwards.
    pub(crate) fn relist(&mut self, kind: Kind, listed: &Listed) -> Result<Vec<Change>, OutdatedList> {
        let seen = self.revisions.get(&kind).copied().unwrap_or(0);
        if listed.revision < seen {
            return Err(OutdatedList { listed: listed.revision, seen });
        }
        let is_news = self.revisions.insert(kind, listed.revision).is_some();
        let mut concerned = Vec::new();
        let mut listed_keys = BTreeSet::new();
        for item in &listed.items {
            let object = self.following(Arc::new(Object::decode(kind, item)));
            listed_keys.insert(object.meta.key.clone());
            let known = self.objects.get(kind, &object.meta.key);
            if known.is_none_or(|known| known.meta.revision != object.meta.revision) {
                let before = self.objects.insert(object.clone());
                concerned.push(Change { object, before, is_gone: false, is_news });
            }
        }
        let gone: Vec<Key> =
            self.objects.keys(kind).filter(|key| !listed_keys.contains(*key)).cloned().collect();
        let gone = gone.iter().filter_map(|key| self.objects.remove(kind, key));
        concerned.extend(gone.map(|object| {
            let before = Some(object.clone());
            Change { object, before, is_gone: true, is_news }
        }));
        Ok(concerned)
    }

    /// An object as it is seen now, with what was known of it.
    fn following(&self, object: Arc<Object>) -> Arc<Object> {
        let before = self.objects.get(object.kind, &object.meta.key);
        Object::following(object, before)
    }

    /// Takes what is known into a number. Within one history of a store, an object is as its identity and revision say, but for
    /// what an earlier sight of it has left.
    pub(crate) fn digest(&self, into: &mut impl Hasher) {
        self.revisions.hash(into);
        for kind in self.revisions.keys() {
            self.objects.len(*kind).hash(into);
            for object in self.objects.all(*kind) {
                (&object.meta.uid, object.meta.revision).hash(into);
                object.as_pod().map(|pod| pod.end_order).hash(into);
            }
        }
    }

    /// Everything observed.
    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Up to which revision a kind has been observed.
    pub(crate) fn revision(&self, kind: Kind) -> u64 {
        self.revisions.get(&kind).copied().unwrap_or(0)
    }

    /// Whether a kind has been listed at least once.
    pub(crate) fn has_listed(&self, kind: Kind) -> bool {
        self.revisions.contains_key(&kind)
    }
}

/// A list from a server that has not yet seen what we have seen.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server listed revision {listed}, but revision {seen} was already seen")]
pub struct OutdatedList {
    listed: u64,
    seen: u64,
}

#[cfg(test)]
mod tests {
    use krafla_plan::object::EndOrder;

    use super::*;

    fn pod(name: &str, revision: u64) -> bytes::Bytes {
        let json = serde_json::json!({
            "metadata": {"namespace": "n", "name": name, "uid": name, "resourceVersion": revision.to_string()}});
        json.to_string().into()
    }

    fn event(event_type: EventType, name: &str, revision: u64) -> Event {
        Event::new(event_type, revision, pod(name, revision))
    }

    fn names(changes: Vec<Change>) -> Vec<String> {
        changes.iter().map(|change| change.object.meta.key.name.to_string()).collect()
    }

    #[test]
    fn a_repeated_event_concerns_nobody() {
        let mut cache = Cache::default();
        assert!(cache.observe(Kind::Pod, &event(EventType::Added, "a", 5)).is_some());
        assert!(cache.observe(Kind::Pod, &event(EventType::Added, "a", 5)).is_none());
        assert!(cache.observe(Kind::Pod, &event(EventType::Deleted, "a", 4)).is_none());
        assert_eq!(cache.objects().len(Kind::Pod), 1);
    }

    #[test]
    fn a_change_replaces_and_a_removal_removes_also_what_was_never_seen() {
        let mut cache = Cache::default();
        let mut after = |event_type, name, revision| {
            let change = cache.observe(Kind::Pod, &event(event_type, name, revision)).unwrap();
            (change.before.map(|before| before.meta.revision), change.is_gone, cache.objects().len(Kind::Pod))
        };
        assert_eq!(after(EventType::Added, "a", 1), (None, false, 1));
        assert_eq!(after(EventType::Modified, "a", 2), (Some(1), false, 1));
        assert_eq!(after(EventType::Deleted, "b", 3), (None, true, 1));
        assert_eq!(after(EventType::Deleted, "a", 4), (Some(2), true, 0));
    }

    #[test]
    fn what_was_seen_of_a_pod_before_it_ended_is_known_when_it_is_gone() {
        let sight = |revision: u64, phase: &str, grace: Option<i64>| -> bytes::Bytes {
            let mut pod = serde_json::json!({
                "metadata": {"namespace": "n", "name": "a", "uid": "a", "resourceVersion": revision.to_string()},
                "status": {"phase": phase}});
            if let Some(grace) = grace {
                pod["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z".into();
                pod["metadata"]["deletionGracePeriodSeconds"] = grace.into();
            }
            pod.to_string().into()
        };
        let event = |event_type, revision, phase, grace| {
            Event::new(event_type, revision, sight(revision, phase, grace))
        };
        let order = |change: &Change| change.object.as_pod().map(|pod| pod.end_order);
        let mut cache = Cache::default();
        cache.observe(Kind::Pod, &event(EventType::Added, 1, "Running", None));
        cache.observe(Kind::Pod, &event(EventType::Modified, 2, "Running", Some(30)));
        let listed = Listed { revision: 3, items: vec![sight(3, "Succeeded", Some(0))] };
        let changes = cache.relist(Kind::Pod, &listed).unwrap();
        assert_eq!(changes.iter().map(order).collect::<Vec<_>>(), [Some(EndOrder::AskedFirst)]);
        let gone = cache.observe(Kind::Pod, &event(EventType::Deleted, 4, "Succeeded", Some(0))).unwrap();
        assert_eq!(order(&gone), Some(EndOrder::AskedFirst));
    }

    #[test]
    fn a_relist_concerns_only_what_differs() {
        let mut cache = Cache::default();
        for (name, revision) in [("a", 1), ("b", 2), ("c", 3)] {
            cache.observe(Kind::Pod, &event(EventType::Added, name, revision));
        }
        let listed = Listed { revision: 9, items: vec![pod("a", 1), pod("b", 7), pod("d", 8)] };
        assert_eq!(names(cache.relist(Kind::Pod, &listed).unwrap()), ["b", "d", "c"]);
        assert_eq!(cache.revision(Kind::Pod), 9);
    }

    #[test]
    fn an_older_list_is_not_believed() {
        let mut cache = Cache::default();
        cache.observe(Kind::Pod, &event(EventType::Added, "a", 5));
        let listed = Listed { revision: 4, items: vec![] };
        assert_eq!(cache.relist(Kind::Pod, &listed), Err(OutdatedList { listed: 4, seen: 5 }));
        assert_eq!(cache.objects().len(Kind::Pod), 1);
    }
}
