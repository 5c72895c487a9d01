//! What becomes of pods before they run, as users see it.

use crate::support::{Up, job};

fn pod(name: &str, cpu: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{restartPolicy: Never, containers: \
         [{{name: main, image: any, command: ['true'], resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}}}"
    )
}

#[test]
fn events_say_where_a_pod_went_and_why_another_waits() {
    let up = Up::start();
    up.apply(&format!("{}\n---\n{}", pod("small", "100m"), pod("large", "1000")));
    let said = up.wait_for_event("Pod", "small", "Scheduled");
    assert_eq!(said, "Successfully assigned default/small to localhost");
    let said = up.wait_for_event("Pod", "large", "FailedScheduling");
    assert_eq!(said, "0/1 nodes are available: 1 Insufficient cpu");
}

/// Nobody may change the PodGroup of this name.
const FROZEN: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: frozen}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [scheduling.volcano.sh], apiVersions: ["*"], operations: [UPDATE], resources: [podgroups]}]
  validations: [{expression: "object.metadata.name != 'frozen'", message: it is frozen}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: frozen}
spec: {policyName: frozen, validationActions: [Deny]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: frozen}
spec: {minMember: 1}
"#;

#[test]
fn a_podgroup_whose_status_is_refused_holds_up_nobody_else() {
    let up = Up::start();
    up.apply(FROZEN);
    up.apply(&job("a", 2, "true", ""));
    up.apply(&pod("p", "100m"));
    up.wait_for("vcjob/a", "{.status.state.phase}", "Completed");
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
    assert_eq!(up.field("podgroup/frozen", "{.status}"), "");
}
