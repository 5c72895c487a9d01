//! Roles that are made of others.

use serde_json::Value;

/// Whether a ClusterRole takes its rules from others.
pub fn is_aggregated(role: &Value) -> bool {
    role.get("aggregationRule").is_some_and(Value::is_object)
}

/// Whether a ClusterRole names others that it takes its rules from.
pub fn has_selectors(role: &Value) -> bool {
    !selectors(role).is_empty()
}

fn selectors(role: &Value) -> &[Value] {
    role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The rules of an aggregated role: those of all roles that its selectors match, in the order of their names, each once.
/// `roles` are all ClusterRoles in the order of their names, and `matches` says whether a selector takes an object.
pub fn rules<'a>(
    role: &Value,
    roles: impl Iterator<Item = &'a Value> + Clone,
    matches: impl Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let name = |role: &Value| role.pointer("/metadata/name").cloned();
    let own_name = name(role);
    let mut gathered: Vec<Value> = Vec::new();
    for selector in selectors(role) {
        for other in roles.clone().filter(|other| name(other) != own_name && matches(selector, other)) {
            for rule in other.get("rules").and_then(Value::as_array).into_iter().flatten() {
                if !gathered.contains(rule) {
                    gathered.push(rule.clone());
                }
            }
        }
    }
    gathered
}
