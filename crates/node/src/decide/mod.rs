//! What should happen to a pod now: a pure function of the pod, of what its containers did, and of the time.
//!
//! ```text
//!   Sight ── fate ──> Live ── advance ──> start the next init container, start or restart containers
//!                └──> End  ── wind_down ──> stop what runs: containers first, then sidecars from last to first
//!        └── status: what a kubelet would report of the same
//! ```
//!
//! **Invariant:** nothing here does I/O or reads a clock, and nothing is remembered between two decisions: after a crash
//! the same pod and the same records lead to the same decision.

mod attempts;
mod backoff;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use krafla_api::Time;

pub use attempts::Attempts;

use crate::container::{End, Record};
use crate::pod::{Container, Pod, RestartPolicy};
use crate::status::PodStatus;
use crate::supervisor::protocol::Stop;

/// What one decision sees.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// The pod. Its own status is not looked at: it may be older than `before`.
    pub pod: &'a Pod,
    /// The status that was last written.
    pub before: &'a PodStatus,
    /// What its containers did.
    pub attempts: &'a Attempts,
    /// Why containers can not be started, by name.
    pub troubles: &'a BTreeMap<String, Trouble>,
    /// Whether the pod is no more, so that nobody reads a status.
    pub is_gone: bool,
    /// The address of this machine.
    pub host_ip: &'a str,
    /// The pod's own address.
    pub pod_ip: &'a str,
    /// The moment of the decision.
    pub now: Time,
}

/// Why a container can not be started at the moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// One word, as a kubelet has it for a waiting container.
    pub reason: &'static str,
    /// What is missing and where.
    pub message: String,
    /// When to try again.
    pub retry_at: Time,
}

/// What should happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// What to report.
    pub status: PodStatus,
    /// What becomes of the pod after that.
    pub next: Next,
    /// When to look again even if nothing happens.
    pub wake_at: Option<Time>,
}

impl Decision {
    /// Whether the status holds only until the containers that are to be started have started, an instant later.
    pub fn is_passing(&self) -> bool {
        !self.status.phase.is_finished()
            && self.actions.iter().any(|action| matches!(action, Action::Start { .. }))
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a container.
    Start {
        /// Its name.
        container: String,
        /// How often it was started before.
        attempt: u32,
        /// How long to wait before the next attempt if this one fails.
        backoff_seconds: u32,
    },
    /// Make a container end.
    Stop {
        /// Its name.
        container: String,
        /// Which attempt.
        attempt: u32,
        /// How.
        how: Stop,
    },
}

/// What becomes of a pod after the actions and the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is looked at again when something happens.
    Wait,
    /// Its deletion was asked for and all its processes are gone: tell the server.
    ConfirmDeletion,
    /// The server knows it no more and all its processes are gone: remove its files.
    CleanUp,
}

/// Decides.
pub fn decide(sight: &Sight<'_>) -> Decision {
    let fate = fate(sight);
    let mut todo = Todo::default();
    match &fate {
        Fate::Live => advance(sight, &mut todo),
        Fate::End(_) => wind_down(sight, &mut todo),
    }
    if let (Fate::Live, Some(deadline)) = (&fate, deadline(sight)) {
        todo.wake_at(deadline);
    }
    let ends = matches!(fate, Fate::End(_)) && !sight.attempts.any_running();
    let next = match (ends, sight.is_gone) {
        (true, true) => Next::CleanUp,
        (true, false) if sight.pod.is_deleting() => Next::ConfirmDeletion,
        _ => Next::Wait,
    };
    Decision { actions: todo.actions, status: report::status(sight, &fate), next, wake_at: todo.wake_at }
}

/// Whether a pod's containers shall run.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Live,
    /// Nothing of it shall run any more.
    End(Why),
}

/// Why nothing of a pod shall run any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The pod's phase is final already.
    Finished,
    /// It was deleted, or is no more.
    Deleted,
    /// It was active for longer than `activeDeadlineSeconds`.
    DeadlineExceeded,
    /// An init container failed, and may not be tried again.
    InitFailed,
    /// All containers have ended, and none may be started again.
    Completed,
}

fn fate(sight: &Sight<'_>) -> Fate {
    let Sight { pod, attempts, before, .. } = sight;
    if before.phase.is_finished() {
        return Fate::End(Why::Finished);
    }
    if pod.is_deleting() || sight.is_gone {
        return Fate::End(Why::Deleted);
    }
    if deadline(sight).is_some_and(|deadline| sight.now >= deadline) {
        return Fate::End(Why::DeadlineExceeded);
    }
    let is_over = |container: &Container, is_init| {
        attempts.latest_end(&container.name).is_some_and(|end| !may_restart(pod, container, is_init, end))
    };
    let failed = |container: &&Container| {
        is_over(container, true) && attempts.latest_end(&container.name).is_some_and(|end| end.exit_code != 0)
    };
    if pod.spec.init_containers.iter().any(|container| failed(&container)) {
        return Fate::End(Why::InitFailed);
    }
    if pod.spec.containers.iter().all(|container| is_over(container, false)) {
        return Fate::End(Why::Completed);
    }
    Fate::Live
}

/// When the pod's time is up. Its clock starts when the node first reports it.
fn deadline(sight: &Sight<'_>) -> Option<Time> {
    let seconds = u64::try_from(sight.pod.spec.active_deadline_seconds?).unwrap_or(0);
    Some(sight.before.start_time?.after(Duration::from_secs(seconds)))
}

/// Whether a container that has ended so is started again.
fn may_restart(pod: &Pod, container: &Container, is_init: bool, end: &End) -> bool {
    if is_init && container.is_sidecar() {
        return true;
    }
    match (pod.spec.restart_policy, is_init) {
        (RestartPolicy::Always, false) => true,
        (RestartPolicy::Always, true) | (RestartPolicy::OnFailure, _) => end.exit_code != 0,
        (RestartPolicy::Never, _) => false,
    }
}

#[derive(Default)]
struct Todo {
    actions: Vec<Action>,
    wake_at: Option<Time>,
}

impl Todo {
    fn wake_at(&mut self, at: Time) {
        self.wake_at = Some(self.wake_at.map_or(at, |soonest| soonest.min(at)));
    }
}

/// Starts what should run and does not: init containers one after the other, then all containers.
fn advance(sight: &Sight<'_>, todo: &mut Todo) {
    for container in &sight.pod.spec.init_containers {
        keep_going(sight, container, true, todo);
        if !is_passed(sight, container) {
            return;
        }
    }
    for container in &sight.pod.spec.containers {
        keep_going(sight, container, false, todo);
    }
}

/// Whether what comes after an init container may start: it has succeeded, or it is a sidecar that has started.
fn is_passed(sight: &Sight<'_>, container: &Container) -> bool {
    match sight.attempts.latest(&container.name) {
        None => false,
        // A sidecar that fails later on does not hold up the others: it had its start.
        Some(record) if container.is_sidecar() => record.started_at.is_some(),
        Some(record) => record.end.as_ref().is_some_and(|end| end.exit_code == 0),
    }
}

/// Starts a container if it has never run, or starts it again if it has ended and may be and its back-off is over.
fn keep_going(sight: &Sight<'_>, container: &Container, is_init: bool, todo: &mut Todo) {
    let name = &container.name;
    let (attempt, backoff_seconds, due) = match sight.attempts.latest(name) {
        None => (0, 0, sight.now),
        Some(Record { end: None, .. }) => return,
        Some(record @ Record { end: Some(end), .. }) => {
            if !may_restart(sight.pod, container, is_init, end) {
                return;
            }
            (record.id.attempt.saturating_add(1), backoff::after(record), backoff::restart_at(record, end))
        }
    };
    let retry_at = sight.troubles.get(name).map_or(due, |trouble| trouble.retry_at);
    let due = due.max(retry_at);
    if due > sight.now {
        todo.wake_at(due);
    } else {
        todo.actions.push(Action::Start { container: name.clone(), attempt, backoff_seconds });
    }
}

/// Stops what runs. Sidecars serve the containers until the end, and each other in the order of their start.
fn wind_down(sight: &Sight<'_>, todo: &mut Todo) {
    let running = |containers: &[Container]| -> Vec<Record> {
        containers.iter().filter_map(|container| sight.attempts.running(&container.name)).cloned().collect()
    };
    let mut first = running(&sight.pod.spec.containers);
    if first.is_empty() {
        let init = running(&sight.pod.spec.init_containers);
        first.extend(init.into_iter().next_back());
    }
    for record in &first {
        stop(sight, record, todo);
    }
}

/// SIGTERM, the pod's grace period, SIGKILL.
fn stop(sight: &Sight<'_>, record: &Record, todo: &mut Todo) {
    let how = match record.stopping_at {
        None => Stop::Terminate,
        Some(stopping_at) => {
            let kill_at = Time(stopping_at).after(Duration::from_secs(sight.pod.grace_seconds().into()));
            if kill_at > sight.now {
                return todo.wake_at(kill_at);
            }
            Stop::Kill
        }
    };
    todo.actions.push(Action::Stop { container: record.id.name.clone(), attempt: record.id.attempt, how });
}
