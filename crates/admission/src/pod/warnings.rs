//! What is allowed in a pod and will not do what its author hopes.

use krafla_api::Quantity;
use serde_json::Value;

use crate::Path;
use crate::json::At;

use super::spec::all_containers;

/// What the author of a new pod should know, in kube-apiserver's words.
pub fn warnings(pod: &Value) -> Vec<String> {
    let spec = At::new(pod, Path::default()).get("spec");
    let mut warnings = Vec::new();
    for secret in spec.items("imagePullSecrets") {
        if secret.str("name").is_empty() {
            warnings.push(format!("{}: invalid empty name \"\"", secret.get("name").path()));
        }
    }
    for container in all_containers(&spec) {
        for list in ["limits", "requests"] {
            for (resource, amount) in container.get("resources").get(list).entries() {
                if matches!(resource, "memory" | "ephemeral-storage") && is_fractional(&amount) {
                    let (path, amount) = (amount.path(), amount.text());
                    let why = format!("fractional byte value {amount:?} is invalid, must be an integer");
                    warnings.push(format!("{path}: {why}"));
                }
            }
        }
    }
    warnings
}

fn is_fractional(amount: &At<'_>) -> bool {
    amount.quantity().is_some_and(|amount: Quantity| amount.milli_value() % 1000 != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tenth_of_a_byte_is_told() {
        let container = json!({"resources": {"requests": {"memory": "100m", "cpu": "100m"}, "limits": {"memory": "1Gi"}}});
        let pod = json!({"spec": {"containers": [container], "imagePullSecrets": [{}, {"name": "a"}]}});
        assert_eq!(
            warnings(&pod),
            [
                "spec.imagePullSecrets[0].name: invalid empty name \"\"",
                "spec.containers[0].resources.requests[memory]: fractional byte value \"100m\" is invalid, must be an integer",
            ]
        );
    }
}
