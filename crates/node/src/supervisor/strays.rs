//! Finds processes that outlived their container, or the node that ran them beside one.
//!
//! When the main process of a container ends, its process group is killed. What had left the group before (a
//! daemon, a job of an interactive shell) becomes a child of the supervisor, and is known by its mark ([`crate::mark`]); where marks
//! could not be put on, by its environment. So are commands of `kubectl exec`, probes and hooks; but they are the node's children, and
//! anybody's when it is killed.
//!
//! A child that hides from both belongs to nobody that is known. It may go on for as long as it may be of a container that runs.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, getpid, getppid};

use crate::container::{CONTAINER_VARIABLE, ContainerId};
use crate::mark::{self, Marked, Marks, kill_all, parent_of};

/// How often processes that were lost are looked for, and how long they have to die in between.
const LOST_ROUNDS_MAX: usize = 100;
const LOST_ROUND: Duration = Duration::from_millis(10);

/// How all processes of one root directory are known.
#[derive(Debug)]
pub(super) struct Traces {
    pub(super) pods: PathBuf,
    pub(super) marks: Marks,
    /// The node that was attached last.
    pub(super) node: Cell<Option<Pid>>,
}

/// Whose a process is.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    /// By its mark.
    Marked(Marked),
    /// By its environment.
    Named(ContainerId),
}

/// What runs.
#[derive(Debug, Default)]
pub(super) struct Alive<'a> {
    /// Main processes.
    pub(super) pids: BTreeSet<i32>,
    /// The numbers of the marks of their containers.
    pub(super) numbers: BTreeSet<u32>,
    pub(super) ids: BTreeSet<&'a ContainerId>,
}

impl Traces {
    pub(super) fn of(root: &Path) -> Traces {
        Traces { pods: root.join(super::PODS), marks: Marks::of(root), node: Cell::default() }
    }

    /// Kills what containers that are not alive have left to this process. Returns how many processes that were.
    ///
    /// One call is not always enough: the children of what is killed become children of this process, and only
    /// then show.
    pub(super) fn kill_children(&self, alive: &Alive<'_>) -> usize {
        kill_all(|pid| parent_of(pid) == Some(getpid()) && self.is_stray(pid, alive))
    }

    /// Kills what containers have left to anybody, once none is alive.
    pub(super) fn kill_everybody(&self) -> usize {
        kill_all(|pid| parent_of(pid) == Some(getpid()) || self.owner_of(pid).is_some())
    }

    /// Kills what the containers of a supervisor that is no more have left behind.
    pub(super) fn kill_lost(&self) {
        // What was started while the others were killed is found the next time. Who can not be killed can not be waited for.
        for _ in 0..LOST_ROUNDS_MAX {
            if kill_all(|pid| self.owner_of(pid).is_some()) == 0 {
                return;
            }
            std::thread::sleep(LOST_ROUND);
        }
    }

    /// Kills what a node that is no more has run beside containers.
    pub(super) fn kill_beside(&self) -> usize {
        kill_all(|pid| match self.owner_of(pid) {
            Some(Owner::Marked(Marked::Beside(_))) => true,
            Some(Owner::Named(_)) => !is_descendant(pid),
            Some(Owner::Marked(Marked::Container(_))) | None => false,
        })
    }

    fn is_stray(&self, pid: Pid, alive: &Alive<'_>) -> bool {
        if alive.pids.contains(&pid.as_raw_nonzero().get()) {
            return false;
        }
        match self.owner_of(pid) {
            Some(Owner::Marked(Marked::Container(number))) => !alive.numbers.contains(&number),
            Some(Owner::Named(id)) => !alive.ids.contains(&id),
            Some(Owner::Marked(Marked::Beside(_))) | None => alive.pids.is_empty(),
        }
    }

    fn owner_of(&self, pid: Pid) -> Option<Owner> {
        // While it starts something, the node has the mark that is meant for that.
        if [self.node.get(), getppid()].contains(&Some(pid)) {
            return None;
        }
        let marked = self.marks.of_process(pid).map(Owner::Marked);
        marked.or_else(|| container_of(&self.pods, pid).map(Owner::Named))
    }
}

/// Whether a process is this one, or was started by it or by one that was.
pub(super) fn is_descendant(pid: Pid) -> bool {
    std::iter::successors(Some(pid), |pid| parent_of(*pid)).any(|ancestor| ancestor == getpid())
}

fn container_of(pods: &Path, pid: Pid) -> Option<ContainerId> {
    let environment = mark::read(pid, "environ").ok()?;
    let variables = environment.split(|byte| *byte == 0);
    let mut values = variables
        .filter_map(|variable| variable.strip_prefix(CONTAINER_VARIABLE.as_bytes())?.strip_prefix(b"="));
    ContainerId::of_place(pods, Path::new(OsStr::from_bytes(values.next()?)))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_node_that_is_just_starting_something_is_not_taken_for_what_it_starts() {
        let root = tempfile::tempdir().unwrap();
        let traces = Traces::of(root.path());
        let mark = traces.marks.mark(Marked::Beside(1));
        let mut node = mark.put_on(|| Command::new("sleep").arg("1000").spawn()).unwrap();
        let pid = Pid::from_child(&node);
        assert_eq!(traces.owner_of(pid), Some(Owner::Marked(Marked::Beside(1))));
        traces.node.set(Some(pid));
        assert_eq!((traces.kill_beside(), traces.owner_of(pid)), (0, None));
        traces.node.set(None);
        assert_eq!(traces.kill_beside(), 1);
        // Another test may have taken notice of its end.
        let _ = node.wait();
    }
}
