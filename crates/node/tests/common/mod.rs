//! A node of its own for each test, with a server in memory and a supervisor that is a real process.

#![allow(dead_code, reason = "each test file uses a part of this")]

pub(crate) mod server;

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use krafla_api::Uid;
use krafla_cluster::LogOptions;
use krafla_node::{Mode, Node, NodeConfig, ServerAccess};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};
use server::Server;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A machine with a server, on which a node can run.
pub(crate) struct Machine {
    pub(crate) server: Server,
    pub(crate) directory: TempDir,
    pub(crate) isolation: bool,
    pub(crate) tells: bool,
    pub(crate) open_files: Option<u64>,
    pub(crate) access: Option<Arc<dyn ServerAccess>>,
    mode: Mode,
}

impl Machine {
    pub(crate) fn new(mode: Mode) -> Machine {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine {
            server: Server::default(),
            directory,
            isolation: true,
            tells: false,
            open_files: None,
            access: None,
            mode,
        };
        std::fs::create_dir(machine.workdir()).unwrap();
        machine
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    pub(crate) fn workdir(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Starts a node. It stops when the returned value is dropped, as suddenly as if its process were killed.
    pub(crate) fn start_node(&self) -> RunningNode {
        let supervisor = vec![env!("CARGO_BIN_EXE_krafla-node-supervisor").into()];
        let mut config = NodeConfig::new("here", self.root(), self.workdir(), supervisor, self.mode);
        config.isolation = self.isolation;
        config.tells = self.tells;
        config.open_files = self.open_files.or(config.open_files);
        let node = Arc::new(Node::new(Arc::new(self.server.clone()), config, self.access.clone()));
        let (stop, stopped) = oneshot::channel::<()>();
        let runner = node.clone();
        let task = tokio::spawn(async move {
            runner.run(async move { stopped.await.unwrap_or_default() }).await;
        });
        RunningNode { node, stop: Some(stop), task }
    }

    /// Whether containers can have a view of the file system of their own here. A test of that must not fail
    /// where they can not, as in many containers.
    pub(crate) fn allows_isolation(&self) -> bool {
        let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_krafla-node-supervisor"));
        let output = check.arg("check").arg(self.directory.path()).output().unwrap();
        let why = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            println!("not tested, because this machine does not allow it: {why}");
        }
        output.status.success()
    }

    /// What a file in the working directory says.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.workdir().join(name)).unwrap_or_default()
    }

    /// Waits until nothing is left of a pod's files.
    pub(crate) async fn until_removed(&self, pod: &Uid) {
        let pods = self.root().join("pods");
        let directory = pods.join(&*pod.0);
        let wait = move || {
            let changes = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
            inotify::add_watch(&changes, &pods, inotify::WatchFlags::DELETE).unwrap();
            while directory.exists() {
                rustix::io::read(&changes, &mut [0; 4096]).unwrap();
            }
        };
        let waited = tokio::time::timeout(server::PATIENCE, tokio::task::spawn_blocking(wait)).await;
        waited.unwrap_or_else(|_| panic!("files of pod {pod} are still there")).unwrap();
    }

    /// Makes a pipe in the working directory, for containers to wait at.
    pub(crate) fn make_gate(&self, name: &str) -> Gate {
        let path = self.workdir().join(name);
        let status = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(status.success());
        Gate(path)
    }
}

/// A pipe that a command reads from to wait for the test. It opens once: a second reader that came before the first
/// opening has closed its end would read an end of file and not wait at all.
pub(crate) struct Gate(PathBuf);

impl Gate {
    /// Lets whoever reads from the pipe go on; waits until somebody does.
    pub(crate) async fn open(self) {
        let open =
            move || std::fs::File::options().write(true).open(self.0).unwrap().write_all(b"go\n").unwrap();
        tokio::task::spawn_blocking(open).await.unwrap();
    }

    /// The other way round: waits until a command has written to the pipe.
    pub(crate) async fn until_written(self) {
        tokio::task::spawn_blocking(move || std::fs::read(self.0).unwrap()).await.unwrap();
    }
}

pub(crate) struct RunningNode {
    pub(crate) node: Arc<Node>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl RunningNode {
    /// Stops the node in good order.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        (&mut self.task).await.unwrap();
    }

    /// Stops the node as if its process had been killed.
    pub(crate) async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// Waits until a pod has written something.
    pub(crate) async fn until_output(&self, pod: &str) {
        let follow = LogOptions { follow: true, ..LogOptions::default() };
        let mut log = self.node.logs("default", pod, None, follow).await.unwrap();
        log.next().await.unwrap().unwrap();
    }

    pub(crate) async fn logs(&self, pod: &str, options: LogOptions) -> String {
        let stream = self.node.logs("default", pod, None, options).await.unwrap();
        let pieces: Vec<_> = stream.try_collect().await.unwrap();
        String::from_utf8(pieces.concat()).unwrap()
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A container that runs a shell script.
pub(crate) fn sh(name: &str, script: &str) -> Value {
    // To Kubernetes `$$` is a `$` that is not the beginning of a `$(NAME)`.
    let script = script.replace("$$", "$$$$");
    json!({"name": name, "image": "busybox", "command": ["sh", "-c", script]})
}

/// A pod of one container that runs a shell script once.
pub(crate) fn once(script: &str) -> Value {
    json!({"restartPolicy": "Never", "containers": [sh("main", script)]})
}

/// Waits until a process is no more.
pub(crate) async fn until_ended(pid: &str) {
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    let Ok(pidfd): Result<OwnedFd, _> = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let wait = move || poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
    tokio::task::spawn_blocking(wait).await.unwrap();
}
