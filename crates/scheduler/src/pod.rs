//! What the scheduler says of a pod that finds no room: its condition, and an Event that `kubectl describe pod` shows.
//!
//! A pod in no gang has words of its own. Why a gang does not start, its PodGroup says once for all pods; why one that runs
//! does not grow, the last pod of each shape says. When a pod gets its node, the server sets the condition to true.

use krafla_api::{Kind, Time};
use krafla_plan::object::PodCondition;
use krafla_plan::{Note, Object, Step};
use serde_json::json;

use crate::Told;
use crate::gang::Gang;

/// The writes that bring the conditions of a gang's pods up to date, where they are not.
pub(crate) fn reports(gang: &Gang<'_>, now: Time) -> impl Iterator<Item = Told> {
    gang.members.iter().enumerate().filter_map(move |(index, member)| {
        let of_all = gang.why_not.as_ref().filter(|_| gang.is_waiting(index));
        // What holds for the whole gang, a pod says that is alone, or that has said something else before.
        let of_all = of_all.filter(|_| gang.podgroup.is_none() || said_before(member.object).is_some());
        let why = member.why_not.as_deref().or(of_all.map(|why_not| why_not.message.as_str()))?;
        report(member.object, why, now)
    })
}

/// The write that says of a pod why it has no node, unless that is said already.
pub(crate) fn report(object: &Object, message: &str, now: Time) -> Option<Told> {
    let meta = &object.meta;
    let said_before = said_before(object);
    if said_before.is_some_and(|condition| without_numbers(&condition.message) == without_numbers(message)) {
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

/// How many nodes are short of what changes with every pod that comes or goes anywhere; that alone is no news, or every
/// waiting pod would be written each time.
pub(crate) fn without_numbers(message: &str) -> String {
    // A number in a name, as in `data-1`, is not one that changes.
    let is_number = |word: &&str| word.chars().all(|letter| letter.is_ascii_digit() || letter == '/');
    let words: Vec<&str> = message.split(' ').filter(|word| !is_number(word)).collect();
    words.join(" ")
}
