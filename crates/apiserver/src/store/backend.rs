//! The file as redb sees it, and the rule for a disk that does not keep its word.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;

/// Says why, and ends the process at once. What is on disk is what the next start finds; what is in memory might be
/// more than that, and nobody may see it any more.
pub(super) fn give_up(reason: &str) -> ! {
    tracing::error!(reason, "the store cannot go on");
    eprintln!("krafla: the store cannot go on: {reason}");
    std::process::abort()
}

/// Storage whose sync either succeeds or is the last thing the process does. After a failed sync the kernel may drop
/// the pages it could not write and report success the next time, so no later answer could be trusted.
#[derive(Debug)]
pub(super) struct ReliableSync(pub(super) Arc<dyn StorageBackend>);

impl StorageBackend for ReliableSync {
    fn sync_data(&self) -> io::Result<()> {
        match self.0.sync_data() {
            Ok(()) => Ok(()),
            Err(error) => give_up(&format!("the disk could not be synced: {error}")),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

/// A file. It takes no lock: whoever opens it has locked the directory.
#[derive(Debug)]
pub(super) struct PlainFile {
    file: File,
    /// Whether anybody would look for it after a crash. Until then there is nothing to sync.
    has_its_name: AtomicBool,
}

impl PlainFile {
    /// A file that has been there before.
    pub(super) fn existing(file: File) -> PlainFile {
        PlainFile { file, has_its_name: AtomicBool::new(true) }
    }

    /// A file that is being made under another name.
    pub(super) fn unfinished(file: File) -> PlainFile {
        PlainFile { file, has_its_name: AtomicBool::new(false) }
    }

    /// Makes durable what has been written so far, and everything from now on when asked to.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.has_its_name.store(true, Ordering::Release);
        self.file.sync_all()
    }
}

impl StorageBackend for PlainFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.has_its_name.load(Ordering::Acquire) { self.file.sync_data() } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }
}
