//! `ray`: the head and the workers start Ray and find each other.
//!
//! ```text
//!   Service <job>-head-svc     the head, from outside the job: gcs, dashboard, client-server
//! ```
//!
//! It needs `svc` for the names; admission adds it.

use krafla_api::volcano::TaskSpec;
use krafla_api::{Kind, labels};
use serde_json::{Map, Value, json};

use super::arguments::{Flag, Flags};
use super::{Desired, Finding, JobView, Plugin, edit};

pub(super) struct Ray {
    head: String,
    head_container: String,
    worker: String,
    worker_container: String,
    port: u16,
    dashboard_port: u16,
    client_port: u16,
}

impl Default for Ray {
    fn default() -> Ray {
        Ray {
            head: "head".to_owned(),
            head_container: "head".to_owned(),
            worker: "worker".to_owned(),
            worker_container: "worker".to_owned(),
            port: 6379,
            dashboard_port: 8265,
            client_port: 10001,
        }
    }
}

impl Plugin for Ray {
    fn name(&self) -> &'static str {
        "ray"
    }

    fn flags(&mut self) -> Flags<'_> {
        vec![
            ("head", Flag::Text(&mut self.head)),
            ("headContainer", Flag::Text(&mut self.head_container)),
            ("worker", Flag::Text(&mut self.worker)),
            ("workerContainer", Flag::Text(&mut self.worker_container)),
            ("port", Flag::Port(&mut self.port)),
            ("dashboardPort", Flag::Port(&mut self.dashboard_port)),
            ("clientPort", Flag::Port(&mut self.client_port)),
        ]
    }

    fn findings(&self, job: &JobView<'_>) -> Vec<Finding> {
        if job.task(&self.head).is_some() {
            return Vec::new();
        }
        let message =
            format!("the job has no task {:?}; add it, or name the head's task with --head", self.head);
        vec![Finding::holds_job(self.name(), message)]
    }

    fn desired(&self, job: &JobView<'_>) -> Vec<Desired> {
        let ports = self.ports().map(|(name, port)| {
            json!({ "name": name, "protocol": "TCP", "port": port, "targetPort": self.target_port(job, name, port) })
        });
        let selector = json!({
            labels::JOB_NAME: job.name,
            labels::JOB_NAMESPACE: job.namespace,
            labels::TASK_SPEC: self.head,
        });
        let spec = json!({ "selector": selector, "ports": ports });
        vec![Desired::new(Kind::Service, format!("{}-head-svc", job.name), json!({ "spec": spec }))]
    }

    fn decorate(&self, job: &JobView<'_>, task: &TaskSpec, _index: i32, pod: &mut Value) {
        let Some(head) = job.task(&self.head) else { return };
        if task.name == self.head {
            for container in edit::containers(pod).filter(|it| edit::name(it) == self.head_container) {
                self.ports().into_iter().for_each(|(name, port)| edit::open_port(container, name, port));
                run(container, &self.head_command());
            }
        }
        if task.name == self.worker {
            let command = format!("ray start --block --address={}:{}", job.domain_name(head, 0), self.port);
            edit::containers(pod)
                .filter(|it| edit::name(it) == self.worker_container)
                .for_each(|container| run(container, &command));
        }
    }
}

impl Ray {
    fn ports(&self) -> [(&'static str, u16); 3] {
        [("gcs", self.port), ("dashboard", self.dashboard_port), ("client-server", self.client_port)]
    }

    /// By name, as in Volcano; but a port that the template opens by itself may have another name, or none.
    fn target_port(&self, job: &JobView<'_>, name: &str, port: u16) -> Value {
        let containers = job.task(&self.head).and_then(|task| task.template.pointer("/spec/containers"));
        let mut containers =
            containers.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
        let head = containers.find(|container| edit::name(container) == self.head_container);
        if head.is_some_and(|container| edit::has_port(container, port)) { port.into() } else { name.into() }
    }

    fn head_command(&self) -> String {
        let Ray { port, dashboard_port, client_port, .. } = self;
        format!(
            "ray start --head --block --dashboard-host=0.0.0.0 --port={port} --dashboard-port={dashboard_port} \
             --ray-client-server-port={client_port}"
        )
    }
}

/// The user's arguments stay; a shell that is given its script takes no notice of them.
fn run(container: &mut Map<String, Value>, command: &str) {
    container.insert("command".to_owned(), json!(["sh", "-c", command]));
}

#[cfg(test)]
mod tests {
    use crate::plugin::tests::fixture::{check, check_findings};
    use expect_test::expect;

    #[test]
    fn head_and_workers_start_ray_and_find_each_other() {
        check(
            "plugin ray
             task head containers=side,head
             task worker containers=worker,side
             task other containers=head",
            expect![[r#"
                service a-head-svc
                  {"ports":[{"name":"gcs","port":6379,"protocol":"TCP","targetPort":"gcs"},{"name":"dashboard","port":8265,"protocol":"TCP","targetPort":"dashboard"},{"name":"client-server","port":10001,"protocol":"TCP","targetPort":"client-server"}],"selector":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns","volcano.sh/task-spec":"head"}}
                pod a-head-0
                  head command[0] sh
                  head command[1] -c
                  head command[2] ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 --ray-client-server-port=10001
                  head port "gcs" 6379
                  head port "dashboard" 8265
                  head port "client-server" 10001
                pod a-worker-0
                  worker command[0] sh
                  worker command[1] -c
                  worker command[2] ray start --block --address=a-head-0.a:6379
                pod a-other-0
            "#]],
        );
    }

    #[test]
    fn everything_can_be_named_otherwise() {
        check(
            "plugin ray --head=h --headContainer=hc --worker=w --workerContainer=wc --port=1 --dashboardPort=2 --clientPort=3
             task h containers=hc hostname=host
             task w containers=wc",
            expect![[r#"
                service a-head-svc
                  {"ports":[{"name":"gcs","port":1,"protocol":"TCP","targetPort":"gcs"},{"name":"dashboard","port":2,"protocol":"TCP","targetPort":"dashboard"},{"name":"client-server","port":3,"protocol":"TCP","targetPort":"client-server"}],"selector":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns","volcano.sh/task-spec":"h"}}
                pod a-h-0
                  hostname host
                  hc command[0] sh
                  hc command[1] -c
                  hc command[2] ray start --head --block --dashboard-host=0.0.0.0 --port=1 --dashboard-port=2 --ray-client-server-port=3
                  hc port "gcs" 1
                  hc port "dashboard" 2
                  hc port "client-server" 3
                pod a-w-0
                  wc command[0] sh
                  wc command[1] -c
                  wc command[2] ray start --block --address=host.a:1
            "#]],
        );
    }

    #[test]
    fn volcano_b42_a_port_that_is_open_under_another_name_is_found_by_its_number() {
        check(
            "plugin ray
             task head containers=head port=own:6379",
            expect![[r#"
                service a-head-svc
                  {"ports":[{"name":"gcs","port":6379,"protocol":"TCP","targetPort":6379},{"name":"dashboard","port":8265,"protocol":"TCP","targetPort":"dashboard"},{"name":"client-server","port":10001,"protocol":"TCP","targetPort":"client-server"}],"selector":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns","volcano.sh/task-spec":"head"}}
                pod a-head-0
                  head command[0] sh
                  head command[1] -c
                  head command[2] ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 --ray-client-server-port=10001
                  head port "own" 6379
                  head port "dashboard" 8265
                  head port "client-server" 10001
            "#]],
        );
    }

    #[test]
    fn a_job_without_a_head_waits_for_one() {
        check_findings(
            "plugin ray\n task worker",
            expect![[r#"
            HoldsJob: plugin ray: the job has no task "head"; add it, or name the head's task with --head
        "#]],
        );
    }
}
