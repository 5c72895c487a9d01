//! Kubernetes' own Jobs and CronJobs, as they are stored.

use super::*;

/// The spec of a Job that forgives disruptions.
fn forgiving() -> Value {
    json!({
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}},
    })
}

#[test]
fn a_condition_that_a_rule_names_without_a_status_is_meant_to_hold() {
    let cluster = Cluster::new();
    let status = |spec: &Value| spec["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"].clone();
    let job = json!({"metadata": {"name": "j"}, "spec": forgiving()});
    assert_eq!(status(&cluster.create(Kind::Job, job).unwrap()["spec"]), "True");
    let cron_job = json!({
        "metadata": {"name": "c"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": forgiving()}},
    });
    let template = cluster.create(Kind::CronJob, cron_job).unwrap()["spec"]["jobTemplate"]["spec"].clone();
    assert_eq!(status(&template), "True");
    assert_eq!(template["template"]["spec"]["dnsPolicy"], "ClusterFirst", "its pods have their defaults");
    assert_eq!(template["backoffLimit"], Value::Null, "those of a Job come with each Job");
}
