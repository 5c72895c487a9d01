//! Choice of the cluster of a run: an embedded one, or an existing one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use krafla_admission::Settings;
use krafla_api::{Key, Kind, Quantity, Time};
use krafla_apiserver::http::{SIMULATED_SUFFIX, VERSION_SUFFIX};
use krafla_client::{Access, AccessError, HttpsClient, Limits};
use krafla_cluster::{Client, ClientError, LogOptions, Manifests, Step};
use krafla_node::{Mode, Node};
use tokio::sync::watch;

use crate::cli::target::ClusterFlags;
use crate::cluster::{self, Cluster};
use crate::connection;
use crate::data_dir;
use crate::run::BadInput;
use crate::run_dir::RunDir;

/// What `krafla up` calls the context of its kubeconfig.
const CONTEXT: &str = "krafla";
/// A cluster on this machine that takes longer than this to say its version is not there.
const GREETING_MAX: Duration = Duration::from_secs(5);

/// How soon a log is asked for again that broke off.
const LOG_RETRIED_AFTER: Duration = Duration::from_millis(500);
/// How often it is asked for again when nothing else is waited for.
const LOG_LAST_TRIES_MAX: usize = 20;

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
            let access = Access::of_file(file).map_err(|error| BadInput(anyhow!("--kubeconfig: {error}")))?;
            return Ok(Choice::There(Box::new(access)));
        }
        let is_up = |access: &Access| access.context == CONTEXT;
        let variable = variable.filter(|files| !files.is_empty());
        match variable.map(Access::of_list).transpose() {
            Ok(access) => {
                if let Some(access) = access.filter(is_up) {
                    return Ok(Choice::There(Box::new(access)));
                }
            }
            // Whoever sets the variable means something by it; this can not be it.
            Err(error) if is_no_kubeconfig(&error, variable) => {
                let remedy = "correct or unset the variable, or use --kubeconfig or --own-cluster";
                return Err(BadInput(anyhow!("KUBECONFIG: {error}: {remedy}")).into());
            }
            // Another cluster than a `krafla up` would not be used anyway, whether it can be or not.
            Err(_) => {}
        }
        let of_directory = Access::of_file(&data_dir.join("kubeconfig")).ok().filter(is_up);
        if let Some(why) = of_directory.as_ref().and_then(|_| data_dir::distrust(data_dir)) {
            // Its owner could read whatever runs there, Secrets too, and change it.
            let kubeconfig = data_dir.join("kubeconfig");
            let remedy =
                format!("use --own-cluster, or --kubeconfig {} if you trust its owner", kubeconfig.display());
            return Err(BadInput(anyhow!("the cluster of {why}; {remedy}")).into());
        }
        Ok(of_directory.map_or(Choice::Own, |access| Choice::Here(Box::new(access))))
    }

    /// The cluster of a context, in the kubeconfig that was named or in those of kubectl.
    pub(crate) fn of_context(kubeconfig: Option<&Path>, context: &str) -> Result<Choice> {
        let (kubeconfig, context) = (kubeconfig.map(Path::to_owned), Some(context.to_owned()));
        let access = connection::access(&ClusterFlags { kubeconfig, context, namespace: None })?;
        Ok(Choice::There(Box::new(access)))
    }

    /// What to say of a `KUBECONFIG` that was passed over because none of its files is there: that may be an oversight.
    pub(crate) fn remark(&self, variable: Option<&OsStr>) -> Option<String> {
        let files = variable.filter(|files| !files.is_empty())?;
        let is_missed = !std::env::split_paths(files).any(|file| file.is_file());
        let instead = match self {
            Choice::There(_) => return None,
            Choice::Here(_) => "it is ignored",
            Choice::Own => "using an embedded cluster instead",
        };
        let files = Path::new(files).display();
        is_missed.then(|| format!("KUBECONFIG: file {files} does not exist; {instead}"))
    }
}

/// Whether one of the files of a list can not be read, or is something else, and not only what one of them names.
fn is_no_kubeconfig(error: &AccessError, files: Option<&OsStr>) -> bool {
    let is_listed =
        |path: &Path| files.is_some_and(|files| std::env::split_paths(files).any(|it| it == path));
    match error {
        AccessError::NotAKubeconfig { .. } => true,
        AccessError::File { path, .. } => is_listed(path),
        AccessError::Missing(_) | AccessError::NoContext { .. } | AccessError::Unusable { .. } => false,
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
    /// Whether its API server is that of this program.
    pub(crate) is_krafla: bool,
    /// Where containers without a workingDir have to be told to start, because the node would start them elsewhere.
    pub(crate) workdir: Option<PathBuf>,
    /// Whether its pods only seem to run.
    pub(crate) is_simulated: bool,
    own: Option<(Cluster, RunDir)>,
}

impl Home {
    /// A cluster that ends with the run.
    pub(crate) async fn own(workdir: PathBuf, capacity: Vec<(String, Quantity)>) -> Result<Home> {
        let dir = RunDir::make().map_err(|refusal| BadInput(anyhow!(refusal)))?;
        let config = cluster::Config {
            data_dir: dir.path().to_owned(),
            node_dir: dir.path().to_owned(),
            in_memory: true,
            workdir,
            capacity,
            simulate: None,
            reclaims: false,
            preempts: false,
            has_controllers: true,
            mode: Mode::LeaveNothing,
            is_served: false,
            settings: Settings::default(),
            authorization: Default::default(),
        };
        let cluster = Cluster::start(config).await?;
        let client = cluster.client.clone();
        Ok(Home {
            client: client.clone(),
            manifests: client,
            logs: Logs::Node(cluster.node.clone()),
            namespace: "default".to_owned(),
            is_krafla: true,
            workdir: None,
            is_simulated: false,
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
        let version = version
            .unwrap_or_else(|_| Err(ClientError::Unknown(format!("no answer within {GREETING_MAX:?}"))));
        let version = version.map_err(|error| {
            let why = match &error {
                ClientError::NotFound(_) => "the server is not a Kubernetes API server".to_owned(),
                other => plainly(other),
            };
            BadInput(anyhow!("cannot use the cluster of {origin} ({server}): {why}"))
        })?;
        let is_here = matches!(server.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
        let is_simulated = version.ends_with(SIMULATED_SUFFIX);
        let is_krafla = is_simulated || version.ends_with(VERSION_SUFFIX);
        let is_node_here = is_here && is_krafla && !is_simulated;
        let workdir = if is_node_here { Some(cluster::absolute(workdir)?) } else { None };
        let (shared, logs) = (Arc::new(client.clone()), Logs::Server(client));
        let (client, manifests): (Arc<dyn Client>, Arc<dyn Manifests>) = (shared.clone(), shared);
        Ok(Home { client, manifests, logs, namespace, is_krafla, workdir, is_simulated, own: None })
    }

    /// Puts objects that name no namespace into this one. In a cluster of its own, the run creates it.
    pub(crate) async fn enter_namespace(&mut self, namespace: &str) -> Result<()> {
        if self.is_own() {
            let object = serde_json::json!({ "metadata": { "name": namespace } });
            let created = self.client.write(&Step::Create { kind: Kind::Namespace, object }).await;
            if let Err(error) = created
                && !matches!(error, ClientError::AlreadyExists(_))
            {
                return Err(BadInput(anyhow!("--namespace {namespace}: {}", plainly(&error))).into());
            }
        }
        self.namespace = namespace.to_owned();
        Ok(())
    }

    /// Whether the cluster ends with the run. Nobody else can reach it.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Returns when pods can run, as far as that is up to the run itself.
    pub(crate) async fn until_pods_can_run(&self) {
        if let Some((cluster, _dir)) = &self.own {
            cluster.until_pods_can_run().await;
        }
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

/// Why a cluster did not do what it was asked, for whoever reads it on a screen: what became of a write that got no answer is
/// nothing that they can look after.
pub(crate) fn plainly(error: &ClientError) -> String {
    match error {
        ClientError::Unknown(_) | ClientError::Refused(_) => error.message().to_owned(),
        other => other.to_string(),
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

/// One attempt at a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// restartCount while it ran.
    pub(crate) number: u32,
    /// Whether a later attempt has begun.
    pub(crate) is_previous: bool,
}

impl Logs {
    /// What an attempt at a container writes, to its end, as far as the options want it. One that never started has no log.
    pub(crate) async fn follow(
        &self,
        pod: &Key,
        container: &str,
        attempt: Attempt,
        options: &LogOptions,
        is_ending: &watch::Receiver<bool>,
    ) -> Option<BoxStream<'static, Bytes>> {
        let options = LogOptions {
            follow: true,
            previous: attempt.is_previous,
            attempt: Some(attempt.number),
            ..options.clone()
        };
        match self {
            Logs::Node(node) => of_node(node, pod, container, options).await,
            Logs::Server(client) => {
                let (client, pod, container) = (client.clone(), pod.clone(), container.to_owned());
                let is_part = options.tail_lines.is_some() || options.since_seconds.is_some();
                let ask = move |broke_at: Option<Time>| {
                    let (client, pod, container) = (client.clone(), pod.clone(), container.clone());
                    // A part of a log cannot be asked for again: what it begins with has moved since.
                    let options = match broke_at.filter(|_| is_part) {
                        None => options.clone(),
                        since_time => LogOptions {
                            tail_lines: None,
                            since_seconds: None,
                            since_time,
                            ..options.clone()
                        },
                    };
                    async move { client.log(&pod, &container, &options).await }
                };
                Some(unbroken(ask, is_part, is_ending.clone(), LOG_RETRIED_AFTER))
            }
        }
    }

    /// The last lines that a container wrote.
    pub(crate) async fn last_lines(
        &self,
        pod: &Key,
        container: &str,
        n_lines: u64,
    ) -> Option<BoxStream<'static, Bytes>> {
        let options = LogOptions { tail_lines: Some(n_lines), ..LogOptions::default() };
        match self {
            Logs::Node(node) => of_node(node, pod, container, options).await,
            Logs::Server(client) => {
                let log = client.log(pod, container, &options).await.ok()?;
                Some(log.scan((), |(), piece| std::future::ready(piece.ok())).boxed())
            }
        }
    }
}

async fn of_node(
    node: &Node,
    pod: &Key,
    container: &str,
    options: LogOptions,
) -> Option<BoxStream<'static, Bytes>> {
    let log = node.logs(&pod.namespace, &pod.name, Some(container), options).await.ok()?;
    Some(log.scan((), |(), piece| std::future::ready(piece.ok())).boxed())
}

/// A log as a server tells it.
type Told = BoxStream<'static, Result<Bytes, ClientError>>;

/// A log that is asked for until it is told, and that goes on where it broke off: it is asked for again, from its beginning,
/// and what was told before is left out. When the run `is_ending` it is asked for a few times more: nobody waits for ever for
/// the words of a node that does not answer. One that `is_part` of a log is asked for from where it broke off.
fn unbroken<F>(
    ask: impl Fn(Option<Time>) -> F + Send + Sync + 'static,
    is_part: bool,
    is_ending: watch::Receiver<bool>,
    pause: Duration,
) -> BoxStream<'static, Bytes>
where
    F: Future<Output = Result<Told, ClientError>> + Send + 'static,
{
    let begun = (None::<Told>, 0_usize, 0_usize, Arc::new((ask, is_ending, pause)));
    let told =
        futures_util::stream::unfold(begun, move |(mut log, mut n_told, mut n_known, asker)| async move {
            let (ask, is_ending, pause) = &*asker;
            let mut n_last_tries = 0_usize;
            loop {
                let Some(pieces) = &mut log else {
                    let broke_at = (n_told > 0).then(|| Time(jiff::Timestamp::now()));
                    match ask(broke_at).await {
                        Ok(anew) => (log, n_known) = (Some(anew), if is_part { 0 } else { n_told }),
                        // The pod is gone, and with it the rest; or it has none.
                        Err(ClientError::NotFound(_) | ClientError::Refused(_)) => return None,
                        Err(_) => {
                            n_last_tries = n_last_tries.saturating_add(usize::from(*is_ending.borrow()));
                            if n_last_tries > LOG_LAST_TRIES_MAX {
                                return None;
                            }
                            tokio::time::sleep(*pause).await;
                        }
                    }
                    continue;
                };
                match pieces.next().await? {
                    Err(_) => log = None,
                    Ok(mut piece) => {
                        let known = piece.split_to(n_known.min(piece.len()));
                        n_known = n_known.saturating_sub(known.len());
                        n_told = n_told.saturating_add(piece.len());
                        if !piece.is_empty() {
                            return Some((piece, (log, n_told, n_known, asker)));
                        }
                    }
                }
            }
        });
    told.boxed()
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
        assert!(Choice::of(Some(nowhere), None, nowhere).is_err());
    }

    #[test]
    fn a_variable_that_names_nothing_is_told_of_and_one_that_names_something_else_is_refused() {
        let nowhere = Path::new("/nowhere");
        let choice = |variable: &OsStr| Choice::of(None, Some(variable), nowhere);
        let remark = |variable: &str| {
            let variable = OsStr::new(variable);
            let choice = choice(variable).unwrap();
            assert_eq!(word(&choice), "own");
            choice.remark(Some(variable)).unwrap_or_default()
        };
        assert_eq!(
            remark("/nowhere"),
            "KUBECONFIG: file /nowhere does not exist; using an embedded cluster instead"
        );
        assert_eq!(remark(""), "");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kubeconfig");
        for (text, expected) in [("[1, 2]", "not a kubeconfig"), ("a: [", "not a kubeconfig")] {
            std::fs::write(&file, text).unwrap();
            let error = choice(file.as_os_str()).err().unwrap();
            assert!(error.is::<BadInput>(), "{error}");
            let said = error.to_string();
            assert!(said.starts_with(&format!("KUBECONFIG: {}: {expected}", file.display())), "{said}");
            assert!(
                said.ends_with("correct or unset the variable, or use --kubeconfig or --own-cluster"),
                "{said}"
            );
        }
        // Somebody's cluster, which is used by kubectl alone, may need what we can not do.
        let missing = "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n\
            clusters: [{name: a, cluster: {server: 'https://a', certificate-authority: /nowhere}}]\n";
        for text in ["current-context: production\nclusters: null\n", missing] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(remark(file.to_str().unwrap()), "");
        }
    }

    #[tokio::test]
    async fn a_log_is_asked_for_until_it_is_told_and_goes_on_where_it_broke_off() {
        let lost = || ClientError::Unknown("lost".to_owned());
        let log = |pieces: Vec<Result<&'static str, ClientError>>| -> Told {
            let pieces =
                pieces.into_iter().map(|piece| piece.map(|text| Bytes::from_static(text.as_bytes())));
            futures_util::stream::iter(pieces.collect::<Vec<_>>()).boxed()
        };
        let n_asked = std::sync::atomic::AtomicUsize::new(0);
        let ask = move |_: Option<Time>| {
            let asked = n_asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            std::future::ready(match asked {
                0 => Err(lost()),
                1 => Err(ClientError::busy("later", None)),
                2 => Ok(log(vec![Ok("one\n"), Err(lost())])),
                3 => Ok(log(vec![Ok("on"), Ok("e\ntw"), Err(lost())])),
                _ => Ok(log(vec![Ok("one\ntwo\n"), Ok("three\n")])),
            })
        };
        let (_end, is_ending) = watch::channel(false);
        let told: Vec<Bytes> = unbroken(ask, false, is_ending.clone(), Duration::ZERO).collect().await;
        assert_eq!(told.concat(), b"one\ntwo\nthree\n");
        let gone = |_: Option<Time>| std::future::ready(Err(ClientError::not_found("pods \"a\"")));
        assert_eq!(unbroken(gone, false, is_ending, Duration::ZERO).count().await, 0);
        let (_end, is_ending) = watch::channel(true);
        let never = move |_: Option<Time>| std::future::ready(Err(lost()));
        assert_eq!(
            unbroken(never, false, is_ending, Duration::ZERO).count().await,
            0,
            "it is not waited for after the end of the run"
        );
    }
}
