//! Puts files and directories at other places, for this process and its children alone.
//!
//! A mount needs a mount point, and the machine need not have it: `/etc/volcano` exists in few places. Making
//! it for real would leave traces. So a directory in which something is missing is replaced by a copy made of
//! mounts: an empty directory, in memory, into which everything that the original holds is mounted. There the
//! missing can be made.
//!
//! ```text
//!   /etc            /etc (in memory)
//!   ├── passwd  ──> ├── passwd     the machine's own
//!   └── ssh     ──> ├── ssh        the machine's own
//!                   └── volcano    a volume
//! ```
//!
//! What a container writes to such a directory itself is gone with it, as in a container; what lies deeper is
//! the machine's. The working directory is not replaced: what is missing there is made for real, because
//! people look for results there. It is not removed again either: whoever removes a directory takes away what others, maybe of another
//! krafla, have mounted on it.
//!
//! A mount may cover the place that others come from, such as `/tmp`. So all are opened before the first is made.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, StatVfsMountFlags, Uid, chownat, mknodat, readlinkat, statat, statvfs,
    symlinkat, unlinkat,
};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_bind_recursive, mount_change, mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::{chdir, getegid, geteuid, pivot_root, umask};

use super::{Mount, Sandbox};
use crate::materials::volumes::MOUNT_POINT_MODE;
use crate::within;

/// A directory with more entries is not replaced: that would take longer than anybody expects a start to
/// take.
const ENTRIES_MAX: usize = 4096;

/// Makes all mounts of a sandbox. The process must have a mount name space of its own already.
pub(super) fn set_up(sandbox: &Sandbox) -> anyhow::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).context("cannot make mounts private")?;
    let mut mounts: Vec<_> = sandbox.mounts.iter().cloned().chain(working_dir_that_stays(sandbox)).collect();
    // What is mounted into another mount comes after it.
    mounts.sort_by_key(|mount| mount.target.components().count());
    let offered = |mount: &Mount| format!("cannot mount mountPath {:?}", mount.target);
    let sources: Vec<_> = mounts
        .iter()
        .map(|mount| Source::open(mount).with_context(|| offered(mount)))
        .collect::<anyhow::Result<_>>()?;
    // By its own name, as mount points are found. Of the root, or of nothing, everything would be a part.
    let workdir = fs::canonicalize(&sandbox.workdir).ok();
    let workdir = workdir.filter(|workdir| sandbox.workdir.is_absolute() && workdir.parent().is_some());
    let mut view = View { sandbox, copies: BTreeSet::new(), own: workdir.into_iter().collect() };
    let mut missing = mounts.iter().filter(|mount| is_missing_in_root(&mount.target)).peekable();
    if missing.peek().is_some() {
        // First, because the place where the copy is made may be covered later.
        let replaced = view.replace_by_copy(Path::new("/"));
        if missing.any(|mount| !mount.is_optional) {
            replaced?;
        }
    }
    let mut read_only = Vec::new();
    for (mount, source) in mounts.iter().zip(&sources) {
        match view.add(mount, source) {
            Ok(target) if mount.read_only => read_only.push((mount, target)),
            Err(_) if mount.is_optional => {}
            added => drop(added.with_context(|| offered(mount))?),
        }
    }
    // Only now: no mount point could be made in what can not be changed.
    read_only.iter().try_for_each(|(mount, target)| make_read_only(target).with_context(|| offered(mount)))
}

/// A volume that covers the directory in which all containers run by themselves does not take it away.
fn working_dir_that_stays(sandbox: &Sandbox) -> Option<Mount> {
    let workdir = fs::canonicalize(&sandbox.workdir).ok()?;
    let is_covered = sandbox.mounts.iter().any(|mount| {
        let target = fs::canonicalize(&mount.target).unwrap_or_else(|_| mount.target.clone());
        workdir.starts_with(&target) && workdir != target
    });
    let is_used = sandbox.working_dir.starts_with(&sandbox.workdir);
    (is_covered && is_used).then(|| Mount {
        source: workdir.clone(),
        part: PathBuf::new(),
        target: sandbox.workdir.clone(),
        read_only: false,
        is_optional: false,
    })
}

/// Whether a path can only be made in the root directory itself.
fn is_missing_in_root(path: &Path) -> bool {
    let first = path.components().nth(1).map(|first| Path::new("/").join(first));
    path.is_absolute() && first.is_some_and(|first| first.symlink_metadata().is_err())
}

/// What is mounted somewhere, held so that it stays within reach.
struct Source {
    path: PathBuf,
    is_dir: bool,
    /// A part of a volume, which its path might not lead to any more.
    _held: Option<OwnedFd>,
    /// None on a Linux before 5.2: there it is found by its path, if that is not covered.
    tree: Option<OwnedFd>,
}

impl Source {
    fn open(mount: &Mount) -> anyhow::Result<Source> {
        let held = match mount.part.as_os_str().is_empty() {
            true => None,
            false => Some(within::open(&mount.source, &mount.part)?),
        };
        let path = held.as_ref().map_or_else(
            || mount.source.clone(),
            |held| PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd())),
        );
        let is_dir = fs::metadata(&path).with_context(|| format!("{:?} is missing", mount.source))?.is_dir();
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        let tree = match &held {
            Some(held) => open_tree(held, "", flags | OpenTreeFlags::AT_EMPTY_PATH).ok(),
            None => open_tree(CWD, &path, flags).ok(),
        };
        Ok(Source { path, is_dir, _held: held, tree })
    }

    fn mount(&self, target: &Path) -> rustix::io::Result<()> {
        match &self.tree {
            Some(tree) => move_mount(tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH),
            None => mount_bind_recursive(&self.path, target),
        }
    }
}

/// The file system as the container will see it.
struct View<'a> {
    sandbox: &'a Sandbox,
    /// Directories that were replaced. Something can be made in them, but not deeper.
    copies: BTreeSet<PathBuf>,
    /// Directories in and below which something can be made: mounts, what was made in copies, the working
    /// directory.
    own: Vec<PathBuf>,
}

impl View<'_> {
    /// Returns where the mount really is.
    fn add(&mut self, mount: &Mount, source: &Source) -> anyhow::Result<PathBuf> {
        let target = self.make_mount_point(&mount.target, source.is_dir)?;
        source.mount(&target)?;
        self.own.push(target.clone());
        Ok(target)
    }

    /// Returns where the mount point really is, behind all symbolic links.
    fn make_mount_point(&mut self, target: &Path, is_dir: bool) -> anyhow::Result<PathBuf> {
        if let Ok(found) = fs::canonicalize(target) {
            if found.is_dir() != is_dir {
                let what = if is_dir { "a file" } else { "a directory" };
                bail!("it is {what} on this machine, and the volume is not");
            }
            return Ok(found);
        }
        let (existing, missing) = split_missing(target)?;
        let may_make =
            self.copies.contains(&existing) || self.own.iter().any(|own| existing.starts_with(own));
        if !may_make {
            self.replace_by_copy(&existing)?;
        }
        let point = existing.join(&missing);
        let made = if is_dir { Some(point.as_path()) } else { point.parent() };
        if let Some(directory) = made {
            fs::create_dir_all(directory)?;
        }
        if !is_dir {
            File::create(&point)?.set_permissions(fs::Permissions::from_mode(MOUNT_POINT_MODE))?;
        }
        self.own.extend(missing.components().next().map(|first| existing.join(first)));
        Ok(point)
    }

    fn replace_by_copy(&mut self, directory: &Path) -> anyhow::Result<()> {
        let original = match File::open(directory) {
            // What this user can not look into, such as `/root`, is empty for the container.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
            opened => Some(opened?),
        };
        let entries = if original.is_some() { entries_of(directory)? } else { Vec::new() };
        let is_root = directory == Path::new("/");
        let copy = if is_root { &self.sandbox.scratch } else { directory };
        // Drivers make devices when they are first used.
        let may_have_devices = directory == Path::new("/dev");
        let flags =
            if may_have_devices { MountFlags::NOSUID } else { MountFlags::NOSUID | MountFlags::NODEV };
        mount("tmpfs", copy, "tmpfs", flags, c"mode=755")?;
        if let Some(original) = original {
            // What is made has the rights of what it stands for.
            let before = umask(Mode::empty());
            let filled = fill(copy, &original, &entries);
            umask(before);
            // What could be copied only in part is better seen as it was.
            filled.inspect_err(|_| _ = unmount(copy, UnmountFlags::DETACH))?;
        }
        if is_root {
            become_root(copy)?;
        }
        self.copies.insert(directory.to_owned());
        Ok(())
    }
}

/// The part of a path that exists, behind all symbolic links, and the rest.
fn split_missing(path: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    for ancestor in path.ancestors() {
        if let Ok(existing) = fs::canonicalize(ancestor) {
            return Ok((existing, path.strip_prefix(ancestor)?.to_owned()));
        }
    }
    bail!("it is not an absolute path")
}

fn entries_of(directory: &Path) -> anyhow::Result<Vec<(OsString, FileType)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        entries.push((entry.file_name(), entry.file_type()?));
        if entries.len() > ENTRIES_MAX {
            bail!("{directory:?} has too many entries to be copied: create the mount point on this machine");
        }
    }
    Ok(entries)
}

/// Mounts everything that a directory held into the empty one that takes its place.
fn fill(copy: &Path, original: &File, entries: &[(OsString, FileType)]) -> anyhow::Result<()> {
    // The original can not be reached by its path any more, but still through the open file.
    let held = PathBuf::from(format!("/proc/self/fd/{}", original.as_raw_fd()));
    let made = File::open(copy)?;
    // Where devices do not work they can be made, but not opened.
    let may_make_devices = !statvfs(copy)?.f_flag.contains(StatVfsMountFlags::NODEV);
    for (name, file_type) in entries {
        let (from, to) = (held.join(name), copy.join(name));
        let outcome = if file_type.is_symlink() {
            copy_link(original, &made, name)
        } else if may_make_devices && is_device(*file_type) && copy_device(original, &made, name).is_ok() {
            Ok(())
        } else {
            let point = if file_type.is_dir() { fs::create_dir(&to) } else { File::create(&to).map(drop) };
            point.and_then(|()| Ok(mount_bind_recursive(&from, &to)?))
        };
        match outcome {
            // It went away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => outcome.with_context(|| format!("cannot keep {to:?}"))?,
        }
    }
    let metadata = original.metadata()?;
    // Without the right to give files away, they belong to the one user there is.
    let _ = std::os::unix::fs::chown(copy, Some(metadata.uid()), Some(metadata.gid()));
    Ok(fs::set_permissions(copy, metadata.permissions())?)
}

fn is_device(file_type: FileType) -> bool {
    file_type.is_char_device() || file_type.is_block_device()
}

/// Makes the same link once more. Here and below names are looked up in open directories, which is quicker than by paths
/// that lead through `/proc`.
fn copy_link(from: &File, to: &File, name: &OsStr) -> io::Result<()> {
    Ok(symlinkat(readlinkat(from, name, Vec::new())?, to, name)?)
}

/// Makes the same device once more. Only root may, and it takes a fraction of the time that a mount takes, of which `/dev` would need a
/// hundred.
fn copy_device(from: &File, to: &File, name: &OsStr) -> io::Result<()> {
    let device = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let (kind, mode) =
        (rustix::fs::FileType::from_raw_mode(device.st_mode), Mode::from_raw_mode(device.st_mode));
    mknodat(to, name, kind, mode, device.st_rdev)?;
    let (user, group) = (Uid::from_raw(device.st_uid), Gid::from_raw(device.st_gid));
    if (user, group) == (geteuid(), getegid()) {
        return Ok(());
    }
    let given = chownat(to, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
    Ok(given.inspect_err(|_| _ = unlinkat(to, name, AtFlags::empty()))?)
}

/// Makes a directory the root of the file system, and lets go of the old one.
fn become_root(directory: &Path) -> anyhow::Result<()> {
    chdir(directory)?;
    pivot_root(".", ".").context("cannot replace the root")?;
    // The old root is now on top of the new one.
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

fn make_read_only(target: &Path) -> anyhow::Result<()> {
    // In a user name space the restrictions of the original mount must be kept.
    let found = statvfs(target)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (has, keep) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    ] {
        flags.set(keep, found.contains(has));
    }
    mount_remount(target, flags, "").context("cannot make it read-only")
}
