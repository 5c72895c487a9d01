//! Opening a directory: its lock, its file, and what can be wrong with them.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::StorageBackend;

use super::backend::PlainFile;
use super::disk::{Contents, Disk, DiskError};
use super::head::{Head, Record, Verdict, header_of};
use super::overlay::Overlay;
use super::reserve::{Reserve, ReserveFile, is_no_space};

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
    #[error(
        "{} is damaged: {reason}; put a copy of it in its place, or move the whole directory away to start empty",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is sound, and lacks writes that were acknowledged.
    #[error(
        "{} ends at revision {found}, but revision {acknowledged} was acknowledged: {why}; put the newest copy in its place, \
         or delete {} to go on without what is missing",
        path.display(),
        head.display()
    )]
    Behind {
        /// The file.
        path: PathBuf,
        /// Its revision.
        found: u64,
        /// The revision that it must have.
        acknowledged: u64,
        /// How that can be.
        why: &'static str,
        /// The file that says which revision it must have.
        head: PathBuf,
    },
    /// There was a file, and it is gone.
    #[error(
        "{} is missing, and was at revision {acknowledged}; put it back, or move the whole directory away to start empty",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// The revision that it had.
        acknowledged: u64,
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
pub struct DirectoryLock {
    file: File,
}

impl DirectoryLock {
    /// Takes a directory, which exists, for a cluster that keeps no store in it.
    pub fn take(dir: &Path) -> Result<DirectoryLock, OpenError> {
        lock(dir)
    }
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
    let (path, head) = (dir.join("store.redb"), dir.join("store.head"));
    let mut reserve = ReserveFile::new(dir.join("reserve"));
    let acknowledged = Head::read(&head);
    let (mut disk, contents) = match File::options().read(true).write(true).open(&path) {
        // A new file has its name once it is whole, and the engine would take an empty one for a new one.
        Ok(file) if file.metadata().map_err(at(&path))?.len() == 0 => {
            return Err(OpenError::Damaged { path, reason: "it is empty".to_owned() });
        }
        Ok(file) => {
            let file = Arc::new(PlainFile::existing(file));
            if let Some(acknowledged) = &acknowledged {
                compare(&file, &path, acknowledged, &head)?;
            }
            // To open a file that was not closed takes room.
            match open_file(Arc::clone(&file), &path) {
                Err(OpenError::Io { source, .. }) if is_no_space(&source) => {
                    reserve.release();
                    open_file(file, &path)?
                }
                opened => opened?,
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match acknowledged {
            Some(Record { revision, .. }) => return Err(OpenError::Missing { path, acknowledged: revision }),
            None => make_file(dir, &path)?,
        },
        Err(error) => return Err(at(&path)(error)),
    };
    match Head::open(&head) {
        Ok(head) => disk.keep_head(head, contents.revision),
        // On a full disk a store of an earlier version goes on without.
        Err(error) => tracing::warn!(%error, "{} cannot be written", head.display()),
    }
    disk.keep_reserve(Box::new(reserve));
    Ok((lock, disk, contents))
}

/// By this bit redb knows that a file was not closed.
const GOD_BYTE: usize = 9;
const NOT_CLOSED: u8 = 2;

/// Compares a file with what was acknowledged, before anything in it is changed. A header that was damaged is restored.
fn compare(file: &Arc<PlainFile>, path: &Path, acknowledged: &Record, head: &Path) -> Result<(), OpenError> {
    let header = match header_of(file.as_ref()) {
        Ok(header) => header,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
        Err(error) => return Err(at(path)(error)),
    };
    let is_closed = header.get(GOD_BYTE).is_some_and(|flags| flags & NOT_CLOSED == 0);
    if is_closed && header == acknowledged.header {
        return Ok(());
    }
    let attempt = |header| {
        let overlay = Overlay::new(Arc::clone(file) as _, header).map_err(DiskError::Io)?;
        quietly(|| Disk::try_out(Arc::new(overlay)))
    };
    let found = attempt(None);
    let verdict = found.as_ref().map(|(revision, chain)| acknowledged.judge(*revision, *chain));
    if matches!(verdict, Ok(Verdict::Whole)) {
        return Ok(());
    }
    let restored = attempt(Some(&acknowledged.header));
    if restored.is_ok_and(|found| found == (acknowledged.revision, acknowledged.chain)) {
        tracing::warn!(
            "the header of {} was damaged, and is restored from {}",
            path.display(),
            head.display()
        );
        return file.write(0, &acknowledged.header).and_then(|()| file.sync_data()).map_err(at(path));
    }
    let why = match verdict {
        Ok(Verdict::Behind) => "it is an older copy, or it was damaged",
        Ok(Verdict::Another) => "its history is another one",
        // What is wrong with it is said when it is opened.
        Ok(Verdict::Whole) | Err(_) => return Ok(()),
    };
    let found = found.map_or(0, |(revision, _)| revision);
    let (path, head, acknowledged) = (path.to_owned(), head.to_owned(), acknowledged.revision);
    Err(OpenError::Behind { path, found, acknowledged, why, head })
}

/// The engine checks most of what it reads, and panics on some of the rest.
fn quietly<T>(work: impl FnOnce() -> Result<T, DiskError>) -> Result<T, DiskError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(DiskError::Damaged("what it says about itself makes no sense".to_owned())))
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

/// Makes a store with these contents in a directory that has none.
pub(super) fn make_filled(dir: &Path, contents: &Contents) -> Result<(), OpenError> {
    let _lock = lock(dir)?;
    let path = dir.join("store.redb");
    if path.exists() {
        return Err(at(&path)(io::ErrorKind::AlreadyExists.into()));
    }
    let (disk, _) = make_file(dir, &path)?;
    disk.fill(contents).map_err(|error| at(&path)(io::Error::other(error)))
}

fn open_file(file: Arc<PlainFile>, path: &Path) -> Result<(Disk, Contents), OpenError> {
    let path = path.to_owned();
    quietly(|| Disk::open(file)).map_err(|error| match error {
        DiskError::Damaged(reason) => OpenError::Damaged { path, reason },
        DiskError::UnknownFormat(format) => OpenError::UnknownFormat { path, format },
        DiskError::Io(source) => OpenError::Io { path, source },
    })
}

fn lock(dir: &Path) -> Result<DirectoryLock, OpenError> {
    let path = dir.join("lock");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let holder = holder.trim().parse::<u32>().map(|pid| format!(" by process {pid}"));
            return Err(OpenError::InUse { dir: dir.to_owned(), holder: holder.unwrap_or_default() });
        }
        Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
    }
    // The number is for people only; the lock is what counts. A full disk may have no room for it.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
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
