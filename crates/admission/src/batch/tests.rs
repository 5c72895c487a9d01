//! What is wrong with Jobs and CronJobs, one change at a time: a path, a value, and what is said about it.

mod changes;
mod reports;
mod specs;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

/// A Job as it is after its defaults.
fn job() -> Value {
    let labels = json!({
        "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "j",
        "controller-uid": "u", "job-name": "j",
    });
    json!({
        "metadata": {"name": "j", "uid": "u"},
        "spec": {
            "parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never", "dnsPolicy": "ClusterFirst",
                    "containers": [{
                        "name": "c", "image": "i", "imagePullPolicy": "Always",
                        "terminationMessagePolicy": "File",
                    }],
                },
            },
        },
    })
}

/// An object with other values at some places: `spec.template.spec.restartPolicy`.
fn with(mut object: Value, changes: &[(&str, Value)]) -> Value {
    for (path, value) in changes {
        let mut place = &mut object;
        for part in path.split('.') {
            place = &mut place[part];
        }
        *place = value.clone();
    }
    object
}

fn shown(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

fn check(changes: &[(&str, Value)], expected: &Expect) {
    expected.assert_eq(&shown(&validate_job(&with(job(), changes))));
}

fn check_update(old: &[(&str, Value)], changes: &[(&str, Value)], expected: &Expect) {
    let old = with(job(), old);
    expected.assert_eq(&shown(&validate_job_update(&with(old.clone(), changes), &old)));
}

fn check_status(old: &[(&str, Value)], changes: &[(&str, Value)], expected: &Expect) {
    let old = with(job(), old);
    expected.assert_eq(&shown(&validate_job_status(&with(old.clone(), changes), &old)));
}

fn conditions(held: &[&str]) -> Value {
    held.iter().map(|name| json!({"type": name, "status": "True"})).collect()
}

#[test]
fn a_job_with_all_its_defaults_is_fine() {
    check(&[], &expect![""]);
}

#[test]
fn counts_are_not_negative() {
    let changes = ["parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished"]
        .map(|field| (format!("spec.{field}"), json!(-1)));
    let changes: Vec<(&str, Value)> =
        changes.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
    check(
        &changes,
        &expect![[r#"
        spec.parallelism: Invalid value: -1: must be greater than or equal to 0
        spec.completions: Invalid value: -1: must be greater than or equal to 0
        spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0
        spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0
    "#]],
    );
}

#[test]
fn only_indexed_jobs_count_by_index() {
    check(
        &[("spec.backoffLimitPerIndex", json!(1)), ("spec.successPolicy", json!({"rules": []}))],
        &expect![[r#"
            spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode
            spec.successPolicy: Invalid value: {"Rules":[]}: requires indexed completion mode
        "#]],
    );
    check(
        &[("spec.completionMode", json!("Indexed")), ("spec.completions", json!(null))],
        &expect![[r#"
        spec.completions: Required value: when completion mode is Indexed
    "#]],
    );
    check(
        &[("spec.completionMode", json!("Other"))],
        &expect![[r#"
        spec.completionMode: Unsupported value: "Other": supported values: "NonIndexed", "Indexed"
    "#]],
    );
}

#[test]
fn a_large_indexed_job_bounds_its_failures() {
    check(
        &[
            ("spec.completionMode", json!("Indexed")),
            ("spec.completions", json!(100_001)),
            ("spec.parallelism", json!(100_001)),
            ("spec.backoffLimitPerIndex", json!(1)),
        ],
        &expect![[r#"
            spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed
            spec.maxFailedIndexes: Required value: must be specified when completions is above 100000
            spec.parallelism: Invalid value: 100001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index
        "#]],
    );
}

#[test]
fn a_job_without_indexes_has_no_more_pods_at_a_time_than_one_with_them() {
    let at_once = |n: i64| ("spec.parallelism", json!(n));
    check(
        &[at_once(2_000_000_000), ("spec.completions", json!(null))],
        &expect![[r#"
            spec.parallelism: Invalid value: 2000000000: a Job may have at most 100000 pods at a time
        "#]],
    );
    check(&[at_once(100_000), ("spec.completions", json!(null))], &expect![""]);
    // However many may run at once, there are never more than are left to complete.
    check(&[at_once(2_000_000_000), ("spec.completions", json!(5))], &expect![""]);
    // One that somebody else has stored can still be changed.
    let large = with(job(), &[at_once(300_000), ("spec.completions", json!(null))]);
    let grown = |n: i64| shown(&validate_job_update(&with(large.clone(), &[at_once(n)]), &large));
    assert_eq!(grown(200_000), "");
    assert!(grown(300_001).contains("at most 100000 pods"), "{}", grown(300_001));
}

#[test]
fn a_failure_policy_says_one_thing_per_rule() {
    let rules = json!([
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [0, 3, 2, 2]}},
        {"action": "Never", "onPodConditions": [{"type": "Disruption Target", "status": "Maybe"}]},
        {"action": "Ignore"},
        {"onExitCodes": {"containerName": "other", "operator": "", "values": []}, "onPodConditions": [{"type": "A", "status": "True"}]},
    ]);
    check(
        &[
            ("spec.podFailurePolicy", json!({ "rules": rules })),
            ("spec.podReplacementPolicy", json!("TerminatingOrFailed")),
            ("spec.template.spec.restartPolicy", json!("OnFailure")),
        ],
        &expect![[r#"
            spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set
            spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator
            spec.podFailurePolicy.rules[0].onExitCodes.values[3]: Duplicate value: 2
            spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [0,3,2,2]: must be ordered
            spec.podFailurePolicy.rules[1].action: Unsupported value: "Never": supported values: "Count", "FailIndex", "FailJob", "Ignore"
            spec.podFailurePolicy.rules[1].onPodConditions[0].type: Invalid value: "Disruption Target": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            spec.podFailurePolicy.rules[1].onPodConditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"
            spec.podFailurePolicy.rules[2]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required
            spec.podFailurePolicy.rules[3].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]
            spec.podFailurePolicy.rules[3].onExitCodes.operator: Required value: valid values: ["In" "NotIn"]
            spec.podFailurePolicy.rules[3].onExitCodes.containerName: Invalid value: "other": must be one of the container or initContainer names in the pod template
            spec.podFailurePolicy.rules[3].onExitCodes.values: Invalid value: []: at least one value is required
            spec.podFailurePolicy.rules[3]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported
            spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"
            spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified
        "#]],
    );
}

#[test]
fn a_success_policy_fits_the_completions() {
    let rules = json!([
        {},
        {"succeededIndexes": "0-9"},
        {"succeededIndexes": "0,1", "succeededCount": 3},
        {"succeededCount": -1},
        {"succeededCount": 6},
    ]);
    check(
        &[
            ("spec.completionMode", json!("Indexed")),
            ("spec.completions", json!(5)),
            ("spec.successPolicy", json!({ "rules": rules })),
        ],
        &expect![[r#"
            spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified
            spec.successPolicy.rules[1].succeededIndexes: Invalid value: "0-9": error parsing succeededIndexes: too large index: "9"
            spec.successPolicy.rules[2].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)
            spec.successPolicy.rules[3].succeededCount: Invalid value: -1: must be greater than or equal to 0
            spec.successPolicy.rules[4].succeededCount: Invalid value: 6: must be less than or equal to 5 (the number of specified completions)
        "#]],
    );
}

#[test]
fn a_success_policy_without_completions_is_one_finding_not_a_crash() {
    check(
        &[
            ("spec.completionMode", json!("Indexed")),
            ("spec.completions", json!(null)),
            ("spec.successPolicy", json!({"rules": [{"succeededCount": 1}]})),
        ],
        &expect![[r#"
            spec.completions: Required value: when completion mode is Indexed
        "#]],
    );
}

#[test]
fn managers_are_named_like_labels() {
    for (name, expected) in [
        (
            "",
            expect![[r#"
            spec.managedBy: Required value
        "#]],
        ),
        (
            "acme",
            expect![[r#"
            spec.managedBy: Invalid value: "acme": must be a domain-prefixed path (such as "acme.io/foo")
        "#]],
        ),
        (
            "Acme/job",
            expect![[r#"
            spec.managedBy: Invalid value: "Acme": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        "#]],
        ),
        (
            "acme.io/j b",
            expect![[r#"
                spec.managedBy: Invalid value: "j b": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')
            "#]],
        ),
        ("acme.io/job", expect![""]),
    ] {
        check(&[("spec.managedBy", json!(name))], &expected);
    }
}

#[test]
fn a_selector_of_ones_own_must_be_asked_for() {
    check(
        &[("spec.selector", json!({"matchLabels": {"a": "b"}}))],
        &expect![[r#"
        spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` not auto-generated
        spec.template.metadata.labels: Invalid value: {"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"j","controller-uid":"u","job-name":"j"}: `selector` does not match template `labels`
    "#]],
    );
    check(
        &[
            ("spec.manualSelector", json!(true)),
            (
                "spec.selector",
                json!({"matchExpressions": [{"key": "job-name", "operator": "In", "values": ["j"]}]}),
            ),
        ],
        &expect![""],
    );
}

#[test]
fn what_a_job_is_does_not_change() {
    check_update(
        &[],
        &[
            ("spec.completions", json!(2)),
            ("spec.completionMode", json!("Indexed")),
            ("spec.managedBy", json!("acme.io/job")),
            ("spec.template.spec.activeDeadlineSeconds", json!(9)),
        ],
        &expect![[r#"
            spec.completions: Invalid value: 2: can only be modified in tandem with spec.parallelism
            spec.template: Invalid value: {"labels":{"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"j","controller-uid":"u","job-name":"j"},"Spec":{"Volumes":null,"InitContainers":null,"Containers":[{"Name":"c","Image":"i","Command":null,"Args":null,"WorkingDir":"","Ports":null,"EnvFrom":null,"Env":null,"Resources":{"Limits":null,"Requests":null,"Claims":null},"ResizePolicy":null,"RestartPolicy":null,"RestartPolicyRules":null,"VolumeMounts":null,"VolumeDevices":null,"LivenessProbe":null,"ReadinessProbe":null,"StartupProbe":null,"Lifecycle":null,"TerminationMessagePath":"","TerminationMessagePolicy":"File","ImagePullPolicy":"Always","SecurityContext":null,"Stdin":false,"StdinOnce":false,"TTY":false}],"EphemeralContainers":null,"RestartPolicy":"Never","TerminationGracePeriodSeconds":null,"ActiveDeadlineSeconds":9,"DNSPolicy":"ClusterFirst","NodeSelector":null,"ServiceAccountName":"","AutomountServiceAccountToken":null,"NodeName":"","SecurityContext":{"HostNetwork":false,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"SupplementalGroups":null,"SupplementalGroupsPolicy":null,"FSGroup":null,"FSGroupChangePolicy":null,"Sysctls":null,"SeccompProfile":null,"AppArmorProfile":null,"SELinuxChangePolicy":null},"ImagePullSecrets":null,"Hostname":"","Subdomain":"","SetHostnameAsFQDN":null,"Affinity":null,"SchedulerName":"","Tolerations":null,"HostAliases":null,"PriorityClassName":"","Priority":null,"PreemptionPolicy":null,"DNSConfig":null,"ReadinessGates":null,"RuntimeClassName":null,"Overhead":null,"EnableServiceLinks":null,"TopologySpreadConstraints":null,"OS":null,"SchedulingGates":null,"ResourceClaims":null,"Resources":null,"HostnameOverride":null,"SchedulingGroup":null}}: field is immutable
            spec.completionMode: Invalid value: "Indexed": field is immutable
            spec.managedBy: Invalid value: "acme.io/job": field is immutable
        "#]],
    );
}

#[test]
fn an_elastic_job_changes_completions_and_parallelism_together() {
    let indexed = [("spec.completionMode", json!("Indexed"))];
    check_update(&indexed, &[("spec.completions", json!(2)), ("spec.parallelism", json!(2))], &expect![""]);
    check_update(
        &indexed,
        &[("spec.completions", json!(3))],
        &expect![[r#"
        spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism
    "#]],
    );
    check_update(
        &indexed,
        &[("spec.completions", json!(null))],
        &expect![[r#"
        spec.completions: Required value: when completion mode is Indexed
        spec.completions: Required value: when completion mode is Indexed
    "#]],
    );
}

#[test]
fn where_pods_run_changes_only_while_nothing_runs() {
    let elsewhere = [("spec.template.spec.nodeSelector", json!({"a": "b"})), ("spec.suspend", json!(false))];
    let suspended = ("spec.suspend", json!(true));
    check_update(std::slice::from_ref(&suspended), &elsewhere, &expect![""]);
    check_update(
        &[suspended.clone(), ("status", json!({"startTime": "2026-01-01T00:00:00Z"}))],
        &elsewhere[..1],
        &expect![[r#"
            spec.template: Invalid value: {"labels":{"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"j","controller-uid":"u","job-name":"j"},"Spec":{"Volumes":null,"InitContainers":null,"Containers":[{"Name":"c","Image":"i","Command":null,"Args":null,"WorkingDir":"","Ports":null,"EnvFrom":null,"Env":null,"Resources":{"Limits":null,"Requests":null,"Claims":null},"ResizePolicy":null,"RestartPolicy":null,"RestartPolicyRules":null,"VolumeMounts":null,"VolumeDevices":null,"LivenessProbe":null,"ReadinessProbe":null,"StartupProbe":null,"Lifecycle":null,"TerminationMessagePath":"","TerminationMessagePolicy":"File","ImagePullPolicy":"Always","SecurityContext":null,"Stdin":false,"StdinOnce":false,"TTY":false}],"EphemeralContainers":null,"RestartPolicy":"Never","TerminationGracePeriodSeconds":null,"ActiveDeadlineSeconds":null,"DNSPolicy":"ClusterFirst","NodeSelector":{"a":"b"},"ServiceAccountName":"","AutomountServiceAccountToken":null,"NodeName":"","SecurityContext":{"HostNetwork":false,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"SupplementalGroups":null,"SupplementalGroupsPolicy":null,"FSGroup":null,"FSGroupChangePolicy":null,"Sysctls":null,"SeccompProfile":null,"AppArmorProfile":null,"SELinuxChangePolicy":null},"ImagePullSecrets":null,"Hostname":"","Subdomain":"","SetHostnameAsFQDN":null,"Affinity":null,"SchedulerName":"","Tolerations":null,"HostAliases":null,"PriorityClassName":"","Priority":null,"PreemptionPolicy":null,"DNSConfig":null,"ReadinessGates":null,"RuntimeClassName":null,"Overhead":null,"EnableServiceLinks":null,"TopologySpreadConstraints":null,"OS":null,"SchedulingGates":null,"ResourceClaims":null,"Resources":null,"HostnameOverride":null,"SchedulingGroup":null}}: field is immutable
        "#]],
    );
    check_update(
        &[suspended],
        &[("spec.template.spec.hostname", json!("h"))],
        &expect![[r#"
            spec.template.spec: Invalid value: {"Volumes":null,"InitContainers":null,"Containers":[{"Name":"c","Image":"i","Command":null,"Args":null,"WorkingDir":"","Ports":null,"EnvFrom":null,"Env":null,"Resources":{"Limits":null,"Requests":null,"Claims":null},"ResizePolicy":null,"RestartPolicy":null,"RestartPolicyRules":null,"VolumeMounts":null,"VolumeDevices":null,"LivenessProbe":null,"ReadinessProbe":null,"StartupProbe":null,"Lifecycle":null,"TerminationMessagePath":"","TerminationMessagePolicy":"File","ImagePullPolicy":"Always","SecurityContext":null,"Stdin":false,"StdinOnce":false,"TTY":false}],"EphemeralContainers":null,"RestartPolicy":"Never","TerminationGracePeriodSeconds":null,"ActiveDeadlineSeconds":null,"DNSPolicy":"ClusterFirst","NodeSelector":null,"ServiceAccountName":"","AutomountServiceAccountToken":null,"NodeName":"","SecurityContext":{"HostNetwork":false,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"SupplementalGroups":null,"SupplementalGroupsPolicy":null,"FSGroup":null,"FSGroupChangePolicy":null,"Sysctls":null,"SeccompProfile":null,"AppArmorProfile":null,"SELinuxChangePolicy":null},"ImagePullSecrets":null,"Hostname":"h","Subdomain":"","SetHostnameAsFQDN":null,"Affinity":null,"SchedulerName":"","Tolerations":null,"HostAliases":null,"PriorityClassName":"","Priority":null,"PreemptionPolicy":null,"DNSConfig":null,"ReadinessGates":null,"RuntimeClassName":null,"Overhead":null,"EnableServiceLinks":null,"TopologySpreadConstraints":null,"OS":null,"SchedulingGates":null,"ResourceClaims":null,"Resources":null,"HostnameOverride":null,"SchedulingGroup":null}: field is immutable
        "#]],
    );
}

#[test]
fn the_decision_is_reported_before_the_outcome() {
    check_status(
        &[],
        &[("status", json!({"conditions": conditions(&["Failed"])}))],
        &expect![[r#"
        status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition
        status.startTime: Required value: startTime is required for finished job
    "#]],
    );
    check_status(
        &[],
        &[(
            "status",
            json!({"conditions": conditions(&["FailureTarget", "Failed", "Complete", "SuccessCriteriaMet"])}),
        )],
        &expect![[r#"
            status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions
            status.conditions: Invalid value: cannot set Complete=True and FailureTarget=true conditions
            status.completionTime: Required value: completionTime is required for Complete jobs
            status.startTime: Required value: startTime is required for finished job
            status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions
            status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions
        "#]],
    );
}

#[test]
fn a_finished_job_has_nothing_left() {
    check_status(
        &[],
        &[(
            "status",
            json!({
                "conditions": conditions(&["SuccessCriteriaMet", "Complete"]),
                "active": 1, "terminating": 1, "ready": 2,
                "uncountedTerminatedPods": {"failed": ["a", "a", ""]},
            }),
        )],
        &expect![[r#"
            status.uncountedTerminatedPods.failed[1]: Duplicate value: "a"
            status.uncountedTerminatedPods.failed[2]: Invalid value: "": must not be empty
            status.completionTime: Required value: completionTime is required for Complete jobs
            status.active: Invalid value: 1: active>0 is invalid for finished job
            status.startTime: Required value: startTime is required for finished job
            status.uncountedTerminatedPods: Invalid value: {"Succeeded":null,"Failed":["a","a",""]}: must be empty for finished job
            status.terminating: Invalid value: 1: terminating>0 is invalid for finished job
            status.ready: Invalid value: 2: cannot set more ready pods than active
        "#]],
    );
}

#[test]
fn what_was_reported_stays() {
    let old = json!({
        "conditions": conditions(&["SuccessCriteriaMet", "Complete"]), "succeeded": 1, "failed": 2,
        "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:09Z",
    });
    let new = json!({"startTime": "2026-01-01T00:00:05Z", "completionTime": "2026-01-01T00:00:01Z"});
    check_status(
        &[("status", old)],
        &[("status", new)],
        &expect![[r#"
        status.completionTime: Invalid value: "2026-01-01T00:00:01Z": cannot set completionTime when there is no Complete=True condition
        status.completionTime: Invalid value: "2026-01-01T00:00:01Z": must be equal to or after `startTime`
        status.conditions: Invalid value: cannot disable the terminal Complete=True condition
        status.failed: Invalid value: 0: cannot decrease the failed counter
        status.succeeded: Invalid value: 0: cannot decrease the succeeded counter
        status.completionTime: Invalid value: "2026-01-01T00:00:01Z": field is immutable
        status.startTime: Invalid value: "2026-01-01T00:00:05Z": field is immutable for unsuspended job once set
        status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition
    "#]],
    );
}

#[test]
fn an_index_fails_or_completes() {
    let indexed = [
        ("spec.completionMode", json!("Indexed")),
        ("spec.completions", json!(5)),
        ("spec.backoffLimitPerIndex", json!(1)),
    ];
    check_status(
        &indexed,
        &[("status", json!({"completedIndexes": "0-2", "failedIndexes": "2,3"}))],
        &expect![[r#"
            status.failedIndexes: Invalid value: "2,3": failedIndexes and completedIndexes overlap at index: 2
        "#]],
    );
    check_status(
        &indexed,
        &[("status", json!({"completedIndexes": "0-9", "failedIndexes": "a"}))],
        &expect![[r#"
            status.completedIndexes: Invalid value: "0-9": error parsing completedIndexes: too large index: "9"
            status.failedIndexes: Invalid value: "a": error parsing failedIndexes: cannot convert string to integer for index: "a"
        "#]],
    );
    check_status(
        &[],
        &[("status", json!({"completedIndexes": "0", "failedIndexes": ""}))],
        &expect![[r#"
        status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode
        status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex is null
    "#]],
    );
}

#[test]
fn a_cron_job_has_a_schedule_a_zone_and_a_job() {
    let check = |changes: &[(&str, Value)], old: Option<&Value>, expected: &Expect| {
        let template = with(job(), &[("spec.selector", json!(null))]);
        let sound = json!({
            "metadata": {"name": "c"},
            "spec": {"schedule": "@daily", "concurrencyPolicy": "Allow", "jobTemplate": {"spec": template["spec"]}},
        });
        let has_zone = |zone: &str| zone == "Europe/Berlin";
        let cron_job = with(sound, changes);
        let findings = match old {
            None => validate_cron_job(&cron_job, &has_zone),
            Some(old) => validate_cron_job_update(&cron_job, old, &has_zone),
        };
        expected.assert_eq(&shown(&findings));
    };
    check(&[], None, &expect![""]);
    check(
        &[
            ("metadata.name", json!("c".repeat(53))),
            ("spec.schedule", json!("61 * * * *")),
            ("spec.timeZone", json!("Europe/Nowhere")),
            ("spec.concurrencyPolicy", json!("Queue")),
            ("spec.startingDeadlineSeconds", json!(-1)),
            ("spec.jobTemplate.spec.manualSelector", json!(true)),
            ("spec.jobTemplate.spec.selector", json!({})),
            ("spec.failedJobsHistoryLimit", json!(-1)),
        ],
        None,
        &expect![[r#"
            spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61
            spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0
            spec.timeZone: Invalid value: "Europe/Nowhere": unknown time zone Europe/Nowhere
            spec.concurrencyPolicy: Unsupported value: "Queue": supported values: "Allow", "Forbid", "Replace"
            spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated
            spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"
            spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0
            metadata.name: Invalid value: "ccccccccccccccccccccccccccccccccccccccccccccccccccccc": must be no more than 52 characters
        "#]],
    );
    let zoned = [("spec.schedule", json!("TZ=UTC @daily")), ("spec.timeZone", json!("Europe/Berlin"))];
    check(
        &zoned,
        None,
        &expect![[r#"
        spec.schedule: Invalid value: "TZ=UTC @daily": cannot use TZ or CRON_TZ in schedule, use timeZone field instead
    "#]],
    );
    check(
        &zoned,
        Some(&json!({"spec": {"schedule": "TZ=UTC @hourly"}})),
        &expect![[r#"
        spec.schedule: Invalid value: "TZ=UTC @daily": cannot use both timeZone field and TZ or CRON_TZ in schedule
    "#]],
    );
    check(&zoned[..1], Some(&json!({"spec": {"schedule": "TZ=UTC @hourly"}})), &expect![""]);
}
