//! `svc`: the job's pods find each other by name.
//!
//! ```text
//!   Service <job>          headless: gives each pod the domain name <hostname>.<job>
//!   NetworkPolicy <job>    only pods of the job may come in
//!   ConfigMap <job>-svc    the hosts of each task: as files in /etc/volcano, and as variables
//!
//!     work.host       a-work-0.a             one line per host
//!                     a-work-1.a
//!     VC_WORK_HOSTS   a-work-0.a,a-work-1.a
//!     VC_WORK_NUM     2
//! ```

use krafla_api::volcano::TaskSpec;
use krafla_api::{Kind, labels};
use serde_json::{Map, Value, json};

use super::arguments::{Flag, Flags};
use super::desired::DATA_BYTES_MAX;
use super::{Desired, Finding, Follows, JobView, Plugin, edit};

/// Where containers find the ConfigMap.
const MOUNT_PATH: &str = "/etc/volcano";

pub(super) struct Svc {
    publish_not_ready_addresses: bool,
    disable_network_policy: bool,
    inject_hosts_env: bool,
}

impl Default for Svc {
    fn default() -> Svc {
        Svc { publish_not_ready_addresses: false, disable_network_policy: false, inject_hosts_env: true }
    }
}

impl Plugin for Svc {
    fn name(&self) -> &'static str {
        "svc"
    }

    fn flags(&mut self) -> Flags<'_> {
        vec![
            ("publish-not-ready-addresses", Flag::Switch(&mut self.publish_not_ready_addresses)),
            ("disable-network-policy", Flag::Switch(&mut self.disable_network_policy)),
            ("inject-hosts-env", Flag::Switch(&mut self.inject_hosts_env)),
        ]
    }

    fn findings(&self, job: &JobView<'_>) -> Vec<Finding> {
        let size = hosts_size(job);
        if size > DATA_BYTES_MAX {
            let message = format!(
                "the job's host names take {size} bytes, and a ConfigMap holds at most {DATA_BYTES_MAX}; \
                 lower spec.tasks[*].replicas, or shorten the names of the job and its tasks"
            );
            return vec![Finding::holds_job(self.name(), message)];
        }
        let left_out =
            job.spec.tasks.iter().filter(|task| self.inject_hosts_env && !hosts_fit_env(job, task));
        let left_out = left_out.map(|task| {
            let why = edit::does_not_fit(&hosts_key(task), joined_hosts_size(job, task));
            format!("{why}; the variable is left out: read {MOUNT_PATH}/{} instead", file_key(task))
        });
        left_out.map(|message| Finding::reported(self.name(), message)).collect()
    }

    fn desired(&self, job: &JobView<'_>) -> Vec<Desired> {
        if hosts_size(job) > DATA_BYTES_MAX {
            return Vec::new();
        }
        let mut desired = vec![hosts(job), self.service(job)];
        desired.extend((!self.disable_network_policy).then(|| network_policy(job)));
        desired
    }

    fn decorate(&self, job: &JobView<'_>, task: &TaskSpec, index: i32, pod: &mut Value) {
        let (config_map, volume) = (config_map_name(job), edit::volume_name(job.name, "svc"));
        if let Some(spec) = edit::spec(pod) {
            edit::fill(spec, "hostname", &job.hostname(task, index));
            edit::fill(spec, "subdomain", job.name);
            edit::append(spec, "volumes", json!({ "name": volume, "configMap": { "name": config_map } }));
        }
        let variables = if self.inject_hosts_env { variables(job) } else { Vec::new() };
        for container in edit::all_containers(pod) {
            for variable in &variables {
                let source = json!({ "configMapKeyRef": { "name": config_map, "key": variable } });
                edit::append(container, "env", json!({ "name": variable, "valueFrom": source }));
            }
            edit::append(container, "volumeMounts", json!({ "name": volume, "mountPath": MOUNT_PATH }));
        }
    }
}

impl Svc {
    fn service(&self, job: &JobView<'_>) -> Desired {
        let mut spec = Map::new();
        spec.insert("clusterIP".to_owned(), "None".into());
        spec.insert("selector".to_owned(), selector(job));
        if self.publish_not_ready_addresses {
            spec.insert("publishNotReadyAddresses".to_owned(), true.into());
        }
        Desired::new(Kind::Service, job.name.to_owned(), json!({ "spec": spec }))
    }
}

fn network_policy(job: &JobView<'_>) -> Desired {
    let pods = json!({ "matchLabels": selector(job) });
    let spec = json!({
        "podSelector": pods,
        "ingress": [{ "from": [{ "podSelector": pods }] }],
        "policyTypes": ["Ingress"],
    });
    Desired::new(Kind::NetworkPolicy, job.name.to_owned(), json!({ "spec": spec }))
}

fn selector(job: &JobView<'_>) -> Value {
    json!({ labels::JOB_NAME: job.name, labels::JOB_NAMESPACE: job.namespace })
}

/// The hosts follow the job: scaling a task changes them.
fn hosts(job: &JobView<'_>) -> Desired {
    let mut data = Map::new();
    for task in &job.spec.tasks {
        let lines = job.domain_names(task).collect::<Vec<_>>().join("\n");
        data.insert(hosts_key(task), lines.replace('\n', ",").into());
        data.insert(file_key(task), lines.into());
        data.insert(number_key(task), job.n_hosts(task).to_string().into());
    }
    let object = Desired::new(Kind::ConfigMap, config_map_name(job), json!({ "data": data }));
    Desired { follows: Follows::Data, ..object }
}

/// The variables that every container gets from the ConfigMap.
fn variables(job: &JobView<'_>) -> Vec<String> {
    let of_task = |task| {
        let hosts = hosts_fit_env(job, task).then(|| hosts_key(task));
        hosts.into_iter().chain([number_key(task)])
    };
    job.spec.tasks.iter().flat_map(of_task).collect()
}

fn hosts_fit_env(job: &JobView<'_>, task: &TaskSpec) -> bool {
    edit::fits_env(&hosts_key(task), joined_hosts_size(job, task))
}

fn joined_hosts_size(job: &JobView<'_>, task: &TaskSpec) -> usize {
    job.names_size(task, job.n_hosts(task)).joined()
}

/// Each list of hosts is there twice.
fn hosts_size(job: &JobView<'_>) -> usize {
    let sizes = job.spec.tasks.iter().map(|task| joined_hosts_size(job, task).saturating_mul(2));
    sizes.fold(0, usize::saturating_add)
}

fn config_map_name(job: &JobView<'_>) -> String {
    format!("{}-svc", job.name)
}

fn file_key(task: &TaskSpec) -> String {
    format!("{}.host", variable_part(task))
}

fn hosts_key(task: &TaskSpec) -> String {
    format!("VC_{}_HOSTS", variable_part(task).to_uppercase())
}

fn number_key(task: &TaskSpec) -> String {
    format!("VC_{}_NUM", variable_part(task).to_uppercase())
}

/// The task's name as a variable's name may contain it.
fn variable_part(task: &TaskSpec) -> String {
    task.name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use crate::plugin::tests::fixture::{check, check_findings, world};
    use expect_test::expect;

    #[test]
    fn pods_find_each_other_by_name() {
        check(
            "plugin svc
             task ps
             task my-work replicas=2",
            expect![[r#"
                configmap a-svc, data follows the job
                  VC_MY_WORK_HOSTS = "a-my-work-0.a,a-my-work-1.a"
                  VC_MY_WORK_NUM = "2"
                  VC_PS_HOSTS = "a-ps-0.a"
                  VC_PS_NUM = "1"
                  my_work.host = "a-my-work-0.a\na-my-work-1.a"
                  ps.host = "a-ps-0.a"
                service a
                  {"clusterIP":"None","selector":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns"}}
                networkpolicy a
                  {"ingress":[{"from":[{"podSelector":{"matchLabels":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns"}}}]}],"podSelector":{"matchLabels":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns"}},"policyTypes":["Ingress"]}
                pod a-ps-0
                  hostname a-ps-0
                  subdomain a
                  volume {"configMap":{"name":"a-svc"},"name":"a-svc"}
                  main env VC_PS_HOSTS from "a-svc" "VC_PS_HOSTS"
                  main env VC_PS_NUM from "a-svc" "VC_PS_NUM"
                  main env VC_MY_WORK_HOSTS from "a-svc" "VC_MY_WORK_HOSTS"
                  main env VC_MY_WORK_NUM from "a-svc" "VC_MY_WORK_NUM"
                  main mount {"mountPath":"/etc/volcano","name":"a-svc"}
                pod a-my-work-0
                  hostname a-my-work-0
                  subdomain a
                  volume {"configMap":{"name":"a-svc"},"name":"a-svc"}
                  main env VC_PS_HOSTS from "a-svc" "VC_PS_HOSTS"
                  main env VC_PS_NUM from "a-svc" "VC_PS_NUM"
                  main env VC_MY_WORK_HOSTS from "a-svc" "VC_MY_WORK_HOSTS"
                  main env VC_MY_WORK_NUM from "a-svc" "VC_MY_WORK_NUM"
                  main mount {"mountPath":"/etc/volcano","name":"a-svc"}
                pod a-my-work-1
                  hostname a-my-work-1
                  subdomain a
                  volume {"configMap":{"name":"a-svc"},"name":"a-svc"}
                  main env VC_PS_HOSTS from "a-svc" "VC_PS_HOSTS"
                  main env VC_PS_NUM from "a-svc" "VC_PS_NUM"
                  main env VC_MY_WORK_HOSTS from "a-svc" "VC_MY_WORK_HOSTS"
                  main env VC_MY_WORK_NUM from "a-svc" "VC_MY_WORK_NUM"
                  main mount {"mountPath":"/etc/volcano","name":"a-svc"}
            "#]],
        );
    }

    #[test]
    fn each_argument_does_one_thing() {
        check(
            "plugin svc --publish-not-ready-addresses --disable-network-policy --inject-hosts-env=false
             task work",
            expect![[r#"
                configmap a-svc, data follows the job
                  VC_WORK_HOSTS = "a-work-0.a"
                  VC_WORK_NUM = "1"
                  work.host = "a-work-0.a"
                service a
                  {"clusterIP":"None","publishNotReadyAddresses":true,"selector":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns"}}
                pod a-work-0
                  hostname a-work-0
                  subdomain a
                  volume {"configMap":{"name":"a-svc"},"name":"a-svc"}
                  main mount {"mountPath":"/etc/volcano","name":"a-svc"}
            "#]],
        );
    }

    #[test]
    fn names_in_the_template_go_first() {
        check(
            "plugin svc
             task work replicas=2 hostname=h subdomain=sub
             task none replicas=0",
            expect![[r#"
                configmap a-svc, data follows the job
                  VC_NONE_HOSTS = ""
                  VC_NONE_NUM = "0"
                  VC_WORK_HOSTS = "h.sub"
                  VC_WORK_NUM = "1"
                  none.host = ""
                  work.host = "h.sub"
                service a
                  {"clusterIP":"None","selector":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns"}}
                networkpolicy a
                  {"ingress":[{"from":[{"podSelector":{"matchLabels":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns"}}}]}],"podSelector":{"matchLabels":{"volcano.sh/job-name":"a","volcano.sh/job-namespace":"ns"}},"policyTypes":["Ingress"]}
                pod a-work-0
                  hostname h
                  subdomain sub
                  volume {"configMap":{"name":"a-svc"},"name":"a-svc"}
                  main env VC_WORK_HOSTS from "a-svc" "VC_WORK_HOSTS"
                  main env VC_WORK_NUM from "a-svc" "VC_WORK_NUM"
                  main env VC_NONE_HOSTS from "a-svc" "VC_NONE_HOSTS"
                  main env VC_NONE_NUM from "a-svc" "VC_NONE_NUM"
                  main mount {"mountPath":"/etc/volcano","name":"a-svc"}
                pod a-work-1
                  hostname h
                  subdomain sub
                  volume {"configMap":{"name":"a-svc"},"name":"a-svc"}
                  main env VC_WORK_HOSTS from "a-svc" "VC_WORK_HOSTS"
                  main env VC_WORK_NUM from "a-svc" "VC_WORK_NUM"
                  main env VC_NONE_HOSTS from "a-svc" "VC_NONE_HOSTS"
                  main env VC_NONE_NUM from "a-svc" "VC_NONE_NUM"
                  main mount {"mountPath":"/etc/volcano","name":"a-svc"}
            "#]],
        );
    }

    #[test]
    fn scaling_changes_the_hosts_and_nothing_else() {
        let before = world("plugin svc\n task work replicas=1");
        let after = world("plugin svc\n task work replicas=3");
        let observed = before.desired();
        let repairs: Vec<String> = std::iter::zip(after.desired(), &observed)
            .filter_map(|(desired, observed)| desired.repair(&observed.object))
            .map(|patch| patch.to_string())
            .collect();
        expect![[r#"{"data":{"VC_WORK_HOSTS":"a-work-0.a,a-work-1.a,a-work-2.a","VC_WORK_NUM":"3","work.host":"a-work-0.a\na-work-1.a\na-work-2.a"}}"#]].assert_eq(&repairs.join("\n"));
    }

    #[test]
    fn a_host_list_that_no_program_could_be_started_with_stays_in_its_file() {
        // A host takes `a-work-9440.a,`, and 128 KiB less `VC_WORK_HOSTS=` and the end of the text leaves 131057 bytes.
        let fits = world("plugin svc\n task work replicas=9440");
        assert_eq!(fits.findings(), "");
        assert!(fits.pod("work", 0).contains("VC_WORK_HOSTS"));

        let too_long = world("plugin svc\n task work replicas=9441\n task other");
        expect![[r#"
            Reported: plugin svc: VC_WORK_HOSTS would take 131077 bytes, and Linux starts no program with more than 131071 in one variable; the variable is left out: read /etc/volcano/work.host instead
        "#]].assert_eq(&too_long.findings());
        expect![[r#"
            pod a-work-0
              hostname a-work-0
              subdomain a
              volume {"configMap":{"name":"a-svc"},"name":"a-svc"}
              main env VC_WORK_NUM from "a-svc" "VC_WORK_NUM"
              main env VC_OTHER_HOSTS from "a-svc" "VC_OTHER_HOSTS"
              main env VC_OTHER_NUM from "a-svc" "VC_OTHER_NUM"
              main mount {"mountPath":"/etc/volcano","name":"a-svc"}
        "#]]
        .assert_eq(&too_long.pod("work", 0));
    }

    #[test]
    fn volcano_b44_more_hosts_than_a_config_map_holds_hold_the_job() {
        check_findings(
            "plugin svc\n task work replicas=2000000000",
            expect![[r#"
            HoldsJob: plugin svc: the job's host names take 77777777778 bytes, and a ConfigMap holds at most 1048576; lower spec.tasks[*].replicas, or shorten the names of the job and its tasks
        "#]],
        );
    }

    #[test]
    fn long_names_and_dots_do_not_break_the_pod() {
        let text = world("job my.job\n plugin svc\n task work").pod("work", 0);
        expect![[r#"
            pod my.job-work-0
              hostname my.job-work-0
              subdomain my.job
              volume {"configMap":{"name":"my.job-svc"},"name":"my-job-5215ab3e-svc"}
              main env VC_WORK_HOSTS from "my.job-svc" "VC_WORK_HOSTS"
              main env VC_WORK_NUM from "my.job-svc" "VC_WORK_NUM"
              main mount {"mountPath":"/etc/volcano","name":"my-job-5215ab3e-svc"}
        "#]]
        .assert_eq(&text);
    }
}
