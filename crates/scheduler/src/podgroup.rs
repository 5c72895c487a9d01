//! What the scheduler says of a gang: the status of its PodGroup.
//!
//! ```text
//!              room in the queue           enough pods have a node          all of them ended
//!   Pending ──────────────────> Inqueue ─────────────────────────> Running ──────────────────> Completed
//!      ^                                                           │     ^
//!      │            no pod has a node any more                     v     │ there is room again
//!      └─────────────────────────────────────────────────────────  Unknown   pods run, others find no room
//! ```
//!
//! A status is written only when it says something new. PodGroups have no status subresource.

use krafla_api::Time;
use krafla_api::volcano::{PodGroupCondition, PodGroupPhase, PodGroupStatus};
use krafla_cluster::Step;
use krafla_plan::Note;
use serde_json::{Map, Value, json};

use crate::Told;
use crate::gang::{Gang, NOT_ENOUGH_RESOURCES, State, UNSCHEDULABLE, WhyNot};
use crate::pod;

/// The condition that says that it does not.
const SCHEDULED: &str = "Scheduled";
/// Volcano's reason for [`SCHEDULED`].
const READY: &str = "tasks in gang are ready to be scheduled";

/// The write that brings a PodGroup's status up to date, if it is not.
pub(crate) fn report(gang: &Gang<'_>, now: Time) -> Option<Told> {
    let (object, podgroup) = gang.podgroup?;
    let patch = difference(&podgroup.status, &desired_status(gang, &podgroup.status, now))?;
    // Why it waits stands in a condition, and is said again when that changes.
    let why_not = gang.why_not.as_ref().filter(|_| patch.contains_key("conditions"));
    let note = why_not.map(|why_not| Note::warning(UNSCHEDULABLE, why_not.message.clone()));
    let step = Step::Patch {
        kind: object.kind,
        key: object.meta.key.clone(),
        uid: object.meta.uid.clone(),
        revision: None,
        of_status: false,
        patch: json!({ "status": patch }),
    };
    Some(Told { step, note })
}

fn desired_status(gang: &Gang<'_>, observed: &PodGroupStatus, now: Time) -> PodGroupStatus {
    PodGroupStatus {
        phase: desired_phase(gang),
        conditions: desired_conditions(gang, &observed.conditions, now),
        running: tally(gang, State::Running),
        succeeded: tally(gang, State::Succeeded),
        failed: tally(gang, State::Failed),
    }
}

fn tally(gang: &Gang<'_>, state: State) -> i32 {
    i32::try_from(gang.count(|it| it == state)).unwrap_or(i32::MAX)
}

/// The phase of a gang once this decision is carried out.
pub(crate) fn desired_phase(gang: &Gang<'_>) -> PodGroupPhase {
    let n_scheduled = gang.count(State::is_scheduled);
    let n_finished = gang.count(|state| matches!(state, State::Succeeded | State::Failed));
    let n_running = gang.count(|state| state == State::Running);
    let finds_no_room = gang.why_not.as_ref().is_some_and(|why_not| why_not.reason == NOT_ENOUGH_RESOURCES);
    if gang.is_admitted() && finds_no_room && n_running > 0 {
        PodGroupPhase::Unknown
    } else if n_scheduled > 0 && n_scheduled >= gang.min_member {
        if n_finished == n_scheduled { PodGroupPhase::Completed } else { PodGroupPhase::Running }
    } else {
        gang.phase.clone()
    }
}

fn desired_conditions(gang: &Gang<'_>, observed: &[PodGroupCondition], now: Time) -> Vec<PodGroupCondition> {
    let mut conditions = observed.to_vec();
    if let Some(WhyNot { reason, message }) = &gang.why_not {
        say(&mut conditions, UNSCHEDULABLE, reason, message, now);
        unsay(&mut conditions, SCHEDULED, now);
    } else if !gang.members.is_empty() && gang.shortfall().is_nothing() {
        say(&mut conditions, SCHEDULED, READY, "", now);
        unsay(&mut conditions, UNSCHEDULABLE, now);
    } else if gang.phase == PodGroupPhase::Inqueue {
        unsay(&mut conditions, UNSCHEDULABLE, now);
        unsay(&mut conditions, SCHEDULED, now);
    }
    conditions
}

/// Sets a condition to true. The time changes only with the status.
fn say(conditions: &mut Vec<PodGroupCondition>, of_type: &str, reason: &str, message: &str, now: Time) {
    let index = conditions.iter().position(|condition| condition.condition_type == of_type);
    let old = index.and_then(|index| conditions.get_mut(index));
    match old {
        Some(old) => {
            if old.status != "True" {
                old.status = "True".to_owned();
                old.last_transition_time = Some(now);
            }
            if old.reason != reason || is_news(&old.message, message) {
                old.reason = reason.to_owned();
                old.message = message.to_owned();
            }
        }
        None => conditions.push(PodGroupCondition {
            condition_type: of_type.to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(now),
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..PodGroupCondition::default()
        }),
    }
}

/// Sets a condition to false where it was true.
fn unsay(conditions: &mut [PodGroupCondition], of_type: &str, now: Time) {
    for condition in conditions.iter_mut().filter(|it| it.condition_type == of_type && it.status == "True") {
        condition.status = "False".to_owned();
        condition.last_transition_time = Some(now);
        condition.reason.clear();
        condition.message.clear();
    }
}

/// Whether a message says something new. What it says of pods that lack something and of the nodes, behind the semicolon,
/// is compared without numbers: those change with every pod that comes or goes anywhere.
fn is_news(old: &str, new: &str) -> bool {
    let (old_gang, old_nodes) = old.split_once("; ").unwrap_or((old, ""));
    let (new_gang, new_nodes) = new.split_once("; ").unwrap_or((new, ""));
    old_gang != new_gang || pod::is_news(old_nodes, new_nodes)
}

/// The fields that differ, as a merge patch. A counter at zero is not written by Volcano, so here it is removed.
fn difference(observed: &PodGroupStatus, desired: &PodGroupStatus) -> Option<Map<String, Value>> {
    let mut patch = Map::new();
    if observed.phase != desired.phase {
        patch.insert("phase".to_owned(), json!(desired.phase));
    }
    if observed.conditions != desired.conditions {
        patch.insert("conditions".to_owned(), json!(desired.conditions));
    }
    let counters = [
        ("running", observed.running, desired.running),
        ("succeeded", observed.succeeded, desired.succeeded),
        ("failed", observed.failed, desired.failed),
    ];
    for (name, old, new) in counters {
        if old != new {
            patch.insert(name.to_owned(), if new == 0 { Value::Null } else { json!(new) });
        }
    }
    (!patch.is_empty()).then_some(patch)
}
