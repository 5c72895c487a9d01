//! The pods of jobs, flows and CronJobs.

use krafla_api::labels::JOB_NAME;
use krafla_api::{Key, Kind};
use krafla_client::collection_path;
use krafla_plan::Object;
use serde_json::Value;

use super::selector;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::pod_logs::is_of_job;
use crate::progress::{JobKey, made_by};
use crate::targets::Target;

/// The label of the pods of a Kubernetes Job, in all versions of Kubernetes.
const BATCH_JOB_NAME: &str = "job-name";

/// Jobs whose pods are meant, and single pods.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    jobs: Vec<JobKey>,
    pods: Vec<Key>,
}

impl Members {
    /// Adds the pods of an object.
    pub(super) async fn add(&mut self, connection: &Connection, target: &Target) -> Result<(), Failure> {
        let key = target.key.clone();
        match target.of.known() {
            Some(Kind::Pod) => self.pods.push(key),
            Some(kind @ (Kind::VcJob | Kind::Job)) => self.jobs.push((kind, key)),
            Some(Kind::JobFlow) => self.jobs.extend(steps(&key, &target.object)),
            Some(kind @ (Kind::CronJob | Kind::VcCronJob)) => {
                let made = made_by(kind).unwrap_or(Kind::Job);
                let listed = connection.read_json(collection_path(made, &key.namespace)).await?;
                self.jobs.extend(runs(made, &target.object, &listed));
                if self.jobs.is_empty() {
                    return Err(Failure::NotFound(format!("{} has not run yet", target.title)));
                }
            }
            _ => {
                let message =
                    format!("{} has no logs; fix: name a job, a flow, a CronJob or a pod", target.title);
                return Err(Failure::usage(message));
            }
        }
        Ok(())
    }

    /// Whether a pod is one of them.
    pub(super) fn has(&self, pod: &Object) -> bool {
        self.pods.contains(&pod.meta.key) || self.jobs.iter().any(|job| is_of_job(pod, job))
    }

    /// The query that lists them, and as few others as can be.
    pub(super) fn query(&self) -> String {
        let of = |wanted: Kind| {
            let jobs = self.jobs.iter().filter(|(kind, _)| *kind == wanted);
            jobs.map(|(_, key)| &*key.name).collect::<Vec<_>>().join(",")
        };
        let (volcano, batch) = (of(Kind::VcJob), of(Kind::Job));
        match (self.pods.as_slice(), volcano.as_str(), batch.as_str()) {
            ([pod], "", "") => format!("fieldSelector=metadata.name%3D{}", krafla_client::encoded(&pod.name)),
            ([], _, "") => selector(&format!("{JOB_NAME} in ({volcano})")),
            ([], "", _) => selector(&format!("{BATCH_JOB_NAME} in ({batch})")),
            // No selector means one or the other.
            _ => String::new(),
        }
    }
}

/// The jobs of a flow: one per step.
fn steps(flow: &Key, object: &Value) -> Vec<JobKey> {
    let steps = object.pointer("/spec/flows").and_then(Value::as_array).into_iter().flatten();
    let names = steps.filter_map(|step| step.get("name")?.as_str());
    names.map(|step| (Kind::VcJob, Key::new(&flow.namespace, &format!("{}-{step}", flow.name)))).collect()
}

/// The jobs that a CronJob made.
fn runs(made: Kind, cron_job: &Value, listed: &Value) -> Vec<JobKey> {
    let uid = cron_job.pointer("/metadata/uid");
    let is_run = |job: &&Value| {
        let owners = job.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
        owners.into_iter().any(|owner| owner.get("uid") == uid && uid.is_some())
    };
    let jobs = listed.get("items").and_then(Value::as_array).into_iter().flatten().filter(is_run);
    let text = |job: &Value, pointer: &str| {
        job.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    jobs.map(|job| (made, Key::new(&text(job, "/metadata/namespace"), &text(job, "/metadata/name"))))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_listed_by_the_labels_of_their_jobs() {
        let key = |name: &str| Key::new("ns", name);
        let query = |jobs: &[(Kind, &str)], pods: &[&str]| {
            let jobs = jobs.iter().map(|(kind, name)| (*kind, key(name))).collect();
            Members { jobs, pods: pods.iter().map(|pod| key(pod)).collect() }.query()
        };
        assert_eq!(
            query(&[(Kind::VcJob, "a"), (Kind::VcJob, "b")], &[]),
            "labelSelector=volcano.sh%2Fjob-name%20in%20%28a%2Cb%29"
        );
        assert_eq!(query(&[(Kind::Job, "a")], &[]), "labelSelector=job-name%20in%20%28a%29");
        assert_eq!(query(&[], &["p"]), "fieldSelector=metadata.name%3Dp");
        assert_eq!(query(&[(Kind::Job, "a"), (Kind::VcJob, "b")], &[]), "");
    }

    #[test]
    fn a_flow_has_the_jobs_of_its_steps_and_a_cron_job_those_that_it_made() {
        let flow = json!({ "spec": { "flows": [{ "name": "a" }, { "name": "b" }] } });
        let names =
            |jobs: Vec<JobKey>| jobs.into_iter().map(|(_, key)| key.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(steps(&Key::new("ns", "f"), &flow)), ["f-a", "f-b"]);
        let owned = |name: &str, uid: &str| json!({ "metadata": { "name": name, "namespace": "ns", "ownerReferences": [{ "uid": uid }] } });
        let listed =
            json!({ "items": [owned("c-1", "u"), owned("d-1", "v"), { "metadata": { "name": "x" } }] });
        assert_eq!(names(runs(Kind::Job, &json!({ "metadata": { "uid": "u" } }), &listed)), ["c-1"]);
        assert_eq!(names(runs(Kind::Job, &json!({}), &listed)), Vec::<String>::new());
    }
}
