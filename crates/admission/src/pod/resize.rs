//! Giving a pod more or less of what it has.

use serde_json::Value;

use crate::json::At;
use crate::look::findings_of_change;
use crate::{Finding, Path, Verdict};

use super::keep::restore;
use super::object::validate_whole;
use super::security::MIRROR;

const CONTAINERS: [&str; 2] = ["containers", "initContainers"];
const AMOUNTS: [&str; 2] = ["limits", "requests"];

/// Takes back everything that is not about how much the pod and its containers have. Containers that were added, removed
/// or renamed stay, to be refused.
pub fn keep_but_resources(pod: &mut Value, old: &Value) {
    let Some(spec) = pod.get_mut("spec") else { return };
    let Some(old_spec) = old.get("spec") else { return };
    let items =
        |spec: &Value, list: &str| spec.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
    if CONTAINERS.iter().any(|list| items(spec, list).len() != items(old_spec, list).len()) {
        return;
    }
    let new = std::mem::replace(spec, old_spec.clone());
    restore(spec, &new, "resources");
    for list in CONTAINERS {
        let (mut kept, wanted) = (items(old_spec, list), items(&new, list));
        if kept.is_empty() {
            continue;
        }
        if kept.iter().zip(&wanted).any(|(old, new)| old.get("name") != new.get("name")) {
            kept = wanted;
        } else {
            for (container, new) in kept.iter_mut().zip(&wanted) {
                restore(container, new, "resources");
                restore(container, new, "resizePolicy");
            }
        }
        if let Some(spec) = spec.as_object_mut() {
            spec.insert(list.into(), kept.into());
        }
    }
}

/// Says what is wrong with a pod that is to have more or less. What is requested or limited at all, and how the pod is
/// treated when memory runs short, was decided when it was created.
pub fn validate_resize(pod: &Value, old: &Value, qos_class: [&str; 2]) -> Vec<Finding> {
    findings_of_change(pod, old, |pod, old, verdict| {
        validate_whole(pod, verdict);
        let nowhere = Path::default().key("");
        let (new, old_spec) = (pod.get("spec"), old.get("spec"));
        let never = if old.get("metadata").get("annotations").get(MIRROR).is_set() {
            Some("static pods cannot be resized")
        } else {
            (old_spec.get("os").str("name") == "windows").then_some("windows pods cannot be resized")
        };
        if let Some(rule) = never {
            verdict.refusals.clear();
            verdict.forbidden(&nowhere, rule);
            return;
        }
        let [new_class, old_class] = qos_class;
        if new_class != old_class {
            verdict.invalid(new.path(), old_class, "Pod QOS Class may not change as a result of resizing");
        }
        if !is_supported(&old.get("status")) {
            verdict.forbidden(new.path(), "Pod running on node without support for resize");
        }
        validate_pod_level(&new, &old_spec, verdict);
        if !validate_order(&new, &old_spec, verdict) {
            return;
        }
        for list in ["initContainers", "containers"] {
            for (new, old) in new.items(list).iter().zip(old_spec.items(list)) {
                let (new, old) = (new.get("resources"), old.get("resources"));
                validate_none_removed(&new, &old, "resource", verdict);
            }
        }
        validate_only_amounts(&new, &old_spec, verdict);
    })
}

/// Whether the node can resize. It says so by telling what running containers have.
fn is_supported(status: &At<'_>) -> bool {
    let statuses = status.items("containerStatuses");
    let running = statuses.iter().find(|status| status.get("state").get("running").is_set());
    running.is_none_or(|running| running.get("resources").is_set())
}

fn validate_pod_level(new: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let (resources, old) = (new.get("resources"), old.get("resources"));
    let has_amounts = |at: &At<'_>| AMOUNTS.iter().any(|list| !at.get(list).is_empty());
    if !has_amounts(&resources) && !has_amounts(&old) {
        return;
    }
    if old.is_set() && !resources.is_set() {
        verdict.forbidden(resources.path(), "pod-level resources cannot be removed");
        return;
    }
    validate_none_removed(&resources, &old, "pod-level resource", verdict);
    let claims = |at: &At<'_>| at.get("claims").value().clone();
    if !AMOUNTS.iter().all(|list| is_only_resized(&resources.get(list), &old.get(list)))
        || claims(&resources) != claims(&old)
    {
        verdict.forbidden(new.path(), "only cpu and memory resources are mutable at pod-level");
    }
}

/// Containers stay, in their order. Says whether they do.
fn validate_order(new: &At<'_>, old: &At<'_>, verdict: &mut Verdict) -> bool {
    let n_before = verdict.refusals.len();
    for list in CONTAINERS {
        let (news, olds) = (new.items(list), old.items(list));
        if news.len() != olds.len() {
            verdict.forbidden(new.get(list).path(), &format!("{list} may not be added or removed on resize"));
            continue;
        }
        for (new, old) in news.iter().zip(&olds) {
            let name = new.get("name");
            if name.text() != old.str("name") {
                verdict.forbidden(name.path(), &format!("{list} may not be renamed or reordered on resize"));
            }
        }
    }
    verdict.refusals.len() == n_before
}

/// What is limited or requested stays so, in another amount.
fn validate_none_removed(new: &At<'_>, old: &At<'_>, what: &str, verdict: &mut Verdict) {
    for list in ["requests", "limits"] {
        let amounts = new.get(list);
        if old.get(list).entries().iter().any(|(resource, _)| !amounts.get(resource).is_set()) {
            verdict.forbidden(amounts.path(), &format!("{what} {list} cannot be removed"));
        }
    }
}

/// Nothing of a container changes but how much cpu and memory it has.
fn validate_only_amounts(new: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    for (container, old) in new.items("containers").iter().zip(old.items("containers")) {
        if !is_only_container_resized(container, &old) {
            verdict.forbidden(new.path(), "only cpu and memory resources are mutable");
        }
    }
    for (container, old) in new.items("initContainers").iter().zip(old.items("initContainers")) {
        if !is_only_container_resized(container, &old) {
            let rule = "only cpu and memory resources for init or sidecar containers are mutable";
            verdict.forbidden(container.path(), rule);
        }
        let is_changed = container.value() != old.value();
        let policies = container.items("resizePolicy");
        for _ in policies.iter().filter(|policy| policy.str("restartPolicy") == "RestartContainer") {
            if is_changed && container.str("restartPolicy") != "Always" {
                let rule =
                    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                verdict.forbidden(container.path(), rule);
            }
        }
    }
}

/// Whether the resize policy, the claims and everything but cpu and memory are as they were. Upstream refuses every resize
/// of a container that claims devices.
fn is_only_container_resized(new: &At<'_>, old: &At<'_>) -> bool {
    let (resources, old_resources) = (new.get("resources"), old.get("resources"));
    old_resources.get("claims").is_empty()
        && new.get("resizePolicy").value() == old.get("resizePolicy").value()
        && AMOUNTS.iter().all(|list| is_only_resized(&resources.get(list), &old_resources.get(list)))
}

fn is_only_resized(new: &At<'_>, old: &At<'_>) -> bool {
    let others = |at: &At<'_>| {
        let mut amounts = at.fields().cloned().unwrap_or_default();
        amounts.retain(|name, _| !matches!(name.as_str(), "cpu" | "memory"));
        amounts
    };
    others(new) == others(old)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(old: Value, new: Value, expected: Expect) {
        let pod = |image: &str, resources: Value| json!({"spec": {"containers": [{"name": "c", "image": image, "resources": resources}]}});
        let (mut new, old) = (pod("other", new), pod("i", old));
        keep_but_resources(&mut new, &old);
        assert_eq!(new["spec"]["containers"][0]["image"], "i");
        let found = validate_resize(&new, &old, ["Burstable"; 2]);
        expected.assert_eq(&found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn amounts_change_and_nothing_else_does() {
        check(json!({"requests": {"cpu": "1"}}), json!({"requests": {"cpu": "2"}}), expect![""]);
        check(
            json!({"requests": {"cpu": "1"}}),
            json!({}),
            expect!["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
        );
        check(
            json!({"requests": {"ephemeral-storage": "1"}}),
            json!({"requests": {"ephemeral-storage": "2"}}),
            expect!["spec: Forbidden: only cpu and memory resources are mutable"],
        );
    }
}
