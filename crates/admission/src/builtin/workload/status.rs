//! What the controller of a set reports about it.

use serde_json::Value;

use super::Set;
use crate::builtin::validate_not_negative;
use crate::json::At;
use crate::look::findings_of_change;
use crate::{Finding, Verdict};

/// Says what is wrong with a changed status.
pub fn validate_status(set: Set, object: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(object, old, |object, old, verdict| {
        let (status, old) = (object.get("status"), old.get("status"));
        counts(set).iter().for_each(|name| validate_not_negative(&status.get(name), verdict));
        for name in parts(set) {
            validate_at_most(&status, name, "replicas", "status.replicas", verdict);
        }
        if set != Set::DaemonSet {
            let ready = if set == Set::StatefulSet { "status.readyReplicas" } else { "readyReplicas" };
            validate_at_most(&status, "availableReplicas", "readyReplicas", ready, verdict);
        }
        let [now, before] = [&status, &old].map(|at| at.get("collisionCount"));
        if before.int().is_some_and(|before| now.int().unwrap_or(0) < before) {
            verdict.invalid(now.path(), now.int().unwrap_or(0), "cannot be decremented");
        }
    })
}

fn validate_at_most(status: &At<'_>, name: &str, whole: &str, called: &str, verdict: &mut Verdict) {
    let (part, whole) = (status.get(name), status.get(whole).int().unwrap_or(0));
    if let Some(number) = part.int().filter(|number| *number > whole) {
        verdict.invalid(part.path(), number, format_args!("cannot be greater than {called}"));
    }
}

/// The numbers of a status that are not negative.
fn counts(set: Set) -> &'static [&'static str] {
    match set {
        Set::Deployment => &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        Set::ReplicaSet | Set::ReplicationController => &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        Set::StatefulSet => &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        Set::DaemonSet => &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    }
}

/// The numbers of a status that are parts of all replicas.
fn parts(set: Set) -> &'static [&'static str] {
    match set {
        Set::Deployment => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        Set::ReplicaSet | Set::ReplicationController => {
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]
        }
        Set::StatefulSet => &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        Set::DaemonSet => &[],
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::builtin::said;

    #[test]
    fn a_part_is_not_more_than_the_whole() {
        let status = |status: Value| json!({"status": status});
        let found =
            |set: Set, new: Value, old: Value| said(&validate_status(set, &status(new), &status(old)));
        expect![""].assert_eq(&found(
            Set::Deployment,
            json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}),
            json!({}),
        ));
        expect![[r#"
            status.readyReplicas: Invalid value: 3: cannot be greater than status.replicas
            status.availableReplicas: Invalid value: 4: cannot be greater than status.replicas
            status.availableReplicas: Invalid value: 4: cannot be greater than status.readyReplicas"#]]
        .assert_eq(&found(
            Set::StatefulSet,
            json!({"replicas": 2, "readyReplicas": 3, "availableReplicas": 4}),
            json!({}),
        ));
        expect![[r#"
            status.numberReady: Invalid value: -1: must be greater than or equal to 0
            status.collisionCount: Invalid value: 1: cannot be decremented"#]]
        .assert_eq(&found(
            Set::DaemonSet,
            json!({"numberReady": -1, "collisionCount": 1}),
            json!({"collisionCount": 2}),
        ));
    }
}
