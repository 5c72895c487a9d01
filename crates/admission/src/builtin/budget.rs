//! What a PodDisruptionBudget allows: counted from the pods that it is about, and spent by evictions.
//!
//! ```text
//!   pods ──count──> status: how many are healthy, how many must be, how many may go
//!   eviction ──spend──> one less may go, and the pod is on record until it is seen to go
//! ```

use std::time::Duration;

use krafla_api::Time;
use serde_json::{Map, Value, json};

use crate::webhook::selects;

/// How long a pod that was let go is believed to be on its way out.
const LEAVING_MAX: Duration = Duration::from_secs(120);
/// How many pods may be on their way out at once.
const LEAVING_PODS_MAX: usize = 2000;

/// Whether a budget is about a pod. One without a selector is about none, one with an empty selector about all.
pub fn is_about(budget: &Value, pod: &Value) -> bool {
    let selector = budget.pointer("/spec/selector").filter(|selector| !selector.is_null());
    let selector = selector.and_then(|selector| serde_json::from_value(selector.clone()).ok());
    selector.is_some_and(|selector| selects(&selector, pod))
}

/// The status of a budget, given its pods and how many there should be.
pub fn count(budget: &Value, pods: &[Value], n_expected: i64, now: Time) -> Value {
    let number = |pointer: &str| budget.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let leaving = still_leaving(budget, pods, now);
    let is_counted = |pod: &&Value| is_ready(pod) && !is_deleting(pod) && !leaving.contains_key(name(pod));
    let n_healthy = pods.iter().filter(is_counted).fold(0_i64, |sum, _| sum.saturating_add(1));
    let (min, max) = (budget.pointer("/spec/minAvailable"), budget.pointer("/spec/maxUnavailable"));
    let n_desired = match (min, max) {
        (_, Some(max)) if !max.is_null() => n_expected.saturating_sub(amount(max, n_expected)).max(0),
        (Some(min), _) => amount(min, n_expected),
        (None, _) => n_expected.saturating_sub(1).max(0),
    };
    let n_allowed = if n_expected > 0 { n_healthy.saturating_sub(n_desired).max(0) } else { 0 };
    let mut status = json!({
        "currentHealthy": n_healthy, "desiredHealthy": n_desired, "expectedPods": n_expected,
        "disruptionsAllowed": n_allowed, "observedGeneration": number("/metadata/generation"),
        "conditions": conditions(budget, n_allowed, now),
    });
    if let (false, Some(status)) = (leaving.is_empty(), status.as_object_mut()) {
        status.insert("disruptedPods".into(), Value::Object(leaving));
    }
    status
}

/// What an eviction makes of the budget of its pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The pod may go at no cost.
    Free,
    /// The pod may go, and this is the budget's status from then on.
    Spent(Value),
    /// It may not go now. The sentence says why.
    NotNow(String),
    /// It may not go now, for nothing is known of the budget yet: a moment later is soon enough to ask again.
    Uncounted(String),
    /// It may not go at all.
    Never(String),
}

/// Whether a pod may be evicted.
pub fn spend(budget: &Value, pod: &Value, now: Time) -> Verdict {
    let number = |pointer: &str| budget.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let (n_healthy, n_desired) = (number("/status/currentHealthy"), number("/status/desiredHealthy"));
    let always =
        budget.pointer("/spec/unhealthyPodEvictionPolicy").is_some_and(|policy| policy == "AlwaysAllow");
    // What is not healthy was not counted on.
    if !is_ready(pod) && (always || (n_desired > 0 && n_healthy >= n_desired)) {
        return Verdict::Free;
    }
    if number("/status/observedGeneration") < number("/metadata/generation") {
        let name = name(budget);
        return Verdict::Uncounted(format!(
            "The disruption budget {name} is still being processed by the server."
        ));
    }
    let mut status = budget.get("status").cloned().unwrap_or_default();
    let leaving = status.get("disruptedPods").and_then(Value::as_object).map_or(0, Map::len);
    match number("/status/disruptionsAllowed") {
        ..0 => return Verdict::Never("pdb disruptions allowed is negative".to_owned()),
        0 => return Verdict::NotNow(why_none(budget, n_desired, n_healthy)),
        _ if leaving > LEAVING_PODS_MAX => {
            return Verdict::Never(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller".to_owned(),
            );
        }
        n_allowed => {
            let n_left = n_allowed.saturating_sub(1);
            let conditions = conditions(budget, n_left, now);
            if let Some(status) = status.as_object_mut() {
                status.insert("disruptionsAllowed".into(), n_left.into());
                status.insert("conditions".into(), conditions);
                let leaving = status.entry("disruptedPods").or_insert_with(|| json!({}));
                if let Some(leaving) = leaving.as_object_mut() {
                    leaving.insert(name(pod).to_owned(), json!(now));
                }
            }
        }
    }
    Verdict::Spent(status)
}

/// Why a budget lets nothing go.
fn why_none(budget: &Value, n_desired: i64, n_healthy: i64) -> String {
    let name = name(budget);
    let conditions = budget.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let text = |condition: &Value, field: &str| {
        condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let told = conditions
        .into_iter()
        .find(|condition| text(condition, "type") == "DisruptionAllowed")
        .filter(|condition| text(condition, "status") == "False")
        .map(|condition| (text(condition, "reason"), text(condition, "message")))
        .filter(|(_, message)| !message.is_empty());
    let refused = format!("The disruption budget {name} does not allow evicting pods currently");
    match told {
        Some((reason, message)) if reason == "SyncFailed" => {
            format!("{refused} because it failed sync: {message}")
        }
        _ if n_healthy <= n_desired => {
            format!(
                "The disruption budget {name} needs {n_desired} healthy pods and has {n_healthy} currently"
            )
        }
        Some((reason, message)) => format!("{refused} ({reason}): {message}"),
        None => refused,
    }
}

/// Pods that were let go and are still there, unless that was too long ago to be true.
fn still_leaving(budget: &Value, pods: &[Value], now: Time) -> Map<String, Value> {
    let on_record = budget.pointer("/status/disruptedPods").and_then(Value::as_object).into_iter().flatten();
    let is_leaving = |(pod, since): &(&String, &Value)| {
        let is_there = pods.iter().any(|other| name(other) == *pod && !is_deleting(other));
        let since = since.as_str().and_then(|since| since.parse().ok()).map(Time);
        is_there && since.is_some_and(|since| now.since(since) < LEAVING_MAX)
    };
    on_record.filter(is_leaving).map(|(pod, since)| (pod.clone(), since.clone())).collect()
}

/// The one condition of a budget. Its time is that of the change.
fn conditions(budget: &Value, n_allowed: i64, now: Time) -> Value {
    let (status, reason) =
        if n_allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let known = budget.pointer("/status/conditions/0");
    let since = known.filter(|known| known.get("status").is_some_and(|known| known == status));
    let since =
        since.and_then(|known| known.get("lastTransitionTime").cloned()).unwrap_or_else(|| json!(now));
    json!([{
        "type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
        "lastTransitionTime": since,
        "observedGeneration": budget.pointer("/metadata/generation").cloned().unwrap_or_default(),
    }])
}

/// A number of pods, or a share of all of them, rounded up.
fn amount(of: &Value, n_all: i64) -> i64 {
    let percent = of.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    match percent {
        Some(percent) => percent.saturating_mul(n_all).saturating_add(99) / 100,
        None => of.as_i64().unwrap_or(0),
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let is =
        |condition: &Value, field: &str, word: &str| condition.get(field).is_some_and(|value| value == word);
    conditions.into_iter().any(|condition| is(condition, "type", "Ready") && is(condition, "status", "True"))
}

fn is_deleting(pod: &Value) -> bool {
    pod.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn now() -> Time {
        Time::from_seconds(NOW)
    }

    fn pod(name: &str, ready: &str) -> Value {
        json!({
            "metadata": {"name": name, "labels": {"app": "a"}},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    fn budget(spec: Value) -> Value {
        json!({"metadata": {"name": "b", "generation": 1}, "spec": spec})
    }

    /// How many must be healthy of four pods of which three are, and how many may go.
    fn counted(spec: Value) -> (i64, i64) {
        let pods = [pod("a", "True"), pod("b", "True"), pod("c", "True"), pod("d", "False")];
        let status = count(&budget(spec), &pods, 4, now());
        (status["desiredHealthy"].as_i64().unwrap(), status["disruptionsAllowed"].as_i64().unwrap())
    }

    #[test]
    fn what_may_go_is_what_is_healthy_beyond_need() {
        assert_eq!(counted(json!({"minAvailable": 2})), (2, 1));
        assert_eq!(counted(json!({"minAvailable": "60%"})), (3, 0));
        assert_eq!(counted(json!({"maxUnavailable": 2})), (2, 1));
        assert_eq!(counted(json!({"maxUnavailable": "30%"})), (2, 1));
        assert_eq!(counted(json!({"maxUnavailable": 9})), (0, 3));
        assert_eq!(counted(json!({})), (3, 0));
    }

    #[test]
    fn an_eviction_is_counted_until_the_pod_is_seen_to_go() {
        let mut budget = budget(json!({"minAvailable": 1}));
        let pods = [pod("a", "True"), pod("b", "True")];
        budget["status"] = count(&budget, &pods, 2, now());
        let Verdict::Spent(status) = spend(&budget, &pods[0], now()) else { panic!("one may go") };
        budget["status"] = status;
        let why = "The disruption budget b does not allow evicting pods currently";
        assert_eq!(spend(&budget, &pods[1], now()), Verdict::NotNow(why.to_owned()));
        let again = count(&budget, &pods, 2, now());
        assert_eq!((&again["currentHealthy"], &again["disruptionsAllowed"]), (&json!(1), &json!(0)));
        let much_later = count(&budget, &pods, 2, Time::from_seconds(NOW + 121));
        assert_eq!(much_later["disruptionsAllowed"], 1);
        assert_eq!(much_later.get("disruptedPods"), None);
    }

    #[test]
    fn what_is_not_healthy_goes_free_while_the_budget_holds() {
        let mut budget = budget(json!({"minAvailable": 1}));
        let (healthy, sick) = (pod("a", "True"), pod("b", "False"));
        budget["status"] = count(&budget, &[healthy.clone(), sick.clone()], 2, now());
        assert_eq!(spend(&budget, &sick, now()), Verdict::Free);
        assert!(matches!(spend(&budget, &healthy, now()), Verdict::NotNow(_)));
        budget["status"] = count(&budget, std::slice::from_ref(&sick), 1, now());
        assert!(matches!(spend(&budget, &sick, now()), Verdict::NotNow(_)));
        budget["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
        assert_eq!(spend(&budget, &sick, now()), Verdict::Free);
    }

    #[test]
    fn a_budget_that_nobody_has_counted_yet_lets_nothing_go() {
        let why = "The disruption budget b is still being processed by the server.";
        let verdict = spend(&budget(json!({"minAvailable": 0})), &pod("a", "True"), now());
        assert_eq!(verdict, Verdict::Uncounted(why.to_owned()));
    }

    #[test]
    fn a_budget_is_about_what_it_selects() {
        let about = |selector: Value| is_about(&budget(json!({"selector": selector})), &pod("a", "True"));
        assert!(about(json!({})) && about(json!({"matchLabels": {"app": "a"}})));
        assert!(!about(json!({"matchLabels": {"app": "b"}})) && !about(Value::Null));
    }
}
