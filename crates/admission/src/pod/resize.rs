//! Giving a pod more or less of what it has.

use serde_json::Value;

use crate::json::At;
use crate::look::findings_of_change;
use crate::{Finding, Path, Verdict};

use super::object::validate_whole;

const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// Takes back everything that is not about how much the containers have.
pub fn keep_but_resources(pod: &mut Value, old: &Value) {
    let wanted: Vec<(&str, String, Value)> = CONTAINERS
        .into_iter()
        .flat_map(|list| {
            At::new(pod, Path::default()).get("spec").items(list).into_iter().map(move |at| (list, at))
        })
        .map(|(list, at)| (list, at.str("name").to_owned(), at.get("resources").value().clone()))
        .collect();
    let Some(spec) = pod.get_mut("spec") else { return };
    *spec = old.get("spec").cloned().unwrap_or(Value::Null);
    for (list, name, resources) in wanted {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        let mut containers = containers.filter_map(Value::as_object_mut);
        if let Some(container) =
            containers.find(|container| container.get("name").is_some_and(|n| *n == *name))
        {
            container.insert("resources".into(), resources);
        }
    }
}

/// Says what is wrong with a pod whose containers are to have more or less. What is requested or limited at all, and how
/// the pod is treated when memory runs short, was decided when it was created.
pub fn validate_resize(pod: &Value, old: &Value, qos_class: [&str; 2]) -> Vec<Finding> {
    findings_of_change(pod, old, |pod, old, verdict| {
        validate_whole(pod, verdict);
        let (new, old) = (pod.get("spec"), old.get("spec"));
        for list in CONTAINERS {
            for (new, old) in new.items(list).iter().zip(old.items(list)) {
                validate_container(&new.get("resources"), &old.get("resources"), verdict);
            }
        }
        let [new_class, old_class] = qos_class;
        if new_class != old_class {
            verdict.invalid(new.path(), new_class, "Pod QOS Class may not change as a result of resizing");
        }
    })
}

fn validate_container(new: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    for list in ["limits", "requests"] {
        let amounts = new.get(list);
        for (resource, amount) in old.get(list).entries() {
            let now = amounts.get(resource);
            if !now.is_set() {
                let why = format!("resource {list} cannot be removed");
                verdict.forbidden(amounts.path(), &why);
            } else if now.value() != amount.value() && !matches!(resource, "cpu" | "memory") {
                verdict.forbidden(amounts.path(), "only cpu and memory resources are mutable");
            }
        }
    }
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
            expect![
                "spec.containers[0].resources.requests: Forbidden: only cpu and memory resources are mutable"
            ],
        );
    }
}
