//! Shows the properties every revision that a server tells of, also of one that is killed and started again.
//!
//! What was stored in the last moments before a death may never have been told. From the first revision that may be missing
//! to the lists after the restart, the history is only asked what can be said of one with holes: P1 and P2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt;
use krafla_api::{Kind, Uid};
use krafla_client::{Access, HttpsClient, Limits};
use krafla_cluster::{Client, EventType};
use krafla_guard::Property;
use krafla_guard::history::{Change, History};
use krafla_plan::Object;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::support::Kubectl;

/// Owners come before what they own.
const KINDS: [Kind; 4] = [Kind::VcJob, Kind::Job, Kind::PodGroup, Kind::Pod];

/// One revision of one object.
struct Seen {
    revision: u64,
    change: Change,
    object: Object,
}

/// All objects of a kind, and the revision at which that was so.
struct List {
    kind: Kind,
    revision: u64,
    objects: Vec<Object>,
}

pub(crate) struct Recorder {
    runtime: Runtime,
    /// What each watch has told, once it has ended.
    watches: Vec<JoinHandle<Vec<Seen>>>,
    /// The last lists. From here on nothing is missing.
    lists: Vec<List>,
    /// Everything that is there, as it was last shown to the history.
    known: BTreeMap<Uid, Object>,
    history: History,
    n_revisions: usize,
    broken: Vec<String>,
}

impl Recorder {
    /// Records what happens in a cluster from now on.
    pub(crate) fn of(cluster: &Kubectl) -> Recorder {
        let mut recorder = Recorder {
            runtime: Runtime::new().unwrap(),
            watches: Vec::new(),
            lists: Vec::new(),
            known: BTreeMap::new(),
            history: History::default(),
            n_revisions: 0,
            broken: Vec::new(),
        };
        recorder.begin(cluster);
        recorder
    }

    /// Goes on after the server has died and was started again.
    pub(crate) fn resume(&mut self, cluster: &Kubectl) {
        let watches = std::mem::take(&mut self.watches);
        let told = self.runtime.block_on(futures_util::future::join_all(watches));
        let told: Vec<Vec<Seen>> = told.into_iter().map(Result::unwrap).collect();
        let before = std::mem::take(&mut self.lists);
        self.begin(cluster);

        let last_told = told.iter().zip(&before).map(|(seen, list)| {
            let last = seen.last().map_or(list.revision, |seen| seen.revision);
            (list.kind, last)
        });
        let last_told: BTreeMap<Kind, u64> = last_told.collect();
        let listed = before.iter().map(|list| list.revision).max().unwrap_or_default();
        let mut seen: Vec<Seen> = told.into_iter().flatten().collect();
        seen.sort_by_key(|seen| seen.revision);
        let missed = self.missed(&seen);
        // What was told of a kind was told in order, so that none is missing before the last.
        let first_hole = missed.iter().filter_map(|seen| last_told.get(&seen.object.kind)).min().copied();
        for seen in seen {
            let is_whole = seen.revision > listed && first_hole.is_none_or(|hole| seen.revision <= hole);
            self.show(&seen, is_whole);
        }
        for seen in missed {
            self.show(&seen, false);
        }
    }

    /// How many revisions were shown, and what they broke.
    pub(crate) fn findings(&self) -> (usize, &[String]) {
        (self.n_revisions, &self.broken)
    }

    fn begin(&mut self, cluster: &Kubectl) {
        let access = Access::of_file(&cluster.kubeconfig()).unwrap();
        // A client belongs to the runtime that it was made in.
        let _inside = self.runtime.enter();
        let client: Arc<dyn Client> = Arc::new(HttpsClient::new(access, Limits::default()).unwrap());
        for kind in KINDS {
            let listed = self.runtime.block_on(client.list(kind)).unwrap();
            let objects = listed.items.iter().map(|json| Object::decode(kind, json)).collect();
            self.lists.push(List { kind, revision: listed.revision, objects });
            self.watches.push(self.runtime.spawn(told(client.clone(), kind, listed.revision)));
        }
    }

    /// The difference between what has been told and what is there now: those that are gone first, because others may
    /// stand in their place.
    fn missed(&self, seen: &[Seen]) -> Vec<Seen> {
        let mut known: BTreeMap<&Uid, &Object> = self.known.iter().collect();
        for Seen { change, object, .. } in seen {
            if *change == Change::Removed {
                known.remove(&object.meta.uid);
            } else {
                known.insert(&object.meta.uid, object);
            }
        }
        let listed = || self.lists.iter().flat_map(|list| &list.objects);
        let present: BTreeSet<&Uid> = listed().map(|object| &object.meta.uid).collect();
        let gone = known.values().filter(|object| !present.contains(&object.meta.uid));
        let gone = gone.map(|object| (Change::Removed, *object));
        let is_new = |object: &&Object| {
            known.get(&object.meta.uid).is_none_or(|known| known.meta.revision < object.meta.revision)
        };
        let mut changed: Vec<&Object> = listed().filter(is_new).collect();
        changed.sort_by_key(|object| object.meta.revision);
        let missed = gone.chain(changed.into_iter().map(|object| (Change::Updated, object)));
        missed
            .map(|(change, object)| Seen { revision: object.meta.revision, change, object: object.clone() })
            .collect()
    }

    fn show(&mut self, Seen { revision, change, object }: &Seen, is_whole: bool) {
        let uid = &object.meta.uid;
        let was_going = self.known.get(uid).is_some_and(|before| before.meta.is_deleting());
        let goes = *change == Change::Removed || object.meta.is_deleting();
        let mut broken = Vec::new();
        if object.kind == Kind::Pod && goes && !was_going {
            // Nobody but controllers deletes pods while this records.
            self.history.remember_own_deletion(uid);
            broken.extend(self.history.see_own_deletion(uid));
        }
        broken.extend(self.history.see(*change, object));
        let holds_with_holes = |property| matches!(property, Property::P1 | Property::P2);
        let broken = broken.into_iter().filter(|broken| is_whole || holds_with_holes(broken.property));
        self.broken.extend(broken.map(|broken| format!("revision {revision}: {broken}")));
        self.n_revisions += 1;
        if *change == Change::Removed {
            self.known.remove(uid);
        } else {
            self.known.insert(uid.clone(), object.clone());
        }
    }
}

/// All that a watch tells, until it breaks.
async fn told(client: Arc<dyn Client>, kind: Kind, revision: u64) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut events = client.watch(kind, revision);
    while let Some(Ok(event)) = events.next().await {
        let change = match event.event_type {
            EventType::Added => Change::Created,
            EventType::Modified => Change::Updated,
            EventType::Deleted => Change::Removed,
            EventType::Bookmark => continue,
        };
        let object = Object::decode(kind, &event.object);
        seen.push(Seen { revision: event.revision, change, object });
    }
    seen
}
