//! The life of a queue: open, closed by a Command or with its parent, and open again.
//!
//! ```text
//!   Queue root <--child of-- Queue p <--child of-- Queue q
//!                               ^                     ^
//!                               +------- names -------+---- Command OpenQueue, CloseQueue
//! ```
//!
//! Each queue looks after itself: one whose parent is closed closes, and remembers in an annotation that it opens with it.
//! What can not be repeated harmlessly is stored before the Command that asked for it is removed, so that each Command works
//! exactly once. The scheduler writes `status.allocated`; nothing here touches it.
//!
//! Mirrors Volcano's `pkg/controllers/queue`; what is deliberately different stands in DEVIATIONS.md.

mod measure;

use krafla_api::volcano::{Action, PodGroupPhase, QueueState};
use krafla_api::{Key, Kind, labels};
use krafla_cluster::{Step, Verb};
use serde_json::{Value, json};

use crate::object::{Body, Queue};
use crate::{Controller, Measure, Note, Object, Objects, Plan, Snapshot, Stored};

/// The queue above all others. It can not be closed.
const ROOT: &str = "root";

/// The controller of queues.
pub struct QueueController;

impl Controller for QueueController {
    fn name(&self) -> &'static str {
        "queue-controller"
    }

    fn root(&self) -> Kind {
        Kind::Queue
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::PodGroup, Kind::Command]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        match &changed.body {
            // One that can not be read has no children to take along, and says so itself.
            _ if changed.kind == Kind::Queue && changed.as_queue().is_none() => {
                vec![changed.meta.key.clone()]
            }
            Body::Command(command) => {
                let targets = command.target.iter().filter(|target| target.kind == Kind::Queue.info().kind);
                targets.map(|target| Key::new("", &target.name)).collect()
            }
            // PodGroups matter only to queues that wait for the last of them to end; one may have moved from any to any.
            Body::PodGroup(_) => keys_of(objects, |_, queue| queue.status.state == QueueState::Closing),
            Body::Queue(parent) => {
                let mut keys = keys_of(objects, |object, queue| {
                    *queue.spec.parent == *changed.meta.key.name
                        && follows(&parent.status.state, object, queue).is_some()
                });
                keys.push(changed.meta.key.clone());
                keys
            }
            _ => Vec::new(),
        }
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        plan(snapshot)
    }

    fn measure(&self, stored: &Stored<'_>) -> Vec<Measure> {
        measure::measure(stored)
    }
}

fn keys_of(objects: &Objects, is_concerned: impl Fn(&Object, &Queue) -> bool) -> Vec<Key> {
    let queues = objects.all(Kind::Queue);
    let concerned =
        queues.filter(|object| object.as_queue().is_some_and(|queue| is_concerned(object, queue)));
    concerned.map(|object| object.meta.key.clone()).collect()
}

/// What should be done for one queue now.
pub fn plan(snapshot: &Snapshot<'_>) -> Plan {
    let mut plan = Plan::nothing();
    let Some(object) = snapshot.root().filter(|object| !object.meta.is_deleting()) else { return plan };
    let queue = match &object.body {
        Body::Queue(queue) => queue,
        Body::Unreadable(why) => {
            return Plan::hold("SyncQueue", format!("cannot read the queue: {why}"));
        }
        _ => return plan,
    };
    let view = View { object, queue, snapshot };
    if queue.spec.parent.is_empty() && !view.is_root() {
        plan.steps.push(view.patch(None, json!({ "spec": { "parent": ROOT } })));
    }
    match oldest_command(object, snapshot) {
        Some((command, action)) => {
            view.obey(action, &mut plan);
            plan.steps.push(command.deletion());
        }
        None => view.follow_parent(&mut plan),
    }
    if plan.status.is_none() && queue.status.state == QueueState::Closing && !view.is_busy() {
        plan.status = Some(view.state(&QueueState::Closed));
    }
    plan
}

/// What a queue's parent makes it do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Following {
    /// The parent is closed, so the queue closes.
    Closes,
    /// The parent is open, and so is the queue that was closed only with it.
    Opens,
}

/// What a parent in this state makes a queue do.
fn follows(parent: &QueueState, object: &Object, queue: &Queue) -> Option<Following> {
    match (is_closed(parent), is_closed(&queue.status.state)) {
        (true, false) => Some(Following::Closes),
        (false, _) if *parent == QueueState::Open && is_closed_by_parent(object) => Some(Following::Opens),
        _ => None,
    }
}

fn is_closed(state: &QueueState) -> bool {
    matches!(state, QueueState::Closed | QueueState::Closing)
}

fn is_closed_by_parent(object: &Object) -> bool {
    object.meta.annotations.get(labels::CLOSED_BY_PARENT).is_some_and(|value| value == "true")
}

/// The oldest Command that names this queue by UID, in whatever namespace it was made.
fn oldest_command<'a>(queue: &Object, snapshot: &Snapshot<'a>) -> Option<(&'a Object, &'a Action)> {
    let info = Kind::Queue.info();
    let commands = snapshot.objects.all(Kind::Command).filter_map(|object| {
        let command = object.as_command()?;
        let target = command.target.as_ref()?;
        let is_meant = target.uid == queue.meta.uid
            && target.kind == info.kind
            && target.api_version == info.api_version()
            && !object.meta.is_deleting();
        is_meant.then_some((object.as_ref(), &command.action))
    });
    // Times are whole seconds. Within one, the order in which they were stored decides.
    commands.min_by_key(|(object, _)| (object.meta.created_at, object.meta.revision, &object.meta.key))
}

/// One queue and what is around it.
struct View<'a> {
    object: &'a Object,
    queue: &'a Queue,
    snapshot: &'a Snapshot<'a>,
}

impl View<'_> {
    fn is_root(&self) -> bool {
        &*self.object.meta.key.name == ROOT
    }

    /// Does what a Command asks for, unless that is so already.
    fn obey(&self, action: &Action, plan: &mut Plan) {
        let name = &self.object.meta.key.name;
        match action {
            Action::CloseQueue if self.is_root() => {
                let message = "queue root cannot be closed; close the queues below it".to_owned();
                plan.notes.push(Note::warning("CloseQueue", message));
            }
            Action::CloseQueue => self.close(plan, &format!("queue {name} is closed by a Command")),
            Action::OpenQueue => match self.closed_parent() {
                // The wish is kept: from now on the queue is closed only because its parent is.
                Some(parent) => {
                    self.mark_closed_by_parent(true, plan);
                    let message =
                        format!("queue {name} opens together with its parent {parent}, which is closed");
                    plan.notes.push(self.done(Verb::Change, Note::warning("OpenQueue", message)));
                }
                None => self.open(plan, &format!("queue {name} is opened by a Command")),
            },
            _ => {}
        }
    }

    /// Goes where the parent goes.
    fn follow_parent(&self, plan: &mut Plan) {
        let name = &self.object.meta.key.name;
        let parent = self.parent_state().unwrap_or(&QueueState::Unset);
        match follows(parent, self.object, self.queue) {
            // Were it closed before it is marked, a crash in between would leave it closed for good.
            Some(Following::Closes) if !is_closed_by_parent(self.object) => {
                self.mark_closed_by_parent(true, plan)
            }
            Some(Following::Closes) => self.close(plan, &format!("queue {name} is closed with its parent")),
            Some(Following::Opens) => self.open(plan, &format!("queue {name} is opened with its parent")),
            None if self.queue.status.state == QueueState::Unset => {
                plan.status = Some(self.state(&QueueState::Open));
            }
            None => {}
        }
    }

    fn close(&self, plan: &mut Plan, message: &str) {
        if !is_closed(&self.queue.status.state) {
            let state = if self.is_busy() { QueueState::Closing } else { QueueState::Closed };
            plan.status = Some(self.state(&state));
            plan.notes.push(self.done(Verb::Report, Note::normal("CloseQueue", message.to_owned())));
        }
    }

    fn open(&self, plan: &mut Plan, message: &str) {
        if self.queue.status.state != QueueState::Open {
            plan.status = Some(self.state(&QueueState::Open));
            plan.notes.push(self.done(Verb::Report, Note::normal("OpenQueue", message.to_owned())));
        }
        self.mark_closed_by_parent(false, plan);
    }

    fn mark_closed_by_parent(&self, is_so: bool, plan: &mut Plan) {
        let value = is_so.to_string();
        if self.object.meta.annotations.get(labels::CLOSED_BY_PARENT) != Some(value.as_str()) {
            let annotations = json!({ labels::CLOSED_BY_PARENT: value });
            // A mark that comes too late would open a queue with its parent that somebody has closed for good.
            let revision = is_so.then_some(self.object.meta.revision);
            plan.steps.push(self.patch(revision, json!({ "metadata": { "annotations": annotations } })));
        }
    }

    /// The state of the queue above, if there is one that could be closed.
    fn parent_state(&self) -> Option<&QueueState> {
        let parent = &self.queue.spec.parent;
        let name = if parent.is_empty() { ROOT } else { parent };
        let parent =
            self.snapshot.objects.get(Kind::Queue, &Key::new("", name)).filter(|_| !self.is_root())?;
        Some(&parent.as_queue()?.status.state)
    }

    fn closed_parent(&self) -> Option<&str> {
        self.parent_state().filter(|state| is_closed(state)).map(|_| self.queue.spec.parent.as_str())
    }

    /// Whether a gang in the queue has yet to end.
    fn is_busy(&self) -> bool {
        let name = &self.object.meta.key.name;
        self.snapshot
            .objects
            .all(Kind::PodGroup)
            .filter_map(|group| group.as_podgroup())
            .any(|group| *group.spec.queue == **name && group.status.phase != PodGroupPhase::Completed)
    }

    /// Tells of what is done to the queue itself.
    fn done(&self, verb: Verb, note: Note) -> Note {
        note.of(verb, Kind::Queue, &self.object.meta.key)
    }

    /// Only the state is written: the rest of the status is the scheduler's. It follows from what the queue was: a state that is
    /// written too late, by somebody who was replaced meanwhile, would undo a Command.
    fn state(&self, state: &QueueState) -> Step {
        self.object.meta.status_patch(Kind::Queue, &json!({ "state": state }))
    }

    fn patch(&self, revision: Option<u64>, patch: Value) -> Step {
        let (key, uid) = (self.object.meta.key.clone(), self.object.meta.uid.clone());
        Step::Patch { kind: Kind::Queue, key, uid, revision, of_status: false, patch }
    }
}

#[cfg(test)]
mod tests;
