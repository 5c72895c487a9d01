//! An intent: what is to be done to the job, and why. It stands in `status.state` from before the first effect until the
//! job is in a steady phase again, so that whoever goes on after a crash knows what was begun.
//!
//! ```text
//!   reason: RestartTask
//!   message: "task work: pod a-work-1 was evicted"
//! ```

use std::collections::BTreeSet;

use krafla_api::Uid;
use krafla_api::volcano::{Action, JobState};

/// What is to be done, to which part of the job, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Intent {
    pub(super) action: Action,
    /// Which parts of the job are meant; none if it is the whole job.
    pub(super) targets: Targets,
    pub(super) cause: String,
    /// The try that it answers.
    pub(super) retry_count: i32,
    /// The departed pods that it answers.
    pub(super) evidence: Vec<Uid>,
    /// Whether it answers that a pod is gone: there need be no other to restart.
    pub(super) is_about_vacancy: bool,
    /// Whether a user asked for it, rather than a policy.
    pub(super) is_command: bool,
}

/// Parts of the job. Thousands of pods may fail together, so they are looked up, not searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Targets {
    /// Single pods. They are not written down: as long as one is there, it is its own record.
    pub(super) pods: BTreeSet<Uid>,
    pub(super) tasks: BTreeSet<String>,
    /// A task, and the partition of it.
    pub(super) partitions: BTreeSet<(String, String)>,
}

impl Intent {
    /// Whether it restarts a part of the job and leaves the rest running.
    pub(super) fn is_partial(&self) -> bool {
        matches!(self.action, Action::RestartTask | Action::RestartPod | Action::RestartPartition)
    }

    /// As `status.state.message`.
    pub(super) fn message(&self) -> String {
        let targets = self.targets.words();
        if targets.is_empty() { self.cause.clone() } else { format!("{targets}: {}", self.cause) }
    }

    /// Takes in another intent of the same burst.
    pub(super) fn join(&mut self, other: &Intent) {
        self.targets.join(&other.targets);
        self.evidence.extend(other.evidence.iter().cloned());
        self.is_about_vacancy |= other.is_about_vacancy;
    }
}

impl Targets {
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.tasks.is_empty() && self.partitions.is_empty()
    }

    /// Whether they are about this task or a part of it.
    pub(super) fn names(&self, task: &str) -> bool {
        self.tasks.contains(task) || self.partitions.iter().any(|(of, _)| of == task)
    }

    fn join(&mut self, other: &Targets) {
        self.pods.extend(other.pods.iter().cloned());
        self.tasks.extend(other.tasks.iter().cloned());
        self.partitions.extend(other.partitions.iter().cloned());
    }

    /// The targets that stand in `status.state.message`.
    pub(super) fn recorded(state: &JobState) -> Targets {
        let mut targets = Targets::default();
        let is_partial = matches!(state.reason.as_str(), "RestartTask" | "RestartPartition");
        let recorded = state.message.split_once(": ").filter(|_| is_partial);
        for word in recorded.into_iter().flat_map(|(words, _)| words.split(", ")) {
            if let Some(task) = word.strip_prefix("task ") {
                targets.tasks.insert(task.to_owned());
            } else if let Some((task, partition)) =
                word.strip_prefix("partition ").and_then(|word| word.split_once('/'))
            {
                targets.partitions.insert((task.to_owned(), partition.to_owned()));
            }
        }
        targets
    }

    fn words(&self) -> String {
        let tasks = self.tasks.iter().map(|task| format!("task {task}"));
        let partitions =
            self.partitions.iter().map(|(task, partition)| format!("partition {task}/{partition}"));
        tasks.chain(partitions).collect::<Vec<String>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_back() {
        let intent = Intent {
            action: Action::RestartTask,
            targets: Targets {
                pods: BTreeSet::new(),
                tasks: BTreeSet::from(["work".into()]),
                partitions: BTreeSet::from([("lead".into(), "3".into())]),
            },
            cause: "pod a-work-1 was evicted: it had to go".into(),
            retry_count: 0,
            evidence: Vec::new(),
            is_about_vacancy: false,
            is_command: false,
        };
        let state =
            JobState { reason: "RestartTask".into(), message: intent.message(), ..JobState::default() };
        assert_eq!(state.message, "task work, partition lead/3: pod a-work-1 was evicted: it had to go");
        assert_eq!(Targets::recorded(&state), intent.targets);
    }

    #[test]
    fn a_message_about_something_else_names_no_target() {
        let state =
            JobState { reason: "RestartJob".into(), message: "task x: y".into(), ..JobState::default() };
        assert!(Targets::recorded(&state).is_empty());
    }
}
