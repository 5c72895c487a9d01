//! What plugins see of a job, and the names by which its pods find each other.
//!
//! ```text
//!   pod name      <job>-<task>-<index>
//!   hostname      the template's, or the pod's name
//!   domain name   <hostname>.<subdomain>      subdomain: the template's, or the job's name
//! ```

use krafla_api::Uid;
use krafla_api::volcano::{JobSpec, TaskSpec};
use serde_json::Value;

/// What plugins see of a job.
#[derive(Clone, Copy, Debug)]
pub struct JobView<'a> {
    /// The job's name.
    pub name: &'a str,
    /// The job's namespace.
    pub namespace: &'a str,
    /// The job's identity.
    pub uid: &'a Uid,
    /// The job's spec, with admission's defaults filled in.
    pub spec: &'a JobSpec,
}

/// How much text the names of some hosts are, without writing them down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NamesSize {
    /// How many hosts.
    pub(super) n_hosts: usize,
    /// All hostnames together, in bytes.
    pub(super) hostnames: usize,
    /// All domain names together, in bytes.
    pub(super) domain_names: usize,
}

impl NamesSize {
    /// The domain names with one byte between each two.
    pub(super) fn joined(&self) -> usize {
        self.domain_names.saturating_add(self.n_hosts.saturating_sub(1))
    }
}

impl<'a> JobView<'a> {
    /// The first task of that name.
    pub(super) fn task(&self, name: &str) -> Option<&'a TaskSpec> {
        self.spec.tasks.iter().find(|task| task.name == name)
    }

    /// The pod's hostname.
    pub(super) fn hostname(&self, task: &TaskSpec, index: i32) -> String {
        match template_text(task, "hostname") {
            "" => format!("{}-{}-{index}", self.name, task.name),
            hostname => hostname.to_owned(),
        }
    }

    /// The name by which other pods reach the pod.
    pub(super) fn domain_name(&self, task: &TaskSpec, index: i32) -> String {
        format!("{}.{}", self.hostname(task, index), self.subdomain(task))
    }

    /// The domain names of the task's pods. A hostname in the template makes all of them one host.
    pub(super) fn domain_names(&self, task: &'a TaskSpec) -> impl Iterator<Item = String> + use<'a> {
        let job = *self;
        (0..job.n_hosts(task)).map(move |index| job.domain_name(task, index))
    }

    /// The hosts that the task's pods are.
    pub(super) fn n_hosts(&self, task: &TaskSpec) -> i32 {
        let at_most = if template_text(task, "hostname").is_empty() { i32::MAX } else { 1 };
        task.replicas.clamp(0, at_most)
    }

    /// The size of the names of `n` pods of the task. It takes no longer for many than for few.
    pub(super) fn names_size(&self, task: &TaskSpec, n: i32) -> NamesSize {
        let n = usize::try_from(n).unwrap_or(0);
        let hostnames = match template_text(task, "hostname") {
            "" => {
                let dashes = 2;
                let fixed = self.name.len().saturating_add(task.name.len()).saturating_add(dashes);
                n.saturating_mul(fixed).saturating_add(digits_below(n))
            }
            hostname => n.saturating_mul(hostname.len()),
        };
        let dot = 1;
        let subdomain = self.subdomain(task).len().saturating_add(dot);
        NamesSize {
            n_hosts: n,
            hostnames,
            domain_names: hostnames.saturating_add(n.saturating_mul(subdomain)),
        }
    }

    /// The pod's number among all masters and workers: masters first. Pods of other tasks have none.
    pub(super) fn rank(&self, master: &str, worker: &str, task: &TaskSpec, index: i32) -> Option<i32> {
        if task.name == master {
            return Some(index);
        }
        let n_masters = self.task(master).map_or(0, |task| task.replicas);
        (task.name == worker).then(|| n_masters.saturating_add(index))
    }

    fn subdomain(&self, task: &'a TaskSpec) -> &'a str {
        match template_text(task, "subdomain") {
            "" => self.name,
            subdomain => subdomain,
        }
    }
}

/// A text field of the pod template's spec; empty if it is not there.
fn template_text<'a>(task: &'a TaskSpec, field: &str) -> &'a str {
    task.template.get("spec").and_then(|spec| spec.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// How many digits the numbers from 0 to `n` - 1 have together.
fn digits_below(n: usize) -> usize {
    let bounds = std::iter::successors(Some(10usize), |bound| bound.checked_mul(10));
    let longer = bounds.take_while(|bound| *bound < n).map(|bound| n.saturating_sub(bound));
    // Every number has one digit, those from 10 on one more, those from 100 on yet one more.
    longer.fold(n, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_size_of_names_is_known_without_writing_them() {
        let spec = JobSpec::default();
        let job = JobView { name: "job", namespace: "ns", uid: &Uid::default(), spec: &spec };
        let templates = [
            json!({}),
            json!({ "spec": { "hostname": "h" } }),
            json!({ "spec": { "subdomain": "sub" } }),
            json!({ "spec": { "hostname": "h", "subdomain": "sub" } }),
        ];
        for template in templates {
            for replicas in [-1, 0, 1, 2, 9, 10, 11, 99, 100, 101, 1234] {
                let task = TaskSpec {
                    name: "t".into(),
                    replicas,
                    template: template.clone(),
                    ..TaskSpec::default()
                };
                let written: Vec<String> = job.domain_names(&task).collect();
                let size = job.names_size(&task, job.n_hosts(&task));
                assert_eq!(size.joined(), written.join(",").len(), "{replicas} of {template}");
                let hostnames: usize =
                    (0..job.n_hosts(&task)).map(|index| job.hostname(&task, index).len()).sum();
                assert_eq!(size.hostnames, hostnames, "{replicas} of {template}");
            }
        }
    }
}
