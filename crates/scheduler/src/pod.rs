//! What the scheduler says of a pod that finds no room: its condition, and an Event that `kubectl describe pod` shows.
//!
//! Every pod that was looked at and got no node says so, as with Volcano's scheduler: `kubectl describe pod` is where people
//! look first. A pod of a gang that does not start says what its PodGroup says; a pod of a gang that runs, and a pod in no
//! gang, say why they themselves find no room. When a pod gets its node, the server sets the condition to true.
//!
//! That costs one write for each pod and each reason that it has in its life, and none for as long as the reason stays:
//! numbers in it do not count. A decision writes at most [`REPORTS_MAX`] of them, so that pods for which there is room need
//! not wait for thousands of others to say that there is none. The rest follows: each write is a change, and each change
//! leads to another decision.

use krafla_api::{Kind, Time};
use krafla_cluster::Step;
use krafla_plan::object::PodCondition;
use krafla_plan::{Note, Object};
use serde_json::json;

use crate::Told;
use crate::gang::Gang;

/// How many conditions of pods one decision writes at most.
pub(crate) const REPORTS_MAX: usize = 500;

/// The writes that bring the conditions of a gang's pods up to date, where they are not.
pub(crate) fn reports(gang: &Gang<'_>, now: Time) -> impl Iterator<Item = Told> {
    gang.members.iter().enumerate().filter(|(index, _)| gang.is_waiting(*index)).filter_map(
        move |(_, member)| {
            let of_all = gang.why_not.as_ref().map(|why_not| why_not.message.as_str());
            report(member.object, member.why_not.as_deref().or(of_all)?, now)
        },
    )
}

/// The write that says of a pod why it has no node, unless that is said already.
pub(crate) fn report(object: &Object, message: &str, now: Time) -> Option<Told> {
    let meta = &object.meta;
    let said_before = said_before(object);
    if said_before.is_some_and(|condition| !is_news(&condition.message, message)) {
        return None;
    }
    let since = said_before.and_then(|condition| condition.last_transition_time).unwrap_or(now);
    let condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": since,
    });
    // A list is written as a whole, so what others have put there is written again, as it was when it was read.
    let others = object.as_pod()?.status.conditions.others.iter().map(|other| json!(other));
    let conditions: Vec<_> = others.chain([condition]).collect();
    let step = Step::Patch {
        kind: Kind::Pod,
        key: meta.key.clone(),
        uid: meta.uid.clone(),
        revision: Some(meta.revision),
        of_status: true,
        patch: json!({ "status": { "conditions": conditions } }),
    };
    Some(Told { step, note: Some(Note::warning("FailedScheduling", message.to_owned())) })
}

/// The condition by which a pod says already why it has no node.
fn said_before(object: &Object) -> Option<&PodCondition> {
    let observed = object.as_pod()?.status.conditions.scheduled.as_deref();
    observed.filter(|condition| condition.status == "False")
}

/// Whether a message says something new. How many nodes are short of what changes with every pod that comes or goes
/// anywhere; that alone is no news, or every waiting pod would be written each time.
pub(crate) fn is_news(old: &str, new: &str) -> bool {
    old != new && !without_numbers(old).eq(without_numbers(new))
}

fn without_numbers(message: &str) -> impl Iterator<Item = &str> {
    // A number in a name, as in `data-1`, is not one that changes.
    let is_number = |word: &&str| word.bytes().all(|letter| letter.is_ascii_digit() || letter == b'/');
    message.split(' ').filter(move |word| !is_number(word))
}
