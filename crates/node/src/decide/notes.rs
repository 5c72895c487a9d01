//! What a person should know about a pod, in the words of a kubelet's events.
//!
//! A note holds for as long as its reason does; the shell makes an event of each one that is new.

use krafla_plan::Note;

use super::{Fate, NO_VOLUMES, Sight, Why};
use crate::container::{Cause, ContainerId};
use crate::pod::{Container, Pod, RestartPolicy};
use crate::status::{ContainerStatus, PodStatus};

pub(super) fn notes(sight: &Sight<'_>, fate: &Fate, status: &PodStatus) -> Vec<Note> {
    let mut notes = Vec::new();
    // What there was to say about a finished pod was said when it finished.
    if *fate == Fate::End(Why::Finished) {
        return notes;
    }
    for container in sight.pod.all_containers() {
        if sight.attempts.running(&container.name).is_some() {
            notes.extend(of_running(sight, fate, container));
        } else if let Some(status) = status.container(&container.name) {
            notes.extend(of_waiting(sight, status));
        }
        notes.extend(of_failed_start(sight, container));
    }
    notes.extend(of_limits(sight));
    notes
}

/// That limits are not kept, until a container of which that is true is reported.
fn of_limits(sight: &Sight<'_>) -> Option<Note> {
    let of_all = sight.pod.all_containers().flat_map(|container| sight.attempts.of(&container.name));
    let mut unlimited = of_all.filter(|record| record.is_unlimited).peekable();
    unlimited.peek()?;
    let message = "limits of cpu and memory are not enforced on this machine: \
                   run `krafla doctor` for the reason and a fix";
    (!unlimited.any(|record| is_reported(sight, &record.id)))
        .then(|| warning("LimitsNotKept", message.to_owned()))
}

/// Whether an attempt, or a later one, is in the last report.
fn is_reported(sight: &Sight<'_>, id: &ContainerId) -> bool {
    let reported = sight.before.container(&id.name).filter(|status| !status.container_id.is_empty());
    reported.is_some_and(|status| status.restart_count >= id.attempt)
}

/// The attempts that have started, and that the last report does not know of. What it knows was told: also by a node
/// before this one.
pub(super) fn starts(sight: &Sight<'_>) -> Vec<ContainerId> {
    let of_all = sight.pod.all_containers().flat_map(|container| sight.attempts.of(&container.name));
    let started = of_all.filter(|record| record.started_at.is_some() && !is_reported(sight, &record.id));
    started.map(|record| record.id.clone()).collect()
}

fn of_running(sight: &Sight<'_>, fate: &Fate, container: &Container) -> Vec<Note> {
    let name = &container.name;
    let health = sight.health(container);
    let failed_hook = sight.pre_stops.get(name).and_then(|hook| hook.failure.as_ref());
    let failed_hook =
        failed_hook.map(|why| warning("FailedPreStopHook", format!("PreStopHook failed: {why}")));
    let killing = match (fate, &health.failure) {
        (Fate::End(Why::Deleted | Why::DeadlineExceeded), _) => Some(format!("Stopping container {name}")),
        (_, Some(failure)) => {
            let what_then = if is_tried_again(sight.pod, container) { ", will be restarted" } else { "" };
            Some(format!("Container {name} failed {}{what_then}", failure.of.as_str()))
        }
        (_, None) => None,
    };
    let killing = killing.map(|message| Note::normal("Killing", message));
    health.complaints.notes().cloned().chain(failed_hook).chain(killing).collect()
}

/// Whether a container that is killed is started again.
fn is_tried_again(pod: &Pod, container: &Container) -> bool {
    container.restart_policy.unwrap_or(pod.spec.restart_policy) != RestartPolicy::Never
}

fn of_waiting(sight: &Sight<'_>, status: &ContainerStatus) -> Option<Note> {
    let waiting = status.state.waiting.as_ref()?;
    if waiting.reason == "CrashLoopBackOff" {
        let metadata = &sight.pod.metadata;
        let (container, pod, namespace, uid) =
            (&status.name, &metadata.name, &metadata.namespace, &metadata.uid);
        let message =
            format!("Back-off restarting failed container {container} in pod {pod}_{namespace}({uid})");
        return Some(warning("BackOff", message));
    }
    let trouble = sight.troubles.get(&status.name)?;
    let reason = if trouble.reason == NO_VOLUMES { "FailedMount" } else { "Failed" };
    Some(warning(reason, trouble.message.clone()))
}

fn of_failed_start(sight: &Sight<'_>, container: &Container) -> Option<Note> {
    let end = sight.attempts.latest_end(&container.name)?;
    (end.cause == Cause::NotStarted).then(|| warning("Failed", format!("Error: {}", end.message)))
}

fn warning(reason: &'static str, message: String) -> Note {
    Note::warning(reason, message)
}
