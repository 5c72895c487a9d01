//! All containers that the supervisor looks after: their records, their processes and their output.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use krafla_api::Uid;
use rustix::io::Errno;
#[cfg(not(test))]
use rustix::process::wait;
#[cfg(test)]
use rustix::process::waitpid;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group};
use tokio::sync::Notify;

use super::cgroup::{self, Cgroups};
use super::input::{Input, Terminal};
use super::last_words;
use super::log_file::LogFile;
use super::outbox::{Outbox, Session};
use super::output::{Chunk, Output, Sink};
use super::protocol::{Launch, Report, Request, Stop, Surroundings};
use super::records::Records;
use super::signals::stop_signal;
use super::spawn::{SpawnError, Spawned, Streams, spawn};
use super::stage::{Mount, Sandbox};
use super::strays::{Alive, Traces};
use super::{PODS, SWEEP_AFTER, log_file};
use crate::container::{Cause, ContainerId, End, Record, is_file_name};
use crate::mark::{Marked, Numbers};
use crate::tree::{remove_memory_of, remove_tree};

/// All containers, known by their records. Single-threaded: nothing here waits while it holds a borrow.
pub(super) struct Containers {
    root: PathBuf,
    /// The directory of all pods. A pod has one in it once there is something to keep there: making one costs as much as
    /// a short process.
    pods: PathBuf,
    records: RefCell<Records>,
    traces: Traces,
    numbers: RefCell<Numbers>,
    /// What runs, by the pid of its main process.
    processes: RefCell<BTreeMap<i32, Process>>,
    outbox: Rc<Outbox>,
    chunk: Chunk,
    /// The arguments with which this program is called for a stage.
    stage: Vec<OsString>,
    /// Where limits are set; looked for when the first container has one, and none where that is not
    /// possible.
    cgroups: OnceCell<Option<Cgroups>>,
    /// Control groups of containers that have ended, until they are gone.
    old_cgroups: RefCell<Vec<PathBuf>>,
    /// Containers that will be started as soon as the machine has room for them.
    waiting: RefCell<BTreeSet<ContainerId>>,
    /// Tells that processes have ended.
    reaped: Notify,
    /// Whether any have since somebody last asked.
    has_reaped: Cell<bool>,
}

/// How long the machine has to make room for a container before it is tried again.
const START_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Why a container was not launched.
enum NotLaunched {
    /// The machine has no room for it: that says nothing about the container.
    ForNow(String),
    /// It will not be otherwise the next time.
    Ever(String),
}

impl NotLaunched {
    fn because(what: &str) -> impl Fn(io::Error) -> NotLaunched {
        move |error| {
            let why = format!("{what}: {error}");
            if is_passing(&error) { NotLaunched::ForNow(why) } else { NotLaunched::Ever(why) }
        }
    }
}

/// Whether a failure is for want of open files, processes, memory or disk space.
fn is_passing(error: &io::Error) -> bool {
    let Some(errno) = rustix::io::Errno::from_io_error(error) else {
        return matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock);
    };
    [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM, Errno::NOSPC, Errno::DQUOT, Errno::NOBUFS]
        .contains(&errno)
}

struct Process {
    id: ContainerId,
    /// That of its mark.
    number: u32,
    output: Output,
    input: Option<Input>,
    terminal: Option<Terminal>,
    cgroup: Option<PathBuf>,
    explains_by_log: bool,
    /// What asks it to end.
    stop_signal: Signal,
    /// For the next node: it is not written down, because it is large, and of no use once the process has ended.
    seen: Option<Surroundings>,
}

impl Containers {
    /// Takes over what the records say. Whatever still runs lost its supervisor, and with it the other ends
    /// of its pipes: it is killed, and reported as lost.
    pub(super) fn load(root: &Path, stage: Vec<OsString>) -> io::Result<Containers> {
        let pods = root.join(PODS);
        fs::create_dir_all(&pods)?;
        let mut records = Records::load(root);
        let traces = Traces::of(root);
        if records.ids().next().is_some() {
            traces.kill_lost();
        }
        // A pause has no process that could have been lost: it just goes on.
        let lost: Vec<_> = records.running().filter(|record| record.pid.is_some()).cloned().collect();
        let has_lost = !lost.is_empty();
        for record in lost {
            let message = "the supervisor of this container ended before it did".to_owned();
            let end = End { at: Timestamp::now(), exit_code: 137, cause: Cause::Lost, message };
            records.put(Record { end: Some(end), ..record });
        }
        last_words::prepare(root)?;
        let containers = Containers {
            root: root.to_owned(),
            pods,
            records: RefCell::new(records),
            traces,
            numbers: RefCell::default(),
            processes: RefCell::default(),
            outbox: Rc::default(),
            chunk: Chunk::default(),
            stage,
            cgroups: OnceCell::new(),
            old_cgroups: RefCell::default(),
            waiting: RefCell::default(),
            reaped: Notify::new(),
            has_reaped: Cell::default(),
        };
        if has_lost {
            // Nobody else would remove the groups of what was lost.
            containers.cgroups();
        }
        Ok(containers)
    }

    /// Removes all that was kept of containers of which nobody will ask again.
    pub(super) fn remove_all(&self) {
        let pods = fs::read_dir(&self.pods).into_iter().flatten().flatten();
        pods.filter_map(|entry| Some(Uid::from(entry.file_name().to_str()?)))
            .for_each(|pod| remove_memory_of(&pod));
        let _ = remove_tree(&self.pods);
        last_words::remove_all(&self.root);
        Records::remove_all(&self.root);
    }

    /// Reports from now on to a newly attached node, and no longer to the one before.
    pub(super) fn attach(&self) -> Session {
        self.outbox.attach(self.records.borrow().ids().cloned())
    }

    /// What there is to tell the attached node, as soon as there is something; none once another one has
    /// attached.
    pub(super) async fn reports(&self, session: Session) -> Option<Vec<Report>> {
        if !self.outbox.news(session).await {
            return None;
        }
        // A container that has ended by now is told of once, with its end.
        self.reap();
        Some(self.outbox.take(|id| self.records.borrow().get(id).cloned(), || self.surroundings()))
    }

    /// What all that run see.
    fn surroundings(&self) -> Vec<Report> {
        let processes = self.processes.borrow();
        let known = processes.values().filter_map(|process| {
            Some(Report::Surroundings { id: process.id.clone(), seen: process.seen.clone()? })
        });
        known.collect()
    }

    /// Tells of what has ended by now, before anything else is done.
    pub(super) async fn tell_ends(&self) {
        self.reap();
        if self.outbox.has_ends() {
            self.outbox.tell_only_ends(true);
            tokio::task::yield_now().await;
            self.outbox.tell_only_ends(false);
        }
    }

    pub(super) fn handle(self: &Rc<Self>, request: Request) {
        match request {
            Request::Start(launch) => self.start(*launch),
            Request::Stop { id, how } => self.stop(&id, how),
            Request::Follow { id, on } => self.outbox.follow(id, on),
            Request::CloseInput { id } => self.with_process(&id, |process| drop(process.input.take())),
            Request::Resize { id, columns, rows } => self.with_process(&id, |process| {
                process.terminal.iter().for_each(|terminal| terminal.resize(columns, rows));
            }),
            Request::Forget { pod } => self.forget(&pod),
        }
    }

    fn start(self: &Rc<Self>, launch: Launch) {
        let id = &launch.id;
        let is_known = self.records.borrow().get(id).is_some() || self.waiting.borrow().contains(id);
        if !id.is_safe() || is_known {
            return;
        }
        // Whatever has ended by now gives its files back first: a new process is made with a copy of all that are open,
        // and closes every one of them.
        self.reap();
        self.prune(id);
        let mut record = Record {
            id: id.clone(),
            address: launch.address,
            is_unlimited: false,
            backoff_seconds: launch.backoff_seconds,
            grace_seconds: launch.grace_seconds,
            pid: None,
            started_at: Some(Timestamp::now()),
            stopping_at: None,
            end: None,
        };
        let cgroup = self.make_cgroup(&launch);
        record.is_unlimited = launch.is_limited() && cgroup.is_none();
        match self.launch(&launch, cgroup) {
            Ok(pid) => {
                record.pid = pid;
                let mut processes = self.processes.borrow_mut();
                if let Some(process) = pid.and_then(|pid| processes.get_mut(&pid)) {
                    process.seen = Some(launch.into());
                }
            }
            Err(NotLaunched::ForNow(why)) => return self.start_later(launch, &why),
            Err(NotLaunched::Ever(message)) => {
                record.started_at = None;
                record.end =
                    Some(End { at: Timestamp::now(), exit_code: 128, cause: Cause::NotStarted, message });
            }
        }
        self.put(record);
    }

    /// Tries again what the machine has no room for now. It has not failed: nothing is said of the container until it has started.
    fn start_later(self: &Rc<Self>, launch: Launch, why: &str) {
        note!("container {} is started later: {why}", launch.id);
        self.waiting.borrow_mut().insert(launch.id.clone());
        let containers = self.clone();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(START_AGAIN_AFTER).await;
            // Its pod may be forgotten by now.
            if containers.waiting.borrow_mut().remove(&launch.id) {
                containers.start(launch);
            }
        });
    }

    /// Returns the pid of the new process; none for a pause.
    fn launch(&self, launch: &Launch, cgroup: Option<PathBuf>) -> Result<Option<i32>, NotLaunched> {
        if launch.argv.is_empty() {
            return Ok(None);
        }
        let launched = self.launch_in(launch, cgroup.clone());
        if launched.is_err() {
            last_words::forget(&launch.id.message_path(&self.root));
            self.old_cgroups.borrow_mut().extend(cgroup.filter(|group| !cgroup::remove(group)));
        }
        launched.map(Some)
    }

    fn launch_in(&self, launch: &Launch, cgroup: Option<PathBuf>) -> Result<i32, NotLaunched> {
        let (place, mut sandbox) = (launch.id.place(&self.pods), sandbox_of(launch, cgroup.clone()));
        if launch.stdin || sandbox.is_some() {
            let directory = self.pods.join(&*launch.id.pod.0);
            fs::create_dir_all(directory).map_err(NotLaunched::because("no directory for this pod"))?;
        }
        if let Some(sandbox) = &mut sandbox {
            self.offer_message(&launch.id, sandbox)?;
        }
        let (input, reader) = self.make_input(launch)?;
        let (stdin, typed) = if launch.tty { (None, reader) } else { (reader, None) };
        let number = self.numbers.borrow_mut().take();
        let mark = self.traces.marks.mark(Marked::Container(number));
        let spawned = mark.put_on(|| spawn(launch, sandbox.as_ref(), &place, &self.stage, stdin));
        let Spawned { pid, streams } = spawned.map_err(|error| {
            self.numbers.borrow_mut().give_back(number);
            match &error {
                SpawnError::Failed(_, cause) if is_passing(cause) => NotLaunched::ForNow(error.to_string()),
                _ => NotLaunched::Ever(error.to_string()),
            }
        })?;
        let attended = self.attend(launch, streams, typed).map_err(|error| {
            // Without its output nobody could tell what it does.
            kill_container(pid);
            self.numbers.borrow_mut().give_back(number);
            NotLaunched::because("cannot read its output")(error)
        });
        let (output, terminal) = attended?;
        let (id, explains_by_log) = (launch.id.clone(), launch.explains_by_log);
        let stop_signal = stop_signal(&launch.stop_signal);
        let seen = None;
        let process =
            Process { id, number, output, input, terminal, cgroup, explains_by_log, stop_signal, seen };
        self.processes.borrow_mut().insert(pid, process);
        Ok(pid)
    }

    /// Puts the file in which a container may write why it ended where its manifest says.
    fn offer_message(&self, id: &ContainerId, sandbox: &mut Sandbox) -> Result<(), NotLaunched> {
        let Some(target) = sandbox.message_at.take() else { return Ok(()) };
        let source = id.message_path(&self.root);
        let what = format!("terminationMessagePath {target:?}: no file for it");
        let no_file = NotLaunched::because(&what);
        let file = fs::File::create(&source).map_err(&no_file)?;
        // Whoever the container is may say why it ends.
        file.set_permissions(fs::Permissions::from_mode(0o666)).map_err(&no_file)?;
        // Where it can not be, the container has nothing to say in it, and that is all.
        let part = PathBuf::new();
        sandbox.mounts.push(Mount { source, part, target, read_only: false, is_optional: true });
        Ok(())
    }

    /// What a container can be written to by, if it asks for that, and the end that it reads from.
    fn make_input(&self, launch: &Launch) -> Result<(Option<Input>, Option<OwnedFd>), NotLaunched> {
        if !launch.stdin {
            return Ok((None, None));
        }
        let made = Input::make(&self.pods, &launch.id);
        let (input, reader) =
            made.map_err(NotLaunched::because("stdin is true, but there can be no pipe for it"))?;
        Ok((Some(input), Some(reader)))
    }

    /// Begins to carry what a new process writes, and what is `typed` on its terminal.
    fn attend(
        &self,
        launch: &Launch,
        streams: Streams,
        typed: Option<OwnedFd>,
    ) -> io::Result<(Output, Option<Terminal>)> {
        let log = LogFile::new(launch.id.log_path(&self.pods), launch.stdin || launch.tty);
        let sink = Sink {
            id: launch.id.clone(),
            log: Rc::new(RefCell::new(log)),
            outbox: self.outbox.clone(),
            chunk: self.chunk.clone(),
        };
        match streams {
            Streams::Pipes { stdout, stderr } => Ok((Output::of_pipes(sink, stdout, stderr)?, None)),
            Streams::Terminal(terminal) => {
                let copy = || terminal.as_fd().try_clone_to_owned();
                let (source, window) = (copy()?, copy()?);
                let (reader, writer) = terminal.into_split();
                let terminal = Terminal::attend(window, writer, typed)?;
                Ok((Output::of_terminal(sink, reader, source), Some(terminal)))
            }
        }
    }

    /// Does something with what runs of a container, if anything does.
    fn with_process(&self, id: &ContainerId, act: impl FnOnce(&mut Process)) {
        let mut processes = self.processes.borrow_mut();
        if let Some(process) = processes.values_mut().find(|process| process.id == *id) {
            act(process);
        }
    }

    /// A container without limits needs no group, and one with limits runs without where there can be none.
    fn make_cgroup(&self, launch: &Launch) -> Option<PathBuf> {
        if !launch.is_limited() {
            return None;
        }
        let made = self.cgroups()?.create(&launch.id, &launch.limits);
        made.inspect_err(|error| note!("container {}: no limits: {error}", launch.id)).ok()
    }

    fn cgroups(&self) -> Option<&Cgroups> {
        let find = || {
            let found = Cgroups::find(&self.pods, &self.stage);
            let found = found.inspect_err(|why| note!("no limits: {why:#}")).ok()?;
            // What is there already is of containers that lost their supervisor.
            self.old_cgroups.borrow_mut().extend(found.all());
            Some(found)
        };
        self.cgroups.get_or_init(find).as_ref()
    }

    /// Keeps one attempt before the new one, for `kubectl logs --previous`.
    fn prune(&self, id: &ContainerId) {
        let is_old = |record: &&Record| {
            let old = &record.id;
            old.name == id.name && old.attempt.saturating_add(1) < id.attempt && !record.is_running()
        };
        let old: Vec<_> =
            self.records.borrow().of_pod(&id.pod).filter(is_old).map(|record| record.id.clone()).collect();
        if old.is_empty() {
            return;
        }
        // What can not be removed goes with the pod's directory.
        for log in old.iter().map(|old| old.log_path(&self.pods)) {
            log_file::segments(&log).for_each(|part| drop(fs::remove_file(part)));
        }
        self.records.borrow_mut().forget(&old);
    }

    pub(super) fn stop(&self, id: &ContainerId, how: Stop) {
        let Some(mut record) = self.records.borrow().get(id).filter(|record| record.is_running()).cloned()
        else {
            return;
        };
        let is_first = record.stopping_at.is_none();
        record.stopping_at = record.stopping_at.or(Some(Timestamp::now()));
        match record.pid {
            Some(pid) => match how {
                // Who is asked twice may take it for being asked to hurry.
                Stop::Terminate if is_first => self.ask_to_end(pid),
                Stop::Terminate => {}
                Stop::Kill => kill_container(pid),
            },
            None => record.end = Some(end_of_pause(how)),
        }
        if is_first || record.end.is_some() {
            self.put(record);
        }
    }

    fn ask_to_end(&self, pid: i32) {
        let stop_signal =
            self.processes.borrow().get(&pid).map_or(Signal::TERM, |process| process.stop_signal);
        if let Some(pid) = Pid::from_raw(pid) {
            // A process that is no more can not be signalled, and need not be.
            let _ = kill_process(pid, stop_signal);
        }
    }

    fn forget(self: &Rc<Self>, pod: &Uid) {
        self.waiting.borrow_mut().retain(|id| id.pod != *pod);
        let of_pod: Vec<Record> = self.records.borrow().of_pod(pod).cloned().collect();
        for pid in of_pod.iter().filter(|record| record.is_running()).filter_map(|record| record.pid) {
            kill_container(pid);
        }
        let ids: Vec<_> = of_pod.into_iter().map(|record| record.id).collect();
        self.records.borrow_mut().forget(&ids);
        if is_file_name(&pod.0) {
            tokio::task::spawn_local(self.clone().remove_files(pod.clone()));
        }
    }

    /// Removes the directory of a forgotten pod. Not before the last of its processes has ended: until then it may
    /// write there.
    async fn remove_files(self: Rc<Self>, pod: Uid) {
        loop {
            let reaped = self.reaped.notified();
            if !self.processes.borrow().values().any(|process| process.id.pod == pod) {
                break;
            }
            reaped.await;
        }
        let directory = self.pods.join(&*pod.0);
        remove_memory_of(&pod);
        loop {
            let directory = directory.clone();
            let removed = tokio::task::spawn_blocking(move || remove_tree(&directory)).await;
            match removed {
                // A process that escaped its container still writes there. It is about to be swept away.
                Ok(Err(error)) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    tokio::time::sleep(SWEEP_AFTER).await;
                }
                Ok(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                    return note!("pod {pod}: cannot remove its files: {error}");
                }
                _ => return,
            }
        }
    }

    /// Takes in all children that have ended.
    pub(super) fn reap(&self) {
        while let Some((pid, status)) = self.next_ended() {
            self.has_reaped.set(true);
            let pid = pid.as_raw_nonzero().get();
            let process = self.processes.borrow_mut().remove(&pid);
            if let (Some(process), Some(exit_code)) = (process, exit_code(status)) {
                // Whatever the main process leaves behind in its group goes with it, as in a container.
                kill_group(pid);
                self.ended(process, exit_code);
            }
        }
        self.reaped.notify_waiters();
    }

    /// A child that has ended: also one that was left to this process by somebody else's death.
    #[cfg(not(test))]
    fn next_ended(&self) -> Option<(Pid, WaitStatus)> {
        wait(WaitOptions::NOHANG).ok()?
    }

    /// The same among its own: other tests of this process wait for theirs.
    #[cfg(test)]
    fn next_ended(&self) -> Option<(Pid, WaitStatus)> {
        let pids: Vec<i32> = self.processes.borrow().keys().copied().collect();
        let mut pids = pids.into_iter().filter_map(Pid::from_raw);
        pids.find_map(|pid| waitpid(Some(pid), WaitOptions::NOHANG).ok()?)
    }

    /// Whether any child was taken in since this was last asked.
    pub(super) fn has_reaped(&self) -> bool {
        self.has_reaped.take()
    }

    fn ended(&self, process: Process, exit_code: i32) {
        let Process { id, number, output, cgroup, explains_by_log, .. } = process;
        self.numbers.borrow_mut().give_back(number);
        output.finish();
        let end = self.end_of(&id, exit_code, cgroup.as_deref(), explains_by_log);
        last_words::forget(&id.message_path(&self.root));
        let record = self.records.borrow().get(&id).cloned();
        if let Some(mut record) = record {
            record.started_at = record.started_at.filter(|_| end.cause != Cause::NotStarted);
            record.end = Some(end);
            self.put(record);
        }
        self.old_cgroups.borrow_mut().extend(cgroup);
    }

    /// Kills what containers that have ended left behind. Returns whether there was anything: then there may
    /// be more.
    pub(super) fn sweep(&self) -> bool {
        let processes = self.processes.borrow();
        let alive = Alive {
            pids: processes.keys().copied().collect(),
            numbers: processes.values().map(|process| process.number).collect(),
            ids: processes.values().map(|process| &process.id).collect(),
        };
        let n_killed = self.traces.kill_children(&alive);
        self.remove_cgroups() || n_killed > 0
    }

    /// The same when nothing runs and nothing will: whatever is left goes, wherever it is.
    pub(super) fn sweep_all(&self) -> bool {
        let n_killed = self.traces.kill_everybody();
        self.remove_cgroups() || n_killed > 0
    }

    /// Returns whether any group is left.
    fn remove_cgroups(&self) -> bool {
        let mut cgroups = self.old_cgroups.borrow_mut();
        cgroups.retain(|group| !cgroup::remove(group));
        !cgroups.is_empty()
    }

    /// Which process the node is.
    pub(super) fn set_node(&self, pid: Option<Pid>) {
        self.traces.node.set(pid);
    }

    /// Kills what a node that is gone ran beside the containers: no task waits for its answer any more.
    pub(super) fn sweep_after_node(&self) {
        self.traces.kill_beside();
    }

    /// Asks all containers to end, and kills those whose time is over. Returns when to call this again; none
    /// once nothing runs any more.
    pub(super) fn stop_all(&self) -> Option<Duration> {
        self.waiting.borrow_mut().clear();
        let running: Vec<_> = self.records.borrow().running().cloned().collect();
        let mut again_after = None;
        for record in running {
            let grace = Duration::from_secs(record.grace_seconds.into());
            let waited = record.stopping_at.map_or(Duration::ZERO, elapsed);
            if record.stopping_at.is_none() {
                self.stop(&record.id, Stop::Terminate);
            } else if waited >= grace {
                self.stop(&record.id, Stop::Kill);
            }
            if self.records.borrow().get(&record.id).is_none_or(|record| !record.is_running()) {
                // A pause has ended already, and no process will tell of it.
                continue;
            }
            let left = grace.saturating_sub(waited).max(Duration::from_millis(10));
            again_after = Some(again_after.map_or(left, |soonest: Duration| soonest.min(left)));
        }
        again_after
    }

    /// Kills all containers, whatever time they have left.
    pub(super) fn kill_all(&self) {
        let running: Vec<_> = self.records.borrow().running().map(|record| record.id.clone()).collect();
        running.iter().for_each(|id| self.stop(id, Stop::Kill));
    }

    /// Whether there are groups of containers that have ended.
    pub(super) fn has_old_cgroups(&self) -> bool {
        !self.old_cgroups.borrow().is_empty()
    }

    /// Whether there is no process to look after. A pause needs nobody.
    pub(super) fn is_idle(&self) -> bool {
        self.processes.borrow().is_empty()
    }

    /// Stores a record, and tells of it.
    fn put(&self, record: Record) {
        let (id, has_ended) = (record.id.clone(), record.end.is_some());
        self.records.borrow_mut().put(record);
        self.outbox.changed(id, has_ended);
    }

    fn end_of(&self, id: &ContainerId, exit_code: i32, cgroup: Option<&Path>, explains_by_log: bool) -> End {
        let at = Timestamp::now();
        if let Some(message) = last_words::of_failed_stage(&id.place(&self.pods)) {
            return End { at, exit_code: 128, cause: Cause::NotStarted, message };
        }
        let log = (explains_by_log && exit_code != 0).then(|| id.log_path(&self.pods));
        let message = last_words::of_container(&id.message_path(&self.root), log.as_deref());
        let is_out_of_memory = cgroup.is_some_and(cgroup::ran_out_of_memory);
        let cause = if is_out_of_memory { Cause::OutOfMemory } else { Cause::Exited };
        End { at, exit_code, cause, message }
    }
}

/// A container that is limited or has a terminal needs a stage for that, even if it needs it for nothing else.
fn sandbox_of(launch: &Launch, cgroup: Option<PathBuf>) -> Option<Sandbox> {
    if launch.sandbox.is_none() && cgroup.is_none() && !launch.tty {
        return None;
    }
    let sandbox = launch.sandbox.clone().unwrap_or_default();
    Some(Sandbox { cgroup, tty: launch.tty, working_dir: launch.working_dir.clone(), ..sandbox })
}

/// Kills the main process of a container, and all that it has started in its group. Which it need not lead yet: on a terminal it does so
/// only once it has a session of its own.
fn kill_container(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
    kill_group(pid);
}

/// Kills all that is in the group of a process. Those that are no more can not be killed, and need not be.
fn kill_group(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// A pause ends like a well-behaved server.
fn end_of_pause(how: Stop) -> End {
    let exit_code = match how {
        Stop::Terminate => 0,
        Stop::Kill => 137,
    };
    End { at: Timestamp::now(), exit_code, cause: Cause::Exited, message: String::new() }
}

fn exit_code(status: WaitStatus) -> Option<i32> {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| signal.saturating_add(128)))
}

fn elapsed(since: Timestamp) -> Duration {
    Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    use serde_json::json;
    use tokio::task::LocalSet;

    use super::*;
    use crate::mark::unmarked;

    fn pause(id: &ContainerId) -> Request {
        let launch = json!({
            "id": id, "argv": [], "env": [], "working_dir": "/", "sandbox": null, "limits": {},
            "explains_by_log": false, "backoff_seconds": 10, "grace_seconds": 30,
        });
        Request::Start(serde_json::from_value(launch).unwrap())
    }

    #[tokio::test]
    async fn no_group_is_left_of_a_container_that_could_not_be_started() {
        let (root, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let containers = Rc::new(Containers::load(root.path(), Vec::new()).unwrap());
        let set = containers.cgroups.set(Some(Cgroups { base: tree.path().to_owned(), _leaf: None }));
        assert!(set.is_ok());
        // There can be no directory for the pod.
        fs::remove_dir(root.path().join(PODS)).unwrap();
        fs::write(root.path().join(PODS), "").unwrap();
        let id = ContainerId { pod: Uid::from("p"), name: "main".into(), attempt: 0 };
        let Request::Start(mut launch) = pause(&id) else { panic!("not a start") };
        launch.argv = vec!["true".to_owned()];
        launch.limits.memory_bytes = Some(1 << 30);
        containers.start(*launch);
        let cause = containers.records.borrow().get(&id).unwrap().end.as_ref().unwrap().cause;
        assert_eq!(cause, Cause::NotStarted);
        // This tree is not the kernel's, so that the group is not gone at once.
        assert_eq!(*containers.old_cgroups.borrow(), [tree.path().join("p-main-0")]);
    }

    #[test]
    fn want_of_room_is_no_verdict() {
        let passes = |errno: Errno| is_passing(&io::Error::from(errno));
        for errno in [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM, Errno::NOSPC] {
            assert!(passes(errno), "{errno:?}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::NOEXEC, Errno::TOOBIG, Errno::PERM] {
            assert!(!passes(errno), "{errno:?}");
        }
    }

    #[tokio::test]
    async fn a_container_that_waits_for_room_has_not_failed_and_is_started_or_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let containers = Rc::new(Containers::load(root.path(), Vec::new()).unwrap());
        let [kept, forgotten] =
            ["p", "q"].map(|pod| ContainerId { pod: pod.into(), name: "main".into(), attempt: 0 });
        let local = LocalSet::new();
        let begin = async {
            for id in [&kept, &forgotten] {
                let Request::Start(launch) = pause(id) else { panic!("not a start") };
                containers.start_later(*launch, "no more open files");
                // The node asks again when it connects again.
                containers.handle(pause(id));
                assert!(containers.records.borrow().get(id).is_none(), "it has neither started nor failed");
            }
            containers.handle(Request::Forget { pod: forgotten.pod.clone() });
        };
        local.run_until(begin).await;
        local.await;
        assert!(containers.records.borrow().get(&kept).is_some_and(Record::is_running));
        assert!(containers.records.borrow().get(&forgotten).is_none());
    }

    #[tokio::test]
    async fn a_container_whose_limits_can_not_be_kept_is_known_as_that() {
        let root = tempfile::tempdir().unwrap();
        let containers = Rc::new(Containers::load(root.path(), Vec::new()).unwrap());
        assert!(containers.cgroups.set(None).is_ok());
        let is_unlimited = |name: &str, memory_bytes, argv: &[&str]| {
            let id = ContainerId { pod: Uid::from("p"), name: name.into(), attempt: 0 };
            let Request::Start(mut launch) = pause(&id) else { panic!("not a start") };
            launch.argv = argv.iter().map(|part| (*part).to_owned()).collect();
            launch.limits.memory_bytes = memory_bytes;
            containers.start(*launch);
            containers.records.borrow().get(&id).unwrap().is_unlimited
        };
        assert!(is_unlimited("limited", Some(1 << 30), &["/no/such/command"]));
        assert!(!is_unlimited("pause", Some(1 << 30), &[]));
        assert!(!is_unlimited("free", None, &["/no/such/command"]));
    }

    #[test]
    fn a_container_is_killed_also_before_it_leads_a_process_group() {
        let mut child = unmarked(|| Command::new("sleep").arg("1000").spawn()).unwrap();
        let pid = Pid::from_child(&child);
        let ended = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        kill_container(pid.as_raw_nonzero().get());
        poll(&mut [PollFd::new(&ended, PollFlags::IN)], None).unwrap();
        // Another test may have taken notice of its end.
        let _ = child.wait();
    }

    #[tokio::test]
    async fn nobody_waits_for_a_pause_that_was_asked_to_end() {
        let root = tempfile::tempdir().unwrap();
        let containers = Rc::new(Containers::load(root.path(), Vec::new()).unwrap());
        let id = ContainerId { pod: Uid::from("p"), name: "main".into(), attempt: 0 };
        containers.handle(pause(&id));
        assert_eq!(containers.stop_all(), None);
    }

    #[tokio::test]
    async fn a_container_is_asked_to_end_once() {
        let root = tempfile::tempdir().unwrap();
        let containers = Rc::new(Containers::load(root.path(), Vec::new()).unwrap());
        let id = ContainerId { pod: Uid::from("p"), name: "main".into(), attempt: 0 };
        let Request::Start(mut launch) = pause(&id) else { panic!("not a start") };
        let script =
            "trap 'echo asked >> asked' TERM; echo > up; until test -e go; do sleep 0.01; done; echo > over";
        launch.argv = ["sh", "-c", script].map(str::to_owned).into();
        launch.working_dir = root.path().to_owned();
        let until_written = |name: &str| {
            let file = root.path().join(name);
            while fs::read_to_string(&file).unwrap_or_default().is_empty() {
                std::thread::yield_now();
            }
        };
        let stop = || containers.handle(Request::Stop { id: id.clone(), how: Stop::Terminate });
        let whole = async {
            containers.start(*launch);
            until_written("up");
            stop();
            until_written("asked");
            // The node decides again before it has heard that this was done.
            stop();
            fs::write(root.path().join("go"), "").unwrap();
            until_written("over");
        };
        LocalSet::new().run_until(whole).await;
        assert_eq!(fs::read_to_string(root.path().join("asked")).unwrap(), "asked\n");
    }

    #[tokio::test]
    async fn nothing_is_left_of_a_forgotten_pod() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join(PODS).join("p");
        let id = ContainerId { pod: Uid::from("p"), name: "main".into(), attempt: 0 };
        let forget = || {
            let containers = Rc::new(Containers::load(root.path(), Vec::new()).unwrap());
            containers.handle(pause(&id));
            assert!(Records::load(root.path()).get(&id).is_some());
            fs::create_dir(&directory).unwrap();
            containers.handle(Request::Forget { pod: id.pod.clone() });
            assert!(Records::load(root.path()).get(&id).is_none());
        };
        let local = LocalSet::new();
        local.run_until(async { forget() }).await;
        local.await;
        assert!(!directory.exists());
    }
}
