//! The stage between the supervisor and a container that needs more than a process: its own view of the file
//! system, its own host name, limits, a terminal.
//!
//! ```text
//!   supervisor ──spawns──> stage ──becomes──> the container's command
//!                            │ session with a terminal
//!                            │ control group with limits
//!                            │ new mount and host name space
//!                            └ volumes at their mountPath, /etc/hosts with the pod's peers
//! ```
//!
//! It is this program again, because what it does must be done by a process with a single thread, between
//! fork and exec, and may not be done there without `unsafe`. What goes wrong is left in a file for the
//! supervisor to find.

mod mounts;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::process::{
    Pid, PidfdFlags, Resource, chroot, fchdir, getegid, geteuid, getrlimit, ioctl_tiocsctty, pidfd_open,
    setrlimit, setsid,
};
use rustix::thread::{
    Gid, ThreadNameSpaceType, Uid, UnshareFlags, move_into_thread_name_spaces, set_thread_gid,
    set_thread_groups, set_thread_uid,
};
use serde::{Deserialize, Serialize};

use super::cgroup;
use super::spawn::{SpawnError, find_program, lowered};
use crate::container::CONTAINER_VARIABLE;
use crate::mark;

/// How long until a container is looked at again that has not become its command yet.
const LOOK_AGAIN_AFTER: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Whether a container that is entered is held to limits.
pub(crate) const LIMITED: &str = "limited";
pub(crate) const UNLIMITED: &str = "unlimited";

/// What a container sees differently from the rest of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sandbox {
    /// What it sees where.
    pub mounts: Vec<Mount>,
    /// Where it may write why it ended, unless something else is there.
    #[serde(default)]
    pub message_at: Option<PathBuf>,
    /// Its host name.
    pub hostname: String,
    /// Where it runs; it may be in one of the mounts.
    pub working_dir: PathBuf,
    /// Where missing mount points are really made. Elsewhere they exist only for the container.
    pub workdir: PathBuf,
    /// A directory to build in that nobody else uses.
    pub scratch: PathBuf,
    /// The control group that limits it.
    pub cgroup: Option<PathBuf>,
    /// Whether its standard input is a terminal that shall be its own.
    #[serde(default)]
    pub tty: bool,
    /// Who it is, if not whoever started krafla. Only root can be somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// How many files it may have open, if that is fewer than its parent may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

/// The user and the groups of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
}

impl Identity {
    /// Reads who a process is from its `status` in `/proc`.
    fn read(status: &str) -> Option<Identity> {
        let numbers = |name: &str| -> Option<Vec<u32>> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().map(|number| number.parse().ok()).collect()
        };
        // The second number of users and groups is the one that counts.
        let second = |name: &str| numbers(name)?.get(1).copied();
        Some(Identity { uid: second("Uid:")?, gid: second("Gid:")?, groups: numbers("Groups:")? })
    }

    /// Makes this process so. There is no way back.
    fn assume(&self) -> anyhow::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        set_thread_groups(&groups).context("cannot set supplementalGroups")?;
        set_thread_gid(Gid::from_raw(self.gid)).context("cannot set runAsGroup")?;
        set_thread_uid(Uid::from_raw(self.uid)).context("cannot set runAsUser")
    }
}

/// A file or directory at another place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is on the machine.
    pub source: PathBuf,
    /// Which part of it is seen; links do not lead out of it. All of it if this is empty.
    #[serde(default)]
    pub part: PathBuf,
    /// Where the container sees it.
    pub target: PathBuf,
    /// Whether the container may not change it.
    pub read_only: bool,
    /// Whether the container can do without it.
    #[serde(default)]
    pub is_optional: bool,
}

/// Becomes the command of a container: `<sandbox> <command>...`.
pub(super) fn main(args: &[OsString]) -> ExitCode {
    // Before anything is mounted over it.
    let report = std::env::var_os(CONTAINER_VARIABLE).and_then(|place| Report::open(Path::new(&place)));
    let Err(error) = become_container(args);
    let message = format!("{error:#}");
    eprintln!("{message}");
    if let Some(report) = report {
        // Without this the supervisor takes the end of this process for that of the container, which it then
        // is.
        let _ = report.write(&message);
    }
    ExitCode::from(128)
}

/// Where the supervisor looks for what went wrong.
struct Report {
    directory: OwnedFd,
    name: OsString,
}

impl Report {
    fn open(place: &Path) -> Option<Report> {
        let name = place.with_added_extension("error").file_name()?.to_owned();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Some(Report { directory: open(place.parent()?, flags, Mode::empty()).ok()?, name })
    }

    fn write(&self, message: &str) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = openat(&self.directory, &self.name, flags, Mode::RUSR | Mode::WUSR)?;
        File::from(file).write_all(message.as_bytes())
    }
}

fn become_container(args: &[OsString]) -> anyhow::Result<std::convert::Infallible> {
    let Some((sandbox, argv)) = args.split_first() else { bail!("want a sandbox and a command") };
    let sandbox = sandbox.to_str().context("the sandbox is not text")?;
    let sandbox: Sandbox = serde_json::from_str(sandbox).context("cannot read the sandbox")?;
    if sandbox.tty {
        // Who leads a session leads a process group too, as all containers do.
        setsid().context("cannot start a new session")?;
        ioctl_tiocsctty(std::io::stdin()).context("cannot set the controlling terminal")?;
    }
    if let Some(group) = &sandbox.cgroup {
        cgroup::join(group).context("cannot set its limits")?;
    }
    if !sandbox.mounts.is_empty() {
        enter_own_spaces()?;
        mounts::set_up(&sandbox)?;
        rustix::system::sethostname(sandbox.hostname.as_bytes()).context("cannot set the host name")?;
    }
    if let Some(open_files) = sandbox.open_files {
        limit_open_files(open_files)?;
    }
    Err(exec(argv, &sandbox.working_dir, sandbox.identity.as_ref())?.into())
}

fn limit_open_files(open_files: u64) -> anyhow::Result<()> {
    let lowered = lowered(getrlimit(Resource::Nofile), open_files);
    setrlimit(Resource::Nofile, lowered).context("cannot limit open files")
}

/// Runs a command in the place of a container that runs: `<pid> <limited or not> <working directory> <command>...`.
pub(super) fn enter(args: &[OsString]) -> ExitCode {
    let Err(error) = enter_container(args);
    told(&error)
}

/// Runs a command where a container would run that has no process: `<sandbox> <command>...`.
pub(super) fn view(args: &[OsString]) -> ExitCode {
    let Err(error) = become_container(args);
    told(&error)
}

/// Whoever waits for the command reads what it writes, and knows this exit code from shells.
fn told(error: &anyhow::Error) -> ExitCode {
    eprintln!("{error:#}");
    ExitCode::from(126)
}

fn enter_container(args: &[OsString]) -> anyhow::Result<std::convert::Infallible> {
    let [pid, limits, working_dir, argv @ ..] = args else {
        bail!("want a process, whether it is limited, a directory and a command")
    };
    let pid =
        pid.to_str().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw).context("not a process")?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).context("the container does not run")?;
    until_staged(pid, &pidfd)?;
    if limits == LIMITED {
        // What it uses counts as what the container uses. Elsewhere the container's group is that of whoever started krafla then, and
        // may be none that this user can join.
        cgroup::join_that_of(pid).context("cannot set the container's limits")?;
    }
    // What runs beside a container may open as many files as the container.
    if let Some(open_files) = mark::open_files_of(pid) {
        limit_open_files(open_files)?;
    }
    // What runs beside a container is who the container is.
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()))?;
    let identity = Identity::read(&status).filter(|its| geteuid().is_root() && its.uid != 0);
    let mut spaces = ThreadNameSpaceType::empty();
    for (name, space) in [
        ("mnt", ThreadNameSpaceType::MOUNT),
        ("uts", ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME),
        ("user", ThreadNameSpaceType::USER),
    ] {
        let its = fs::read_link(format!("/proc/{}/ns/{name}", pid.as_raw_nonzero()))?;
        spaces.set(space, its != fs::read_link(format!("/proc/self/ns/{name}"))?);
    }
    if !spaces.is_empty() {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(format!("/proc/{}/root", pid.as_raw_nonzero()), flags, Mode::empty())?;
        move_into_thread_name_spaces(pidfd.as_fd(), spaces).context("cannot enter the container")?;
        // That of the mount name space is another one where krafla itself runs below a root of its own.
        fchdir(root)?;
        chroot(".").context("cannot see the container's files")?;
    }
    Err(exec(argv, &PathBuf::from(working_dir), identity.as_ref())?.into())
}

/// Waits until a container has become its command. Before that it does not see all that it will see, and may not be held to its limits.
fn until_staged(pid: Pid, pidfd: &OwnedFd) -> anyhow::Result<()> {
    while is_stage(pid) {
        // Nobody is told when a process becomes another program, only when it ends.
        let n_ended = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&LOOK_AGAIN_AFTER))?;
        ensure!(n_ended == 0, "the container does not run");
    }
    Ok(())
}

/// Whether a container's main process is still a stage: the program of the supervisor, called for that. Its supervisor need not be of our
/// version.
fn is_stage(pid: Pid) -> bool {
    let program = |pid: Pid| {
        let program = fs::metadata(format!("/proc/{}/exe", pid.as_raw_nonzero())).ok()?;
        Some((program.dev(), program.ino()))
    };
    let is_supervisor =
        program(pid).is_some_and(|of| mark::parent_of(pid).is_some_and(|it| program(it) == Some(of)));
    is_supervisor && mark::read(pid, "cmdline").is_ok_and(|line| calls_stage(&line))
}

/// Whether a command line is `... stage <sandbox> ...`, or is not there yet: the kernel says of a new process which program it is, and
/// that it has been started, before it has given it its arguments.
fn calls_stage(command_line: &[u8]) -> bool {
    if command_line.is_empty() {
        return true;
    }
    let arguments: Vec<&[u8]> = command_line.split(|byte| *byte == 0).collect();
    let is_call = |pair: &[&[u8]]| matches!(pair, [b"stage", sandbox] if sandbox.starts_with(b"{"));
    arguments.windows(2).any(is_call)
}

/// Tries to join a control group, and ends.
pub(super) fn join(args: &[OsString]) -> ExitCode {
    match args {
        [group] if cgroup::join(Path::new(group)).is_ok() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Tries everything that a container could need in the given directory, and ends.
pub(super) fn check(args: &[OsString]) -> ExitCode {
    let [scratch] = args else { return ExitCode::FAILURE };
    let mount = Mount {
        source: scratch.into(),
        part: PathBuf::new(),
        target: "/krafla-check/mount".into(),
        read_only: true,
        is_optional: false,
    };
    let sandbox = Sandbox { mounts: vec![mount], scratch: scratch.into(), ..Sandbox::default() };
    match enter_own_spaces().and_then(|()| mounts::set_up(&sandbox)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Leaves the machine's name spaces: as root directly, else by way of a user name space, in which everybody
/// stays who they are.
fn enter_own_spaces() -> anyhow::Result<()> {
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWUTS;
    if unshare(own).is_ok() {
        return Ok(());
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(own | UnshareFlags::NEWUSER).context("this machine does not allow user name spaces")?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).with_context(|| format!("cannot write {file}"))
    };
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("{uid} {uid} 1"))?;
    map("gid_map", format!("{gid} {gid} 1"))
}

#[allow(deprecated, reason = "only the one flag that is not used here, FILES, makes it unsound")]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Becomes the command. Returns only if that fails.
fn exec(argv: &[OsString], working_dir: &Path, identity: Option<&Identity>) -> anyhow::Result<SpawnError> {
    let argv: Vec<_> = argv.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let Some((name, arguments)) = argv.split_first() else { bail!("want a command") };
    if !working_dir.is_dir() {
        return Ok(SpawnError::NoWorkingDir(working_dir.to_owned()));
    }
    let path = std::env::var("PATH").ok();
    let program = match find_program(name, path.as_deref(), working_dir) {
        Ok(program) => program,
        Err(error) => return Ok(error),
    };
    // Whoever it becomes need not be able to come here.
    std::env::set_current_dir(working_dir).context("cannot enter the working directory")?;
    if let Some(identity) = identity {
        identity.assume()?;
    }
    let error = Command::new(&program).arg0(name).args(arguments).exec();
    Ok(SpawnError::Failed(program, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_who_proc_says() {
        let status = "Name:\tsh\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n";
        assert_eq!(Identity::read(status), Some(Identity { uid: 2, gid: 6, groups: vec![9, 10] }));
        assert_eq!(Identity::read("Uid:\t1\n"), None);
    }

    #[test]
    fn a_stage_is_known_by_its_command_line() {
        for (line, expected) in [
            ("/usr/bin/krafla\0supervise\0stage\0{\"mounts\":[]}\0sleep\0inf\0", true),
            ("/usr/bin/krafla\0supervise\0/data\0outlive-node\0", false),
            ("sh\0-c\0stage\0", false),
            ("echo\0stage\0one\0", false),
            ("", true),
        ] {
            assert_eq!(calls_stage(line.as_bytes()), expected, "{line:?}");
        }
        // The parent of this process is another program, whatever they were called with.
        assert!(!is_stage(rustix::process::getpid()));
    }
}
