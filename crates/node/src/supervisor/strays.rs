//! Finds processes that outlived their container, or the node that ran them beside one.
//!
//! When the main process of a container ends, its process group is killed. What had left the group before (a
//! daemon, a job of an interactive shell) becomes a child of the supervisor, and is known by its environment.
//! So are commands of `kubectl exec`, probes and hooks; but they are the node's children, and anybody's when it is killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::container::{CONTAINER_VARIABLE, ContainerId};

/// Where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// Children of this process: what its containers have left behind.
    Children,
    /// All but this process' descendants: what the node has run beside containers.
    Strangers,
    /// All processes: what the containers of a supervisor that is no more have left behind.
    Everybody,
}

/// Kills all processes whose container, one of those in `pods`, is one that `is_stray` names. Returns how
/// many there were.
///
/// One call is not always enough: the children of what is killed become children of this process, and only
/// then show.
pub(super) fn kill_strays(pods: &Path, among: Among, is_stray: impl Fn(Pid, &ContainerId) -> bool) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut n_killed = 0;
    for pid in pids.filter_map(Pid::from_raw) {
        if among == Among::Children && parent_of(pid) != Some(getpid()) {
            continue;
        }
        if container_of(pods, pid).is_some_and(|id| is_stray(pid, &id))
            && !(among == Among::Strangers && is_descendant(pid))
            && kill_process(pid, Signal::KILL).is_ok()
        {
            n_killed += 1;
        }
    }
    n_killed
}

/// The second field after the name, which is in parentheses and may contain anything.
fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = String::from_utf8(read(pid, "stat").ok()?).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok().and_then(Pid::from_raw)
}

/// Whether a process is this one, or was started by it or by one that was.
pub(super) fn is_descendant(pid: Pid) -> bool {
    std::iter::successors(Some(pid), |pid| parent_of(*pid)).any(|ancestor| ancestor == getpid())
}

fn container_of(pods: &Path, pid: Pid) -> Option<ContainerId> {
    let environment = read(pid, "environ").ok()?;
    let variables = environment.split(|byte| *byte == 0);
    let mut values = variables
        .filter_map(|variable| variable.strip_prefix(CONTAINER_VARIABLE.as_bytes())?.strip_prefix(b"="));
    ContainerId::of_place(pods, Path::new(OsStr::from_bytes(values.next()?)))
}

/// What `/proc` says of a process. It does not say how long that is, and in a small buffer it would be read by the line.
fn read(pid: Pid, file: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 << 10);
    File::open(format!("/proc/{}/{file}", pid.as_raw_nonzero()))?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
