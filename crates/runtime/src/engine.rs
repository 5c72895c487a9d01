//! The reconcile path without I/O and without a clock: what ships and what the simulator drives are the same code.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{ClientError, Event, EventType, Listed, Step, Write};
use krafla_plan::{Answer, Attempt, Controller, Departed, Note, Object, Plan, Severity, Snapshot};

use crate::apply::{Applied, Failure, Premise};
use crate::cache::{Cache, Change, OutdatedList};
use crate::events::Remark;
use crate::inquiry::Inquiry;
use crate::metrics::{Metrics, Reconciled, WorkQueues};
use crate::queue::Queue;
use crate::roots::Roots;

/// How long a root waits for its own writes to come back on the watch before that is worth a warning. It goes on waiting:
/// a decision without them could create pods for a job that it has itself just stopped. A watch that hangs is for the
/// client to notice and to open anew.
const BARRIER_PATIENCE: Duration = Duration::from_secs(30);

/// One object under one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Root {
    pub(crate) controller: usize,
    /// The root's kind.
    pub kind: Kind,
    /// The root's key.
    pub key: Key,
}

/// A decision that wants to be carried out.
#[derive(Debug)]
pub struct Work {
    /// For whom.
    pub root: Root,
    /// The root as it was when the decision was taken, unless it was gone.
    pub object: Option<Arc<Object>>,
    /// What must still be so when it is carried out, beyond what each write asks for itself.
    pub premise: Option<Premise>,
    /// What.
    pub plan: Plan,
    /// When it was decided.
    pub decided_at: Time,
    /// Whether the children that the root has on record had been observed up to the root's own revision.
    pub has_caught_up: bool,
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
    queue: Queue<Root, WorkQueues>,
    /// What is remembered of each root.
    roots: Roots,
    /// Children that went away, by the UID of the root that controlled them, until a stored plan has made use of it.
    departed: BTreeMap<Uid, Vec<Departed>>,
    /// What is to be said.
    remarks: Vec<Remark>,
    counts: Counts,
    /// Where numbers go, if anywhere, and the name under which those of this engine go there.
    metrics: Option<(Arc<Metrics>, &'static str)>,
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
            queue: Queue::new(WorkQueues::default()),
            roots: Roots::default(),
            departed: BTreeMap::new(),
            remarks: Vec::new(),
            counts: Counts::default(),
            metrics: None,
        }
    }

    /// The same engine, with nothing observed yet, which counts where others do, under a name of its own.
    pub fn counting_in(self, metrics: Arc<Metrics>, name: &'static str) -> Engine {
        let queues = self.controllers.iter().map(|controller| metrics.work_queue(controller.queue()));
        Engine { queue: Queue::new(queues.collect()), metrics: Some((metrics, name)), ..self }
    }

    /// A second engine that knows what this one knows, with the same controllers made anew: they remember nothing. It counts
    /// for itself.
    pub fn fork(&self, controllers: Vec<Box<dyn Controller>>) -> Engine {
        Engine {
            cache: self.cache.clone(),
            queue: self.queue.clone(),
            roots: self.roots.clone(),
            departed: self.departed.clone(),
            ..Engine::new(controllers)
        }
    }

    /// Takes everything that decides about what the engine will do into a number, so that two engines which will do the same
    /// can be found. It says what objects are by their revisions: both must have observed the same history of one store.
    pub fn digest(&self, into: &mut impl Hasher) {
        self.cache.digest(into);
        self.queue.digest(into);
        self.roots.hash(into);
        self.departed.len().hash(into);
        for (root, departed) in &self.departed {
            (root, departed.len()).hash(into);
            for Departed { object, at } in departed {
                (&object.meta.uid, object.meta.revision, at).hash(into);
                object.as_pod().map(|pod| pod.end_order).hash(into);
            }
        }
    }

    /// The kinds to watch: one watch each, however many controllers look at it.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.watchers.keys().copied()
    }

    /// Takes in a list of all objects of a kind.
    pub fn listed(&mut self, kind: Kind, listed: &Listed, now: Time) -> Result<(), OutdatedList> {
        for change in self.cache.relist(kind, listed)? {
            self.concern(&change, now);
        }
        Ok(())
    }

    /// Takes in one watch event.
    pub fn observed(&mut self, kind: Kind, event: &Event, now: Time) {
        if let Some(change) = self.cache.observe(kind, event) {
            self.concern(&change, now);
            if event.event_type == EventType::Added && change.before.is_none() {
                self.met(&change.object);
            }
        }
    }

    /// Nothing has happened to a root unseen of which we saw the beginning.
    fn met(&mut self, object: &Object) {
        for (index, controller) in self.controllers.iter().enumerate() {
            if controller.root() == object.kind {
                let key = object.meta.key.clone();
                let root = Root { controller: index, kind: object.kind, key };
                self.roots.update(&root, |state| state.is_looked_at = true);
            }
        }
    }

    /// The revision from which a watch of this kind goes on.
    pub fn revision(&self, kind: Kind) -> u64 {
        self.cache.revision(kind)
    }

    fn concern(&mut self, change: &Change, now: Time) {
        self.measure(change);
        let object = &change.object;
        for root in self.concerned(change) {
            if change.is_gone && root.kind == object.kind {
                self.roots.forget(&root);
            }
            self.queue.push(root, now);
        }
        if change.is_gone {
            self.departed.remove(&object.meta.uid);
            self.remember_departed(change, now);
        }
    }

    /// Whom a change concerns: those who look at the object as it is, and where it has changed hands those who had it before.
    fn concerned(&self, change: &Change) -> Vec<Root> {
        let object = &change.object;
        let lost = change.before.as_ref().filter(|before| before.meta.owners != object.meta.owners);
        let mut roots = Vec::new();
        for index in self.watchers.get(&object.kind).into_iter().flatten() {
            let Some(controller) = self.controllers.get(*index) else { continue };
            for object in lost.into_iter().chain([object]) {
                let keys = controller.keys(object, self.cache.objects());
                let root = |key| Root { controller: *index, kind: controller.root(), key };
                roots.extend(keys.into_iter().map(root));
            }
        }
        roots
    }

    /// Lets those who look at a kind count what happened to an object of it.
    fn measure(&self, change: &Change) {
        let Some((metrics, _)) = &self.metrics else { return };
        let watchers = self.watchers.get(&change.object.kind).into_iter().flatten();
        for controller in watchers.filter_map(|index| self.controllers.get(*index)) {
            metrics.stored(controller.as_ref(), change, self.cache.objects());
        }
    }

    /// Keeps a child that went away as evidence, as long as there is a root to judge it.
    ///
    /// A child that a list no longer names is known as it last was. If its root's own decision deleted it meanwhile, that is
    /// not how it went: it is no evidence of anything that others did.
    fn remember_departed(&mut self, change: &Change, now: Time) {
        let object = &change.object;
        let is_end_unseen = change.before.as_ref().is_some_and(|before| Arc::ptr_eq(before, object));
        let Some(owner) = object.meta.owners.iter().find(|owner| owner.controller == Some(true)) else {
            return;
        };
        let key = Key::new(&object.meta.key.namespace, &owner.name);
        let (mut has_root, mut is_own) = (false, false);
        for (index, controller) in self.controllers.iter().enumerate() {
            let kind = controller.root();
            if self.cache.objects().get(kind, &key).is_some_and(|root| root.meta.uid == owner.uid) {
                let root = Root { controller: index, kind, key: key.clone() };
                is_own |= self.roots.update(&root, |state| {
                    state.has_lost_child = true;
                    is_end_unseen && state.own_writes.awaits_going(&object.meta.uid)
                });
                has_root = true;
            }
        }
        if has_root && !is_own {
            let departed = Departed { object: object.clone(), at: now };
            self.departed.entry(owner.uid.clone()).or_default().push(departed);
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
        self.roots.rests.begin();
        let next = loop {
            let Some(root) = self.queue.pop(now) else { break None };
            if let Some(plan) = self.decide(&root, now) {
                let object = self.cache.objects().get(root.kind, &root.key).cloned();
                let premise = self.premise(&root, &plan);
                let has_caught_up = self.has_caught_up(&root);
                break Some(Work { root, object, premise, plan, decided_at: now, has_caught_up });
            }
        };
        if let Some((metrics, name)) = &self.metrics {
            metrics.waiting(name, self.depth());
        }
        next
    }

    /// What [`Engine::next`] has decided was decided by now. Roots whose decisions take long rest for longer. Who has no clock
    /// of their own need not say it.
    pub fn decided_by(&mut self, now: Time) {
        self.roots.rests.took_until(now);
    }

    /// What a plan that makes something for a root relies on, if there is reason to doubt it, or if it puts what it makes in
    /// the place of something else: that would be lost if the new were then not wanted. A status write asks for itself
    /// whether the root is as it was.
    fn premise(&self, root: &Root, plan: &Plan) -> Option<Premise> {
        let replaces = plan.steps.iter().any(|step| matches!(step, Step::Delete { .. }));
        let is_doubtful = plan.status.is_none()
            && (replaces || self.roots.get(root).is_some_and(|state| state.has_lost_child));
        let object = self.cache.objects().get(root.kind, &root.key)?;
        (is_doubtful && plan.steps.iter().any(Step::creates)).then(|| Premise {
            kind: root.kind,
            key: root.key.clone(),
            uid: object.meta.uid.clone(),
            revision: object.meta.revision,
        })
    }

    fn decide(&mut self, root: &Root, now: Time) -> Option<Plan> {
        let controller = self.controllers.get(root.controller)?;
        if let Some(until) = self.roots.rests.until(root, now) {
            self.queue.done(root, now);
            self.queue.wake(root, Some(until));
            return None;
        }
        if let Err(unseen) = self.roots.update(root, |state| state.own_writes.check(&self.cache)) {
            // The event that is awaited brings the root back.
            if now >= unseen.since.after(BARRIER_PATIENCE) {
                tracing::warn!(controller = controller.name(), key = %root.key, "own writes have not come back on the watch");
            }
            self.count_attempt(root, &Attempt::Skipped { unseen: unseen.kind });
            self.queue.done(root, now);
            self.queue.wake(root, Some(now.after(BARRIER_PATIENCE)));
            return None;
        }
        self.counts.plans += 1;
        let n_read = controller.n_read(&root.key, self.cache.objects());
        self.roots.rests.decided(root, n_read, now);
        let snapshot = self.snapshot(root, controller.as_ref(), now);
        let decided = catch_unwind(AssertUnwindSafe(|| {
            let plan = controller.plan(&snapshot);
            let verdict = krafla_guard::check(&snapshot, &plan);
            (plan, verdict)
        }));
        let retry = match decided {
            Ok((plan, Ok(()))) => {
                self.roots.inquiries.rely_on(root, &plan.probes, now);
                let plan = self.roots.counters.hold_back(root, plan, n_read, now);
                if !plan.is_quiet() {
                    self.counts.plans_with_writes += 1;
                    return Some(plan);
                }
                self.count(root, Reconciled::Quiet);
                self.count_decision(root, &plan, true);
                self.settle(root, &plan, plan.notes.clone(), self.has_caught_up(root), now);
                plan.wake_at
            }
            Ok((plan, Err(violation))) => {
                tracing::error!(controller = controller.name(), key = %root.key, %violation, %plan, "plan refused");
                self.counts.refusals += 1;
                self.count(root, Reconciled::Refused);
                self.count_decision(root, &plan, false);
                Some(self.queue.back_off(root, now))
            }
            Err(_) => {
                tracing::error!(controller = controller.name(), key = %root.key, "decision panicked");
                self.counts.panics += 1;
                self.count(root, Reconciled::Panicked);
                Some(self.queue.back_off(root, now))
            }
        };
        self.queue.done(root, now);
        self.queue.wake(root, retry);
        None
    }

    fn count(&self, root: &Root, how: Reconciled) {
        if let (Some((metrics, _)), Some(controller)) = (&self.metrics, self.controllers.get(root.controller))
        {
            metrics.reconciled(controller.name(), how);
        }
    }

    /// A decision that writes nothing has been carried out in the moment in which it is taken.
    fn count_decision(&self, root: &Root, plan: &Plan, is_success: bool) {
        if let Some(object) = self.cache.objects().get(root.kind, &root.key) {
            let (took, n_creations_failed) = (Duration::ZERO, 0);
            let attempt = Attempt::Made { root: object, plan, is_success, n_creations_failed, took };
            self.count_attempt(root, &attempt);
        }
    }

    fn count_attempt(&self, root: &Root, attempt: &Attempt<'_>) {
        if let (Some((metrics, _)), Some(controller)) = (&self.metrics, self.controllers.get(root.controller))
        {
            metrics.attempted(controller.as_ref(), attempt);
        }
    }

    /// Whether the children that a root's status has on record have been observed up to when that was written: one that is not
    /// seen then is not there. What is on record was stored before the record. Kinds that are not on record may be older, and one
    /// of which nothing changes stays so.
    fn has_caught_up(&self, root: &Root) -> bool {
        let Some(controller) = self.controllers.get(root.controller) else { return false };
        let object = self.cache.objects().get(controller.root(), &root.key);
        let revision = object.map_or(0, |object| object.meta.revision);
        controller.recorded().iter().all(|kind| self.cache.revision(*kind).saturating_add(1) >= revision)
    }

    fn snapshot<'a>(&'a self, root: &'a Root, controller: &dyn Controller, now: Time) -> Snapshot<'a> {
        let objects = self.cache.objects();
        let object = objects.get(controller.root(), &root.key);
        let departed = object.and_then(|object| self.departed.get(&object.meta.uid));
        let known = self.roots.get(root);
        let nothing_asked = Snapshot::new(controller.root(), &root.key, now, objects);
        Snapshot {
            answers: self.roots.inquiries.answers(root).unwrap_or(nothing_asked.answers),
            departed: departed.map_or(&[], Vec::as_slice),
            is_first_look: self.has_caught_up(root) && !known.is_some_and(|state| state.is_looked_at),
            refusal: known.and_then(|state| state.refused.as_ref()),
            ..nothing_asked
        }
    }

    /// A decision stands: what it made use of is no longer evidence, what of its notes is true is said, and the next failure is
    /// again the first, unless all that it says is to come back later: what failed before may only be put off. One that was
    /// taken while something had not been seen yet was no look at all that happened before.
    fn settle(&mut self, root: &Root, plan: &Plan, notes: Vec<Note>, has_caught_up: bool, now: Time) {
        if !plan.is_quiet() || plan.wake_at.is_none() {
            self.queue.forget(root);
        }
        self.roots.update(root, |state| state.refused = None);
        let Some(controller) = self.controllers.get(root.controller) else { return };
        let Some(object) = self.cache.objects().get(controller.root(), &root.key).cloned() else {
            self.roots.update(root, |state| state.last_notes.clear());
            return;
        };
        let uid = object.meta.uid.clone();
        self.say(root, &object, notes, now);
        if has_caught_up {
            self.roots.update(root, |state| state.is_looked_at = true);
        }
        if let Some(departed) = self.departed.get_mut(&uid) {
            departed.retain(|departed| !plan.settled.contains(&departed.object.meta.uid));
            if departed.is_empty() {
                self.departed.remove(&uid);
            }
        }
    }

    /// Says what is new of what is to be said for a root: what holds on beside other news is not said again with them. What is
    /// said about other objects tells of writes, and is new each time.
    fn say(&mut self, root: &Root, about: &Arc<Object>, notes: Vec<Note>, now: Time) {
        let Some(controller) = self.controllers.get(root.controller) else { return };
        let (of_others, notes): (Vec<Note>, Vec<Note>) =
            notes.into_iter().partition(|note| note.is_about_written);
        self.remarks.extend(of_others.into_iter().filter_map(|note| {
            let Write { kind, key, .. } = note.tells_of.as_ref()?;
            let about = self.cache.objects().get(*kind, key)?.clone();
            Some(Remark { about, by: controller.event_source(), note, at: now })
        }));
        let last = self.roots.get(root).map_or(&[][..], |state| &state.last_notes);
        if last != notes {
            let new: Vec<Note> = notes.iter().filter(|note| !last.contains(note)).cloned().collect();
            log_notes(controller.name(), &root.key, &new);
            let by = controller.event_source();
            let remarks = new.into_iter().map(|note| Remark { about: about.clone(), by, note, at: now });
            self.remarks.extend(remarks);
            self.roots.update(root, |state| state.last_notes = notes);
        }
    }

    /// A write failed. What was written all the same is said: no later plan does it again, or says it. Beyond that, what passes
    /// by itself is not worth a word; what the server refuses, somebody must look at, and at how else the root is.
    fn complain(&mut self, root: &Root, plan: &Plan, notes: Vec<Note>, failure: &Failure, now: Time) {
        self.counts.failures += 1;
        tracing::debug!(key = %root.key, step = failure.step, error = %failure.error, "write failed");
        let notes: Vec<Note> = if let ClientError::Refused(refused) = &failure.error {
            let reason = failure.refusal_reason;
            let controller = self.controllers.get(root.controller);
            let message = controller.map_or_else(String::new, |it| it.refusal(reason, &refused.message));
            let refused = Note::warning(reason, message);
            self.roots.update(root, |state| state.refused = Some(refused.clone()));
            notes.into_iter().chain([refused]).collect()
        } else {
            let last = self.roots.get(root).map(|state| state.last_notes.clone()).unwrap_or_default();
            let done = notes.into_iter().filter(|note| note.tells_of.is_some());
            last.into_iter().chain(done).collect()
        };
        // In a namespace that goes, an Event would be refused as well.
        let can_be_said = !failure.error.is_of_a_namespace_that_goes();
        if let Some(about) = self.spoken_about(root, plan).filter(|_| can_be_said) {
            self.say(root, &about, notes, now);
        }
    }

    /// What is spoken about when a plan is not carried out: its root, or, where the root was still to be made, the first of
    /// those for whom.
    fn spoken_about(&self, root: &Root, plan: &Plan) -> Option<Arc<Object>> {
        let objects = self.cache.objects();
        let mut changed = plan.steps.iter().filter_map(|step| match step {
            Step::Patch { kind, key, uid, .. } => {
                objects.get(*kind, key).filter(|object| object.meta.uid == *uid)
            }
            _ => None,
        });
        objects.get(root.kind, &root.key).or_else(|| changed.next()).cloned()
    }

    /// A decision has been carried out, wholly or in part.
    pub fn finished(&mut self, work: Work, outcome: Outcome, now: Time) {
        let Work { root, object, plan, decided_at, has_caught_up, .. } = work;
        let wake_at = match outcome {
            Outcome::Dropped => Some(self.queue.back_off(&root, now)),
            Outcome::Applied(applied) => {
                self.counts.writes += applied.writes as u64;
                self.count_writes(&root, &applied);
                if let Some(object) = &object {
                    let (is_success, took) = (applied.failure.is_none(), now.since(decided_at));
                    let n_creations_failed = applied.creations_failed;
                    let attempt =
                        Attempt::Made { root: object, plan: &plan, is_success, n_creations_failed, took };
                    self.count_attempt(&root, &attempt);
                }
                self.roots.update(&root, |state| state.own_writes.wrote(applied.expectations, now));
                let notes = true_notes(&plan, &applied.unwritten);
                match applied.failure {
                    None => {
                        self.roots.update(&root, |state| state.has_lost_child = false);
                        self.settle(&root, &plan, notes, has_caught_up, now);
                        plan.wake_at
                    }
                    Some(failure) => {
                        self.complain(&root, &plan, notes, &failure, now);
                        Some(self.retry_at(&root, &failure.error, now))
                    }
                }
            }
        };
        self.queue.done(&root, now);
        self.queue.wake(&root, wake_at);
    }

    fn count_writes(&self, root: &Root, applied: &Applied) {
        let failure = applied.failure.as_ref().map(|failure| &failure.error);
        self.count(root, if failure.is_none() { Reconciled::Written } else { Reconciled::Failed });
        if let (Some((metrics, _)), Some(controller)) = (&self.metrics, self.controllers.get(root.controller))
        {
            metrics.wrote(controller.name(), applied.writes, failure);
        }
    }

    fn retry_at(&mut self, root: &Root, error: &ClientError, now: Time) -> Time {
        let at = self.queue.back_off(root, now);
        match error {
            ClientError::Busy { retry_after: Some(after), .. } => at.max(now.after(*after)),
            _ => at,
        }
    }

    /// The next question that is to be put to a pod. Each must be [answered](Engine::answered).
    pub fn next_inquiry(&mut self) -> Option<Inquiry> {
        self.roots.inquiries.next()
    }

    /// Whether there is a question that is to be put to a pod.
    pub fn has_inquiry(&self) -> bool {
        self.roots.inquiries.is_waiting()
    }

    /// Takes in what a pod answered, or why there is no good answer.
    pub fn answered(&mut self, inquiry: Inquiry, outcome: Result<(), String>, now: Time) {
        let root = inquiry.root.clone();
        if self.roots.inquiries.answered(inquiry, Answer { failure: outcome.err(), at: now }) {
            self.queue.push(root, now);
        }
    }

    /// What is to be said about roots, since it was last asked for.
    pub fn take_remarks(&mut self) -> Vec<Remark> {
        std::mem::take(&mut self.remarks)
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

/// The notes of a plan without those that tell of what was not written.
fn true_notes(plan: &Plan, unwritten: &BTreeSet<Write>) -> Vec<Note> {
    let is_true = |note: &&Note| note.tells_of.as_ref().is_none_or(|write| !unwritten.contains(write));
    plan.notes.iter().filter(is_true).cloned().collect()
}

fn log_notes(controller: &str, key: &Key, notes: &[Note]) {
    for note in notes {
        match note.severity {
            Severity::Normal => tracing::info!(controller, %key, reason = note.reason, "{}", note.message),
            Severity::Warning => tracing::warn!(controller, %key, reason = note.reason, "{}", note.message),
        }
    }
}
