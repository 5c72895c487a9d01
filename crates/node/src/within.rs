//! Opens a part of a volume, wherever its links lead, without ever leaving the volume.
//!
//! A pod can put symbolic links into its volumes, and can change them at any time. So a path is not checked first and opened later: each
//! step is made from the directory that is open already.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;

/// The permissions of directories that are made: those that a kubelet gives them.
const MADE_MODE: u32 = 0o750;

/// Opens a part of a volume. Links may lead to other places in the volume.
pub(crate) fn open(volume: &Path, part: &Path) -> io::Result<OwnedFd> {
    open_in(&hold(volume)?, part).map_err(|error| told(error, part))
}

/// Makes the directories of a part of a volume that are missing.
pub(crate) fn make(volume: &Path, part: &Path) -> io::Result<()> {
    let volume = hold(volume)?;
    let mut known = Path::new(".").to_owned();
    for name in part.components().filter(|name| *name != Component::CurDir) {
        let next = known.join(name);
        match open_in(&volume, &next) {
            Ok(_) => {}
            Err(Errno::NOENT) => {
                let parent = open_in(&volume, &known).map_err(|error| told(error, part))?;
                match mkdirat(parent, name.as_os_str(), Mode::from_raw_mode(MADE_MODE)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(told(error, part)),
                }
                // A link that leads nowhere is not followed to make something there.
                open_in(&volume, &next).map_err(|error| told(error, part))?;
            }
            Err(error) => return Err(told(error, part)),
        }
        known = next;
    }
    Ok(())
}

/// A volume, though this user may not list what is in it.
fn hold(volume: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(volume, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

fn open_in(volume: &OwnedFd, part: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // The kernel asks to try again when something was renamed meanwhile.
    for _ in 0..TRIES_MAX {
        match openat2(volume, part, flags, Mode::empty(), within) {
            Err(Errno::AGAIN) => {}
            Err(Errno::NOSYS) => return step_by_step(volume, part),
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

const TRIES_MAX: usize = 32;

/// The same on a Linux before 5.6, where no link is followed.
fn step_by_step(volume: &OwnedFd, part: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut at = openat(volume, ".", flags | OFlags::DIRECTORY, Mode::empty())?;
    for name in part.components() {
        match name {
            Component::CurDir => {}
            Component::Normal(name) => {
                at = openat(&at, name, flags, Mode::empty())?;
                let found = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode);
                if found == rustix::fs::FileType::Symlink {
                    return Err(Errno::LOOP);
                }
            }
            _ => return Err(Errno::XDEV),
        }
    }
    Ok(at)
}

fn told(error: Errno, part: &Path) -> io::Error {
    match error {
        Errno::XDEV | Errno::LOOP => {
            let message = format!("subPath {part:?} leads out of its volume by a symbolic link");
            io::Error::new(io::ErrorKind::PermissionDenied, message)
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// A volume with links, and something outside of it.
    fn volume() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let volume = root.path().join("volume");
        fs::create_dir_all(volume.join("in/deep")).unwrap();
        fs::create_dir(root.path().join("outside")).unwrap();
        symlink("in/deep", volume.join("inside")).unwrap();
        symlink("../outside", volume.join("up")).unwrap();
        symlink(root.path().join("outside"), volume.join("absolute")).unwrap();
        symlink("/", volume.join("root")).unwrap();
        symlink("../outside/new", volume.join("dangling")).unwrap();
        symlink("loop", volume.join("loop")).unwrap();
        (root, volume)
    }

    #[test]
    fn links_lead_to_places_in_the_volume_and_nowhere_else() {
        let (root, volume) = volume();
        for part in [".", "in", "in/deep", "./in", "inside"] {
            assert!(open(&volume, Path::new(part)).is_ok(), "{part}");
            make(&volume, Path::new(part)).unwrap();
        }
        for part in ["up", "absolute", "root", "root/etc", "up/x", "absolute/x", "loop", "../outside", "/etc"]
        {
            assert!(open(&volume, Path::new(part)).is_err(), "{part}");
            assert!(make(&volume, Path::new(part)).is_err(), "{part}");
        }
        for part in ["dangling", "dangling/x"] {
            assert!(make(&volume, Path::new(part)).is_err(), "{part}");
        }
        assert_eq!(fs::read_dir(root.path().join("outside")).unwrap().count(), 0, "nothing is made there");
        let said = open(&volume, Path::new("up")).unwrap_err().to_string();
        assert_eq!(said, "subPath \"up\" leads out of its volume by a symbolic link");
    }

    #[test]
    fn what_is_missing_is_made() {
        let (_root, volume) = volume();
        make(&volume, Path::new("a/b/c")).unwrap();
        make(&volume, Path::new("inside/new")).unwrap();
        assert!(volume.join("a/b/c").is_dir() && volume.join("in/deep/new").is_dir());
    }

    #[test]
    fn without_openat2_no_link_is_followed() {
        let (_root, volume) = volume();
        let volume = hold(&volume).unwrap();
        assert!(step_by_step(&volume, Path::new("in/deep")).is_ok());
        for part in ["inside", "up", "absolute/x", "../outside", "/etc"] {
            assert!(step_by_step(&volume, Path::new(part)).is_err(), "{part}");
        }
    }

    /// A pod that swaps a directory for a link all the time.
    #[test]
    fn a_race_does_not_lead_out() {
        let (root, volume) = volume();
        fs::write(root.path().join("outside/secret"), "").unwrap();
        let (part, link) = (volume.join("swapped"), volume.join("link"));
        symlink("../outside", &link).unwrap();
        fs::create_dir(&part).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = rustix::fs::renameat_with(
                        rustix::fs::CWD,
                        &part,
                        rustix::fs::CWD,
                        &link,
                        rustix::fs::RenameFlags::EXCHANGE,
                    );
                }
            });
            for _ in 0..2000 {
                assert!(open(&volume, Path::new("swapped/secret")).is_err());
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
