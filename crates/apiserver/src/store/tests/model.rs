//! Any sequence of writes leads to what a list of events in a vector says.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// One attempt to write. Whether it is right to expect what it expects depends on what came before.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    resource: usize,
    name: usize,
    kind: AttemptKind,
    /// Added to the right revision.
    off_by: u64,
}

#[derive(Clone, Copy, Debug)]
enum AttemptKind {
    Create,
    Update,
    Delete,
}

const RESOURCES: [&str; 2] = ["pods", "jobs.batch.volcano.sh"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

pub(super) fn attempt() -> impl Strategy<Value = Attempt> {
    let kind = prop_oneof![Just(AttemptKind::Create), Just(AttemptKind::Update), Just(AttemptKind::Delete)];
    let off_by = prop_oneof![9 => Just(0_u64), 1 => Just(1)];
    (0..RESOURCES.len(), 0..NAMES.len(), kind, off_by).prop_map(|(resource, name, kind, off_by)| Attempt {
        resource,
        name,
        kind,
        off_by,
    })
}

/// The obvious store: everything that ever happened, in order.
#[derive(Debug, Default)]
pub(super) struct Model {
    events: Vec<Happened>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Happened {
    revision: u64,
    resource: &'static str,
    event_type: EventType,
    name: &'static str,
    previous: Option<u64>,
}

impl Model {
    pub(super) fn revision(&self) -> u64 {
        FIRST_REVISION + self.events.len() as u64
    }

    /// The revision of each object of a resource at a revision of the store.
    pub(super) fn objects_at(&self, resource: &str, at: u64) -> BTreeMap<&'static str, u64> {
        let mut objects = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.resource == resource && event.revision <= at) {
            match event.event_type {
                EventType::Added | EventType::Modified => objects.insert(event.name, event.revision),
                EventType::Deleted => objects.remove(event.name),
            };
        }
        objects
    }

    /// The write that an attempt makes now, and the revision it must lead to or the error it must meet.
    pub(super) fn expect(&mut self, attempt: &Attempt) -> (Write, Result<u64, CommitError>) {
        let (resource, name) = (RESOURCES[attempt.resource], NAMES[attempt.name]);
        let current = self.objects_at(resource, u64::MAX).get(name).copied();
        let revision = current.unwrap_or(1) + attempt.off_by;
        let next = self.revision() + 1;
        let write = match attempt.kind {
            AttemptKind::Create => create(name, next),
            AttemptKind::Update => update(name, revision, next),
            AttemptKind::Delete => delete(name, revision),
        };
        let happened = match (attempt.kind, current) {
            (AttemptKind::Create, None) => Ok(EventType::Added),
            (AttemptKind::Create, Some(_)) => Err(CommitError::Exists),
            (AttemptKind::Update | AttemptKind::Delete, None) => Err(CommitError::Missing),
            (_, Some(current)) if current != revision => Err(CommitError::Stale { current }),
            (AttemptKind::Update, Some(_)) => Ok(EventType::Modified),
            (AttemptKind::Delete, Some(_)) => Ok(EventType::Deleted),
        };
        let outcome = happened.map(|event_type| {
            self.events.push(Happened { revision: next, resource, event_type, name, previous: current });
            next
        });
        (Write { resource: resource.into(), ..write }, outcome)
    }

    /// Everything that the store shows at its newest revision, and what it has kept of older ones.
    fn check(&self, store: &Store, started_at: u64) {
        assert_eq!(store.revision(), self.revision());
        for resource in RESOURCES {
            for revision in started_at..=self.revision() {
                let snapshot = store.snapshot_at(&resource.into(), revision).expect("nothing is forgotten");
                assert_eq!(
                    revisions(&snapshot),
                    self.objects_at(resource, revision),
                    "{resource} at {revision}"
                );
                self.check_watch(store, resource, revision);
            }
            assert!(started_at == 0 || store.snapshot_at(&resource.into(), started_at - 1).is_none());
            assert!(store.snapshot_at(&resource.into(), self.revision() + 1).is_none());
            let snapshot = store.snapshot(&resource.into());
            assert_eq!(revisions(&snapshot), self.objects_at(resource, u64::MAX));
            for entry in snapshot.entries.values() {
                assert_eq!(store.get(&resource.into(), &entry.key).as_ref(), Some(entry));
            }
        }
    }

    fn check_watch(&self, store: &Store, resource: &'static str, after: u64) {
        let mut watcher = store.watch(&resource.into(), after).expect("nothing is forgotten");
        let events = std::iter::from_fn(|| watcher.try_next()).map(|event| {
            let event = event.expect("nothing is forgotten");
            let name = NAMES.into_iter().find(|name| *name == &*event.entry.key.name).unwrap();
            let previous = event.previous.as_ref().map(|previous| previous.revision);
            Happened { revision: event.revision, resource, event_type: event.event_type, name, previous }
        });
        let expected =
            self.events.iter().filter(|event| event.resource == resource && event.revision > after);
        assert_eq!(events.collect::<Vec<_>>(), expected.cloned().collect::<Vec<_>>());
        assert_eq!(watcher.revision(), self.revision());
    }
}

/// The names and revisions of a snapshot, after a look at whether its bytes say the same.
pub(super) fn revisions(snapshot: &Snapshot) -> BTreeMap<&str, u64> {
    let revision = |entry: &Arc<Entry>| {
        let object: serde_json::Value = serde_json::from_slice(&entry.bytes).unwrap();
        assert_eq!(object["metadata"]["resourceVersion"], entry.revision.to_string());
        assert_eq!(object["value"], entry.revision);
        assert_eq!(entry.meta.labels.get("value"), Some(entry.revision.to_string().as_str()));
        assert_eq!(*entry.uid.0, format!("uid-{}", entry.key.name));
        entry.revision
    };
    snapshot.entries.values().map(|entry| (&*entry.key.name, revision(entry))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn in_memory_it_does_what_the_model_does(attempts in prop::collection::vec(attempt(), 0..60)) {
        let (store, mut model) = (Store::in_memory(), Model::default());
        for attempt in &attempts {
            let (write, expected) = model.expect(attempt);
            prop_assert_eq!(store.commit_now(write).map(|entry| entry.revision), expected);
        }
        model.check(&store, FIRST_REVISION);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn on_disk_it_does_what_the_model_does_and_finds_it_again(
        attempts in prop::collection::vec(prop::collection::vec(attempt(), 0..20), 1..4),
    ) {
        let (dir, runtime) = (tempfile::tempdir().unwrap(), runtime());
        let mut model = Model::default();
        for attempts in &attempts {
            let started_at = model.revision();
            let store = Store::open(dir.path()).unwrap();
            model.check(&store, started_at);
            for attempt in attempts {
                let (write, expected) = model.expect(attempt);
                let outcome = runtime.block_on(store.commit(write));
                prop_assert_eq!(outcome.map(|entry| entry.revision), expected);
            }
            model.check(&store, started_at);
        }
    }
}
