//! `ssh`: the job's pods log in to each other without a password.
//!
//! ```text
//!   Secret <job>-ssh       mounted at ~/.ssh of every container
//!     id_rsa               one key pair for all pods of the job: given as arguments, or drawn at random
//!     id_rsa.pub
//!     authorized_keys      the same public key
//!     config               asks no questions; knows every host of the job
//! ```
//!
//! The key pair is drawn once and stays for the life of the job: pods that are running keep the one they started with, so
//! a second one would lock them out. The config follows the job, so that pods of a larger job know all its hosts. Volcano
//! does neither.

use std::fmt::Write;

use krafla_api::Kind;
use krafla_api::volcano::TaskSpec;
use krafla_cluster::{Recipe, SshKeyPair};
use serde_json::{Value, json};

use super::arguments::{Flag, Flags};
use super::desired::DATA_BYTES_MAX;
use super::{Desired, Finding, Follows, JobView, Lifetime, Plugin, edit};
use krafla_cluster::recipe::secret_text;

const PRIVATE_KEY: &str = "id_rsa";
const PUBLIC_KEY: &str = "id_rsa.pub";
const AUTHORIZED_KEYS: &str = "authorized_keys";
const CONFIG: &str = "config";

/// The directory within the volume. Mounted by itself it holds plain files that stay as they are while the pod runs; a
/// whole Secret would be mounted as links, which ssh does not trust.
const DIRECTORY: &str = ".ssh";

const ROOT_PATH: &str = "/root/.ssh";

pub(super) struct Ssh {
    key_file_path: String,
    private_key: String,
    public_key: String,
    port: u16,
}

impl Default for Ssh {
    fn default() -> Ssh {
        let nothing = String::new();
        Ssh {
            key_file_path: ROOT_PATH.to_owned(),
            private_key: nothing.clone(),
            public_key: nothing,
            port: 22,
        }
    }
}

impl Plugin for Ssh {
    fn name(&self) -> &'static str {
        "ssh"
    }

    fn flags(&mut self) -> Flags<'_> {
        vec![
            ("ssh-key-file-path", Flag::Text(&mut self.key_file_path)),
            ("ssh-private-key", Flag::Text(&mut self.private_key)),
            ("ssh-public-key", Flag::Text(&mut self.public_key)),
            ("ssh-port", Flag::Port(&mut self.port)),
        ]
    }

    fn findings(&self, job: &JobView<'_>) -> Vec<Finding> {
        let size = config_size(job);
        let is_too_large = size > CONFIG_BYTES_MAX;
        let finding = is_too_large.then(|| {
            let message = format!(
                "the ssh configuration of the job's hosts takes {size} bytes, and {CONFIG_BYTES_MAX} of a Secret are \
                 left for it; lower spec.tasks[*].replicas, or shorten the names of the job and its tasks"
            );
            Finding::holds_job(self.name(), message)
        });
        finding.into_iter().collect()
    }

    fn desired(&self, job: &JobView<'_>) -> Vec<Desired> {
        if config_size(job) > CONFIG_BYTES_MAX {
            return Vec::new();
        }
        let mut object = json!({ "type": "Opaque", "data": { CONFIG: secret_text(&self.config(job)) } });
        let keys =
            Recipe::SshKeyPair { private_key: PRIVATE_KEY, public_key: &[PUBLIC_KEY, AUTHORIZED_KEYS] };
        let given = self.given_keys();
        if let Some(pair) = &given {
            keys.fill(&mut object, pair);
        }
        vec![Desired {
            follows: Follows::DataKey(CONFIG),
            lifetime: Lifetime::Job,
            generate: given.is_none().then_some(keys),
            ..Desired::new(Kind::Secret, secret_name(job), object)
        }]
    }

    fn decorate(&self, job: &JobView<'_>, _task: &TaskSpec, _index: i32, pod: &mut Value) {
        let volume = edit::volume_name(job.name, "ssh");
        if let Some(spec) = edit::spec(pod) {
            edit::append(spec, "volumes", self.volume(job, &volume));
        }
        for container in edit::all_containers(pod) {
            let mount = json!({ "name": volume, "mountPath": self.key_file_path, "subPath": DIRECTORY });
            edit::append(container, "volumeMounts", mount);
        }
    }
}

impl Ssh {
    /// The private key decides: a public key alone is of no use.
    fn given_keys(&self) -> Option<SshKeyPair> {
        let pair = SshKeyPair { private_key: self.private_key.clone(), public_key: self.public_key.clone() };
        (!pair.private_key.is_empty()).then_some(pair)
    }

    fn volume(&self, job: &JobView<'_>, name: &str) -> Value {
        let files = [PRIVATE_KEY, PUBLIC_KEY, AUTHORIZED_KEYS, CONFIG];
        let items = files.map(|file| json!({ "key": file, "path": format!("{DIRECTORY}/{file}") }));
        // ssh as root insists that nobody else may read the key. Another user could not read a file that only root may.
        let mode = if self.key_file_path == ROOT_PATH { 0o600 } else { 0o644 };
        json!({
            "name": name,
            "secret": { "secretName": secret_name(job), "items": items, "defaultMode": mode },
        })
    }

    fn config(&self, job: &JobView<'_>) -> String {
        let mut text = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n".to_owned();
        for task in &job.spec.tasks {
            for index in 0..job.n_hosts(task) {
                let (host, domain_name) = (job.hostname(task, index), job.domain_name(task, index));
                // Writing to a String can not fail.
                let _ = write!(text, "Host {host}\n  HostName {domain_name}\n  Port {}\n", self.port);
            }
        }
        text
    }
}

/// A Secret's limit, less 64 KiB for the keys and the first lines.
const CONFIG_BYTES_MAX: usize = DATA_BYTES_MAX - 64 * 1024;

/// How many bytes the hosts take in the config.
fn config_size(job: &JobView<'_>) -> usize {
    const WORDS_OF_HOST: usize = "Host \n  HostName \n  Port 65535\n".len();
    let of_task = |task: &TaskSpec| {
        let names = job.names_size(task, job.n_hosts(task));
        let words = names.n_hosts.saturating_mul(WORDS_OF_HOST);
        names.hostnames.saturating_add(names.domain_names).saturating_add(words)
    };
    job.spec.tasks.iter().map(of_task).fold(0, usize::saturating_add)
}

fn secret_name(job: &JobView<'_>) -> String {
    format!("{}-ssh", job.name)
}

#[cfg(test)]
mod tests {
    use crate::plugin::tests::fixture::{check, check_findings, world};
    use expect_test::expect;
    use krafla_cluster::SshKeyPair;

    #[test]
    fn pods_log_in_to_each_other() {
        check(
            "plugin ssh
             task work replicas=2 init=prep",
            expect![[r#"
                secret a-ssh, data.config follows the job, kept for the life of the job, with SshKeyPair { private_key: "id_rsa", public_key: ["id_rsa.pub", "authorized_keys"] }
                  config = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nHost a-work-0\n  HostName a-work-0.a\n  Port 22\nHost a-work-1\n  HostName a-work-1.a\n  Port 22\n"
                pod a-work-0
                  volume {"name":"a-ssh","secret":{"defaultMode":384,"items":[{"key":"id_rsa","path":".ssh/id_rsa"},{"key":"id_rsa.pub","path":".ssh/id_rsa.pub"},{"key":"authorized_keys","path":".ssh/authorized_keys"},{"key":"config","path":".ssh/config"}],"secretName":"a-ssh"}}
                  init prep mount {"mountPath":"/root/.ssh","name":"a-ssh","subPath":".ssh"}
                  main mount {"mountPath":"/root/.ssh","name":"a-ssh","subPath":".ssh"}
                pod a-work-1
                  volume {"name":"a-ssh","secret":{"defaultMode":384,"items":[{"key":"id_rsa","path":".ssh/id_rsa"},{"key":"id_rsa.pub","path":".ssh/id_rsa.pub"},{"key":"authorized_keys","path":".ssh/authorized_keys"},{"key":"config","path":".ssh/config"}],"secretName":"a-ssh"}}
                  init prep mount {"mountPath":"/root/.ssh","name":"a-ssh","subPath":".ssh"}
                  main mount {"mountPath":"/root/.ssh","name":"a-ssh","subPath":".ssh"}
            "#]],
        );
    }

    #[test]
    fn given_keys_are_used_as_they_are() {
        check(
            "plugin ssh --ssh-private-key=PRIV --ssh-public-key=PUB --ssh-port=2222 --ssh-key-file-path=/home/u/.ssh
             task work hostname=h subdomain=s replicas=2",
            expect![[r#"
                secret a-ssh, data.config follows the job, kept for the life of the job
                  authorized_keys = "PUB"
                  config = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nHost h\n  HostName h.s\n  Port 2222\n"
                  id_rsa = "PRIV"
                  id_rsa.pub = "PUB"
                pod a-work-0
                  hostname h
                  subdomain s
                  volume {"name":"a-ssh","secret":{"defaultMode":420,"items":[{"key":"id_rsa","path":".ssh/id_rsa"},{"key":"id_rsa.pub","path":".ssh/id_rsa.pub"},{"key":"authorized_keys","path":".ssh/authorized_keys"},{"key":"config","path":".ssh/config"}],"secretName":"a-ssh"}}
                  main mount {"mountPath":"/home/u/.ssh","name":"a-ssh","subPath":".ssh"}
                pod a-work-1
                  hostname h
                  subdomain s
                  volume {"name":"a-ssh","secret":{"defaultMode":420,"items":[{"key":"id_rsa","path":".ssh/id_rsa"},{"key":"id_rsa.pub","path":".ssh/id_rsa.pub"},{"key":"authorized_keys","path":".ssh/authorized_keys"},{"key":"config","path":".ssh/config"}],"secretName":"a-ssh"}}
                  main mount {"mountPath":"/home/u/.ssh","name":"a-ssh","subPath":".ssh"}
            "#]],
        );
    }

    #[test]
    fn a_public_key_alone_is_not_used() {
        let desired = world("plugin ssh --ssh-public-key=PUB\n task work").desired();
        assert!(desired[0].generate.is_some());
    }

    #[test]
    fn the_recipe_says_where_the_drawn_keys_go() {
        let mut desired = world("plugin ssh\n task work replicas=0").desired().remove(0);
        let pair = SshKeyPair { private_key: "PRIV".into(), public_key: "PUB".into() };
        desired.generate.unwrap().fill(&mut desired.object, &pair);
        expect![[r#"{"apiVersion":"v1","data":{"authorized_keys":"UFVC","config":"U3RyaWN0SG9zdEtleUNoZWNraW5nIG5vClVzZXJLbm93bkhvc3RzRmlsZSAvZGV2L251bGwK","id_rsa":"UFJJVg==","id_rsa.pub":"UFVC"},"kind":"Secret","metadata":{"name":"a-ssh"},"type":"Opaque"}"#]].assert_eq(&desired.object.to_string());
    }

    #[test]
    fn volcano_b42_scaling_changes_the_config_and_keeps_the_keys() {
        let observed = world("plugin ssh --ssh-private-key=OLD\n task work").desired().remove(0);
        let desired = world("plugin ssh --ssh-private-key=NEW\n task work replicas=2").desired().remove(0);
        let repair = desired.repair(&observed.object).unwrap();
        let keys: Vec<&String> = repair["data"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["config"]);
    }

    #[test]
    fn a_bad_port_is_reported_and_22_is_used() {
        check_findings(
            "plugin ssh --ssh-port=70000\n task work",
            expect![[r#"
            Reported: plugin ssh: --ssh-port: 70000 is no port (1 to 65535); 22 is used instead
        "#]],
        );
        check_findings(
            "plugin ssh --ssh-port=text\n task work",
            expect![[r#"
            Reported: plugin ssh: argument 1 gives --ssh-port the value "text", which is not a whole number; it and all after it are ignored
        "#]],
        );
    }

    #[test]
    fn a_misplaced_private_key_is_not_repeated() {
        check_findings(
            "plugin ssh ssh-private-key=SECRET\n task work",
            expect![[r#"
            Reported: plugin ssh: argument 1 is no flag (flags start with a dash); it and all after it are ignored
        "#]],
        );
    }

    #[test]
    fn volcano_b44_more_hosts_than_a_secret_holds_hold_the_job() {
        check_findings(
            "plugin ssh\n task work replicas=2000000000",
            expect![[r#"
            HoldsJob: plugin ssh: the ssh configuration of the job's hosts takes 131777777780 bytes, and 983040 of a Secret are left for it; lower spec.tasks[*].replicas, or shorten the names of the job and its tasks
        "#]],
        );
    }
}
