//! Opening a directory: its lock, its file, and what can be wrong with them.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::backend::PlainFile;
use super::disk::{Contents, Disk, DiskError};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Somebody else has it open.
    #[error("{} is in use{holder}; stop that program or choose another directory", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// ` by process 123`, if the lock says so.
        holder: String,
    },
    /// The directory or a file in it cannot be made, read or written.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file holds something else, or nonsense.
    #[error("{} is damaged: {reason}; put a copy of it in its place, or move it away to start empty", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is laid out in a way this program does not know.
    #[error("{} was written by another version of krafla (format {format}); use that version", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
}

/// The right to use a directory, for as long as it lives. The system takes it back when the process ends, however that
/// happens.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    file: File,
}

impl Drop for DirectoryLock {
    /// To close the file is not enough: a child that is just being started has a copy of it.
    fn drop(&mut self) {
        // It can only fail if there is nothing to give back.
        let _ = self.file.unlock();
    }
}

/// Opens the store in a directory, and makes both if they are missing.
pub(super) fn open(dir: &Path) -> Result<(DirectoryLock, Disk, Contents), OpenError> {
    fs::create_dir_all(dir).map_err(at(dir))?;
    let lock = lock(dir)?;
    let path = dir.join("store.redb");
    let (disk, contents) = match File::options().read(true).write(true).open(&path) {
        Ok(file) => open_file(Arc::new(PlainFile::existing(file)), &path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_file(dir, &path)?,
        Err(error) => return Err(at(&path)(error)),
    };
    Ok((lock, disk, contents))
}

/// Makes an empty store under another name and moves it into place when it is whole, so that no crash leaves half of
/// one.
fn make_file(dir: &Path, path: &Path) -> Result<(Disk, Contents), OpenError> {
    let unfinished = path.with_extension("redb.new");
    // Secrets are in it.
    let make =
        File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(&unfinished);
    let file = Arc::new(PlainFile::unfinished(make.map_err(at(&unfinished))?));
    let opened = open_file(Arc::clone(&file), &unfinished)?;
    file.finish().map_err(at(&unfinished))?;
    fs::rename(&unfinished, path).map_err(at(path))?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(at(dir))?;
    Ok(opened)
}

fn open_file(file: Arc<PlainFile>, path: &Path) -> Result<(Disk, Contents), OpenError> {
    let path = path.to_owned();
    // The engine checks most of what it reads, and panics on some of the rest.
    let opened = catch_unwind(|| Disk::open(file))
        .unwrap_or_else(|_| Err(DiskError::Damaged("what it says about itself makes no sense".to_owned())));
    opened.map_err(|error| match error {
        DiskError::Damaged(reason) => OpenError::Damaged { path, reason },
        DiskError::UnknownFormat(format) => OpenError::UnknownFormat { path, format },
        DiskError::Io(source) => OpenError::Io { path, source },
    })
}

fn lock(dir: &Path) -> Result<DirectoryLock, OpenError> {
    let path = dir.join("lock");
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let holder = holder.trim().parse::<u32>().map(|pid| format!(" by process {pid}"));
            return Err(OpenError::InUse { dir: dir.to_owned(), holder: holder.unwrap_or_default() });
        }
        Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
    }
    // The number is for people only; the lock is what counts.
    let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(at(&path))?;
    Ok(DirectoryLock { file })
}

fn at(path: &Path) -> impl Fn(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child that another thread has forked and that has not become another program yet.
    #[test]
    fn a_directory_is_free_though_a_child_has_a_copy_of_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        let first = lock(dir.path()).unwrap();
        let copy = first.file.try_clone().unwrap();
        drop(first);
        lock(dir.path()).unwrap();
        drop(copy);
    }
}
