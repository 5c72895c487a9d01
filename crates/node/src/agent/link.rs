//! The connection to the supervisor: made again whenever it breaks, by starting a new supervisor if there is
//! none.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::NodeConfig;
use super::pods::Pods;
use crate::container::ContainerId;
use crate::mark::unmarked;
use crate::supervisor::protocol::{Report, Request, read_message, to_line};
use crate::supervisor::{READY, socket_path};

/// How long a new supervisor has to be ready. It waits for a leaving one, which may have to kill its
/// containers first.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long to wait before the next attempt to connect.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Where requests to the supervisor go in.
pub(crate) struct Link {
    requests: UnboundedSender<Request>,
    /// How many readers follow the log of each container.
    followers: Mutex<BTreeMap<ContainerId, usize>>,
}

/// Where requests to the supervisor come out.
pub(crate) type Requests = UnboundedReceiver<Request>;

impl Link {
    pub(crate) fn new() -> (Link, Requests) {
        let (requests, incoming) = unbounded_channel();
        (Link { requests, followers: Mutex::default() }, incoming)
    }

    /// Asks for something. What is asked for while there is no connection is sent when there is one.
    pub(crate) fn send(&self, request: Request) {
        // The other end lives as long as the node runs; after that nothing is asked for.
        let _ = self.requests.send(request);
    }

    pub(crate) fn follow(&self, id: &ContainerId) {
        let mut followers = self.followers.lock();
        let n_followers = followers.entry(id.clone()).or_default();
        *n_followers += 1;
        if *n_followers == 1 {
            self.send(Request::Follow { id: id.clone(), on: true });
        }
    }

    pub(crate) fn unfollow(&self, id: &ContainerId) {
        let mut followers = self.followers.lock();
        let Some(n_followers) = followers.get_mut(id) else { return };
        *n_followers = n_followers.saturating_sub(1);
        if *n_followers == 0 {
            followers.remove(id);
            self.send(Request::Follow { id: id.clone(), on: false });
        }
    }

    /// Keeps the connection, until the future is dropped. `child` holds the supervisor if this process
    /// started it.
    pub(crate) async fn run(
        &self,
        config: &NodeConfig,
        pods: &Pods,
        mut requests: Requests,
        child: &Mutex<Option<Child>>,
    ) {
        loop {
            match connect(config, child).await {
                Ok(connection) => {
                    let outcome = self.session(connection, pods, &mut requests).await;
                    tracing::warn!(outcome = ?outcome.err(), "lost the supervisor");
                }
                Err(error) => {
                    tracing::error!(%error, "no supervisor, so no pod can start");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    async fn session(&self, connection: UnixStream, pods: &Pods, requests: &mut Requests) -> io::Result<()> {
        pods.begin_session();
        let (reader, mut writer) = connection.into_split();
        let mut reader = BufReader::new(reader);
        let followed: Vec<_> = self.followers.lock().keys().cloned().collect();
        for id in followed {
            writer.write_all(&to_line(&Request::Follow { id, on: true })?).await?;
        }
        let listen = async {
            while let Some(report) = read_message::<Report, _>(&mut reader).await? {
                self.take_in(report, pods);
            }
            io::Result::Ok(())
        };
        let ask = async {
            let mut batch = Vec::new();
            while requests.recv_many(&mut batch, 64).await > 0 {
                let mut lines = Vec::new();
                for request in batch.drain(..) {
                    lines.extend(to_line(&request)?);
                }
                writer.write_all(&lines).await?;
            }
            Ok(())
        };
        tokio::select! {
            outcome = listen => outcome,
            outcome = ask => outcome,
        }
    }

    fn take_in(&self, report: Report, pods: &Pods) {
        match report {
            Report::Record(record) => {
                let pod = record.id.pod.clone();
                if !pods.observe(record) {
                    self.send(Request::Forget { pod });
                }
            }
            Report::Surroundings { id, seen } => pods.remember(&id, seen),
            Report::Synced => pods.end_sync(),
            Report::Grew(id) => pods.log_grew(&id),
        }
    }
}

/// Connects to the supervisor of the root directory, and starts one if there is none.
pub(super) async fn connect(config: &NodeConfig, child: &Mutex<Option<Child>>) -> io::Result<UnixStream> {
    // Whoever can reach the socket can run commands as this user.
    DirBuilder::new().recursive(true).mode(0o700).create(&config.root)?;
    let directory = File::open(&config.root)?;
    let socket = socket_path(&directory);
    match UnixStream::connect(&socket).await {
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused].contains(&error.kind()) => {
        }
        outcome => return outcome,
    }
    start(config, child).await?;
    UnixStream::connect(&socket).await
}

/// Starts a supervisor and waits until it is ready. Whoever stops waiting for that finds it in `child`.
async fn start(config: &NodeConfig, child: &Mutex<Option<Child>>) -> io::Result<()> {
    let log = fs::File::options().create(true).append(true).open(config.root.join("supervisor.log"))?;
    let Some((program, arguments)) = config.supervisor.split_first() else {
        return Err(io::Error::other("NodeConfig::supervisor names no command"));
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(&config.root).arg(config.mode.as_str());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut started = unmarked(|| command.spawn())?;
    let stdout = started.stdout.take().ok_or_else(|| io::Error::other("the supervisor has no output"))?;
    *child.lock() = Some(started);
    let mut line = String::new();
    let mut reader = BufReader::new(stdout);
    let read = tokio::time::timeout(READY_WITHIN, reader.read_line(&mut line)).await;
    if !matches!(read, Ok(Ok(_))) || line.trim_end() != READY {
        return Err(io::Error::other(not_ready(&config.root, read.is_err())));
    }
    Ok(())
}

fn not_ready(root: &Path, is_late: bool) -> String {
    let log = root.join("supervisor.log");
    if is_late {
        format!(
            "the supervisor is not ready: does another krafla use {}? see {}",
            root.display(),
            log.display()
        )
    } else {
        format!("the supervisor ended at once: see {}", log.display())
    }
}
