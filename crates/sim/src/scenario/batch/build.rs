//! Manifests and moments that read like a sentence.

use krafla_api::{Kind, labels};
use serde_json::{Value, json};

use crate::scenario::{Act, Deed, NAMESPACE, When};

/// A user stores a Job: these fields, and a template of one container.
pub(super) fn create_job(name: &str, fields: Value) -> Act {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec(fields),
    });
    Act { when: When::Now, deed: Deed::Create(Kind::Job, job) }
}

/// A user stores a Job of so many pods that Volcano's scheduler is to start together.
pub(super) fn create_gang(name: &str, size: u32) -> Act {
    let mut spec = spec(json!({ "parallelism": size, "completions": size }));
    if let Some(pod) = spec.pointer_mut("/template/spec") {
        add(pod, json!({ "schedulerName": "volcano" }));
    }
    let annotations = json!({ labels::GROUP_MIN_MEMBER: size.to_string() });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": name, "namespace": NAMESPACE, "annotations": annotations }, "spec": spec,
    });
    Act { when: When::Now, deed: Deed::Create(Kind::Job, job) }
}

/// A user stores a CronJob that is due every three minutes: these fields, and a Job of one pod that is tried once.
///
/// The pause, an outage and the back-off after it are together shorter than the time after which a world without news is
/// taken to be at rest.
pub(super) fn create_cron_job(name: &str, fields: Value) -> Act {
    create_cron_job_of(name, fields, json!({ "backoffLimit": 0 }))
}

/// The same, with these fields of its Jobs.
pub(super) fn create_cron_job_of(name: &str, fields: Value, job: Value) -> Act {
    let job = spec(job);
    let mut spec = json!({ "schedule": "*/3 * * * *", "jobTemplate": { "spec": job } });
    add(&mut spec, fields);
    let cron_job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
    });
    Act { when: When::Now, deed: Deed::Create(Kind::CronJob, cron_job) }
}

/// A user stops a CronJob once it shows this, so that the world comes to rest.
pub(super) fn suspend_cron_job(name: &'static str, once: fn(&Value) -> bool) -> Act {
    let suspend = json!({ "spec": { "suspend": true } });
    Act { when: When::Shows(Kind::CronJob, name, once), deed: Deed::Patch(Kind::CronJob, name, suspend) }
}

/// A user changes a Job's spec once the Job shows this.
pub(super) fn change_job(name: &'static str, once: fn(&Value) -> bool, fields: Value) -> Act {
    let deed = Deed::Patch(Kind::Job, name, json!({ "spec": fields }));
    Act { when: When::Shows(Kind::Job, name, once), deed }
}

/// How many pods of a Job are ready.
pub(super) fn n_ready(job: &Value) -> u64 {
    job.pointer("/status/ready").and_then(Value::as_u64).unwrap_or(0)
}

/// Whether a run of a CronJob has succeeded.
pub(super) fn has_succeeded(cron_job: &Value) -> bool {
    cron_job.pointer("/status/lastSuccessfulTime").is_some()
}

/// Whether a CronJob has made a run after its first.
pub(super) fn has_run_again(cron_job: &Value) -> bool {
    let last = cron_job.pointer("/status/lastScheduleTime").and_then(Value::as_str);
    last.is_some_and(|last| last > "2026-01-01T00:03:00Z")
}

/// The spec of a pod of one container.
pub(super) fn pod_spec() -> Value {
    json!({
        "containers": [{
            "name": "main", "image": "busybox", "command": ["work"], "resources": { "requests": { "cpu": "1" } },
        }],
        "restartPolicy": "Never",
    })
}

fn spec(fields: Value) -> Value {
    let mut spec = json!({ "template": { "spec": pod_spec() } });
    add(&mut spec, fields);
    spec
}

/// Puts fields into a spec.
fn add(spec: &mut Value, fields: Value) {
    if let (Some(spec), Value::Object(fields)) = (spec.as_object_mut(), fields) {
        spec.extend(fields);
    }
}
