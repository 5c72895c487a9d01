//! Containers that are added to a running pod to look at it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::json::At;
use crate::look::findings_of_change;
use crate::{Finding, Path, Verdict, internal};

use super::container;
use super::object::validate_whole;
use super::security::MIRROR;
use super::spec::Pod;

/// What ordinary containers have and these do not: they come too late for it.
const NOT_HERE: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Checks the ephemeral containers of a pod.
pub(super) fn validate(spec: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    let others = ["containers", "initContainers"].into_iter().flat_map(|list| spec.items(list));
    let others: Vec<&str> = others.map(|container| container.str("name")).collect();
    let mut names: BTreeSet<&str> = others.iter().copied().collect();
    for container in spec.items("ephemeralContainers") {
        container::validate_common(&container, pod, verdict);
        container::validate_image(&container, verdict);
        let name = container.get("name");
        if !names.insert(name.text()) {
            verdict.duplicate(name.path(), name.text());
        }
        let target = container.get("targetContainerName");
        if !target.text().is_empty() && !others.contains(&target.text()) {
            verdict.not_found(target.path(), target.text());
        }
        for name in NOT_HERE {
            let field = container.get(name);
            // A probe or a hook that says nothing is one all the same.
            let is_given = match field.value() {
                Value::Object(_) if name != "resources" => true,
                _ => !field.is_empty(),
            };
            if is_given {
                verdict.forbidden(field.path(), "cannot be set for an Ephemeral Container");
            }
        }
        for mount in container.items("volumeMounts") {
            for path in ["subPath", "subPathExpr"].map(|name| mount.get(name)) {
                if !path.is_empty() {
                    verdict.forbidden(path.path(), "cannot be set for an Ephemeral Container");
                }
            }
        }
    }
}

/// Says what is wrong with a pod whose ephemeral containers changed. They can be added, and stay for good.
pub fn validate_ephemeral(pod: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(pod, old, validate_change)
}

fn validate_change(pod: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    validate_whole(pod, verdict);
    if old.get("metadata").get("annotations").get(MIRROR).is_set() {
        verdict.refusals.clear();
        verdict.forbidden(&Path::default().key(""), "static pods do not support ephemeral containers");
        return;
    }
    let at = pod.get("spec").get("ephemeralContainers");
    for container in old.get("spec").items("ephemeralContainers") {
        let name = container.str("name");
        let new = at.list().into_iter().find(|new| new.str("name") == name);
        let wrong = match new {
            None => "removed\n".to_owned(),
            Some(new) if new.value() != container.value() => {
                let changes = internal::difference("core.EphemeralContainer", container.value(), new.value());
                format!("changed\n{changes}")
            }
            Some(_) => continue,
        };
        verdict.forbidden(at.path(), &format!("existing ephemeral containers {name:?} may not be {wrong}"));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(old: Value, new: Value, expected: Expect) {
        let pod = |ephemeral: Value| {
            let container = json!({"name": "c", "image": "i"});
            json!({"spec": {"containers": [container], "ephemeralContainers": ephemeral}})
        };
        let found: Vec<String> =
            validate_ephemeral(&pod(new), &pod(old)).iter().map(ToString::to_string).collect();
        expected.assert_eq(&found.join("\n"));
    }

    #[test]
    fn they_are_added_and_stay_as_they_are() {
        let first = json!({"name": "a", "image": "i"});
        check(
            json!([first]),
            json!([first, {"name": "b", "image": "i", "targetContainerName": "c"}]),
            expect![""],
        );
        check(
            json!([first]),
            json!([{"name": "a", "image": "j"}]),
            expect![[r#"
                spec.ephemeralContainers: Forbidden: existing ephemeral containers "a" may not be changed
                @@ -1,6 +1,6 @@
                 {
                  "Name": "a",
                - "Image": "i",
                + "Image": "j",
                  "Command": null,
                  "Args": null,
                  "WorkingDir": "",
            "#]],
        );
    }

    #[test]
    fn they_come_too_late_for_much() {
        check(
            json!([]),
            json!([{"name": "c", "image": "i", "ports": [{}], "resources": {}, "targetContainerName": "x"}]),
            expect![[r#"
                spec.ephemeralContainers[0].ports[0].containerPort: Required value
                spec.ephemeralContainers[0].name: Duplicate value: "c"
                spec.ephemeralContainers[0].targetContainerName: Not found: "x"
                spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container"#]],
        );
    }
}
