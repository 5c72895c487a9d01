//! Holds: reasons why a job waits. `status.state` and an Event report a hold; it is removed when it no longer applies.
//!
//! Admission refuses most of this. A job that was stored without being asked, or whose queue went away, is told the same.

use krafla_admission::job::{contradictions, look_over};
use krafla_admission::names;
use krafla_api::volcano::{JobPhase, JobState, TaskSpec};
use krafla_api::{Key, Kind};
use krafla_cluster::Verb;

use serde_json::json;

use super::Job;
use crate::object::Unreadable;
use crate::{Note, Object, Plan, Snapshot};

/// Why the job can not go on for now.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Hold {
    const UNREADABLE: &'static str = "JobUnreadable";
    const NO_TASKS: &'static str = "NoTasks";
    const INVALID_SPEC: &'static str = "InvalidSpec";
    const INVALID_NAME: &'static str = "InvalidName";
    const QUEUE_NOT_FOUND: &'static str = "QueueNotFound";
    pub(super) const PVC_ERROR: &'static str = "PVCError";
    pub(super) const PLUGIN_ERROR: &'static str = "PluginError";
    /// The scheduler has found no room, and says why.
    pub(super) const PODGROUP_PENDING: &'static str = "PodGroupPending";
    /// Somebody else's pod has the name of one of the job's.
    pub(super) const POD_NAME_TAKEN: &'static str = "PodNameTaken";
    /// The server refuses what the job needs, and says why.
    const FAILED_CREATE: &'static str = "FailedCreate";
    const FAILED_UPDATE: &'static str = "FailedUpdate";
    const FAILED_DELETE: &'static str = "FailedDelete";
    /// All of them: what stands in a job's status may be one that no longer holds.
    pub(super) const REASONS: [&'static str; 12] = [
        Hold::UNREADABLE,
        Hold::NO_TASKS,
        Hold::INVALID_SPEC,
        Hold::INVALID_NAME,
        Hold::QUEUE_NOT_FOUND,
        Hold::PVC_ERROR,
        Hold::PLUGIN_ERROR,
        Hold::PODGROUP_PENDING,
        Hold::POD_NAME_TAKEN,
        Hold::FAILED_CREATE,
        Hold::FAILED_UPDATE,
        Hold::FAILED_DELETE,
    ];

    /// Whether a job that says this goes on as soon as something comes that is not its own.
    pub(super) fn is_for_want_of_another(reason: &str) -> bool {
        matches!(reason, Hold::QUEUE_NOT_FOUND | Hold::PVC_ERROR)
    }

    /// Whether this may stand in a job's status without having any effect: news of it need not be hurried.
    pub(super) fn is_remark(reason: &str) -> bool {
        matches!(reason, "" | Hold::PODGROUP_PENDING | Hold::POD_NAME_TAKEN) || Hold::is_refusal(reason)
    }

    fn is_refusal(reason: &str) -> bool {
        matches!(reason, Hold::FAILED_CREATE | Hold::FAILED_UPDATE | Hold::FAILED_DELETE)
    }
}

/// Why a job waits by the words of its own state, if it does. What the scheduler says of its gang, the gang says itself.
pub fn waits_for(state: &JobState) -> Option<&str> {
    let is_hold = Hold::REASONS.contains(&&*state.reason) && state.reason != Hold::PODGROUP_PENDING;
    // A job that runs may have a fault that does it no harm; what it is refused, it lacks.
    let is_waiting = matches!(state.phase, JobPhase::Unset | JobPhase::Pending);
    (is_hold && (is_waiting || Hold::is_refusal(&state.reason))).then_some(&state.message)
}

/// Whether a job's state says that the server refused what it needs. It is asked again from time to time.
pub fn is_refused(state: &JobState) -> bool {
    Hold::is_refusal(&state.reason)
}

/// Whether a job's state says that the scheduler has no room for its gang.
pub fn has_no_room(state: &JobState) -> bool {
    state.reason == Hold::PODGROUP_PENDING
}

/// What keeps a plan from having its full effect, as reason and message of the job's state: that a pod's name is taken, or
/// that the server refused the writes of the last one. Until those have been made, that stands, whoever tries meanwhile.
pub(super) fn remark(plan: &Plan, state: &JobState, snapshot: &Snapshot<'_>) -> Option<(String, String)> {
    let said = |note: &Note| (note.reason.to_owned(), note.message.clone());
    let tries_again = !plan.steps.is_empty();
    let stands = || (state.reason.clone(), state.message.clone());
    let refused = snapshot
        .refusal
        .map(said)
        .or_else(|| Hold::is_refusal(&state.reason).then(stands))
        .filter(|_| tries_again);
    let taken = || plan.notes.iter().find(|note| note.reason == Hold::POD_NAME_TAKEN).map(said);
    refused.or_else(taken)
}

/// A job that can not be read is told so where people look. Its other fields stay as they are. While it restarts, its state says
/// what is restarted and why, which is needed once it can be read again: then only an Event tells.
pub(super) fn unreadable(root: &Object, unreadable: &Unreadable) -> Plan {
    let Unreadable { why, said, phase } = unreadable;
    let message = format!("cannot read the job: {why}; correct it, or create the job again");
    let is_restarting = JobPhase::from(phase.as_str()) == JobPhase::Restarting;
    let status = (*said != message && !is_restarting).then(|| {
        let state = json!({ "reason": Hold::UNREADABLE, "message": message });
        root.meta.status_patch(root.kind, &json!({ "state": state }))
    });
    Plan { status, ..Plan::hold(Hold::UNREADABLE, message) }
}

/// Whether anything can be made for the job at all.
pub(super) fn check(job: &Job<'_>, snapshot: &Snapshot<'_>) -> Result<(), Hold> {
    has_tasks(job)?;
    is_consistent(job)?;
    names_fit(job)?;
    has_queue(job, snapshot)
}

fn has_tasks(job: &Job<'_>) -> Result<(), Hold> {
    if job.spec.tasks.is_empty() {
        let message = "spec.tasks is empty, so there is nothing to run; create the job anew with a task";
        return Err(Hold { reason: Hold::NO_TASKS, message: message.to_owned() });
    }
    Ok(())
}

/// No two tasks have one name, and none waits for itself.
fn is_consistent(job: &Job<'_>) -> Result<(), Hold> {
    let verdict = contradictions(&job.spec.tasks);
    if verdict.is_allowed() {
        return Ok(());
    }
    let message = format!("{}; create the job anew without that", verdict.message());
    Err(Hold { reason: Hold::INVALID_SPEC, message })
}

/// What admission would have refused in a job that it was not asked about, as reason and message of the job's state. Volcano
/// runs such a job as far as it goes, and so do we. It is looked for once, when the job is new, and then for as long as there is
/// something to say: most jobs are right, and looked at often.
pub(super) fn oddities(job: &Job<'_>, plan: &mut Plan) -> Option<(String, String)> {
    let is_new = job.phase().is_unset();
    if !is_new && job.status.state.reason != Hold::INVALID_SPEC {
        return None;
    }
    let verdict = look_over(job.namespace(), job.name(), job.spec);
    if verdict.is_allowed() {
        return None;
    }
    let message = format!("{}; admission would have refused it", verdict.message());
    if is_new {
        plan.notes.push(Note::warning(Hold::INVALID_SPEC, message.clone()).of(
            Verb::Report,
            Kind::VcJob,
            &job.meta.key,
        ));
    }
    Some((Hold::INVALID_SPEC.to_owned(), message))
}

/// Every pod carries the names of its job and of its task as labels.
fn names_fit(job: &Job<'_>) -> Result<(), Hold> {
    let wrong = |name: &str| names::label_value(name).into_iter().next();
    let of_job = wrong(job.name()).map(|wrong| ("metadata.name".to_owned(), wrong));
    let of_task =
        |(index, task): (usize, &TaskSpec)| Some((format!("spec.tasks[{index}].name"), wrong(&task.name)?));
    match of_job.or_else(|| job.spec.tasks.iter().enumerate().find_map(of_task)) {
        None => Ok(()),
        Some((field, wrong)) => {
            let message = format!(
                "{field} {wrong}: the job's pods carry it as a label; create the job anew under another name"
            );
            Err(Hold { reason: Hold::INVALID_NAME, message })
        }
    }
}

/// A job without its queue can have no PodGroup.
fn has_queue(job: &Job<'_>, snapshot: &Snapshot<'_>) -> Result<(), Hold> {
    let queue = &job.spec.queue;
    if snapshot.objects.get(Kind::Queue, &Key::new("", queue)).is_none() {
        let message = format!("queue {queue} does not exist; create it, or name another in spec.queue");
        return Err(Hold { reason: Hold::QUEUE_NOT_FOUND, message });
    }
    Ok(())
}
