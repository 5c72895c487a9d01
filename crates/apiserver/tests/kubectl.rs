//! What real kubectl does with this server, where it is installed (`scripts/install-tools kubectl`).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use krafla_apiserver::admit::Admission;
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, RunningServer, ServerConfig, SystemEnv, Tokens, serve};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/bin/kubectl");

/// A server, and the way to it.
struct Cluster {
    dir: tempfile::TempDir,
    _server: RunningServer,
}

impl Cluster {
    /// None where kubectl is not installed.
    async fn start() -> Option<Cluster> {
        if !Path::new(PROGRAM).exists() {
            println!("{PROGRAM} is missing; scripts/install-tools kubectl makes it");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let env = Arc::new(SystemEnv);
        let api = Api::new(Store::in_memory(), env.clone(), Admission::default());
        api.bootstrap().await.unwrap();
        let config = ServerConfig::new(([127, 0, 0, 1], 0).into(), Arc::new(Tokens::for_now()));
        let server = serve(api, env, config).await.unwrap();
        std::fs::write(dir.path().join("kubeconfig"), server.kubeconfig()).unwrap();
        Some(Cluster { dir, _server: server })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs kubectl; returns whether it succeeded and what it said. Others are served meanwhile.
    async fn kubectl(&self, arguments: &str, input: &str) -> (bool, String) {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments.split(' '))
            .env("KUBECONFIG", self.path("kubeconfig"))
            .env("HOME", self.dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let input = input.to_owned();
        let ran = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        });
        let output = ran.await.unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    async fn does(&self, arguments: &str, input: &str) -> String {
        let (is_done, said) = self.kubectl(arguments, input).await;
        assert!(is_done, "kubectl {arguments}: {said}");
        said
    }
}

fn config_map(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{k: {value}, l: same}}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_applied_on_the_clients_side_is_applied_on_the_servers_side() {
    let Some(cluster) = Cluster::start().await else { return };
    cluster.does("apply -f -", &config_map("one")).await;
    cluster.does("apply --server-side -f -", &config_map("two")).await;
    let shown = cluster.does("get configmap a -o jsonpath={.data.k}", "").await;
    assert_eq!(shown, "two");
    let managers = "get configmap a --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}";
    let managers = cluster.does(managers, "").await;
    assert_eq!(managers, "kubectl-last-applied kubectl", "the fields have moved");
    // Somebody else's change is a conflict still.
    cluster
        .does("patch configmap a --field-manager=other --type=merge -p {\"data\":{\"k\":\"theirs\"}}", "")
        .await;
    let (is_done, said) = cluster.kubectl("apply --server-side -f -", &config_map("three")).await;
    assert!(!is_done && said.contains("conflict with \"other\""), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_applied_and_an_unknown_kind_is_told() {
    let Some(cluster) = Cluster::start().await else { return };
    let item = |name: &str| format!("- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}\n");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}{}", item("a"), item("b"));
    let said = cluster.does("apply -f -", &list).await;
    assert_eq!(said, "configmap/a created\nconfigmap/b created\n");
    let unknown = "apiVersion: none.example.com/v1\nkind: Nothing\nmetadata: {name: a}\n";
    let (is_done, said) = cluster.kubectl("apply -f -", unknown).await;
    assert!(
        !is_done && said.contains("no matches for kind \"Nothing\" in version \"none.example.com/v1\""),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_without_a_node_is_replaced_by_its_manifest() {
    let Some(cluster) = Cluster::start().await else { return };
    let pod =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: busybox}]}\n";
    cluster.does("create -f -", pod).await;
    assert_eq!(cluster.does("replace -f -", pod).await, "pod/a replaced\n");
}
