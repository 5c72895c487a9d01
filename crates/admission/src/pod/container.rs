//! Containers: ordinary ones, and those that run before them.

use std::collections::BTreeSet;

use crate::json::At;
use crate::{Verdict, names};

use super::spec::{Dialect, Pod};
use super::{check, env, ephemeral, handler, mount, resources, security};

/// When a container of its own policy is started again.
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const RESTART_ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
const CODE_OPERATORS: [&str; 2] = ["In", "NotIn"];

/// Checks the containers and init containers of a pod.
pub(super) fn validate(spec: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    let containers = spec.items("containers");
    if containers.is_empty() {
        verdict.required(spec.get("containers").path(), "");
    }
    let mut names = BTreeSet::new();
    for container in &containers {
        validate_common(container, pod, verdict);
        if !names.insert(container.str("name")) {
            verdict.duplicate(container.get("name").path(), container.str("name"));
        }
        validate_hooks(container, pod, verdict);
        let restart_policy = container.get("restartPolicy");
        match pod.dialect {
            Dialect::Kubernetes => {
                check::word(&restart_policy, &RESTART_POLICIES, verdict);
                validate_restart_rules(container, verdict);
            }
            Dialect::Volcano if restart_policy.is_set() => {
                verdict.forbidden(restart_policy.path(), "may not be set for non-init containers");
            }
            Dialect::Volcano => {}
        }
    }
    validate_host_ports(&containers, verdict);
    for container in spec.items("initContainers") {
        validate_init(&container, pod, verdict);
        let name = container.str("name");
        if !name.is_empty() && !names.insert(name) {
            verdict.duplicate(container.get("name").path(), name);
        }
    }
    ephemeral::validate(spec, pod, verdict);
}

pub(super) fn validate_common(container: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    check::required_name(&container.get("name"), names::dns_label, verdict);
    check::text(&container.get("image"), verdict);
    let policies = ["File", "FallbackToLogsOnError"];
    check::word_or_default(&container.get("terminationMessagePolicy"), &policies, verdict);
    validate_ports(&container.get("ports"), verdict);
    env::validate(container, pod.dialect, verdict);
    mount::validate(container, &pod.volumes, verdict);
    check::word_or_default(&container.get("imagePullPolicy"), &["Always", "IfNotPresent", "Never"], verdict);
    resources::validate_container(&container.get("resources"), &pod.claims, verdict);
    validate_resize_policy(&container.get("resizePolicy"), pod.restart_policy, verdict);
    security::validate_container(&container.get("securityContext"), pod.has_host_users, verdict);
}

/// The image of a container that is started as it is.
pub(super) fn validate_image(container: &At<'_>, verdict: &mut Verdict) {
    let image = container.get("image");
    if image.text() != image.text().trim() {
        verdict.invalid(image.path(), image.text(), "must not have leading or trailing whitespace");
    }
}

fn validate_hooks(container: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    handler::validate_lifecycle(&container.get("lifecycle"), pod, verdict);
    handler::validate_probes(container, pod, verdict);
}

/// A container that runs before the others; one that is always restarted runs beside them.
fn validate_init(container: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    validate_common(container, pod, verdict);
    let restart_policy = container.get("restartPolicy");
    let policies: &[&str] = match pod.dialect {
        Dialect::Kubernetes => &RESTART_POLICIES,
        Dialect::Volcano => &["Always"],
    };
    check::word(&restart_policy, policies, verdict);
    if restart_policy.is_set() {
        validate_restart_rules(container, verdict);
    } else if !container.get("restartPolicyRules").is_empty() {
        verdict.required(restart_policy.path(), "must specify restartPolicy when restart rules are used");
    }
    validate_host_ports(std::slice::from_ref(container), verdict);
    let is_sidecar = restart_policy.text() == "Always";
    if is_sidecar {
        validate_hooks(container, pod, verdict);
    } else {
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            let hook = container.get(field);
            if hook.is_set() {
                verdict.forbidden(
                    hook.path(),
                    "may not be set for init containers without restartPolicy=Always",
                );
            }
        }
    }
    let resize = container.get("resizePolicy");
    if pod.dialect == Dialect::Volcano && !resize.is_empty() {
        verdict.invalid(resize.path(), resize.value(), "must not be set for init containers");
    }
    for policy in resize.list().iter().map(|policy| policy.get("restartPolicy")) {
        if !is_sidecar && policy.text() == "RestartContainer" {
            let rule = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            verdict.invalid(policy.path(), policy.text(), rule);
        }
    }
}

/// Rules about exit codes go before a policy of the container itself, which must be there.
fn validate_restart_rules(container: &At<'_>, verdict: &mut Verdict) {
    let (restart_policy, rules) = (container.get("restartPolicy"), container.items("restartPolicyRules"));
    if !restart_policy.is_set() && !rules.is_empty() {
        verdict.required(restart_policy.path(), "must specify restartPolicy when restart rules are used");
    }
    if rules.len() > 20 {
        verdict.too_many(container.get("restartPolicyRules").path(), rules.len(), 20);
    }
    for rule in &rules {
        let (action, codes) = (rule.get("action"), rule.get("exitCodes"));
        if !RESTART_ACTIONS.contains(&action.text()) {
            verdict.unsupported(action.path(), action.text(), &RESTART_ACTIONS);
        }
        if !codes.is_set() {
            verdict.required(codes.path(), "must be specified");
            continue;
        }
        let operator = codes.get("operator");
        if !CODE_OPERATORS.contains(&operator.text()) {
            verdict.unsupported(operator.path(), operator.text(), &CODE_OPERATORS);
        }
        let values = codes.items("values");
        if values.len() > 255 {
            verdict.too_many(codes.get("values").path(), values.len(), 255);
        }
    }
}

fn validate_ports(ports: &At<'_>, verdict: &mut Verdict) {
    let mut seen = BTreeSet::new();
    for port in ports.list() {
        let name = port.get("name");
        let wrong = if name.text().is_empty() { Vec::new() } else { names::port_name(name.text()) };
        if !wrong.is_empty() {
            verdict.invalid_each(name.path(), name.text(), wrong);
        } else if !name.text().is_empty() && !seen.insert(name.text()) {
            verdict.duplicate(name.path(), name.text());
        }
        let container_port = port.get("containerPort");
        if container_port.int().unwrap_or(0) == 0 {
            verdict.required(container_port.path(), "");
        } else {
            check::range(&container_port, 1, 65535, verdict);
        }
        let host_port = port.get("hostPort");
        if host_port.int() != Some(0) {
            check::range(&host_port, 1, 65535, verdict);
        }
        check::word_or_default(&port.get("protocol"), &["SCTP", "TCP", "UDP"], verdict);
    }
}

/// A port of the host can be taken once.
fn validate_host_ports(containers: &[At<'_>], verdict: &mut Verdict) {
    let mut taken = BTreeSet::new();
    for port in containers.iter().flat_map(|container| container.items("ports")) {
        let host_port = port.get("hostPort");
        let Some(number) = host_port.int().filter(|number| *number != 0) else { continue };
        let protocol = Some(port.str("protocol")).filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        let place = format!("{protocol}/{}/{number}", port.str("hostIP"));
        if !taken.insert(place.clone()) {
            verdict.duplicate(host_port.path(), place);
        }
    }
}

fn validate_resize_policy(policies: &At<'_>, restart_policy: &str, verdict: &mut Verdict) {
    let mut seen = BTreeSet::new();
    for policy in policies.list() {
        let (resource, restart) = (policy.str("resourceName"), policy.str("restartPolicy"));
        if !seen.insert(resource) {
            verdict.duplicate(policy.path(), resource);
        }
        for (word, words) in [(resource, ["cpu", "memory"]), (restart, ["NotRequired", "RestartContainer"])] {
            if word.is_empty() {
                verdict.required(policies.path(), "");
            } else if !words.contains(&word) {
                verdict.unsupported(policies.path(), word, &words);
            }
        }
        if restart_policy == "Never" && restart != "NotRequired" {
            let rule = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            verdict.invalid(policies.path(), restart, rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    /// What is wrong with a pod whose container has this policy and these rules.
    fn found(policy: Value, rules: Value) -> String {
        let container = json!({
            "name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
            "restartPolicy": policy, "restartPolicyRules": rules,
        });
        let pod = json!({
            "metadata": { "name": "p", "namespace": "n" },
            "spec": { "restartPolicy": "Never", "dnsPolicy": "Default", "containers": [container] },
        });
        crate::pod::validate_new(&pod)
            .iter()
            .map(|finding| format!("{}: {}\n", finding.field, finding.message))
            .collect()
    }

    #[test]
    fn rules_about_exit_codes_are_checked() {
        let rule = |action: &str, operator: &str| json!([{ "action": action, "exitCodes": { "operator": operator, "values": [42] } }]);
        assert_eq!(found(json!("Never"), rule("Restart", "In")), "");
        assert_eq!(found(json!("Never"), rule("RestartAllContainers", "NotIn")), "");
        let wrong = [
            found(Value::Null, rule("Restart", "In")),
            found(json!("Never"), rule("Stop", "Equals")),
            found(json!("Never"), json!([{ "action": "Restart" }])),
        ];
        expect![[r#"
            spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used
            spec.containers[0].restartPolicyRules[0].action: Unsupported value: "Stop": supported values: "Restart", "RestartAllContainers"
            spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Equals": supported values: "In", "NotIn"
            spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified
        "#]].assert_eq(&wrong.concat());
    }
}
