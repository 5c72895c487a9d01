//! What should happen to a pod now: a pure function of the pod, of what its containers did, and of the time.
//!
//! ```text
//!   Sight ── fate ──> Live ── advance ──> start the next init container, start or restart containers
//!                └──> End  ── wind_down ──> stop what runs: containers first, then sidecars from last to first
//!        └── status: what a kubelet would report of the same
//! ```
//!
//! **Invariant:** nothing here does I/O or reads a clock, and nothing is remembered between two decisions:
//! after a crash the same pod and the same records lead to the same decision.

mod attempts;
mod backoff;
mod notes;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use krafla_api::Time;
use krafla_plan::Note;

pub use attempts::Attempts;

use crate::container::{ContainerId, End, Record};
use crate::health::{Health, PreStop};
use crate::pod::{Container, GRACE_SECONDS_MIN, Pod, RestartPolicy};
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
    /// Whether containers that run are well, by name; those that are not listed have no probes and hooks.
    pub health: &'a BTreeMap<String, Health>,
    /// Hooks before the end that have begun, by name.
    pub pre_stops: &'a BTreeMap<String, PreStop>,
    /// Whether the pod is no more, so that nobody reads a status.
    pub is_gone: bool,
    /// The address of this machine.
    pub host_ip: &'a str,
    /// The pod's own address.
    pub pod_ip: &'a str,
    /// The moment of the decision.
    pub now: Time,
}

impl Sight<'_> {
    fn health(&self, container: &Container) -> Health {
        self.health.get(&container.name).cloned().unwrap_or_else(|| Health::at_start(container))
    }
}

/// The reason of a [`Trouble`] with the pod's volumes.
pub(crate) const NO_VOLUMES: &str = "ContainerCreating";

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
    /// What a person should know, for as long as it is so.
    pub notes: Vec<Note>,
    /// Which attempts have started since the last report, in order.
    pub starts: Vec<ContainerId>,
    /// What becomes of the pod after that.
    pub next: Next,
    /// When to look again even if nothing happens.
    pub wake_at: Option<Time>,
}

impl Decision {
    /// Whether the status holds only until the containers that are to be started have started, an instant
    /// later.
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
    /// Run the hook before the end of a container.
    PreStop {
        /// Its name.
        container: String,
        /// Which attempt.
        attempt: u32,
        /// How long the hook and the end may take.
        grace_seconds: u32,
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
    let status = report::status(sight, &fate);
    Decision {
        notes: notes::notes(sight, &fate, &status),
        starts: notes::starts(sight),
        actions: todo.actions,
        status,
        next,
        wake_at: todo.wake_at,
    }
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
    if pod.is_ephemeral(&container.name) {
        return false;
    }
    if container.restart_policy_rules.iter().any(|rule| rule.restarts_after(end.exit_code)) {
        return true;
    }
    match (container.restart_policy.unwrap_or(pod.spec.restart_policy), is_init) {
        (RestartPolicy::Always, true) => container.is_sidecar() || end.exit_code != 0,
        (RestartPolicy::Always, false) => true,
        (RestartPolicy::OnFailure, _) => end.exit_code != 0,
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

/// Starts what should run and does not: init containers one after the other, then all containers. What was added to look at them comes
/// before all: there may be something to be found out about the start.
fn advance(sight: &Sight<'_>, todo: &mut Todo) {
    for container in &sight.pod.spec.ephemeral_containers {
        keep_going(sight, container, false, todo);
    }
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

/// Whether what comes after an init container may start: it has succeeded, or it is a sidecar that has
/// started.
fn is_passed(sight: &Sight<'_>, container: &Container) -> bool {
    // A sidecar that ends or starts anew later on does not hold up the others: it had its start.
    if has_begun_after(sight, container) {
        return true;
    }
    match sight.attempts.latest(&container.name) {
        None => false,
        Some(record) if container.is_sidecar() => record.is_running() && sight.health(container).is_started,
        Some(record) => record.end.as_ref().is_some_and(|end| end.exit_code == 0),
    }
}

/// Whether anything that comes after an init container was ever started.
fn has_begun_after(sight: &Sight<'_>, container: &Container) -> bool {
    let mut after = sight.pod.own_containers().skip_while(|known| known.name != container.name).skip(1);
    after.any(|later| sight.attempts.latest(&later.name).is_some())
}

/// Starts a container if it has never run, stops it if it is not well, and starts it again if it has ended
/// and may be and its back-off is over.
fn keep_going(sight: &Sight<'_>, container: &Container, is_init: bool, todo: &mut Todo) {
    let name = &container.name;
    let (attempt, backoff_seconds, due) = match sight.attempts.latest(name) {
        None => (0, 0, sight.now),
        Some(record @ Record { end: None, .. }) => {
            if let Some(failure) = sight.health(container).failure {
                let grace_seconds = failure.grace_seconds.unwrap_or(sight.pod.grace_seconds());
                stop(sight, container, record, grace_seconds, todo);
            }
            return;
        }
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
    let running = |container: &&Container| sight.attempts.running(&container.name).is_some();
    let mut first: Vec<_> = sight.pod.spec.containers.iter().filter(running).collect();
    if first.is_empty() {
        // What was added to look at the containers sees them to their end, and does not hold up that of the pod.
        for added in &sight.pod.spec.ephemeral_containers {
            todo.actions.extend(sight.attempts.running(&added.name).map(|record| Action::Stop {
                container: added.name.clone(),
                attempt: record.id.attempt,
                how: Stop::Kill,
            }));
        }
        first.extend(sight.pod.spec.init_containers.iter().rfind(running));
    }
    for container in first {
        if let Some(record) = sight.attempts.running(&container.name) {
            stop(sight, container, record, grace_seconds(sight), todo);
        }
    }
}

/// How long the containers of a pod have that is to end. Whoever took the pod from the server before they had ended
/// (`kubectl delete --force`) does not want to wait for them, and a name that is free again must not be used twice.
fn grace_seconds(sight: &Sight<'_>) -> u32 {
    let seconds = sight.pod.grace_seconds();
    if sight.is_gone { seconds.min(GRACE_SECONDS_MIN) } else { seconds }
}

/// How long a container has after SIGTERM, even if its hook has used up all of its grace period.
const AFTER_HOOK: Duration = Duration::from_secs(2);

/// The hook, SIGTERM, and SIGKILL once the grace period is over, which the hook is a part of.
fn stop(sight: &Sight<'_>, container: &Container, record: &Record, grace_seconds: u32, todo: &mut Todo) {
    let grace = Duration::from_secs(grace_seconds.into());
    let hook = sight.pre_stops.get(&container.name);
    let (container, attempt) = (record.id.name.clone(), record.id.attempt);
    let how = match (record.stopping_at, hook) {
        (None, None) if has_pre_stop(sight, &container) => {
            return todo.actions.push(Action::PreStop { container, attempt, grace_seconds });
        }
        (None, Some(hook)) if !hook.is_done && hook.begun_at.after(grace) > sight.now => {
            return todo.wake_at(hook.begun_at.after(grace));
        }
        (None, _) => Stop::Terminate,
        (Some(stopping_at), hook) => {
            let kill_at = match hook {
                Some(hook) => hook.begun_at.after(grace).max(Time(stopping_at).after(AFTER_HOOK)),
                None => Time(stopping_at).after(grace),
            };
            if kill_at > sight.now {
                return todo.wake_at(kill_at);
            }
            Stop::Kill
        }
    };
    todo.actions.push(Action::Stop { container, attempt, how });
}

fn has_pre_stop(sight: &Sight<'_>, container: &str) -> bool {
    let mut containers = sight.pod.all_containers();
    containers.any(|known| known.name == container && known.lifecycle.pre_stop.is_some())
}
