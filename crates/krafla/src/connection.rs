//! The cluster that an everyday command uses, and requests to it.
//!
//! Which cluster: that of `--kubeconfig`, or else of the files in `KUBECONFIG`, or else the `krafla up` of this directory, or else that of
//! `~/.kube/config`, or else the one in whose pod krafla runs. `--context` passes over the `krafla up` of this directory, which has no
//! contexts to choose from.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use krafla_client::{Access, AccessError, HttpsClient, Limits, Request};
use krafla_cluster::ClientError;
use serde_json::Value;

use crate::cli::DATA_DIR;
use crate::cli::target::ClusterFlags;
use crate::data_dir;
use crate::failure::Failure;
use crate::screen::tell;

/// A request that takes longer than this is reported on a terminal.
const SLOW: Duration = Duration::from_secs(1);

/// A cluster that can be asked.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: HttpsClient,
    /// The namespace that is meant where none is named.
    pub(crate) namespace: String,
    /// The cluster, for messages.
    pub(crate) cluster: String,
}

/// What the environment says about clusters.
struct Environment {
    kubeconfig: Option<OsString>,
    home: Option<PathBuf>,
    data_dir: PathBuf,
}

/// The cluster that the flags name, or else the environment.
pub(crate) fn access(flags: &ClusterFlags) -> Result<Access, Failure> {
    let environment = Environment {
        kubeconfig: std::env::var_os("KUBECONFIG"),
        home: std::env::home_dir(),
        data_dir: DATA_DIR.into(),
    };
    choose(flags, &environment)
}

impl Connection {
    /// Chooses the cluster. Nothing is asked yet.
    pub(crate) fn open(flags: &ClusterFlags) -> Result<Connection, Failure> {
        let access = access(flags)?;
        let namespace = flags.namespace.clone().unwrap_or_else(|| access.namespace.clone());
        if namespace.is_empty() || namespace.contains(['/', '%']) {
            return Err(Failure::usage(format!("--namespace: {namespace:?} is not the name of a namespace")));
        }
        let cluster = format!("the cluster of {} ({})", access.origin, access.server);
        let client = HttpsClient::new(access, Limits::default()).map_err(Failure::usage)?;
        Ok(Connection { client, namespace, cluster })
    }

    /// Reads something, with patience if the server is busy.
    pub(crate) async fn read(&self, request: &Request) -> Result<Bytes, Failure> {
        self.patiently(self.client.read(request)).await.map_err(|error| self.failure(error))
    }

    /// Reads a JSON document.
    pub(crate) async fn read_json(&self, path: String) -> Result<Value, Failure> {
        json(&self.read(&Request::get(path)).await?)
    }

    /// Sends a write, once.
    pub(crate) async fn write(&self, request: &Request) -> Result<Value, Failure> {
        let body = self.patiently(self.client.ask(request)).await.map_err(|error| self.failure(error))?;
        json(&body)
    }

    /// An answer as a failure of the command.
    pub(crate) fn failure(&self, error: ClientError) -> Failure {
        Failure::from_client(&self.cluster, error)
    }

    /// Waits for an answer, and says so on a terminal if it takes long.
    async fn patiently<T>(&self, answer: impl Future<Output = T>) -> T {
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => return answer,
            () = tokio::time::sleep(SLOW) => {}
        }
        if std::io::stderr().is_terminal() {
            tell(&format!("waiting for an answer of {}\n", self.cluster));
        }
        answer.await
    }
}

fn json(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::Unreachable(format!("the answer of the server is not JSON: {error}")))
}

/// The cluster that the flags name, or else the environment.
fn choose(flags: &ClusterFlags, environment: &Environment) -> Result<Access, Failure> {
    let context = flags.context.as_deref();
    let read = |files: &[PathBuf], from: &str| {
        Access::of_context(files, context).map_err(|error| unusable(from, &error))
    };
    if let Some(file) = &flags.kubeconfig {
        return read(std::slice::from_ref(file), "--kubeconfig: ");
    }
    if let Some(list) = environment.kubeconfig.as_ref().filter(|list| !list.is_empty()) {
        let files: Vec<PathBuf> = std::env::split_paths(list).filter(|file| file.is_file()).collect();
        if files.is_empty() {
            let list = Path::new(list).display();
            let fix = "correct or unset the variable, or use --kubeconfig";
            return Err(Failure::usage(format!("KUBECONFIG: file {list} does not exist; fix: {fix}")));
        }
        return read(&files, "KUBECONFIG: ");
    }
    let of_directory = environment.data_dir.join("kubeconfig");
    if context.is_none() && of_directory.is_file() {
        if let Some(why) = data_dir::distrust(&environment.data_dir) {
            let fix = format!("use --kubeconfig {} if you trust its owner", of_directory.display());
            return Err(Failure::usage(format!("the cluster of {why}; fix: {fix}")));
        }
        return read(&[of_directory], "");
    }
    let of_home = environment.home.as_ref().map(|home| home.join(".kube/config"));
    if let Some(file) = of_home.filter(|file| file.is_file()) {
        return read(&[file], "");
    }
    Access::of_this_pod().map_err(|_| {
        let fix = "start one with `krafla up`, or name a kubeconfig with --kubeconfig or KUBECONFIG";
        Failure::usage(format!("no cluster found; fix: {fix}"))
    })
}

fn unusable(from: &str, error: &AccessError) -> Failure {
    Failure::usage(format!("{from}{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(file: &Path, name: &str) {
        let text = format!(
            "current-context: {name}\ncontexts: [{{name: {name}, context: {{cluster: a, namespace: of-{name}}}}}, \
             {{name: other, context: {{cluster: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'https://{name}'}}}}]\n"
        );
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    #[test]
    fn a_named_kubeconfig_wins_over_the_variable_the_directory_and_the_home() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let environment = |variable: Option<PathBuf>| Environment {
            kubeconfig: variable.map(PathBuf::into_os_string),
            home: Some(at("home")),
            data_dir: at("data"),
        };
        let chosen =
            |flags: &ClusterFlags, variable: Option<PathBuf>| match choose(flags, &environment(variable)) {
                Ok(access) => format!("{} {}", access.server.host().unwrap(), access.namespace),
                Err(failure) => failure.to_string().replace(&*dir.path().to_string_lossy(), "DIR"),
            };
        let none = ClusterFlags::default();
        let nothing = chosen(&none, None);
        assert!(nothing.starts_with("no cluster found; fix: start one with `krafla up`"), "{nothing}");
        kubeconfig(&at("home/.kube/config"), "home");
        assert_eq!(chosen(&none, None), "home of-home");
        crate::data_dir::make_private(&at("data")).unwrap();
        kubeconfig(&at("data/kubeconfig"), "here");
        assert_eq!(chosen(&none, None), "here of-here");
        let context = ClusterFlags { context: Some("other".to_owned()), ..none.clone() };
        assert_eq!(chosen(&context, None), "home default", "contexts are those of kubectl");
        kubeconfig(&at("variable"), "variable");
        assert_eq!(chosen(&none, Some(at("variable"))), "variable of-variable");
        let missing = "KUBECONFIG: file DIR/gone does not exist; fix: correct or unset the variable, or use --kubeconfig";
        assert_eq!(chosen(&none, Some(at("gone"))), missing);
        kubeconfig(&at("flag"), "flag");
        let flag = ClusterFlags { kubeconfig: Some(at("flag")), ..none };
        assert_eq!(chosen(&flag, Some(at("variable"))), "flag of-flag");
        let unknown = ClusterFlags { context: Some("x".to_owned()), ..flag };
        assert_eq!(
            chosen(&unknown, None),
            "--kubeconfig: DIR/flag: context \"x\" does not exist; contexts: flag, other"
        );
    }
}
