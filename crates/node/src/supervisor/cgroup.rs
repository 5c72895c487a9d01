//! Limits on memory and processor time, by control groups (version 2), where the machine lets us have them.
//!
//! ```text
//!   /sys/fs/cgroup/.../krafla-1f2e3d4c     ours: beside the group that this process was started in
//!                        └── <container>   its limits, its processes, whether it ran out of memory
//! ```
//!
//! A group may have processes or sub-groups with limits, not both, so ours is beside our own group and not in
//! it. Whether that is allowed depends on who started us: systemd gives its users a part of the tree, and
//! root has all of it. Where only our own group was given to us, as in a container or a service, krafla's processes make
//! room: they move to a group in it.
//!
//! ```text
//!   .../own                     has no processes any more
//!        ├── krafla-self        krafla, the supervisor, containers without limits
//!        └── krafla-1f2e3d4c    as above
//! ```

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use rustix::io::Errno;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::strays::is_descendant;
use crate::container::ContainerId;

/// What a container may use at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// In bytes.
    pub memory_bytes: Option<u64>,
    /// In thousandths of a processor.
    pub cpu_milli: Option<u64>,
}

impl Limits {
    /// Whether there is no limit.
    pub fn is_empty(&self) -> bool {
        *self == Limits::default()
    }
}

/// Processor time is given out in portions of so many microseconds.
const CPU_PERIOD_US: u64 = 100_000;

/// The group to which krafla's processes move if they stand in the way of limits.
const LEAF: &str = "krafla-self";

/// Does all that limits need, as the supervisor does for the first container that has one, and takes it back. Nobody else
/// may use `root`; `stage` are the arguments that make this program the supervisor.
///
/// An error says why containers run without limits here.
pub fn try_out(root: &Path, stage: &[OsString]) -> anyhow::Result<()> {
    Cgroups::find(root, stage).map(drop)
}

/// Whether this machine's kernel leaves limits to control groups of version 2 at all.
pub fn is_offered() -> bool {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mount_point(&mountinfo).is_some_and(|tree| has_controllers(&tree).unwrap_or(false))
}

/// The group in which containers have theirs.
#[derive(Debug)]
pub(super) struct Cgroups {
    pub(super) base: PathBuf,
    /// Where this process is, if it had to make room for `base`. It goes after `base`.
    pub(super) _leaf: Option<Leaf>,
}

impl Cgroups {
    /// Finds a place in the tree where limits work. `stage` are the arguments that make this program a stage.
    pub(super) fn find(root: &Path, stage: &[OsString]) -> anyhow::Result<Cgroups> {
        let mountinfo = fs::read_to_string("/proc/self/mountinfo")?;
        let tree = mount_point(&mountinfo).context("no control groups of version 2 are mounted")?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let own = own_group(&own).context("this process is in no control group of version 2")?;
        let name = base_name(root);
        let directory = |group: &Path| tree.join(group.strip_prefix("/").unwrap_or(group));
        // A supervisor that was killed may have left krafla in a leaf, and with it this one.
        let of_leaf = own.parent().filter(|_| own.ends_with(LEAF));
        for parent in own.parent().into_iter().chain([Path::new("/")]) {
            let leaf = of_leaf.filter(|of| *of == parent).map(|of| Leaf { of: directory(of) });
            let cgroups = Cgroups::at(&directory(parent), &name, leaf);
            if let Ok(cgroups) = cgroups.and_then(|cgroups| cgroups.check(stage)) {
                return Ok(cgroups);
            }
        }
        let own = directory(&own);
        ensure!(has_controllers(&own)?, "{own:?} does not let its groups limit memory and cpu");
        let leaf = Leaf::make_room(&own).with_context(|| format!("cannot divide {own:?}"))?;
        ensure!(members(&own)?.is_empty(), "cannot divide {own:?}: it contains other processes");
        Cgroups::at(&own, &name, Some(leaf))?.check(stage)
    }

    fn at(parent: &Path, name: &str, leaf: Option<Leaf>) -> anyhow::Result<Cgroups> {
        let base = parent.join(name);
        make(&base).with_context(|| format!("cannot create {base:?}"))?;
        // From here on it is removed again if it turns out to be of no use.
        let cgroups = Cgroups { base, _leaf: leaf };
        for controller in ["+memory", "+cpu"] {
            // It is mostly on already, and else mostly not ours to switch on. What counts is what we get.
            let _ = fs::write(parent.join("cgroup.subtree_control"), controller);
        }
        ensure!(has_controllers(&cgroups.base)?, "{parent:?} does not let its groups limit memory and cpu");
        let switch = cgroups.base.join("cgroup.subtree_control");
        fs::write(switch, "+memory +cpu").context("cannot enable limits")?;
        Ok(cgroups)
    }

    /// Lets a process join a group, which may not be allowed although all else is.
    fn check(self, stage: &[OsString]) -> anyhow::Result<Cgroups> {
        let group = self.base.join("check");
        make(&group)?;
        let status = Command::new("/proc/self/exe").args(stage).arg("join").arg(&group).status()?;
        let _ = fs::remove_dir(group);
        if !status.success() {
            bail!("no process may be moved to {:?}", self.base);
        }
        Ok(self)
    }

    /// Makes the group of a container.
    pub(super) fn create(&self, id: &ContainerId, limits: &Limits) -> io::Result<PathBuf> {
        let group = self.base.join(format!("{}-{}-{}", id.pod, id.name, id.attempt));
        make(&group)?;
        for (file, text) in settings(limits) {
            // What is not limited as it asks for runs without a group.
            fs::write(group.join(file), text).inspect_err(|_| drop(fs::remove_dir(&group)))?;
        }
        // Whoever does not have swap does not have this file.
        let _ = fs::write(group.join("memory.swap.max"), "0");
        Ok(group)
    }

    /// The groups of all containers.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.base).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.base);
    }
}

/// A group to which the processes of krafla have moved from the one that it is in, which can be divided only without them.
#[derive(Debug)]
pub(super) struct Leaf {
    of: PathBuf,
}

impl Leaf {
    /// Moves krafla's processes out of the way. Those of others stay: they are not ours to move.
    fn make_room(of: &Path) -> io::Result<Leaf> {
        Leaf::make_room_for(of, is_ours)
    }

    fn make_room_for(of: &Path, is_ours: impl Fn(Pid) -> bool) -> io::Result<Leaf> {
        let leaf = Leaf { of: of.to_owned() };
        make(&leaf.path())?;
        // Whoever was started meanwhile is where its parent was.
        loop {
            let ours: Vec<Pid> = members(of)?.into_iter().filter(|pid| is_ours(*pid)).collect();
            if ours.is_empty() {
                return Ok(leaf);
            }
            for pid in ours {
                move_to(&leaf.path(), pid)?;
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.of.join(LEAF)
    }
}

impl Drop for Leaf {
    /// What has moved moves back, unless another krafla still divides the group: then it is left to that one.
    fn drop(&mut self) {
        if fs::write(self.of.join("cgroup.subtree_control"), "-memory -cpu").is_err() {
            return;
        }
        for pid in members(&self.path()).unwrap_or_default() {
            let _ = move_to(&self.of, pid);
        }
        let _ = fs::remove_dir(self.path());
    }
}

/// Whether a process is a krafla or one of the containers.
fn is_ours(pid: Pid) -> bool {
    let program = |pid: &dyn Display| fs::metadata(format!("/proc/{pid}/exe")).map(|it| (it.dev(), it.ino()));
    let is_krafla =
        program(&pid.as_raw_nonzero()).is_ok_and(|of| program(&"self").is_ok_and(|own| of == own));
    is_krafla || is_descendant(pid)
}

/// The processes that are in a group itself. Those of another name space show as 0, and can not be named.
fn members(group: &Path) -> io::Result<Vec<Pid>> {
    let pids = fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(pids.lines().filter_map(|pid| pid.parse().ok()).filter_map(Pid::from_raw).collect())
}

/// One that has ended by now need not move.
fn move_to(group: &Path, pid: Pid) -> io::Result<()> {
    let moved = fs::write(group.join("cgroup.procs"), pid.as_raw_nonzero().to_string());
    moved.or_else(|error| match Errno::from_io_error(&error) {
        Some(Errno::SRCH) => Ok(()),
        _ => Err(error),
    })
}

/// Makes this process, and what it starts, a part of a group.
pub(super) fn join(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// Makes this process a part of the group of another, if that is not where it is already.
pub(super) fn join_that_of(pid: Pid) -> io::Result<()> {
    let group = |pid: &dyn Display| Ok(own_group(&fs::read_to_string(format!("/proc/{pid}/cgroup"))?));
    let (own, its): (_, io::Result<_>) = (group(&"self")?, group(&pid.as_raw_nonzero()));
    let tree = || mount_point(&fs::read_to_string("/proc/self/mountinfo").ok()?);
    match its? {
        Some(its) if Some(&its) != own.as_ref() => match tree() {
            Some(tree) => join(&tree.join(its.strip_prefix("/").unwrap_or(&its))),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether a process of a group was killed because it wanted too much memory.
pub(super) fn ran_out_of_memory(group: &Path) -> bool {
    let events = fs::read_to_string(group.join("memory.events")).unwrap_or_default();
    events.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count != "0"))
}

/// Kills what is left in a group and removes it. Returns whether it is gone: processes take a moment to die.
pub(super) fn remove(group: &Path) -> bool {
    let _ = fs::write(group.join("cgroup.kill"), "1");
    match fs::remove_dir(group) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn has_controllers(group: &Path) -> io::Result<bool> {
    let controllers = fs::read_to_string(group.join("cgroup.controllers"))?;
    let has = |name| controllers.split_whitespace().any(|controller| controller == name);
    Ok(has("memory") && has("cpu"))
}

fn make(group: &Path) -> io::Result<()> {
    fs::create_dir(group)
        .or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}

fn settings(limits: &Limits) -> Vec<(&'static str, String)> {
    let memory = limits.memory_bytes.map(|bytes| ("memory.max", bytes.to_string()));
    // A container that lost one of its processes would go on half dead.
    let together = limits.memory_bytes.map(|_| ("memory.oom.group", "1".to_owned()));
    let cpu = limits.cpu_milli.map(|milli| {
        // The kernel takes no portion that is shorter than a millisecond.
        let quota_us = (milli.saturating_mul(CPU_PERIOD_US) / 1000).max(1000);
        ("cpu.max", format!("{quota_us} {CPU_PERIOD_US}"))
    });
    memory.into_iter().chain(together).chain(cpu).collect()
}

/// Different for each root directory.
fn base_name(root: &Path) -> String {
    let bytes = root.as_os_str().as_encoded_bytes();
    let hash =
        bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte));
    format!("krafla-{hash:08x}")
}

/// Where the tree is: the fifth field of the line whose file system, after the dash, is `cgroup2`.
fn mount_point(mountinfo: &str) -> Option<PathBuf> {
    let is_ours = |line: &&str| line.split_once(" - ").is_some_and(|(_, end)| end.starts_with("cgroup2 "));
    mountinfo.lines().find(is_ours)?.split(' ').nth(4).map(PathBuf::from)
}

/// The group of this process: the line of hierarchy 0.
fn own_group(cgroup: &str) -> Option<PathBuf> {
    cgroup.lines().find_map(|line| line.strip_prefix("0::")).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::unmarked;

    #[test]
    fn the_tree_and_our_place_in_it_are_found() {
        let mountinfo = "24 30 0:22 / /proc rw - proc proc rw\n\
                         35 30 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(mount_point(mountinfo), Some("/sys/fs/cgroup".into()));
        assert_eq!(mount_point("24 30 0:22 / /proc rw - proc proc rw\n"), None);
        let own = own_group("1:name=systemd:/x\n0::/user.slice/session-1.scope\n");
        assert_eq!(own, Some("/user.slice/session-1.scope".into()));
    }

    /// Needs a tree in which groups can be made, and no controllers: those may all be of version 1.
    #[test]
    fn krafla_makes_room_in_its_group_and_comes_back() {
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let own = own_group(&fs::read_to_string("/proc/self/cgroup").unwrap());
        let Some((tree, own)) = mount_point(&mountinfo).zip(own) else {
            return println!("not tested, because this machine has no control groups of version 2");
        };
        let name = format!("krafla-test-{}", std::process::id());
        let group = tree.join(own.strip_prefix("/").unwrap()).join(name);
        if let Err(error) = make(&group) {
            return println!("not tested, because {group:?} cannot be created: {error}");
        }
        let start = || {
            let child = unmarked(|| Command::new("sleep").arg("1000").spawn()).unwrap();
            let pid = Pid::from_child(&child);
            move_to(&group, pid).unwrap();
            (child, pid)
        };
        let ((mut first, ours), (mut second, others)) = (start(), start());

        let leaf = Leaf::make_room_for(&group, |pid| pid == ours).unwrap();
        assert_eq!(members(&group).unwrap(), [others], "who is not ours stays");
        assert_eq!(members(&leaf.path()).unwrap(), [ours]);
        drop(leaf);
        let mut back = members(&group).unwrap();
        back.sort_by_key(|pid| pid.as_raw_nonzero());
        assert_eq!(back, [ours, others]);
        assert!(!group.join(LEAF).exists());

        for child in [&mut first, &mut second] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        move_to(&group, ours).expect("one that has ended need not move");
        fs::remove_dir(&group).unwrap();
    }

    #[test]
    fn krafla_knows_its_own_processes() {
        let mut child = unmarked(|| Command::new("sleep").arg("1000").spawn()).unwrap();
        assert!(is_ours(rustix::process::getpid()));
        assert!(is_ours(Pid::from_child(&child)), "what it has started");
        assert!(!is_ours(Pid::INIT));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn limits_are_written_as_the_kernel_wants_them() {
        let limits = Limits { memory_bytes: Some(1 << 30), cpu_milli: Some(1500) };
        let expected =
            [("memory.max", "1073741824"), ("memory.oom.group", "1"), ("cpu.max", "150000 100000")];
        assert_eq!(settings(&limits), expected.map(|(file, text)| (file, text.to_owned())));
        let small = Limits { memory_bytes: None, cpu_milli: Some(1) };
        assert_eq!(settings(&small), [("cpu.max", "1000 100000".to_owned())]);
    }

    #[test]
    fn running_out_of_memory_is_read_from_the_events_of_the_group() {
        let group = tempfile::tempdir().unwrap();
        assert!(!ran_out_of_memory(group.path()));
        fs::write(group.path().join("memory.events"), "low 0\nhigh 0\noom 0\noom_kill 0\n").unwrap();
        assert!(!ran_out_of_memory(group.path()));
        fs::write(group.path().join("memory.events"), "oom 1\noom_kill 2\noom_group_kill 1\n").unwrap();
        assert!(ran_out_of_memory(group.path()));
    }
}
