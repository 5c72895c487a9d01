//! Room that is kept free for deletes: without it a full disk has no way out, since a delete is a write too.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate};

/// How much is kept free. A delete writes some pages of 4 KiB, and frees more than it writes.
const RESERVE_BYTES: u64 = 4 << 20;

/// Room on a disk that can be given free and taken back.
pub(super) trait Reserve: fmt::Debug + Send {
    /// Gives the room free.
    fn release(&mut self);
    /// Takes the room back. Fails while the disk is full.
    fn refill(&mut self) -> io::Result<()>;
}

/// A file that takes up room.
#[derive(Debug)]
pub(super) struct ReserveFile {
    path: PathBuf,
}

impl ReserveFile {
    pub(super) fn new(path: PathBuf) -> ReserveFile {
        ReserveFile { path }
    }

    fn make(&self) -> io::Result<()> {
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOSYS) => {
                let page = [0_u8; 4096];
                (0..RESERVE_BYTES / 4096).try_for_each(|_| file.write_all(&page))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Reserve for ReserveFile {
    fn release(&mut self) {
        // One that cannot be removed, or does not exist, gives nothing free.
        let _ = fs::remove_file(&self.path);
    }

    fn refill(&mut self) -> io::Result<()> {
        if self.path.metadata().is_ok_and(|found| found.len() == RESERVE_BYTES) {
            return Ok(());
        }
        self.make().inspect_err(|_| self.release())
    }
}

/// Whether a disk or a quota is used up.
pub(super) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_reserve_takes_up_room_until_it_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("reserve");
        let mut reserve = ReserveFile::new(path.clone());
        reserve.refill().unwrap();
        reserve.refill().unwrap();
        assert!(path.metadata().unwrap().blocks() * 512 >= RESERVE_BYTES);
        reserve.release();
        reserve.release();
        assert!(!path.exists());
    }
}
