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
//! people look for results there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, FileType};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};

use super::{Mount, Sandbox};

/// A directory with more entries is not replaced: that would take longer than anybody expects a start to
/// take.
const ENTRIES_MAX: usize = 4096;

/// Makes all mounts of a sandbox. The process must have a mount name space of its own already.
pub(super) fn set_up(sandbox: &Sandbox) -> anyhow::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).context("mounts can not be made private")?;
    let mut mounts: Vec<_> = sandbox.mounts.iter().collect();
    // What is mounted into another mount comes after it.
    mounts.sort_by_key(|mount| mount.target.components().count());
    // Of the root, or of nothing, everything would be a part.
    let workdir =
        Some(sandbox.workdir.clone()).filter(|workdir| workdir.is_absolute() && workdir.parent().is_some());
    let mut view = View { sandbox, copies: BTreeSet::new(), own: workdir.into_iter().collect() };
    for mount in mounts {
        view.add(mount).with_context(|| format!("mountPath {:?} can not be offered", mount.target))?;
    }
    Ok(())
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
    fn add(&mut self, mount: &Mount) -> anyhow::Result<()> {
        let source = fs::metadata(&mount.source).with_context(|| format!("{:?} is missing", mount.source))?;
        let target = self.make_mount_point(&mount.target, source.is_dir())?;
        mount_bind_recursive(&mount.source, &target)?;
        if mount.read_only {
            make_read_only(&target)?;
        }
        self.own.push(target);
        Ok(())
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
            File::create(&point)?;
        }
        self.own.extend(missing.components().next().map(|first| existing.join(first)));
        Ok(point)
    }

    fn replace_by_copy(&mut self, directory: &Path) -> anyhow::Result<()> {
        let original = File::open(directory)?;
        let entries = entries_of(directory)?;
        let is_root = directory == Path::new("/");
        let copy = if is_root { &self.sandbox.scratch } else { directory };
        mount("tmpfs", copy, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755")?;
        fill(copy, &original, &entries)?;
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
    for (name, file_type) in entries {
        let (from, to) = (held.join(name), copy.join(name));
        let outcome = if file_type.is_symlink() {
            fs::read_link(&from).and_then(|target| symlink(target, &to))
        } else {
            let made = if file_type.is_dir() { fs::create_dir(&to) } else { File::create(&to).map(drop) };
            made.and_then(|()| Ok(mount_bind_recursive(&from, &to)?))
        };
        match outcome {
            // It went away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => outcome.with_context(|| format!("{to:?} can not be kept"))?,
        }
    }
    let metadata = original.metadata()?;
    // Without the right to give files away, they belong to the one user there is.
    let _ = std::os::unix::fs::chown(copy, Some(metadata.uid()), Some(metadata.gid()));
    Ok(fs::set_permissions(copy, metadata.permissions())?)
}

/// Makes a directory the root of the file system, and lets go of the old one.
fn become_root(directory: &Path) -> anyhow::Result<()> {
    chdir(directory)?;
    pivot_root(".", ".").context("the root can not be replaced")?;
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
    mount_remount(target, flags, "").context("it can not be made read-only")
}
