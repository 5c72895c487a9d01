//! `tensorflow`: every pod knows the cluster and its place in it, as `TF_CONFIG`.
//!
//! It needs `svc` for the names; admission adds it.

use krafla_api::volcano::TaskSpec;
use serde::Serialize;
use serde_json::Value;

use super::arguments::{Flag, Flags};
use super::{Finding, JobView, Plugin, edit};

const CONFIG: &str = "TF_CONFIG";

pub(super) struct Tensorflow {
    ps: String,
    worker: String,
    chief: String,
    evaluator: String,
    port: u16,
}

impl Default for Tensorflow {
    fn default() -> Tensorflow {
        Tensorflow {
            ps: "ps".to_owned(),
            worker: "worker".to_owned(),
            chief: "chief".to_owned(),
            evaluator: "evaluator".to_owned(),
            port: 2222,
        }
    }
}

/// What TensorFlow reads. The order of the fields is the order in the text.
#[derive(Serialize)]
struct TfConfig<'a> {
    cluster: Cluster,
    task: Place<'a>,
}

#[derive(Serialize)]
struct Cluster {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ps: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    worker: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chief: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evaluator: Vec<String>,
}

#[derive(Serialize)]
struct Place<'a> {
    #[serde(rename = "type")]
    role: &'a str,
    index: i32,
}

impl Plugin for Tensorflow {
    fn name(&self) -> &'static str {
        "tensorflow"
    }

    fn flags(&mut self) -> Flags<'_> {
        vec![
            ("ps", Flag::Text(&mut self.ps)),
            ("worker", Flag::Text(&mut self.worker)),
            ("chief", Flag::Text(&mut self.chief)),
            ("evaluator", Flag::Text(&mut self.evaluator)),
            ("port", Flag::Port(&mut self.port)),
        ]
    }

    fn findings(&self, job: &JobView<'_>) -> Vec<Finding> {
        let size = self.config_size(job);
        if is_single(job) || edit::fits_env(CONFIG, size) {
            return Vec::new();
        }
        // Without the variable each pod would train alone, and nobody would notice.
        let why = edit::does_not_fit(CONFIG, size);
        let message =
            format!("{why}; lower spec.tasks[*].replicas, or shorten the names of the job and its tasks");
        vec![Finding::holds_job(self.name(), message)]
    }

    fn decorate(&self, job: &JobView<'_>, task: &TaskSpec, index: i32, pod: &mut Value) {
        if is_single(job) || !edit::fits_env(CONFIG, self.config_size(job)) {
            return;
        }
        let config =
            TfConfig { cluster: self.cluster(job), task: Place { role: self.role(&task.name), index } };
        let Ok(config) = serde_json::to_string(&config) else { return };
        edit::containers(pod).for_each(|container| edit::add_env(container, CONFIG, &config));
    }
}

impl Tensorflow {
    fn cluster(&self, job: &JobView<'_>) -> Cluster {
        let addresses = |name: &str| {
            let tasks = job.task(name).into_iter();
            let hosts = tasks.flat_map(|task| (0..task.replicas).map(|index| job.domain_name(task, index)));
            hosts.map(|host| format!("{host}:{}", self.port)).collect()
        };
        Cluster {
            ps: addresses(&self.ps),
            worker: addresses(&self.worker),
            chief: addresses(&self.chief),
            evaluator: addresses(&self.evaluator),
        }
    }

    /// What TensorFlow calls a pod of this task.
    fn role<'a>(&self, task: &'a str) -> &'a str {
        match task {
            task if task == self.chief => "chief",
            task if task == self.worker => "worker",
            task if task == self.ps => "ps",
            task if task == self.evaluator => "evaluator",
            other => other,
        }
    }

    /// No pod's config is longer than this.
    fn config_size(&self, job: &JobView<'_>) -> usize {
        const CLUSTER: &str = r#"{"cluster":{"ps":[],"worker":[],"chief":[],"evaluator":[]},"#;
        const TASK: &str = r#""task":{"type":"","index":2147483647}}"#;
        let words_of_host = format!(r#"":{}","#, self.port).len();
        let longest_role =
            job.spec.tasks.iter().map(|task| task.name.len()).max().unwrap_or(0).max("evaluator".len());
        let roles = [&self.ps, &self.worker, &self.chief, &self.evaluator];
        let hosts = roles.into_iter().filter_map(|role| job.task(role)).map(|task| {
            let names = job.names_size(task, task.replicas);
            names.domain_names.saturating_add(names.n_hosts.saturating_mul(words_of_host))
        });
        let words = CLUSTER.len().saturating_add(TASK.len()).saturating_add(longest_role);
        hosts.fold(words, usize::saturating_add)
    }
}

/// One pod alone is no cluster.
fn is_single(job: &JobView<'_>) -> bool {
    matches!(job.spec.tasks.as_slice(), [task] if task.replicas == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::tests::fixture::{check, check_findings, world};
    use expect_test::expect;

    #[test]
    fn every_pod_knows_the_cluster_and_its_place() {
        check(
            "plugin tensorflow
             task chief
             task ps init=prep
             task worker replicas=2
             task evaluator
             task other",
            expect![[r#"
                pod a-chief-0
                  main env TF_CONFIG={"cluster":{"ps":["a-ps-0.a:2222"],"worker":["a-worker-0.a:2222","a-worker-1.a:2222"],"chief":["a-chief-0.a:2222"],"evaluator":["a-evaluator-0.a:2222"]},"task":{"type":"chief","index":0}}
                pod a-ps-0
                  main env TF_CONFIG={"cluster":{"ps":["a-ps-0.a:2222"],"worker":["a-worker-0.a:2222","a-worker-1.a:2222"],"chief":["a-chief-0.a:2222"],"evaluator":["a-evaluator-0.a:2222"]},"task":{"type":"ps","index":0}}
                pod a-worker-0
                  main env TF_CONFIG={"cluster":{"ps":["a-ps-0.a:2222"],"worker":["a-worker-0.a:2222","a-worker-1.a:2222"],"chief":["a-chief-0.a:2222"],"evaluator":["a-evaluator-0.a:2222"]},"task":{"type":"worker","index":0}}
                pod a-worker-1
                  main env TF_CONFIG={"cluster":{"ps":["a-ps-0.a:2222"],"worker":["a-worker-0.a:2222","a-worker-1.a:2222"],"chief":["a-chief-0.a:2222"],"evaluator":["a-evaluator-0.a:2222"]},"task":{"type":"worker","index":1}}
                pod a-evaluator-0
                  main env TF_CONFIG={"cluster":{"ps":["a-ps-0.a:2222"],"worker":["a-worker-0.a:2222","a-worker-1.a:2222"],"chief":["a-chief-0.a:2222"],"evaluator":["a-evaluator-0.a:2222"]},"task":{"type":"evaluator","index":0}}
                pod a-other-0
                  main env TF_CONFIG={"cluster":{"ps":["a-ps-0.a:2222"],"worker":["a-worker-0.a:2222","a-worker-1.a:2222"],"chief":["a-chief-0.a:2222"],"evaluator":["a-evaluator-0.a:2222"]},"task":{"type":"other","index":0}}
            "#]],
        );
    }

    #[test]
    fn roles_can_have_other_names_and_hosts_too() {
        check(
            "plugin tensorflow --ps=a --worker=b --chief=c --evaluator=d --port=3333
             task a
             task b replicas=2 hostname=h subdomain=s",
            expect![[r#"
                pod a-a-0
                  main env TF_CONFIG={"cluster":{"ps":["a-a-0.a:3333"],"worker":["h.s:3333","h.s:3333"]},"task":{"type":"ps","index":0}}
                pod a-b-0
                  hostname h
                  subdomain s
                  main env TF_CONFIG={"cluster":{"ps":["a-a-0.a:3333"],"worker":["h.s:3333","h.s:3333"]},"task":{"type":"worker","index":0}}
                pod a-b-1
                  hostname h
                  subdomain s
                  main env TF_CONFIG={"cluster":{"ps":["a-a-0.a:3333"],"worker":["h.s:3333","h.s:3333"]},"task":{"type":"worker","index":1}}
            "#]],
        );
    }

    #[test]
    fn one_pod_alone_is_no_cluster() {
        check(
            "plugin tensorflow\n task worker",
            expect![[r#"
            pod a-worker-0
        "#]],
        );
        check(
            "plugin tensorflow\n task worker replicas=2",
            expect![[r#"
            pod a-worker-0
              main env TF_CONFIG={"cluster":{"worker":["a-worker-0.a:2222","a-worker-1.a:2222"]},"task":{"type":"worker","index":0}}
            pod a-worker-1
              main env TF_CONFIG={"cluster":{"worker":["a-worker-0.a:2222","a-worker-1.a:2222"]},"task":{"type":"worker","index":1}}
        "#]],
        );
    }

    #[test]
    fn the_size_of_the_variable_is_known_before_it_is_written() {
        let world = world("plugin tensorflow\n task ps\n task worker replicas=1234\n task evaluator");
        let config = world.pod("evaluator", 0);
        let written = config.split_once("TF_CONFIG=").unwrap().1.trim_end().len();
        let known = Tensorflow::default().config_size(&world.view());
        assert!(known >= written && known <= written + 40, "{known} for {written}");
    }

    #[test]
    fn a_cluster_that_no_variable_holds_holds_the_job() {
        check_findings("plugin tensorflow\n task worker replicas=5600", expect![[""]]);
        check_findings(
            "plugin tensorflow\n task worker replicas=5800",
            expect![[r#"
            HoldsJob: plugin tensorflow: TF_CONFIG would take 132406 bytes, and Linux starts no program with more than 131071 in one variable; lower spec.tasks[*].replicas, or shorten the names of the job and its tasks
        "#]],
        );
        check_findings(
            "plugin tensorflow\n task worker replicas=2000000000",
            expect![[r#"
                HoldsJob: plugin tensorflow: TF_CONFIG would take 56888889006 bytes, and Linux starts no program with more than 131071 in one variable; lower spec.tasks[*].replicas, or shorten the names of the job and its tasks
            "#]],
        );
    }
}
