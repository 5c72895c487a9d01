//! Why a pod waits: what the scheduler says of one that is in no gang, and the node of containers that do not start or stay.

use krafla_node::materials::volumes::NO_SUCH_KIND;
use krafla_why::Reason;

use super::seen::{Seen, Spec, Terminated};
use super::{Waits, Why};
use crate::doctor::remedy_of_container;

impl Waits {
    pub(super) fn of_pod(&self, seen: &Seen) -> Option<Why> {
        let unscheduled = seen.status.condition("PodScheduled", "False").map(|it| self.of_scheduler(it));
        let name = &seen.metadata.name;
        let unscheduled = unscheduled.map(|why| Why { text: format!("pod {name}: {}", why.text), ..why });
        // A pod that has a node and a deadline fails when that is over.
        let is_timed = seen.spec.active_deadline_seconds.is_some();
        let in_time = |why: Why| if is_timed { Why::passing(why.text) } else { why };
        unscheduled.or_else(|| self.of_containers(seen).map(in_time))
    }

    fn of_containers(&self, seen: &Seen) -> Option<Why> {
        let Seen { metadata, spec, status, .. } = seen;
        let mut containers = status.init_container_statuses.iter().chain(&status.container_statuses);
        containers.find_map(|container| {
            let waiting = container.state.waiting.as_ref()?;
            let place = format!("pod {}, container {}", metadata.name, container.name);
            match container.last_state.terminated.as_ref().filter(|_| waiting.reason == "CrashLoopBackOff") {
                Some(end) => {
                    Some(Why::passing(format!("{place} {}", of_restart(end, &container.name, spec))))
                }
                // A word alone (ContainerCreating, PodInitializing) is the way of all pods.
                None if waiting.message.is_empty() => None,
                // What the node can not do it says with the remedy; of what is missing it only says that.
                None if is_missing(&waiting.message) => {
                    let remedy =
                        remedy_of_container(&metadata.name, &container.name, &waiting.reason, self.means);
                    Some(Why::lasting(format!("{place}: {}; fix: {remedy}", waiting.message)))
                }
                None if waiting.message.contains(NO_SUCH_KIND) => {
                    Some(Why::lasting(format!("{place}: {}", waiting.message)))
                }
                // What the machine lacks, somebody may bring: a directory, room on its disk.
                None => Some(Why::passing(format!("{place}: {}", waiting.message))),
            }
        })
    }
}

/// Whether a message is that something does not exist.
fn is_missing(message: &str) -> bool {
    matches!(Reason::parse(message).root(), Reason::NotFound { .. })
}

/// Why a container that has ended is started again and again. How long it waits in between is left out: it is another
/// time each time.
fn of_restart(end: &Terminated, container: &str, spec: &Spec) -> String {
    let again = format!("restarts because restartPolicy is {}", spec.restart_policy(container));
    let instead = "set restartPolicy to Never to stop after the first failure";
    match end {
        Terminated { reason, message, .. } if reason == "StartError" => {
            format!("cannot start ({message}) and {again}; fix: correct its command, or {instead}")
        }
        Terminated { exit_code: 0, .. } => {
            format!("ended with exit code 0 and {again}; fix: set restartPolicy to OnFailure or Never")
        }
        Terminated { exit_code, reason, .. } => {
            let why =
                if ["", "Error"].contains(&reason.as_str()) { String::new() } else { format!(" ({reason})") };
            format!(
                "ended with exit code {exit_code}{why} and {again}; fix: read its log with --logs, or {instead}"
            )
        }
    }
}
