//! Where a run takes place: in a cluster of its own, or in one that is there already.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use krafla_admission::Settings;
use krafla_api::{Key, Quantity};
use krafla_client::{Access, Attempt, HttpsClient, Limits};
use krafla_node::{Mode, Node};
use krafla_runtime::{Client, Manifests};

use crate::cluster::{self, Cluster};
use crate::run::BadInput;
use crate::run_dir::RunDir;

/// What `krafla up` calls the context of its kubeconfig.
const CONTEXT: &str = "krafla";
/// How the version of an embedded server ends.
const VERSION_SUFFIX: &str = "+krafla";
/// A cluster on this machine that takes longer than this to say its version is not there.
const GREETING_MAX: Duration = Duration::from_secs(5);

/// Which cluster a user means.
pub(crate) enum Choice {
    /// One that is there.
    There(Box<Access>),
    /// The `krafla up` of this directory, if it is running.
    Here(Box<Access>),
    /// One that lasts as long as the run.
    Own,
}

impl Choice {
    /// The cluster that was named, or else a `krafla up` that `KUBECONFIG` names, or else that of a data directory, or else
    /// one of our own. A run must not end up in some other cluster only because a variable was set.
    pub(crate) fn of(named: Option<&Path>, variable: Option<&OsStr>, data_dir: &Path) -> Result<Choice> {
        if let Some(file) = named {
            return Ok(Choice::There(Box::new(
                Access::of_file(file).map_err(anyhow::Error::from).map_err(BadInput)?,
            )));
        }
        let is_up = |access: &Access| access.context == CONTEXT;
        let variable = variable.filter(|files| !files.is_empty());
        let of_variable = variable.and_then(|files| Access::of_list(files).ok()).filter(is_up);
        if let Some(access) = of_variable {
            return Ok(Choice::There(Box::new(access)));
        }
        let of_directory = Access::of_file(&data_dir.join("kubeconfig")).ok().filter(is_up);
        Ok(of_directory.map_or(Choice::Own, |access| Choice::Here(Box::new(access))))
    }
}

/// Where a run takes place.
pub(crate) struct Home {
    pub(crate) client: Arc<dyn Client>,
    /// The same cluster, for kinds that have no name here.
    pub(crate) manifests: Arc<dyn Manifests>,
    pub(crate) logs: Logs,
    /// The namespace that is meant where none is named.
    pub(crate) namespace: String,
    /// Where containers without a workingDir have to be told to start, because the node would start them elsewhere.
    pub(crate) workdir: Option<PathBuf>,
    own: Option<(Cluster, RunDir)>,
}

impl Home {
    /// A cluster that ends with the run.
    pub(crate) async fn own(workdir: PathBuf, capacity: Vec<(String, Quantity)>) -> Result<Home> {
        let dir = RunDir::make().context("no temporary directory can be made")?;
        let config = cluster::Config {
            data_dir: dir.path().to_owned(),
            node_dir: dir.path().to_owned(),
            in_memory: true,
            workdir,
            capacity,
            simulate: None,
            reclaims: false,
            has_controllers: true,
            mode: Mode::LeaveNothing,
            is_served: false,
            settings: Settings::default(),
        };
        let cluster = Cluster::start(config).await?;
        let client = cluster.client.clone();
        Ok(Home {
            client: client.clone(),
            manifests: client,
            logs: Logs::Node(cluster.node.clone()),
            namespace: "default".to_owned(),
            workdir: None,
            own: Some((cluster, dir)),
        })
    }

    /// A cluster that is there, if it answers.
    pub(crate) async fn there(access: Access, workdir: &Path) -> Result<Home> {
        let (origin, server) = (access.origin.clone(), access.server.clone());
        let namespace = access.namespace.clone();
        let client =
            HttpsClient::new(access, Limits::default()).map_err(anyhow::Error::from).map_err(BadInput)?;
        let version = tokio::time::timeout(GREETING_MAX, client.version()).await;
        let version = version.unwrap_or_else(|_| {
            Err(krafla_runtime::ClientError::Unknown(format!("no answer within {GREETING_MAX:?}")))
        });
        let version = version.map_err(|error| {
            BadInput(anyhow!("the cluster of {origin} ({server}) can not be used: {error}"))
        })?;
        let is_here = matches!(server.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
        let is_node_here = is_here && version.ends_with(VERSION_SUFFIX);
        let workdir = if is_node_here { Some(std::path::absolute(workdir)?) } else { None };
        let (shared, logs) = (Arc::new(client.clone()), Logs::Server(client));
        Ok(Home { client: shared.clone(), manifests: shared, logs, namespace, workdir, own: None })
    }

    /// Whether pods are processes of this machine, whatever their images are.
    pub(crate) fn runs_processes(&self) -> bool {
        self.own.is_some() || self.workdir.is_some()
    }

    /// Ends what belongs to the run, in order until somebody is `hurried`. What runs elsewhere goes on.
    pub(crate) async fn leave(self, say: impl FnOnce(&str), hurried: impl Future<Output = ()>) {
        if let Some((cluster, _dir)) = self.own {
            cluster.stop(say, hurried).await;
        }
    }
}

/// Where logs are read.
#[derive(Clone)]
pub(crate) enum Logs {
    /// From the node in this process.
    Node(Arc<Node>),
    /// From a server, over HTTPS.
    Server(HttpsClient),
}

impl Logs {
    /// What an attempt at a container writes, from its beginning to its end. One that never started has no log.
    pub(crate) async fn follow(
        &self,
        pod: &Key,
        container: &str,
        attempt: Attempt,
    ) -> Option<BoxStream<'static, Bytes>> {
        self.read(pod, container, Some(attempt), None).await
    }

    /// The last lines that a container wrote.
    pub(crate) async fn last_lines(
        &self,
        pod: &Key,
        container: &str,
        n_lines: u64,
    ) -> Option<BoxStream<'static, Bytes>> {
        self.read(pod, container, None, Some(n_lines)).await
    }

    async fn read(
        &self,
        pod: &Key,
        container: &str,
        attempt: Option<Attempt>,
        tail_lines: Option<u64>,
    ) -> Option<BoxStream<'static, Bytes>> {
        let follow = tail_lines.is_none();
        match self {
            Logs::Node(node) => {
                let attempt = attempt.map(|attempt| attempt.number);
                let options = krafla_node::LogOptions { follow, attempt, tail_lines, ..Default::default() };
                let log = node.logs(&pod.namespace, &pod.name, Some(container), options).await.ok()?;
                Some(log.scan((), |(), piece| std::future::ready(piece.ok())).boxed())
            }
            Logs::Server(client) => {
                let options = krafla_client::LogOptions { follow, attempt, tail_lines };
                client.log(pod, container, options).await.ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a kubeconfig is found.
    enum By {
        Name,
        Variable,
        Directory,
    }

    /// Whose cluster is used with a kubeconfig of this context.
    fn chosen(context: &str, by: By) -> &'static str {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kubeconfig");
        let text = format!(
            "current-context: {context}\ncontexts: [{{name: {context}, context: {{cluster: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'https://a'}}}}]\n"
        );
        std::fs::write(&file, text).unwrap();
        let nowhere = Path::new("/nowhere");
        let choice = match by {
            By::Name => Choice::of(Some(&file), None, nowhere),
            By::Variable => Choice::of(None, Some(file.as_os_str()), nowhere),
            By::Directory => Choice::of(None, None, dir.path()),
        };
        word(&choice.unwrap())
    }

    fn word(choice: &Choice) -> &'static str {
        match choice {
            Choice::There(_) => "there",
            Choice::Here(_) => "here",
            Choice::Own => "own",
        }
    }

    #[test]
    fn only_a_krafla_up_is_used_without_being_named() {
        assert_eq!(chosen("krafla", By::Name), "there");
        assert_eq!(chosen("production", By::Name), "there");
        assert_eq!(chosen("krafla", By::Variable), "there");
        assert_eq!(chosen("production", By::Variable), "own");
        assert_eq!(chosen("krafla", By::Directory), "here");
        assert_eq!(chosen("production", By::Directory), "own");
        let nowhere = Path::new("/nowhere");
        for variable in ["/nowhere", ""] {
            assert_eq!(word(&Choice::of(None, Some(OsStr::new(variable)), nowhere).unwrap()), "own");
        }
        assert!(Choice::of(Some(nowhere), None, nowhere).is_err());
    }
}
