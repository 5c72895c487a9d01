//! Sets of pods that are kept at a number: what is wrong with them.

use krafla_api::meta::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

use super::{findings, validate_not_negative};
use crate::json::At;
use crate::webhook::selects;
use crate::{Finding, Verdict, pod};

/// Which kind of set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// A Deployment.
    Deployment,
    /// A ReplicaSet.
    ReplicaSet,
    /// A StatefulSet.
    StatefulSet,
    /// A DaemonSet.
    DaemonSet,
}

impl Set {
    fn name(self) -> &'static str {
        match self {
            Set::Deployment => "deployment",
            Set::ReplicaSet => "replicaset",
            Set::StatefulSet => "statefulset",
            Set::DaemonSet => "daemonset",
        }
    }
}

/// Says what is wrong with a set.
pub fn validate(set: Set, object: &Value) -> Vec<Finding> {
    findings(object, |object, verdict| {
        let spec = object.get("spec");
        if set == Set::StatefulSet {
            validate_management(&spec.get("podManagementPolicy"), verdict);
        }
        for count in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
            validate_not_negative(&spec.get(count), verdict);
        }
        validate_selector(set, &spec, verdict);
        validate_template(&spec.get("template"), verdict);
        if set == Set::Deployment {
            validate_strategy(&spec.get("strategy"), verdict);
        }
    })
}

/// Says what is wrong with a changed set. Which pods belong to it never changes.
pub fn validate_update(set: Set, object: &Value, old: &Value) -> Vec<Finding> {
    let mut found = validate(set, object);
    found.extend(findings(object, |object, verdict| {
        let selector = object.get("spec").get("selector");
        if Some(selector.value()) != old.pointer("/spec/selector") {
            verdict.invalid(selector.path(), selector.value(), "field is immutable");
        }
    }));
    found
}

fn validate_management(policy: &At<'_>, verdict: &mut Verdict) {
    match policy.text() {
        "" => verdict.required(policy.path(), ""),
        "OrderedReady" | "Parallel" => {}
        other => verdict.invalid(policy.path(), other, "must be 'OrderedReady' or 'Parallel'"),
    }
}

/// The pods that a set makes must be pods that it finds again.
fn validate_selector(set: Set, spec: &At<'_>, verdict: &mut Verdict) {
    let selector = spec.get("selector");
    let parsed = LabelSelector::deserialize(selector.value()).unwrap_or_default();
    let is_empty = parsed.match_labels.is_empty() && parsed.match_expressions.is_empty();
    if !selector.is_set() {
        verdict.required(selector.path(), "");
    } else if is_empty {
        let why = format!("empty selector is invalid for {}", set.name());
        return verdict.invalid(selector.path(), selector.value(), why);
    }
    let labels = spec.get("template").get("metadata").get("labels");
    if is_empty || !selects(&parsed, spec.get("template").value()) {
        verdict.invalid(labels.path(), labels.value(), "`selector` does not match template `labels`");
    }
}

fn validate_template(template: &At<'_>, verdict: &mut Verdict) {
    verdict.refusals.extend(pod::validate_template(template.value(), template.path()));
    let policy = template.get("spec").get("restartPolicy");
    if policy.text() != "Always" {
        verdict.unsupported(policy.path(), policy.text(), &["Always"]);
    }
    let deadline = template.get("spec").get("activeDeadlineSeconds");
    if deadline.is_set() {
        verdict.forbidden(deadline.path(), "activeDeadlineSeconds in ReplicaSet is not Supported");
    }
}

fn validate_strategy(strategy: &At<'_>, verdict: &mut Verdict) {
    let (kind, rolling) = (strategy.get("type"), strategy.get("rollingUpdate"));
    match kind.text() {
        "Recreate" if rolling.is_set() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            verdict.forbidden(rolling.path(), why);
        }
        "Recreate" | "RollingUpdate" => {}
        other => verdict.unsupported(kind.path(), other, &["Recreate", "RollingUpdate"]),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::super::said;
    use super::*;

    fn deployment(labels: Value, selector: Value) -> Value {
        let container = json!({"name": "c", "image": "i"});
        let template = json!({
            "metadata": {"labels": labels}, "spec": {"restartPolicy": "Always", "containers": [container]},
        });
        json!({"spec": {"selector": selector, "template": template, "strategy": {"type": "RollingUpdate"}}})
    }

    #[test]
    fn a_set_finds_the_pods_that_it_makes() {
        let found =
            |labels: Value, selector: Value| said(&validate(Set::Deployment, &deployment(labels, selector)));
        expect![""].assert_eq(&found(json!({"a": "b", "c": "d"}), json!({"matchLabels": {"a": "b"}})));
        expect![[r#"
            spec.selector: Required value
            spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#]]
        .assert_eq(&found(json!({"a": "b"}), json!(null)));
        expect!["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]
            .assert_eq(&found(json!({"a": "b"}), json!({})));
    }

    #[test]
    fn which_pods_belong_to_a_set_does_not_change() {
        let old = deployment(json!({"a": "b"}), json!({"matchLabels": {"a": "b"}}));
        let new = deployment(json!({"a": "c"}), json!({"matchLabels": {"a": "c"}}));
        expect![[r#"spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable"#]]
            .assert_eq(&said(&validate_update(Set::Deployment, &new, &old)));
    }
}
