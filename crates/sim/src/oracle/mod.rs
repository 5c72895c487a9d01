//! Who watches over the properties: every stored change is shown to it in the order of revisions, straight from the
//! store, and every write of a process before it is sent.
//!
//! ```text
//!   at every revision       krafla_guard::history    P1, P2, P3, P4, P7, and P5 and P12 of Kubernetes' Jobs
//!   before every deletion   krafla_guard::history    P3, P5: charged and counted before the first kill
//!   before every write      krafla_guard::history    P6: only what the root owns
//!   before every write      memory                   P9: no decision without its own last writes
//!   from then on            late                     that what was made by a process that was replaced goes again
//!   at the end              end                      P5, P8, P10, P12: one function each in end::CHECKS
//! ```

pub(crate) mod end;
mod late;
mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use krafla_api::volcano::JobPhase;
use krafla_api::{Key, Kind, Time, Uid};
use krafla_apiserver::store::{EventType, Store, StoredEvent, Watcher};
use krafla_cluster::Step;
use krafla_guard::Violation;
use krafla_guard::history::{Change, History};
use krafla_plan::Object;
use krafla_runtime::Root;
use serde_json::Value;

use late::Late;
pub(crate) use memory::Memory;

use crate::clock::{self, Clock};
use crate::server::resource;
use crate::trace::Trace;

/// The kinds that controllers, scheduler, node and users write to.
const KINDS: [Kind; 15] = [
    Kind::VcJob,
    Kind::PodGroup,
    Kind::Pod,
    Kind::Command,
    Kind::Queue,
    Kind::Service,
    Kind::ConfigMap,
    Kind::Secret,
    Kind::NetworkPolicy,
    Kind::JobFlow,
    Kind::JobTemplate,
    Kind::VcCronJob,
    Kind::PersistentVolumeClaim,
    Kind::Job,
    Kind::CronJob,
];

/// One run reports at most so many findings: what follows the first is seldom news.
const FINDINGS_MAX: usize = 8;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The property that does not hold, or `guard`, `panic` or `chance`.
    pub rule: String,
    /// What was seen.
    pub message: String,
    /// How old the world was.
    pub at: Duration,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} after {:.3} s: {}", self.rule, self.at.as_secs_f64(), self.message)
    }
}

/// Whether a Job writes to a pod as it has seen it, be it to make it its own: if another process holds it meanwhile, the server refuses.
fn stands_on_what_it_saw(root: &Root, step: &Step) -> bool {
    root.kind == Kind::Job && matches!(step, Step::Patch { kind: Kind::Pod, revision: Some(_), .. })
}

/// Who watches over the properties.
pub(crate) struct Oracle {
    store: Store,
    watchers: Vec<(Kind, Watcher)>,
    /// Up to which revision everything has been seen.
    revision: u64,
    history: History,
    /// The pods of whose deletion by a controller `history` knows.
    own_deletions: BTreeSet<Uid>,
    late: Late,
    /// The phases that each job is or has been in.
    jobs: BTreeMap<Key, BTreeSet<JobPhase>>,
    /// The kinds of which anything has been stored.
    kinds: BTreeSet<Kind>,
    findings: Vec<Finding>,
    last_change_at: Time,
    elapsed: Duration,
}

impl Oracle {
    /// An oracle that sees everything from now on.
    pub(crate) fn new(store: Store) -> Oracle {
        let revision = store.revision();
        let watch = |kind| Some((kind, store.watch(&resource(kind), revision).ok()?));
        Oracle {
            watchers: KINDS.into_iter().filter_map(watch).collect(),
            store,
            revision,
            history: History::default(),
            own_deletions: BTreeSet::new(),
            late: Late::default(),
            jobs: BTreeMap::new(),
            kinds: BTreeSet::new(),
            findings: Vec::new(),
            last_change_at: clock::start(),
            elapsed: Duration::ZERO,
        }
    }

    /// The same oracle over a fork of its store.
    pub(crate) fn fork(&self, store: Store) -> Oracle {
        let watchers = self.watchers.iter().map(|(kind, watcher)| (*kind, watcher.in_fork(&store)));
        Oracle {
            watchers: watchers.collect(),
            store,
            history: self.history.clone(),
            own_deletions: self.own_deletions.clone(),
            late: self.late.clone(),
            jobs: self.jobs.clone(),
            kinds: self.kinds.clone(),
            findings: self.findings.clone(),
            ..*self
        }
    }

    /// Takes everything that decides about later findings into a number, but for what follows from the history of the store.
    pub(crate) fn digest(&self, into: &mut impl Hasher) {
        (self.revision, &self.own_deletions, self.last_change_at).hash(into);
        self.late.digest(into);
    }

    /// Looks at what has been stored since it last looked.
    pub(crate) fn catch_up(&mut self, clock: &Clock, trace: &mut Trace, outage_end: Option<Time>) {
        self.elapsed = clock.elapsed();
        let revision = self.store.revision();
        if revision == self.revision {
            return;
        }
        self.revision = revision;
        let mut news: Vec<(Kind, Arc<StoredEvent>)> = Vec::new();
        for (kind, watcher) in &mut self.watchers {
            while let Some(Ok(event)) = watcher.try_next() {
                news.push((*kind, event));
            }
        }
        news.sort_unstable_by_key(|(_, event)| event.revision);
        for (kind, event) in news {
            self.last_change_at = clock.now();
            trace.digest(&event.entry.bytes);
            self.kinds.insert(kind);
            self.see(kind, &event);
        }
        for violation in self.late.overdue(clock.now(), outage_end) {
            self.broken(violation);
        }
    }

    fn see(&mut self, kind: Kind, event: &StoredEvent) {
        if !History::reads(kind) {
            return;
        }
        let change = match event.event_type {
            EventType::Added => Change::Created,
            EventType::Modified => Change::Updated,
            EventType::Deleted => Change::Removed,
        };
        let object = Object::decode(kind, &event.entry.bytes);
        let mut broken = self.history.see(change, &object);
        if change == Change::Created {
            broken = self.late.excuse(&object.meta.uid, broken, self.last_change_at);
        } else if change == Change::Removed || object.meta.is_deleting() {
            self.late.goes(&object.meta.uid);
        }
        for violation in broken {
            self.broken(violation);
        }
        if let Some(job) = object.as_vcjob() {
            if change == Change::Removed {
                self.jobs.remove(&object.meta.key);
            } else {
                let phases = self.jobs.entry(object.meta.key.clone()).or_default();
                phases.insert(job.status.state.phase.clone());
            }
        }
    }

    /// A process is about to make a write for a root, whom it took for this UID.
    pub(crate) fn about_to_write(&mut self, root: &Root, uid: Option<&Uid>, step: &Step) {
        // Others, such as the scheduler and queues, touch what jobs own, and their guards say what they may.
        let owns_what_it_makes =
            matches!(root.kind, Kind::VcJob | Kind::JobFlow | Kind::VcCronJob | Kind::Job | Kind::CronJob);
        if owns_what_it_makes
            && !stands_on_what_it_saw(root, step)
            && let Some(violation) = uid.and_then(|uid| self.history.see_own_write(uid, step))
        {
            self.broken(violation);
        }
        if let Some(message) = self.takes_what_is_in_use(root, uid, step) {
            self.found("P12", message);
        }
        let Step::Delete { kind: Kind::Pod, uid: pod, .. } = step else { return };
        self.own_deletions.insert(pod.clone());
        if root.kind == Kind::VcJob {
            self.history.remember_own_deletion(pod);
        }
        // The root of the scheduler is a queue. What it deletes makes room for others: an eviction, and no restart.
        let is_restart = root.kind != Kind::Queue;
        if let Some(violation) = self.history.see_own_deletion(pod).filter(|_| is_restart) {
            self.broken(violation);
        }
    }

    /// Whether a job is about to lose what its plugins made although its pods, or some of them, run on. That it would be made
    /// again is no comfort: another key is not the one that the pods have.
    fn takes_what_is_in_use(&self, root: &Root, uid: Option<&Uid>, step: &Step) -> Option<String> {
        let of_plugins = [Kind::Service, Kind::ConfigMap, Kind::Secret, Kind::NetworkPolicy];
        let Step::Delete { kind, .. } = step else { return None };
        let is_it = uid.is_some_and(|uid| self.is_stored(root.kind, &root.key, uid));
        if root.kind != Kind::VcJob || !of_plugins.contains(kind) || !is_it {
            return None;
        }
        let job = self.stored(Kind::VcJob, &root.key)?;
        let state = |field: &str| job.pointer("/status/state")?.get(field)?.as_str();
        let is_in_use = match state("phase")? {
            "Pending" | "Running" => true,
            "Restarting" => !matches!(state("reason"), Some("RestartJob" | "ResumeJob")),
            _ => false,
        };
        is_in_use.then(|| format!("{step}: pods of {} still use it", root.key))
    }

    /// An object was made by a process in whose place there is another.
    pub(crate) fn made_late(&mut self, uid: Uid) {
        self.late.made(uid);
    }

    /// Nothing more will happen.
    pub(crate) fn ended(&mut self) {
        for violation in self.late.left() {
            self.broken(violation);
        }
    }

    /// The object of this name, if there is one.
    pub(crate) fn stored(&self, kind: Kind, key: &Key) -> Option<Value> {
        let entry = self.store.get(&resource(kind), key)?;
        serde_json::from_slice(&entry.bytes).ok()
    }

    /// The kinds of which anything has been stored so far.
    pub(crate) fn kinds(&self) -> BTreeSet<Kind> {
        self.kinds.clone()
    }

    /// Whether this very object is there.
    pub(crate) fn is_stored(&self, kind: Kind, key: &Key, uid: &Uid) -> bool {
        self.store.get(&resource(kind), key).is_some_and(|entry| entry.uid == *uid)
    }

    /// The phases that a job is or has been in, unless there is none.
    pub(crate) fn phases_of(&self, job: &Key) -> Option<&BTreeSet<JobPhase>> {
        self.jobs.get(job)
    }

    /// When something was last stored.
    pub(crate) fn last_change_at(&self) -> Time {
        self.last_change_at
    }

    /// A property does not hold.
    pub(crate) fn broken(&mut self, violation: Violation) {
        self.found(&format!("{:?}", violation.property), violation.message);
    }

    /// Something must not be.
    pub(crate) fn found(&mut self, rule: &str, message: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { rule: rule.to_owned(), message, at: self.elapsed });
        }
    }

    /// Whether something was that must not be.
    pub(crate) fn has_findings(&self) -> bool {
        !self.findings.is_empty()
    }

    /// What must not be and was.
    pub(crate) fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }
}
