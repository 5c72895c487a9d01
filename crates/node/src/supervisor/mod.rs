//! The supervisor: one small, single-threaded process per data directory, and the parent of all containers.
//!
//! ```text
//!   krafla ──spawns──> supervisor ──spawns──> container, container, ...
//!      └───── unix socket ───┘                     │ stdout, stderr
//!                            ├── <root>/pods/<uid>/<name>.<attempt>.log  <──┘
//!                            └── <root>/records   start and end of each
//! ```
//!
//! Krafla may be killed at any moment and loses nothing: containers, their output and how they ended are in
//! the hands of this process, and a restarted krafla finds them again through the socket. It does what it is
//! asked and reports what happens; what to start and when to restart is decided by the node.

/// Says something in the supervisor's log. If that can not be written, because the disk is full for instance, it goes on all the same.
macro_rules! note {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($words)*)));
    }};
}

pub mod cgroup;
mod containers;
mod input;
pub(crate) mod last_words;
pub(crate) mod log_file;
mod outbox;
mod output;
pub mod protocol;
mod records;
mod signals;
pub(crate) mod spawn;
pub mod stage;
mod strays;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, geteuid, getpid, getrlimit, set_child_subreaper, setrlimit, setsid,
};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{Instant, sleep_until};

use containers::Containers;
use protocol::{Request, read_message, to_line};
use strays::Traces;

use crate::tree::remove_tree;

/// What happens to the containers when krafla dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They run on, and the supervisor stays until the last one has ended (`krafla up`).
    OutliveNode,
    /// They are terminated, and nothing is left of them (`krafla up --in-memory`).
    EndWithNode,
    /// The same, and the root directory goes too: it was made for this one node (`krafla run`).
    LeaveNothing,
}

impl Mode {
    /// As it stands on the supervisor's command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Mode::OutliveNode => "outlive-node",
            Mode::EndWithNode => "end-with-node",
            Mode::LeaveNothing => "leave-nothing",
        }
    }

    fn of(argument: &OsStr) -> Option<Mode> {
        let all = [Mode::OutliveNode, Mode::EndWithNode, Mode::LeaveNothing];
        all.into_iter().find(|mode| argument == mode.as_str())
    }

    /// Whether containers end when krafla does.
    pub(crate) const fn ends_with_node(self) -> bool {
        match self {
            Mode::OutliveNode => false,
            Mode::EndWithNode | Mode::LeaveNothing => true,
        }
    }
}

/// How long the supervisor stays when nothing runs and no node is attached: a krafla that is just restarting
/// shall not have to wait for a new one.
const IDLE_AFTER: Duration = Duration::from_secs(5);

/// How often a supervisor without a node looks whether its root directory still exists. If it does not, no
/// node can ever attach again.
const ROOT_CHECK_EVERY: Duration = Duration::from_secs(2);

/// How long after the end of a container the strays of all containers are looked for. Looking costs a walk
/// through `/proc`, so the ends of many containers share one.
const SWEEP_AFTER: Duration = Duration::from_millis(100);

/// What asks the supervisor to kill all containers, also those that are ending already, and to leave. SIGTERM asks it to
/// end them, with their grace.
pub(crate) const KILL_ALL: Signal = Signal::QUIT;

/// The name of the directory of all pods in the root directory.
const PODS: &str = "pods";

/// The name of the socket in the root directory.
const SOCKET: &str = "supervisor.sock";

/// What the supervisor says on its standard output once it can be connected to.
pub(crate) const READY: &str = "ready";

/// Runs the supervisor, until it is not needed any more. The arguments are those that the node gives: `<root>
/// <mode>`.
///
/// The supervisor calls itself with other arguments for [`stage`]s. Therefore this must be called before
/// anything else has started threads, with the last arguments of the command line, whatever they are.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<_> = args.into_iter().collect();
    match args.split_first() {
        Some((what, args)) if what == "stage" => return stage::main(args),
        Some((what, args)) if what == "enter" => return stage::enter(args),
        Some((what, args)) if what == "view" => return stage::view(args),
        Some((what, args)) if what == "join" => return stage::join(args),
        Some((what, args)) if what == "check" => return stage::check(args),
        _ => {}
    }
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("supervisor: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Ends all containers of a root directory whose supervisor was killed, and whose node will not start another one. Nobody else may
/// use the directory, which may be removed after this.
pub fn end_lost(root: &Path) {
    if let Ok(root) = fs::canonicalize(root) {
        Traces::of(&root).kill_lost();
    }
}

/// The socket's path by way of an open directory: the path itself may be longer than the 108 bytes that Linux
/// allows.
pub(crate) fn socket_path(directory: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(SOCKET)
}

fn run(args: Vec<OsString>) -> anyhow::Result<()> {
    let [root, mode] = args.as_slice() else {
        bail!("want two arguments, the root directory and the mode: krafla itself starts the supervisor");
    };
    let Some(mode) = Mode::of(mode) else {
        bail!("unknown mode {}: want outlive-node, end-with-node or leave-nothing", mode.display());
    };
    // By its own name, however it was called: containers are known by their place.
    let root = &fs::canonicalize(root).context("cannot find the root directory")?;
    detach()?;
    let lock = File::create(root.join("supervisor.lock")).context("cannot create the lock file")?;
    // Waits for a supervisor that is just leaving. One that stays answers on the socket, and nobody starts a
    // second.
    flock(&lock, FlockOperation::LockExclusive).context("cannot lock the lock file")?;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, supervise(root, mode, own_arguments(args.len())))
}

/// The arguments that make this program the supervisor, before those that the supervisor itself is given.
fn own_arguments(n_given: usize) -> Vec<OsString> {
    let all: Vec<_> = std::env::args_os().skip(1).collect();
    all.get(..all.len().saturating_sub(n_given)).unwrap_or_default().to_vec()
}

/// Leaves krafla's terminal and takes in what containers leave behind.
fn detach() -> anyhow::Result<()> {
    // Fails if this process leads a group already, as when it is started by hand from a shell: then it has a
    // terminal.
    let _ = setsid();
    set_child_subreaper(Some(getpid())).context("cannot become the parent of orphans")?;
    // Two pipes and a log file for each container.
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    Ok(())
}

async fn supervise(root: &Path, mode: Mode, stage: Vec<OsString>) -> anyhow::Result<()> {
    let directory = File::open(root).context("cannot open the root directory")?;
    let socket = socket_path(&directory);
    let _ = fs::remove_file(&socket);
    let containers = Containers::load(root, stage).context("no place for the files of pods")?;
    let mut supervisor = Supervisor {
        sweep_at: containers.has_old_cgroups().then(Instant::now),
        directory,
        listener: UnixListener::bind(&socket).context("cannot bind the socket")?,
        child_ended: signal(SignalKind::child())?,
        asked_to_end: signal(SignalKind::terminate())?,
        asked_to_kill: signal(SignalKind::from_raw(KILL_ALL.as_raw()))?,
        containers: Rc::new(containers),
        node: None,
    };
    println!("{READY}");
    std::io::stdout().flush()?;
    if supervisor.run(mode).await == Leave::EndingAll {
        supervisor.end_all().await;
    }
    if mode.ends_with_node() {
        // Nobody will ask for the records and logs again, and nobody else may be left to remove them.
        supervisor.containers.remove_all();
    }
    // Before the lock goes: whoever waits for it will make a new socket.
    let _ = fs::remove_file(&socket);
    if mode == Mode::LeaveNothing {
        // Krafla removes it too, unless it was killed. Whoever is first, the other finds nothing.
        let _ = remove_tree(root);
    }
    Ok(())
}

/// How the supervisor leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// There is nothing to do.
    Quietly,
    /// Whatever runs has to end first.
    EndingAll,
}

struct Supervisor {
    /// The root directory, however it is called by now.
    directory: File,
    listener: UnixListener,
    child_ended: unix::Signal,
    asked_to_end: unix::Signal,
    asked_to_kill: unix::Signal,
    containers: Rc<Containers>,
    /// The connection to the node, while there is one.
    node: Option<JoinHandle<()>>,
    sweep_at: Option<Instant>,
}

impl Supervisor {
    /// Does what it is asked, until it is not needed any more.
    async fn run(&mut self, mode: Mode) -> Leave {
        loop {
            let (is_alone, is_idle) = (self.node.is_none(), self.containers.is_idle());
            let leave_at = (is_alone && is_idle).then(|| Instant::now() + IDLE_AFTER);
            let look_at = (is_alone && !is_idle).then(|| Instant::now() + ROOT_CHECK_EVERY);
            tokio::select! {
                Ok((connection, _)) = self.listener.accept() => self.attach(connection),
                Some(()) = self.child_ended.recv() => self.reap(),
                Some(()) = self.asked_to_end.recv() => return Leave::EndingAll,
                Some(()) = self.asked_to_kill.recv() => {
                    self.containers.kill_all();
                    return Leave::EndingAll;
                }
                () = ended(&mut self.node) => {
                    self.node = None;
                    // Before it leaves, it looks at everybody. If nothing has to end first, that is now.
                    if !(mode.ends_with_node() && self.containers.is_idle()) {
                        self.containers.sweep_after_node();
                    }
                    if mode.ends_with_node() {
                        return Leave::EndingAll;
                    }
                }
                () = at(self.sweep_at) => self.sweep(),
                () = at(leave_at) => return Leave::Quietly,
                () = at(look_at) => {
                    if self.directory.metadata().is_ok_and(|directory| directory.nlink() == 0) {
                        return Leave::EndingAll;
                    }
                }
            }
        }
    }

    fn attach(&mut self, connection: UnixStream) {
        let Ok(peer) = connection.peer_cred() else { return };
        // Whoever may connect may run commands as this user.
        if ![0, geteuid().as_raw()].contains(&peer.uid()) {
            return;
        }
        self.containers.set_node(peer.pid().and_then(Pid::from_raw));
        if self.node.is_some() {
            // The connection before is gone, though that was not seen yet: the same is done as if it had been.
            self.containers.sweep_after_node();
        }
        self.node = Some(tokio::task::spawn_local(serve(self.containers.clone(), connection)));
    }

    fn reap(&mut self) {
        self.containers.reap();
        if self.containers.has_reaped() {
            self.sweep_at.get_or_insert_with(|| Instant::now() + SWEEP_AFTER);
        }
    }

    fn sweep(&mut self) {
        let found_any = self.containers.sweep();
        self.sweep_at = found_any.then(|| Instant::now() + SWEEP_AFTER);
    }

    /// Ends all containers, with their grace unless somebody does not want to wait for that, and what they have left
    /// behind.
    async fn end_all(&mut self) {
        // What a node still asks for would be started only to be ended.
        if let Some(node) = self.node.take() {
            node.abort();
        }
        while let Some(again_after) = self.containers.stop_all() {
            tokio::select! {
                Some(()) = self.child_ended.recv() => self.containers.reap(),
                Some(()) = self.asked_to_kill.recv() => self.containers.kill_all(),
                () = tokio::time::sleep(again_after) => {}
            }
        }
        while self.containers.sweep_all() {
            tokio::select! {
                Some(()) = self.child_ended.recv() => self.containers.reap(),
                () = tokio::time::sleep(SWEEP_AFTER) => {}
            }
        }
    }
}

async fn ended(task: &mut Option<JoinHandle<()>>) {
    match task {
        // However it ended, the connection is gone.
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Serves one node, until it closes the connection or another one attaches.
async fn serve(containers: Rc<Containers>, connection: UnixStream) {
    let (reader, writer) = connection.into_split();
    let listen = async {
        let mut reader = BufReader::new(reader);
        loop {
            match read_message::<Request, _>(&mut reader).await {
                Ok(Some(request)) => {
                    let is_start = matches!(request, Request::Start(_));
                    containers.handle(request);
                    // A start takes as long as many reports, and hundreds may wait here to be read.
                    if is_start {
                        containers.tell_ends().await;
                    }
                }
                Ok(None) => return,
                Err(error) => return note!("cannot read a request: {error}"),
            }
        }
    };
    let session = containers.attach();
    let tell = async {
        let mut writer = writer;
        while let Some(reports) = containers.reports(session).await {
            let lines =
                reports.iter().flat_map(|report| to_line(report).unwrap_or_default()).collect::<Vec<_>>();
            if writer.write_all(&lines).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        () = tell => {}
        () = listen => {}
    }
}

#[cfg(test)]
mod tests {
    use krafla_api::Uid;
    use serde_json::json;

    use super::protocol::Report;
    use super::*;
    use crate::container::ContainerId;

    /// A container without a process, which is started at once.
    fn pause(n: usize) -> Request {
        let id =
            ContainerId { pod: Uid::from(format!("p{n}").as_str()), name: "main".to_owned(), attempt: 0 };
        let launch = json!({
            "id": id, "argv": [], "env": [], "working_dir": "/", "sandbox": null, "limits": {},
            "explains_by_log": false, "backoff_seconds": 10, "grace_seconds": 30,
        });
        Request::Start(serde_json::from_value(launch).unwrap())
    }

    #[tokio::test]
    async fn an_end_is_told_before_all_starts_are_made() {
        const N_STARTS: usize = 20;
        let root = tempfile::tempdir().unwrap();
        let containers = Rc::new(Containers::load(root.path(), Vec::new()).unwrap());
        let (here, there) = UnixStream::pair().unwrap();
        let id = |n: usize| ContainerId {
            pod: Uid::from(format!("p{n}").as_str()),
            name: "main".to_owned(),
            attempt: 0,
        };
        let end = Request::Stop { id: id(3), how: protocol::Stop::Terminate };
        let starts = |from: usize| (from..N_STARTS).map(pause);
        let requests = starts(0).take(5).chain([end]).chain(starts(5));
        let lines: Vec<u8> = requests.flat_map(|request| to_line(&request).unwrap()).collect();
        let (reader, mut writer) = here.into_split();
        let mut reader = BufReader::new(reader);
        let told = async {
            // It is told first that there is nothing yet.
            assert!(matches!(read_message(&mut reader).await, Ok(Some(Report::Synced))));
            // All requests are there to be read when the first one is.
            writer.write_all(&lines).await.unwrap();
            let mut told = Vec::new();
            while told.len() < N_STARTS {
                let report = read_message::<Report, _>(&mut reader).await.unwrap();
                if let Some(Report::Record(record)) = report {
                    told.push(record.id);
                }
            }
            told
        };
        let told = tokio::select! {
            told = told => told,
            () = serve(containers.clone(), there) => panic!("the connection was closed"),
        };
        let names: Vec<&str> = told.iter().map(|id| &*id.pod.0).collect();
        assert_eq!(names.first(), Some(&"p3"), "{names:?}");
    }
}
