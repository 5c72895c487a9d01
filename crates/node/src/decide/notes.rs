//! What a person should know about a pod, in the words of a kubelet's events.
//!
//! A note holds for as long as its reason does; the shell makes an event of each one that is new.

use krafla_plan::Note;

use super::{Fate, NO_VOLUMES, Sight, Why};
use crate::container::Cause;
use crate::pod::Container;
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
    notes
}

fn of_running(sight: &Sight<'_>, fate: &Fate, container: &Container) -> Vec<Note> {
    let name = &container.name;
    let health = sight.health(container);
    let unready = (!health.unready.is_empty()).then(|| warning("Unhealthy", health.unready));
    let failure = health.failure.map(|failure| warning("Unhealthy", failure.message));
    let killing = match fate {
        Fate::End(Why::Deleted | Why::DeadlineExceeded) => Some(format!("Stopping container {name}")),
        _ if failure.is_some() => Some(format!("Container {name} is not well, will be stopped")),
        _ => None,
    };
    let killing = killing.map(|message| Note::normal("Killing", message));
    unready.into_iter().chain(failure).chain(killing).collect()
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
