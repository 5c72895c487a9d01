//! Manifests that read like a sentence.

use std::time::Duration;

use krafla_api::ObjectMeta;
use krafla_api::volcano::{Action, Event, Job, JobSpec, JobTemplate, LifecyclePolicy, Resource, TaskSpec};
use serde_json::{Value, json};

use super::{Act, Deed, NAMESPACE, When};
use krafla_api::Kind;

/// A user stores a job.
pub(super) fn create_job(when: When, name: &str, spec: JobSpec) -> Act {
    let metadata =
        ObjectMeta { name: name.to_owned(), namespace: NAMESPACE.to_owned(), ..ObjectMeta::default() };
    let job = Job { metadata, spec, ..Job::default() };
    Act { when, deed: Deed::Create(Kind::VcJob, job.to_manifest()) }
}

/// A user stores a template of jobs.
pub(super) fn create_template(name: &str, spec: JobSpec) -> Act {
    let metadata =
        ObjectMeta { name: name.to_owned(), namespace: NAMESPACE.to_owned(), ..ObjectMeta::default() };
    let template = JobTemplate { metadata, spec, ..JobTemplate::default() };
    Act { when: When::Now, deed: Deed::Create(Kind::JobTemplate, template.to_manifest()) }
}

/// A user stores a flow.
pub(super) fn create_flow(when: When, name: &str, spec: Value) -> Act {
    let info = Kind::JobFlow.info();
    let flow = json!({
        "apiVersion": info.api_version(), "kind": info.kind,
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
    });
    Act { when, deed: Deed::Create(Kind::JobFlow, flow) }
}

/// A user stores a queue.
pub(super) fn create_queue(name: &str, spec: Value) -> Act {
    let info = Kind::Queue.info();
    let queue = json!({
        "apiVersion": info.api_version(), "kind": info.kind, "metadata": { "name": name }, "spec": spec,
    });
    Act { when: When::Now, deed: Deed::Create(Kind::Queue, queue) }
}

/// Whether a queue takes gangs.
pub(super) fn is_open(queue: &Value) -> bool {
    queue.pointer("/status/state").is_some_and(|state| state == "Open")
}

/// A user stores a CronJob that runs every hour, and differs from others in `more`.
pub(super) fn create_cron_job(name: &str, mut more: Value, job: JobSpec) -> Act {
    let template = Job { spec: job, ..Job::default() }.to_manifest();
    if let Some(spec) = more.as_object_mut() {
        spec.insert("schedule".to_owned(), json!("0 * * * *"));
        spec.insert("jobTemplate".to_owned(), json!({ "spec": template.get("spec") }));
    }
    let info = Kind::VcCronJob.info();
    let cron_job = json!({
        "apiVersion": info.api_version(), "kind": info.kind,
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": more,
    });
    Act { when: When::Now, deed: Deed::Create(Kind::VcCronJob, cron_job) }
}

/// A user suspends a CronJob, or lets it go on, when the world is so many seconds old.
pub(super) fn suspend_cron_job(at_seconds: u64, name: &'static str, is_suspended: bool) -> Act {
    let deed = Deed::Patch(Kind::VcCronJob, name, json!({ "spec": { "suspend": is_suspended } }));
    Act { when: When::At(Duration::from_secs(at_seconds)), deed }
}

/// A job of these tasks, all of whose pods must be able to run at once.
pub(super) fn gang(tasks: Vec<TaskSpec>) -> JobSpec {
    JobSpec {
        min_available: tasks.iter().map(|task| task.replicas).sum(),
        tasks,
        queue: "default".to_owned(),
        scheduler_name: "volcano".to_owned(),
        max_retry: 3,
        ..JobSpec::default()
    }
}

/// A task of equal pods.
pub(super) fn task(name: &str, replicas: i32) -> TaskSpec {
    let template = json!({ "spec": {
        "containers": [{
            "name": "main", "image": "busybox", "command": ["work"],
            "resources": { "requests": { "cpu": "1" } },
        }],
        "restartPolicy": "Never",
    }});
    TaskSpec { name: name.to_owned(), replicas, template, ..TaskSpec::default() }
}

/// The same task, each pod of which needs so many cores.
pub(super) fn needing(cpu: &str, mut task: TaskSpec) -> TaskSpec {
    if let Some(request) = task.template.pointer_mut("/spec/containers/0/resources/requests/cpu") {
        *request = cpu.into();
    }
    task
}

/// When this happens, do that.
pub(super) fn on(event: Event, action: Action) -> LifecyclePolicy {
    LifecyclePolicy { event, action, ..LifecyclePolicy::default() }
}
