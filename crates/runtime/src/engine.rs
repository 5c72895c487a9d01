//! The reconcile path without I/O and without a clock: what ships and what the simulator drives are the same code.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Key, Kind, Time};
use krafla_plan::{Controller, Object, Plan, Severity, Snapshot};

use crate::apply::Applied;
use crate::barrier::Barrier;
use crate::cache::{Cache, OutdatedList};
use crate::client::{ClientError, Event, Listed};
use crate::queue::Queue;

/// How long a root waits for its own writes to come back on the watch before it is looked at all the same. Only a watch
/// that hangs gets there; decisions stay safe, because every write names what it was computed from.
const BARRIER_PATIENCE: Duration = Duration::from_secs(30);

/// How long a status in which only counters changed waits for more of the same.
const COUNTERS_WAIT: Duration = Duration::from_millis(200);

/// One object under one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    controller: usize,
    /// The root's key.
    pub key: Key,
}

/// A decision that wants to be carried out.
#[derive(Debug)]
pub struct Work {
    /// For whom.
    pub root: Root,
    /// What.
    pub plan: Plan,
}

/// How carrying out a decision ended.
#[derive(Debug)]
pub enum Outcome {
    /// With these answers.
    Applied(Applied),
    /// It was not carried out.
    Dropped,
}

/// What happened so far, for metrics and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Decisions taken.
    pub plans: u64,
    /// Decisions that wrote something.
    pub plans_with_writes: u64,
    /// Writes made.
    pub writes: u64,
    /// Writes that failed.
    pub failures: u64,
    /// Decisions that panicked: a fault in this program, kept to one root.
    pub panics: u64,
    /// Plans that the guard refused: a fault in this program, kept from doing harm.
    pub refusals: u64,
}

/// The reconcile path.
pub struct Engine {
    controllers: Vec<Box<dyn Controller>>,
    /// Which controllers look at a kind.
    watchers: BTreeMap<Kind, Vec<usize>>,
    cache: Cache,
    queue: Queue<Root>,
    barrier: Barrier<Root>,
    /// Since when a root's counters differ from what is stored.
    counters_since: BTreeMap<Root, Time>,
    counts: Counts,
}

impl Engine {
    /// An engine for these controllers, with nothing observed yet.
    pub fn new(controllers: Vec<Box<dyn Controller>>) -> Engine {
        let mut watchers: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
        for (index, controller) in controllers.iter().enumerate() {
            let kinds: BTreeSet<Kind> =
                controller.watches().iter().copied().chain([controller.root()]).collect();
            for kind in kinds {
                watchers.entry(kind).or_default().push(index);
            }
        }
        Engine {
            controllers,
            watchers,
            cache: Cache::default(),
            queue: Queue::new(),
            barrier: Barrier::new(),
            counters_since: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// The kinds to watch: one watch each, however many controllers look at it.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.watchers.keys().copied()
    }

    /// Takes in a list of all objects of a kind.
    pub fn listed(&mut self, kind: Kind, listed: &Listed) -> Result<(), OutdatedList> {
        for object in self.cache.relist(kind, listed)? {
            self.concern(&object);
        }
        Ok(())
    }

    /// Takes in one watch event.
    pub fn observed(&mut self, kind: Kind, event: &Event) {
        if let Some(object) = self.cache.observe(kind, event) {
            self.concern(&object);
        }
    }

    /// The revision from which a watch of this kind goes on.
    pub fn revision(&self, kind: Kind) -> u64 {
        self.cache.revision(kind)
    }

    fn concern(&mut self, object: &Arc<Object>) {
        for index in self.watchers.get(&object.kind).into_iter().flatten() {
            let Some(controller) = self.controllers.get(*index) else { continue };
            for key in controller.keys(object, self.cache.objects()) {
                self.queue.push(Root { controller: *index, key });
            }
        }
    }

    /// Whether every kind has been listed: before that, a missing object may only be unseen.
    pub fn is_synced(&self) -> bool {
        self.watchers.keys().all(|kind| self.cache.has_listed(*kind))
    }

    /// The next decision that writes something. Decisions that write nothing are finished here.
    pub fn next(&mut self, now: Time) -> Option<Work> {
        if !self.is_synced() {
            return None;
        }
        while let Some(root) = self.queue.pop(now) {
            if let Some(plan) = self.decide(&root, now) {
                return Some(Work { root, plan });
            }
        }
        None
    }

    fn decide(&mut self, root: &Root, now: Time) -> Option<Plan> {
        let controller = self.controllers.get(root.controller)?;
        if let Err(since) = self.barrier.check(root, &self.cache) {
            // The event that is awaited brings the root back.
            let patience_ends = since.after(BARRIER_PATIENCE);
            if now < patience_ends {
                self.queue.done(root);
                self.queue.wake(root, Some(patience_ends));
                return None;
            }
            tracing::warn!(controller = controller.name(), key = %root.key, "own writes did not come back on the watch");
            self.barrier.drop_root(root);
        }
        let snapshot =
            Snapshot { key: &root.key, kind: controller.root(), now, objects: self.cache.objects() };
        self.counts.plans += 1;
        let decided = catch_unwind(AssertUnwindSafe(|| {
            let plan = controller.plan(&snapshot);
            let verdict = krafla_guard::check(&snapshot, &plan);
            (plan, verdict)
        }));
        let retry = match decided {
            Ok((plan, Ok(()))) => {
                log_notes(controller.name(), &root.key, &plan);
                let plan = coalesce_counters(&mut self.counters_since, root, plan, now);
                if !plan.is_quiet() {
                    self.counts.plans_with_writes += 1;
                    return Some(plan);
                }
                self.queue.forget(root);
                plan.wake_at
            }
            Ok((plan, Err(violation))) => {
                tracing::error!(controller = controller.name(), key = %root.key, %violation, %plan, "plan refused");
                self.counts.refusals += 1;
                Some(self.queue.back_off(root, now))
            }
            Err(_) => {
                tracing::error!(controller = controller.name(), key = %root.key, "decision panicked");
                self.counts.panics += 1;
                Some(self.queue.back_off(root, now))
            }
        };
        self.queue.done(root);
        self.queue.wake(root, retry);
        None
    }

    /// A decision has been carried out, wholly or in part.
    pub fn finished(&mut self, work: Work, outcome: Outcome, now: Time) {
        let Work { root, plan } = work;
        let wake_at = match outcome {
            Outcome::Dropped => Some(self.queue.back_off(&root, now)),
            Outcome::Applied(applied) => {
                self.counts.writes += applied.writes as u64;
                self.barrier.wrote(&root, applied.expectations, now);
                match applied.failure {
                    None => {
                        self.queue.forget(&root);
                        plan.wake_at
                    }
                    Some(failure) => {
                        self.counts.failures += 1;
                        tracing::debug!(key = %root.key, step = failure.step, error = %failure.error, "write failed");
                        Some(self.retry_at(&root, &failure.error, now))
                    }
                }
            }
        };
        self.queue.done(&root);
        self.queue.wake(&root, wake_at);
    }

    fn retry_at(&mut self, root: &Root, error: &ClientError, now: Time) -> Time {
        let at = self.queue.back_off(root, now);
        match error {
            ClientError::Busy { retry_after: Some(after), .. } => at.max(now.after(*after)),
            _ => at,
        }
    }

    /// When the next delayed decision is due.
    pub fn next_wake(&self) -> Option<Time> {
        self.queue.next_wake()
    }

    /// Whether a decision can be taken now.
    pub fn has_work(&self, now: Time) -> bool {
        self.is_synced() && self.queue.has_ready(now)
    }

    /// How many roots wait for their turn.
    pub fn depth(&self) -> usize {
        self.queue.len()
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// Takes a status out of the plan in which only counters changed, until they have been waiting long enough. However fast
/// pods come and go, counters are written a few times a second, and never late.
fn coalesce_counters(waiting: &mut BTreeMap<Root, Time>, root: &Root, mut plan: Plan, now: Time) -> Plan {
    if plan.status.is_none() || !plan.status_may_wait {
        waiting.remove(root);
        return plan;
    }
    let due_at = waiting.entry(root.clone()).or_insert(now).after(COUNTERS_WAIT);
    if now >= due_at {
        waiting.remove(root);
    } else {
        plan.status = None;
        plan.wake_at = Some(plan.wake_at.map_or(due_at, |at| at.min(due_at)));
    }
    plan
}

fn log_notes(controller: &str, key: &Key, plan: &Plan) {
    for note in &plan.notes {
        match note.severity {
            Severity::Normal => tracing::info!(controller, %key, reason = note.reason, "{}", note.message),
            Severity::Warning => tracing::warn!(controller, %key, reason = note.reason, "{}", note.message),
        }
    }
}
