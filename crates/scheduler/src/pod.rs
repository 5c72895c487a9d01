//! What the scheduler says of a lone pod that finds no room: the condition that `kubectl describe pod` shows.
//!
//! Pods of a gang do not get one each: their PodGroup says it once for all. When a pod gets its node, the server sets the
//! condition to true.

use krafla_api::{Kind, Time};
use krafla_plan::{Object, Step};
use serde_json::json;

use crate::gang::{Gang, WhyNot};

/// The write that brings a lone pod's condition up to date, if it is not.
pub(crate) fn status_patch(gang: &Gang<'_>, now: Time) -> Option<Step> {
    let (None, Some(WhyNot { message, .. })) = (gang.podgroup, &gang.why_not) else { return None };
    let Object { meta, .. } = gang.object()?;
    let observed = gang.object()?.as_pod()?.status.conditions.scheduled.as_deref();
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
