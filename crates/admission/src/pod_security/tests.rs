use serde_json::json;

use super::*;

fn rules(level: Level, version: &str) -> Rules {
    Rules { level, version: parse_version(version).unwrap() }
}

#[test]
fn labels_say_which_rules_count() {
    let read = |labels: &[(&str, &'static str)]| {
        let find = |key: &str| {
            let short = key.strip_prefix(PREFIX).unwrap();
            labels.iter().find(|(label, _)| *label == short).map(|(_, value)| *value)
        };
        let (policy, bad) = Policy::from_labels(find);
        let bad: Vec<String> = bad.iter().map(|label| format!("{}={}", label.key, label.value)).collect();
        format!("{} {} {} {}", policy.enforce, policy.audit, policy.warn, bad.join(" ")).trim().to_owned()
    };
    assert_eq!(read(&[]), "privileged:latest privileged:latest privileged:latest");
    assert_eq!(read(&[("enforce", "baseline")]), "baseline:latest privileged:latest baseline:latest");
    assert_eq!(
        read(&[("enforce", "restricted"), ("enforce-version", "v1.25"), ("warn", "baseline")]),
        "restricted:v1.25 privileged:latest baseline:latest"
    );
    assert_eq!(
        read(&[("enforce", "restricted"), ("enforce-version", "v1.25"), ("warn-version", "v1.3")]),
        "restricted:v1.25 privileged:latest restricted:v1.3"
    );
    assert_eq!(
        read(&[("enforce", "x"), ("audit", "y"), ("warn-version", "v1.01")]),
        "restricted:latest privileged:latest privileged:latest pod-security.kubernetes.io/enforce=x \
         pod-security.kubernetes.io/audit=y pod-security.kubernetes.io/warn-version=v1.01"
    );
}

#[test]
fn a_bare_pod_is_baseline_and_not_restricted() {
    let pod =
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}});
    assert_eq!(violations(rules(Level::Baseline, "latest"), &pod), []);
    assert_eq!(violations(Rules::default(), &pod), []);
    assert_eq!(
        details(&violations(rules(Level::Restricted, "latest"), &pod)),
        "allowPrivilegeEscalation != false (containers \"i\", \"a\", \"b\" must set \
         securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers \"i\", \"a\", \"b\" must set \
         securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or containers \"i\", \"a\", \"b\" must set \
         securityContext.runAsNonRoot=true), seccompProfile (pod or containers \"i\", \"a\", \"b\" must set \
         securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    // Older rules ask for less.
    assert_eq!(reasons(&violations(rules(Level::Restricted, "v1.7"), &pod)), "runAsNonRoot != true");
}

#[test]
fn a_hardened_pod_is_restricted() {
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}});
    let pod = json!({"spec": {
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "a", "securityContext": context}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }});
    assert_eq!(violations(rules(Level::Restricted, "latest"), &pod), []);
}
