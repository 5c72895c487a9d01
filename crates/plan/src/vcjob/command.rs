//! Commands: actions that a user requests with `vcctl` or by creating a Command.
//!
//! A Command is carried out exactly once without anything being remembered about it: its effect is stored first, then it is
//! deleted, and in the phase that it leads to it has no further effect. The job does not leave that phase before the Command
//! is gone.

use krafla_api::Kind;
use krafla_api::volcano::{Action, JobPhase};
use krafla_cluster::Verb;

use super::Job;
use super::intent::{Intent, Targets};
use crate::{Note, Object, Plan, Snapshot};

/// The oldest Command for this job.
pub(super) struct Pending<'a> {
    object: &'a Object,
    action: &'a Action,
}

/// Looks for Commands that name this job by UID.
pub(super) fn observe<'a>(job: &Job<'_>, snapshot: &Snapshot<'a>) -> Option<Pending<'a>> {
    let info = Kind::VcJob.info();
    let commands = snapshot.objects.all(Kind::Command).filter_map(|object| {
        let command = object.as_command()?;
        let target = command.target.as_ref()?;
        let is_meant = target.uid == job.meta.uid
            && target.kind == info.kind
            && target.api_version == info.api_version()
            && object.meta.key.namespace == job.meta.key.namespace;
        (is_meant && !object.meta.is_deleting()).then_some(Pending { object, action: &command.action })
    });
    // Times are whole seconds. Within one, the order in which they were stored decides.
    commands.min_by_key(|command| {
        let meta = &command.object.meta;
        (meta.created_at, meta.revision, &meta.key)
    })
}

impl Pending<'_> {
    /// What it asks for, unless that is already so.
    pub(super) fn intent(&self, job: &Job<'_>) -> Option<Intent> {
        let is_done = match (job.phase(), self.action) {
            (JobPhase::Restarting, Action::RestartJob) => {
                job.status.state.reason == Action::RestartJob.as_str()
            }
            (JobPhase::Restarting, Action::ResumeJob) => true,
            (JobPhase::Restarting, Action::RestartTask | Action::RestartPod | Action::RestartPartition) => {
                true
            }
            _ => false,
        };
        (!is_done).then(|| Intent {
            action: self.action.clone(),
            targets: Targets::default(),
            cause: format!("command {} was issued", self.object.meta.key.name),
            retry_count: job.status.retry_count,
            evidence: Vec::new(),
            is_about_vacancy: false,
            is_command: true,
        })
    }

    /// Takes the Command away: by then its effect is stored.
    pub(super) fn take(&self, plan: &mut Plan) {
        let key = &self.object.meta.key;
        let message = format!("{} by command {}, which is now used up", self.action, key.name);
        plan.notes.push(Note::normal("CommandIssued", message).of(Verb::Delete, Kind::Command, key));
        plan.steps.push(self.object.deletion());
    }
}
