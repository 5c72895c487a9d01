//! What the scheduler says of a pod that finds no room: the condition that `kubectl describe pod` shows.
//!
//! A pod in no gang has one of its own. Why a gang does not start, its PodGroup says once for all pods; why one that runs
//! does not grow, the last pod of each shape says. When a pod gets its node, the server sets the condition to true.

use krafla_api::{Kind, Time};
use krafla_plan::{Object, Step};
use serde_json::json;

use crate::gang::Gang;

/// The writes that bring the conditions of a gang's pods up to date, where they are not.
pub(crate) fn status_patches(gang: &Gang<'_>, now: Time) -> impl Iterator<Item = Step> {
    let of_lone_pod = gang.why_not.as_ref().filter(|_| gang.podgroup.is_none());
    let of_lone_pod = of_lone_pod.and_then(|why_not| Some((gang.object()?, why_not.message.as_str())));
    let of_members = gang.members.iter().filter_map(|it| Some((it.object, it.why_not.as_deref()?)));
    of_lone_pod.into_iter().chain(of_members).filter_map(move |(pod, why)| status_patch(pod, why, now))
}

/// The write that says of a pod why it has no node, unless that is said already.
pub(crate) fn status_patch(object: &Object, message: &str, now: Time) -> Option<Step> {
    let meta = &object.meta;
    let observed = object.as_pod()?.status.conditions.scheduled.as_deref();
    let said_before = observed.filter(|condition| condition.status == "False");
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
    Some(Step::Patch {
        kind: Kind::Pod,
        key: meta.key.clone(),
        uid: meta.uid.clone(),
        revision: None,
        of_status: true,
        // A pod without a node has no other conditions: nobody but the scheduler has looked at it yet.
        patch: json!({ "status": { "conditions": [condition] } }),
    })
}

/// How many nodes are short of what changes with every pod that comes or goes anywhere; that alone is no news, or every
/// waiting pod would be written each time.
pub(crate) fn without_numbers(message: &str) -> String {
    // A number in a name, as in `data-1`, is not one that changes.
    let is_number = |word: &&str| word.chars().all(|letter| letter.is_ascii_digit() || letter == '/');
    let words: Vec<&str> = message.split(' ').filter(|word| !is_number(word)).collect();
    words.join(" ")
}
