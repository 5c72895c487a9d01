//! What of a pod can be changed once it exists, as Kubernetes' API server sees it: little, and mostly in one direction.

use serde_json::Value;

use crate::json::At;
use crate::look::findings_of_change;
use crate::{Finding, Verdict, internal};

use super::keep::{restore, restore_node_affinity};
use super::{check, object, scheduling};

/// What can be changed, as kube-apiserver says it.
const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Says everything that is wrong with a changed pod, apart from its metadata.
pub fn validate_update(pod: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(pod, old, validate_change)
}

fn validate_change(pod: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    object::validate_whole(pod, verdict);
    let (new_spec, old_spec) = (pod.get("spec"), old.get("spec"));
    for list in ["containers", "initContainers"] {
        let (new, old) = (new_spec.get(list), old_spec.get(list));
        if new.list().len() != old.list().len() {
            verdict.forbidden(new.path(), "pod updates may not add or remove containers");
            return;
        }
        new.list().iter().for_each(|container| validate_image(&container.get("image"), verdict));
    }
    if !validate_deadline(&new_spec, &old_spec, verdict) {
        return;
    }
    validate_tolerations(&new_spec, &old_spec, verdict);
    validate_gates(&new_spec, &old_spec, verdict);
    let is_gated = !old_spec.get("schedulingGates").is_empty();
    if is_gated {
        validate_node_selector(&new_spec, &old_spec, verdict);
    }
    let kept = without_changeable(new_spec.value(), old_spec.value(), is_gated);
    if kept != *old_spec.value() {
        let changes = internal::difference("core.PodSpec", old_spec.value(), &kept);
        verdict.forbidden(new_spec.path(), &format!("{CHANGEABLE}\n{changes}"));
    }
}

/// A changed pod names an image that can be pulled as it stands.
fn validate_image(image: &At<'_>, verdict: &mut Verdict) {
    check::text(image, verdict);
    if image.text().trim() != image.text() {
        verdict.invalid(image.path(), image.text(), "must not have leading or trailing whitespace");
    }
}

/// A deadline can be set and brought forward. Says whether the other changes are looked at.
fn validate_deadline(new: &At<'_>, old: &At<'_>, verdict: &mut Verdict) -> bool {
    let (at, old) = (new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds").int());
    match (at.int(), old) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            check::range(&at, 0, i64::from(i32::MAX), verdict);
            return false;
        }
        (Some(new), Some(old)) if new > old => {
            verdict.invalid(at.path(), new, "must be less than or equal to previous value");
            return false;
        }
        (None, Some(_)) => {
            verdict.invalid(at.path(), at.value(), "must not update from a positive integer to nil value");
        }
        _ => {}
    }
    true
}

/// Tolerations can be added, and last longer or shorter.
fn validate_tolerations(new: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let what = |toleration: &At<'_>| {
        let mut fields = toleration.fields().cloned().unwrap_or_default();
        fields.remove("tolerationSeconds");
        fields
    };
    let kept: Vec<_> = new.items("tolerations").iter().map(what).collect();
    for toleration in old.items("tolerations") {
        if !kept.contains(&what(&toleration)) {
            let path = new.get("tolerations");
            verdict.forbidden(
                path.path(),
                "existing toleration can not be modified except its tolerationSeconds",
            );
            return;
        }
    }
    scheduling::validate_tolerations(&new.get("tolerations"), verdict);
}

/// Gates can be taken away.
fn validate_gates(new: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let gates = old.items("schedulingGates");
    let was_there = |name: &str| gates.iter().any(|gate| gate.str("name") == name);
    for gate in new.items("schedulingGates") {
        let name = gate.get("name");
        if !was_there(name.text()) {
            let rule = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
            verdict.forbidden(name.path(), &rule);
        }
    }
}

/// While a pod is gated, the nodes that it may run on can be narrowed down.
fn validate_node_selector(new: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let selector = new.get("nodeSelector");
    let is_kept = |(key, value): &(&str, At<'_>)| selector.get(key).value() == value.value();
    if !old.get("nodeSelector").entries().iter().all(is_kept) {
        let rule = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        verdict.invalid(selector.path(), selector.value(), rule);
    }
    let (new, old) = (node_terms(new), node_terms(old));
    if old.is_empty() {
        return;
    }
    if new.list().len() != old.list().len() {
        let rule = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        verdict.invalid_object(new.path(), "[]core.NodeSelectorTerm", new.value(), rule);
        return;
    }
    for (term, old) in new.list().iter().zip(old.list()) {
        if !only_adds_requirements(term, &old) {
            let rule = "only additions are allowed (no mutations or deletions)";
            verdict.invalid_object(term.path(), "core.NodeSelectorTerm", term.value(), rule);
        }
    }
}

/// The nodes that a pod insists on.
fn node_terms<'a>(spec: &At<'a>) -> At<'a> {
    let affinity = spec.get("affinity").get("nodeAffinity");
    affinity.get("requiredDuringSchedulingIgnoredDuringExecution").get("nodeSelectorTerms")
}

/// Requirements may follow those that were there. A term without any matched nothing, and must stay so.
fn only_adds_requirements(term: &At<'_>, old: &At<'_>) -> bool {
    let lists = ["matchExpressions", "matchFields"];
    if lists.iter().all(|list| old.get(list).is_empty()) {
        return lists.iter().all(|list| term.get(list).is_empty());
    }
    lists.iter().all(|list| {
        let (new, old) = (term.items(list), old.items(list));
        new.len() >= old.len() && new.iter().zip(&old).all(|(new, old)| new.value() == old.value())
    })
}

/// The new spec with everything that may change as it was.
fn without_changeable(new: &Value, old: &Value, is_gated: bool) -> Value {
    let mut spec = new.clone();
    for list in ["containers", "initContainers"] {
        let olds = old.get(list).and_then(Value::as_array).into_iter().flatten();
        let news = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (new, old) in news.zip(olds) {
            restore(new, old, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        restore(&mut spec, old, field);
    }
    let grace = |spec: &Value| spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(new) == Some(1) {
        restore(&mut spec, old, "terminationGracePeriodSeconds");
    }
    if is_gated {
        restore(&mut spec, old, "nodeSelector");
        restore_node_affinity(&mut spec, old);
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(old: Value, new: Value, expected: &[&str]) {
        let pod = |extra: &Value| {
            let mut spec = json!({"containers": [{
                "name": "c", "image": "busybox", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
            }]});
            for (field, value) in extra.as_object().into_iter().flatten() {
                spec[field] = value.clone();
            }
            json!({"spec": spec})
        };
        let found: Vec<String> =
            validate_update(&pod(&new), &pod(&old)).iter().map(ToString::to_string).collect();
        let found: Vec<&str> = found.iter().filter_map(|text| text.split("\n@@").next()).collect();
        assert_eq!(found, expected, "{old} to {new}");
    }

    #[test]
    fn a_deadline_comes_nearer() {
        let at = |seconds: i64| json!({"activeDeadlineSeconds": seconds});
        check(json!({}), at(9), &[]);
        check(at(9), at(5), &[]);
        let later =
            "spec.activeDeadlineSeconds: Invalid value: 9: must be less than or equal to previous value";
        check(at(5), at(9), &[later]);
    }

    #[test]
    fn a_gated_pod_may_become_choosier_about_nodes_and_an_open_one_may_not() {
        let gates = json!([{"name": "g"}]);
        let narrowed = json!({"schedulingGates": gates, "nodeSelector": {"a": "b"}});
        check(json!({"schedulingGates": gates}), narrowed.clone(), &[]);
        let changed = json!({"schedulingGates": gates, "nodeSelector": {"a": "c"}});
        let rule = "spec.nodeSelector: Invalid value: {\"a\":\"c\"}: only additions to spec.nodeSelector are allowed \
                    (no mutations or deletions)";
        check(narrowed, changed, &[rule]);
        let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}});
        check(
            json!({"schedulingGates": gates}),
            json!({"schedulingGates": gates, "affinity": affinity}),
            &[],
        );
        let whole = format!("spec: Forbidden: {CHANGEABLE}");
        check(json!({}), json!({"nodeSelector": {"a": "b"}}), &[&whole]);
    }

    #[test]
    fn what_a_pod_runs_stays_but_for_its_image() {
        let container = |image: &str, command: &str| {
            json!({"containers": [{
                "name": "c", "image": image, "command": [command], "imagePullPolicy": "Always",
                "terminationMessagePolicy": "File",
            }]})
        };
        check(container("a", "x"), container("b", "x"), &[]);
        let whole = format!("spec: Forbidden: {CHANGEABLE}");
        check(container("a", "x"), container("a", "y"), &[&whole]);
    }
}
