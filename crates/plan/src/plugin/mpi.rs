//! `mpi`: the master knows the workers.
//!
//! It needs `svc` for the names and `ssh` for the logins; admission adds both.

use krafla_api::volcano::TaskSpec;
use serde_json::Value;

use super::arguments::{Flag, Flags};
use super::{Finding, JobView, Plugin, edit};

const HOSTS: &str = "MPI_HOST";
const PORT: &str = "mpijob-port";

pub(super) struct Mpi {
    master: String,
    worker: String,
    port: u16,
}

impl Default for Mpi {
    fn default() -> Mpi {
        Mpi { master: "master".to_owned(), worker: "worker".to_owned(), port: 22 }
    }
}

impl Plugin for Mpi {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn flags(&mut self) -> Flags<'_> {
        vec![
            ("master", Flag::Text(&mut self.master)),
            ("worker", Flag::Text(&mut self.worker)),
            ("port", Flag::Port(&mut self.port)),
        ]
    }

    fn findings(&self, job: &JobView<'_>) -> Vec<Finding> {
        let Some(workers) = job.task(&self.worker) else {
            let message = format!("the job has no task {:?}, so {HOSTS} is not set", self.worker);
            return vec![Finding::reported(self.name(), message)];
        };
        let size = job.names_size(workers, job.n_hosts(workers)).joined();
        let message = (!edit::fits_env(HOSTS, size)).then(|| {
            let why = edit::does_not_fit(HOSTS, size);
            format!("{why}; the variable is left out: use the host file that the svc plugin puts into /etc/volcano")
        });
        message.map(|message| Finding::reported(self.name(), message)).into_iter().collect()
    }

    fn decorate(&self, job: &JobView<'_>, task: &TaskSpec, _index: i32, pod: &mut Value) {
        if task.name == self.master {
            let Some(workers) = job.task(&self.worker) else { return };
            if edit::fits_env(HOSTS, job.names_size(workers, job.n_hosts(workers)).joined()) {
                let hosts = job.domain_names(workers).collect::<Vec<_>>().join(",");
                edit::all_containers(pod).for_each(|container| edit::add_env(container, HOSTS, &hosts));
            }
        }
        edit::all_containers(pod).for_each(|container| edit::open_port(container, PORT, self.port));
    }
}

#[cfg(test)]
mod tests {
    use crate::plugin::tests::fixture::{check, check_findings, world};
    use expect_test::expect;

    #[test]
    fn the_master_knows_the_workers_and_every_pod_opens_the_port() {
        check(
            "plugin mpi
             task master init=prep port=own:22
             task worker replicas=2
             task other",
            expect![[r#"
                pod a-master-0
                  init prep env MPI_HOST=a-worker-0.a,a-worker-1.a
                  init prep port "mpijob-port" 22
                  main env MPI_HOST=a-worker-0.a,a-worker-1.a
                  main port "own" 22
                pod a-worker-0
                  main port "mpijob-port" 22
                pod a-worker-1
                  main port "mpijob-port" 22
                pod a-other-0
                  main port "mpijob-port" 22
            "#]],
        );
    }

    #[test]
    fn no_workers_are_an_empty_list() {
        check(
            "plugin mpi --master=lead --worker=node --port=5000
             task lead
             task node replicas=0",
            expect![[r#"
                pod a-lead-0
                  main env MPI_HOST=
                  main port "mpijob-port" 5000
            "#]],
        );
    }

    #[test]
    fn without_a_worker_task_the_master_is_left_as_it_is() {
        check(
            "plugin mpi
             task master
             task other",
            expect![[r#"
                Reported: plugin mpi: the job has no task "worker", so MPI_HOST is not set
                pod a-master-0
                pod a-other-0
                  main port "mpijob-port" 22
            "#]],
        );
    }

    #[test]
    fn more_workers_than_a_variable_holds_are_left_to_the_host_file() {
        let large = "plugin mpi\n task master\n task worker replicas=2000000000";
        check_findings(
            large,
            expect![[r#"
                Reported: plugin mpi: MPI_HOST would take 42888888898 bytes, and Linux starts no program with more than 131071 in one variable; the variable is left out: use the host file that the svc plugin puts into /etc/volcano
            "#]],
        );
        assert!(!world(large).pod("master", 0).contains("MPI_HOST"));
    }
}
