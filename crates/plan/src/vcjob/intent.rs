//! An intent: what is to be done to the job, and why. It stands in `status.state` from before the first effect until the
//! job is in a steady phase again, so that whoever goes on after a crash knows what was begun.
//!
//! ```text
//!   reason: RestartTask
//!   message: "task work: pod a-work-1 was evicted"
//! ```

use krafla_api::Uid;
use krafla_api::volcano::{Action, JobState};

/// What is to be done, to which part of the job, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Intent {
    pub(super) action: Action,
    /// Which pods are meant; empty if it is the whole job.
    pub(super) targets: Vec<Target>,
    pub(super) cause: String,
    /// The try that it answers.
    pub(super) retry_count: i32,
    /// The departed pods that it answers.
    pub(super) evidence: Vec<Uid>,
    /// Whether a user asked for it, rather than a policy.
    pub(super) is_command: bool,
}

/// A part of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// One pod. It is not written down: as long as it is there, it is its own record.
    Pod(Uid),
    Task(String),
    Partition {
        task: String,
        partition: String,
    },
}

impl Intent {
    /// Whether it restarts a part of the job and leaves the rest running.
    pub(super) fn is_partial(&self) -> bool {
        matches!(self.action, Action::RestartTask | Action::RestartPod | Action::RestartPartition)
    }

    /// As `status.state.message`.
    pub(super) fn message(&self) -> String {
        let targets: Vec<String> = self.targets.iter().filter_map(Target::word).collect();
        if targets.is_empty() {
            self.cause.clone()
        } else {
            format!("{}: {}", targets.join(", "), self.cause)
        }
    }

    /// The targets that stand in `status.state.message`.
    pub(super) fn recorded_targets(state: &JobState) -> Vec<Target> {
        let is_partial = matches!(state.reason.as_str(), "RestartTask" | "RestartPartition");
        let Some((targets, _)) = state.message.split_once(": ").filter(|_| is_partial) else {
            return Vec::new();
        };
        targets.split(", ").filter_map(Target::parse).collect()
    }

    /// Takes in the targets of another intent of the same burst.
    pub(super) fn join(&mut self, other: &Intent) {
        for target in &other.targets {
            if !self.targets.contains(target) {
                self.targets.push(target.clone());
            }
        }
        self.evidence.extend(other.evidence.iter().cloned());
    }
}

impl Target {
    fn word(&self) -> Option<String> {
        match self {
            Target::Pod(_) => None,
            Target::Task(task) => Some(format!("task {task}")),
            Target::Partition { task, partition } => Some(format!("partition {task}/{partition}")),
        }
    }

    fn parse(word: &str) -> Option<Target> {
        if let Some(task) = word.strip_prefix("task ") {
            return Some(Target::Task(task.to_owned()));
        }
        let (task, partition) = word.strip_prefix("partition ")?.split_once('/')?;
        Some(Target::Partition { task: task.to_owned(), partition: partition.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_back() {
        let intent = Intent {
            action: Action::RestartTask,
            targets: vec![
                Target::Task("work".into()),
                Target::Partition { task: "lead".into(), partition: "3".into() },
            ],
            cause: "pod a-work-1 was evicted: it had to go".into(),
            retry_count: 0,
            evidence: Vec::new(),
            is_command: false,
        };
        let state =
            JobState { reason: "RestartTask".into(), message: intent.message(), ..JobState::default() };
        assert_eq!(state.message, "task work, partition lead/3: pod a-work-1 was evicted: it had to go");
        assert_eq!(Intent::recorded_targets(&state), intent.targets);
    }

    #[test]
    fn a_message_about_something_else_names_no_target() {
        let state =
            JobState { reason: "RestartJob".into(), message: "task x: y".into(), ..JobState::default() };
        assert_eq!(Intent::recorded_targets(&state), []);
    }
}
