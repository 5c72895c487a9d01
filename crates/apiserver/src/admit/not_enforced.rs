//! Warns the author of an object that this machine does not hold what the object asks for.
//!
//! Pods are processes: the kernel settings of their security contexts, and rules for their network, are stored and nothing
//! keeps them.

use std::collections::BTreeSet;

use krafla_admission::pod_security::pod_of;
use krafla_schema::object;
use serde_json::Value;

use super::{Operation, Policy, Request};

/// Fields of security contexts that nothing keeps, with the value that asks for nothing.
const FIELDS: [(&str, Option<bool>); 9] = [
    ("allowPrivilegeEscalation", Some(true)),
    ("appArmorProfile", None),
    ("capabilities", None),
    ("privileged", Some(false)),
    ("procMount", None),
    ("readOnlyRootFilesystem", Some(false)),
    ("seLinuxOptions", None),
    ("seccompProfile", None),
    ("sysctls", None),
];

/// The rule, for servers whose pods are processes of the machine.
pub struct NotEnforced;

impl Policy for NotEnforced {
    fn warnings(&self, request: &Request<'_>, object: &Value) -> Vec<String> {
        let names = &request.resource.names;
        // Controllers create pods from templates whose author got the warning already.
        if request.operation != Operation::Create || request.user.is_none() {
            return Vec::new();
        }
        let (group, plural) = (&*names.group, &*names.plural);
        if (group, plural) == ("networking.k8s.io", "networkpolicies") {
            let why = "pods are processes that share the network of this machine";
            return vec![format!("this NetworkPolicy is stored and not enforced: {why}")];
        }
        let pods: Vec<&Value> = match (group, plural) {
            ("batch.volcano.sh", "jobs") => {
                let tasks = object.pointer("/spec/tasks").and_then(Value::as_array).into_iter().flatten();
                tasks.filter_map(|task| task.get("template")).collect()
            }
            _ => pod_of(group, plural, object).into_iter().collect(),
        };
        let fields: BTreeSet<&str> = pods.into_iter().flat_map(fields_of).collect();
        if fields.is_empty() {
            return Vec::new();
        }
        let fields: Vec<&str> = fields.into_iter().collect();
        vec![format!("securityContext: not enforced on process pods: {}", fields.join(", "))]
    }
}

/// The fields of a pod that nothing keeps.
fn fields_of(pod: &Value) -> Vec<&'static str> {
    let lists = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"];
    let containers = lists.iter().flat_map(|list| object::at(pod, list).as_array().into_iter().flatten());
    let mut contexts: Vec<&Value> = containers.map(|container| &container["securityContext"]).collect();
    contexts.push(object::at(pod, "/spec/securityContext"));
    let asks = |(field, nothing): &(&str, Option<bool>)| {
        contexts.iter().any(|context| match &context[*field] {
            Value::Null => false,
            Value::Bool(value) => Some(*value) != *nothing,
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        })
    };
    FIELDS.iter().filter(|field| asks(field)).map(|(field, _)| *field).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_asks_for_something_is_told() {
        let container = json!({"securityContext": {
            "privileged": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}, "runAsUser": 1,
            "allowPrivilegeEscalation": true,
        }});
        let pod =
            json!({"spec": {"containers": [container], "securityContext": {"sysctls": [], "fsGroup": 1}}});
        assert_eq!(fields_of(&pod), ["capabilities", "readOnlyRootFilesystem"]);
        assert_eq!(fields_of(&json!({"spec": {}})), [""; 0]);
    }
}
