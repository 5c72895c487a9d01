//! How a run ended: an exit code for the shell, and a document for programs.

use std::process::ExitCode;
use std::time::Duration;

use krafla_api::{Kind, Served};
use krafla_node::pod::Pod;
use krafla_node::status::ContainerStatus;
use krafla_plan::Object;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::progress;
use crate::run::BadInput;

const EXIT_FAILED: u8 = 1;
/// The input is wrong, or krafla can not start: nothing has been done.
const EXIT_BAD_INPUT: u8 = 2;
/// What shells report of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: u8 = 130;

/// What a shell is told of an error.
pub(crate) fn code_of(error: &anyhow::Error) -> ExitCode {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return ExitCode::from(failure.code());
    }
    ExitCode::from(if error.is::<BadInput>() { EXIT_BAD_INPUT } else { EXIT_FAILED })
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All that it waited for ended well.
    Succeeded,
    /// Something that it waited for did not.
    Failed,
    /// What it waits for will not come.
    Stuck,
    /// It took longer than it was allowed to.
    TimedOut,
    Interrupted,
}

impl Outcome {
    /// Whether there may be jobs that have not ended.
    pub(crate) fn is_early(self) -> bool {
        matches!(self, Outcome::Stuck | Outcome::TimedOut | Outcome::Interrupted)
    }

    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Outcome::Succeeded => ExitCode::SUCCESS,
            Outcome::Failed | Outcome::Stuck | Outcome::TimedOut => ExitCode::from(EXIT_FAILED),
            Outcome::Interrupted => ExitCode::from(EXIT_INTERRUPTED),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Outcome::Succeeded => "Succeeded",
            Outcome::Failed => "Failed",
            Outcome::Stuck => "Stuck",
            Outcome::TimedOut => "TimedOut",
            Outcome::Interrupted => "Interrupted",
        }
    }
}

/// Something that a run has waited for, as it was last seen, with the pods that it had then.
pub(crate) struct Waited<'a> {
    pub(crate) object: &'a Object,
    pub(crate) pods: Vec<&'a Pod>,
}

/// The whole of a run.
pub(crate) fn result(outcome: Outcome, waited: &[Waited<'_>], elapsed: Duration) -> Value {
    let of = |kinds: &[Kind]| {
        let of_kinds = waited.iter().filter(|waited| kinds.contains(&waited.object.kind));
        of_kinds.map(describe).collect::<Vec<Value>>()
    };
    json!({
        "outcome": outcome.as_str(),
        "jobs": of(&[Kind::VcJob, Kind::Job]),
        "flows": of(&[Kind::JobFlow]),
        "cronJobs": of(&[Kind::CronJob, Kind::VcCronJob]),
        "pods": of(&[Kind::Pod]),
        "seconds": elapsed.as_secs_f64(),
    })
}

fn describe(waited: &Waited<'_>) -> Value {
    let object = waited.object;
    let (of, key) = (Served::from(object.kind), &object.meta.key);
    let mut told = json!({
        "apiVersion": of.api_version(),
        "kind": of.kind,
        "namespace": key.namespace.as_ref(),
        "name": key.name.as_ref(),
        "phase": progress::phase(object),
        "pods": waited.pods.iter().map(|pod| describe_pod(pod)).collect::<Vec<Value>>(),
    });
    if let (Some(status), Some(fields)) = (progress::status(object), told.as_object_mut()) {
        fields.insert("status".to_owned(), status);
    }
    told
}

fn describe_pod(pod: &Pod) -> Value {
    let status = &pod.status;
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    json!({
        "name": pod.metadata.name,
        "phase": status.phase,
        "reason": Some(&status.reason).filter(|reason| !reason.is_empty()),
        "containers": containers.map(describe_container).collect::<Vec<Value>>(),
    })
}

/// How a container ended, or last ended, and how often it was started again.
fn describe_container(status: &ContainerStatus) -> Value {
    let end = status.state.terminated.as_ref().or(status.last_state.terminated.as_ref());
    json!({
        "name": status.name,
        "exitCode": end.map(|end| end.exit_code),
        "reason": end.map(|end| &end.reason),
        "restartCount": status.restart_count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_reads_what_ran_and_how_its_containers_ended() {
        let job = json!({ "metadata": { "namespace": "ns", "name": "a" }, "status": { "state": { "phase": "Failed" } } });
        let job = Object::decode(Kind::VcJob, job.to_string().as_bytes());
        let cron_job = json!({ "metadata": { "namespace": "ns", "name": "c" }, "spec": { "schedule": "@every 1s", "suspend": true } });
        let cron_job = Object::decode(Kind::VcCronJob, cron_job.to_string().as_bytes());
        let end = json!({ "terminated": { "exitCode": 3, "reason": "Error" } });
        let pod = json!({
            "metadata": { "namespace": "ns", "name": "a-0" },
            "status": { "phase": "Failed", "containerStatuses": [{ "name": "main", "restartCount": 1, "state": end }] },
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let waited = [Waited { object: &job, pods: vec![&pod] }, Waited { object: &cron_job, pods: vec![] }];
        let told = result(Outcome::Failed, &waited, Duration::from_millis(1500));
        assert_eq!(told["outcome"], "Failed");
        assert_eq!(told["seconds"], 1.5);
        let job = &told["jobs"][0];
        assert_eq!((&job["apiVersion"], &job["kind"]), (&json!("batch.volcano.sh/v1alpha1"), &json!("Job")));
        assert_eq!((&job["phase"], &job["status"]["state"]["phase"]), (&json!("Failed"), &json!("Failed")));
        let container = json!({ "name": "main", "exitCode": 3, "reason": "Error", "restartCount": 1 });
        assert_eq!(job["pods"][0]["containers"], json!([container]));
        assert_eq!(told["cronJobs"][0]["phase"], "Suspended");
        assert_eq!(told["flows"], json!([]));
    }
}
