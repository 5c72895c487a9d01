//! `pytorch`: every pod knows the master, how many take part, and its own rank.
//!
//! It needs `svc` for the names; admission adds it.

use krafla_api::volcano::TaskSpec;
use serde_json::{Value, json};

use super::arguments::{Flag, Flags};
use super::{Finding, JobView, Plugin, edit};

const PORT: &str = "pytorchjob-port";
const WAIT_CONTAINER: &str = "wait-for-master";

pub(super) struct Pytorch {
    master: String,
    worker: String,
    port: u16,
    wait_master_enabled: bool,
    wait_master_timeout_seconds: i64,
    wait_master_image: String,
}

impl Default for Pytorch {
    fn default() -> Pytorch {
        Pytorch {
            master: "master".to_owned(),
            worker: "worker".to_owned(),
            port: 23456,
            wait_master_enabled: false,
            wait_master_timeout_seconds: 300,
            wait_master_image: "busybox:1.36.1".to_owned(),
        }
    }
}

impl Plugin for Pytorch {
    fn name(&self) -> &'static str {
        "pytorch"
    }

    fn flags(&mut self) -> Flags<'_> {
        vec![
            ("master", Flag::Text(&mut self.master)),
            ("worker", Flag::Text(&mut self.worker)),
            ("port", Flag::Port(&mut self.port)),
            ("wait-master-enabled", Flag::Switch(&mut self.wait_master_enabled)),
            ("wait-master-timeout", Flag::Number(&mut self.wait_master_timeout_seconds)),
            ("wait-master-image", Flag::Text(&mut self.wait_master_image)),
        ]
    }

    fn findings(&self, job: &JobView<'_>) -> Vec<Finding> {
        if job.task(&self.master).is_some() {
            return Vec::new();
        }
        let message =
            format!("the job has no task {:?}, so its pods get no MASTER_ADDR and no RANK", self.master);
        vec![Finding::reported(self.name(), message)]
    }

    fn decorate(&self, job: &JobView<'_>, task: &TaskSpec, index: i32, pod: &mut Value) {
        let Some(master) = job.task(&self.master) else { return };
        let master_addr = job.domain_name(master, 0);
        // Volcano gives every master rank 0 and starts workers at 1, which is only right for one master.
        let rank = job.rank(&self.master, &self.worker, task, index).map(|rank| rank.to_string());
        let (port, world_size) = (self.port.to_string(), self.world_size(job).to_string());
        for container in edit::containers(pod) {
            edit::open_port(container, PORT, self.port);
            edit::add_env(container, "MASTER_ADDR", &master_addr);
            edit::add_env(container, "MASTER_PORT", &port);
            edit::add_env(container, "WORLD_SIZE", &world_size);
            if let Some(rank) = &rank {
                edit::add_env(container, "RANK", rank);
            }
        }
        if self.wait_master_enabled && task.name == self.worker {
            self.wait_for(&master_addr, pod);
        }
    }
}

impl Pytorch {
    fn world_size(&self, job: &JobView<'_>) -> i32 {
        let takes_part = |task: &&TaskSpec| task.name == self.master || task.name == self.worker;
        let replicas = job.spec.tasks.iter().filter(takes_part).map(|task| task.replicas);
        replicas.fold(0, i32::saturating_add)
    }

    /// The last init container holds the pod back until the master listens.
    fn wait_for(&self, master_addr: &str, pod: &mut Value) {
        let has_it = edit::all_containers(pod).any(|container| edit::name(container) == WAIT_CONTAINER);
        let Some(spec) = edit::spec(pod).filter(|_| !has_it) else { return };
        let script = wait_script(master_addr, self.port, self.wait_master_timeout_seconds);
        edit::append(
            spec,
            "initContainers",
            json!({
                "name": WAIT_CONTAINER,
                "image": self.wait_master_image,
                "command": ["sh", "-c", script],
            }),
        );
    }
}

/// Tries every two seconds. Images differ in what they bring: `nc` in most small ones, `bash` in most large ones.
fn wait_script(host: &str, port: u16, timeout_seconds: i64) -> String {
    format!(
        r#"host="{host}" port={port} timeout={timeout_seconds} start=$(date +%s)
listens() {{
  if command -v nc; then nc -z -w 2 "$host" "$port"; else bash -c ": </dev/tcp/$host/$port"; fi >/dev/null 2>&1
}}
until listens; do
  if [ $(($(date +%s) - start)) -ge "$timeout" ]; then
    echo "$host:$port does not listen after $timeout seconds" >&2
    exit 1
  fi
  sleep 2
done
"#
    )
}

#[cfg(test)]
mod tests {
    use super::wait_script;
    use crate::plugin::tests::fixture::check;
    use expect_test::expect;

    #[test]
    fn every_pod_knows_the_master_and_its_own_rank() {
        check(
            "plugin pytorch
             task master port=own:23456
             task worker replicas=2 init=prep
             task other",
            expect![[r#"
                pod a-master-0
                  main env MASTER_ADDR=a-master-0.a
                  main env MASTER_PORT=23456
                  main env WORLD_SIZE=3
                  main env RANK=0
                  main port "own" 23456
                pod a-worker-0
                  main env MASTER_ADDR=a-master-0.a
                  main env MASTER_PORT=23456
                  main env WORLD_SIZE=3
                  main env RANK=1
                  main port "pytorchjob-port" 23456
                pod a-worker-1
                  main env MASTER_ADDR=a-master-0.a
                  main env MASTER_PORT=23456
                  main env WORLD_SIZE=3
                  main env RANK=2
                  main port "pytorchjob-port" 23456
                pod a-other-0
                  main env MASTER_ADDR=a-master-0.a
                  main env MASTER_PORT=23456
                  main env WORLD_SIZE=3
                  main port "pytorchjob-port" 23456
            "#]],
        );
    }

    #[test]
    fn volcano_b42_several_masters_share_the_ranks_with_the_workers() {
        check(
            "plugin pytorch --master=m --worker=w --port=9999
             task m replicas=2
             task w",
            expect![[r#"
                pod a-m-0
                  main env MASTER_ADDR=a-m-0.a
                  main env MASTER_PORT=9999
                  main env WORLD_SIZE=3
                  main env RANK=0
                  main port "pytorchjob-port" 9999
                pod a-m-1
                  main env MASTER_ADDR=a-m-0.a
                  main env MASTER_PORT=9999
                  main env WORLD_SIZE=3
                  main env RANK=1
                  main port "pytorchjob-port" 9999
                pod a-w-0
                  main env MASTER_ADDR=a-m-0.a
                  main env MASTER_PORT=9999
                  main env WORLD_SIZE=3
                  main env RANK=2
                  main port "pytorchjob-port" 9999
            "#]],
        );
    }

    #[test]
    fn without_a_master_task_nothing_is_done() {
        check(
            "plugin pytorch
             task worker",
            expect![[r#"
                Reported: plugin pytorch: the job has no task "master", so its pods get no MASTER_ADDR and no RANK
                pod a-worker-0
            "#]],
        );
    }

    #[test]
    fn workers_wait_for_the_master_on_request() {
        check(
            "plugin pytorch --wait-master-enabled --wait-master-timeout=60 --wait-master-image=tiny
             task master
             task worker init=prep",
            expect![[r#"
                pod a-master-0
                  main env MASTER_ADDR=a-master-0.a
                  main env MASTER_PORT=23456
                  main env WORLD_SIZE=2
                  main env RANK=0
                  main port "pytorchjob-port" 23456
                pod a-worker-0
                  init wait-for-master image "tiny"
                  init wait-for-master command[0] sh
                  init wait-for-master command[1] -c
                  init wait-for-master command[2] host="a-master-0.a" port=23456 timeout=60 start=$(date +%s)
                  main env MASTER_ADDR=a-master-0.a
                  main env MASTER_PORT=23456
                  main env WORLD_SIZE=2
                  main env RANK=1
                  main port "pytorchjob-port" 23456
            "#]],
        );
    }

    #[test]
    fn a_wait_container_of_the_user_stays_the_only_one() {
        check(
            "plugin pytorch --wait-master-enabled
             task master replicas=0
             task worker init=wait-for-master",
            expect![[r#"
                pod a-worker-0
                  main env MASTER_ADDR=a-master-0.a
                  main env MASTER_PORT=23456
                  main env WORLD_SIZE=1
                  main env RANK=0
                  main port "pytorchjob-port" 23456
            "#]],
        );
    }

    #[test]
    fn the_wait_ends_when_the_master_listens_or_the_time_is_up() {
        let run = |port: u16, timeout_seconds: i64| {
            let script = wait_script("127.0.0.1", port, timeout_seconds);
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        let master = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(run(master.local_addr().unwrap().port(), 60), (Some(0), String::new()));
        // Nobody listens on port 1.
        assert_eq!(run(1, 0), (Some(1), "127.0.0.1:1 does not listen after 0 seconds\n".to_owned()));
    }
}
