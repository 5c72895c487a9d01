//! Manifests of flows, queues and CronJobs that can not be meant, and changes that flows must bear, seen with kubectl.

use crate::controllers::{queue_command, templates};
use crate::support::{Up, job, text};

/// What kubectl says when it is refused.
fn refusal(up: &Up, manifest: &str) -> String {
    let output = up.kubectl_with_input(&["apply", "-f", "-"], manifest);
    assert!(!output.status.success(), "it was accepted: {manifest}");
    text(&output.stderr)
}

#[test]
fn what_an_administrator_sets_of_admission_holds() {
    let dir = tempfile::tempdir().unwrap();
    let groups = dir.path().join("groups.yaml");
    std::fs::write(&groups, "resourceGroups: [{resourceGroup: fast, labels: {disk: ssd}}]").unwrap();
    let groups = groups.to_str().unwrap();
    let up = Up::start_with(&["--admission-conf", groups, "--max-queue-depth=1", "--scheduler-name=other"]);
    up.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {volcano.sh/resource-group: fast}}, \
         spec: {containers: [{name: c, image: any}]}}",
    );
    assert_eq!(up.field("pod/p", "{.spec.nodeSelector}"), r#"{"disk":"ssd"}"#);
    let queue = |name: &str, parent: &str| {
        format!(
            "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {name}}}, \
             spec: {{parent: {parent}}}}}"
        )
    };
    up.apply(&queue("high", "root"));
    let said = refusal(&up, &queue("deep", "high"));
    assert!(said.contains("maximum allowed depth of 1"), "{said}");
    // Its gangs are those of the scheduler that is named, from the job's default to the node.
    up.apply(&job("j", 1, "true", ""));
    up.wait_for("vcjob/j", "{.status.state.phase}", "Completed");
    assert_eq!(up.field("vcjob/j", "{.spec.schedulerName}"), "other");
}

#[test]
fn what_can_not_be_meant_is_refused_with_its_place_and_harms_nobody_else() {
    let up = Up::start();
    let flow = |flows: &str| {
        format!(
            "{{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, metadata: {{name: f}}, spec: {{flows: {flows}}}}}"
        )
    };
    let cron = |fields: &str| {
        format!(
            "{{apiVersion: batch.volcano.sh/v1alpha1, kind: CronJob, metadata: {{name: tick}}, \
             spec: {{{fields}, jobTemplate: {{spec: {{tasks: [{{replicas: 1, template: {{}}}}]}}}}}}}}"
        )
    };
    for (manifest, place, words) in [
        (
            flow("[{name: a, dependsOn: {targets: [b]}}, {name: b, dependsOn: {targets: [a]}}]"),
            "spec.flows:",
            "a -> b -> a",
        ),
        (flow("[{name: a, dependsOn: {targets: [zzz]}}]"), "spec.flows[0].dependsOn.targets:", "zzz"),
        (flow("[{name: a}, {name: a}]"), "spec.flows[1].name:", "Duplicate value"),
        (cron("schedule: often"), "spec.schedule:", "expected exactly 5 fields, found 1"),
        (cron("schedule: '@daily', timeZone: Mars/Olympus"), "spec.timeZone:", "Mars/Olympus"),
    ] {
        let said = refusal(&up, &manifest);
        assert!(said.contains(place) && said.contains(words), "{manifest}\n{said}");
    }
    up.wait_for("queue/root", "{.status.state}", "Open");
    up.kubectl_with_input(&["create", "-f", "-"], &queue_command(&up, "root", "CloseQueue"));
    let said = up.wait_for_event("Queue", "root", "CloseQueue");
    assert!(said.contains("queue root cannot be closed"), "{said}");
    up.kubectl_ok(&["wait", "commands", "--all", "--for=delete", "--timeout=60s"]);
    assert_eq!(up.field("queue/root", "{.status.state}"), "Open");
    up.apply(&job("fine", 1, "true", ""));
    up.wait_for("vcjob/fine", "{.status.state.phase}", "Completed");
}

#[test]
fn a_flow_bears_a_deleted_job_a_change_of_its_steps_and_a_change_of_one_use_of_a_template() {
    let up = Up::start();
    let log = up.file("order");
    let say = |word: &str| format!("echo {word} >> {}", log.display());
    up.apply(&templates(&[("one", &say("one")), ("two", &say("two")), ("held", "exec sleep 1000")]));
    let flow = |last: &str| {
        format!(
            "
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {{name: f}}
spec:
  flows:
    - {{name: one, patch: {{jobSpec: {{minAvailable: 2, tasks: [{{name: work, replicas: 2, minAvailable: 2}}]}}}}}}
    - {{name: {last}, dependsOn: {{targets: [one]}}}}
"
        )
    };
    up.apply(&flow("held"));
    up.wait_for("vcjob/f-held", "{.status.state.phase}", "Running");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\none\n", "the flow wants two pods of it");
    // What has completed is not run again; what has not is.
    let held = up.field("vcjob/f-held", "{.metadata.uid}");
    up.kubectl_ok(&["delete", "vcjob/f-one", "vcjob/f-held", "--timeout=60s"]);
    up.kubectl_ok(&["wait", "vcjob/f-held", "--for=create", "--timeout=60s"]);
    assert_ne!(up.field("vcjob/f-held", "{.metadata.uid}"), held);
    // The step that hangs is replaced by one that ends.
    up.apply(&flow("two"));
    up.wait_for("jobflow/f", "{.status.state.phase}", "Succeed");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\none\ntwo\n");
    assert_eq!(up.kubectl_ok(&["get", "vcjob/f-one", "--ignore-not-found"]), "");
}
