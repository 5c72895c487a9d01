//! A disk in memory that fails when told to.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::*;

#[derive(Debug, Default)]
pub(super) struct FaultyDisk {
    storage: InMemoryBackend,
    pub(super) is_full: AtomicBool,
    /// Whether there is room although it is full.
    pub(super) is_released: AtomicBool,
    pub(super) cannot_sync: AtomicBool,
}

impl FaultyDisk {
    /// An empty store on such a disk with a reserve.
    pub(super) fn store_with_reserve() -> (Store, Arc<FaultyDisk>) {
        let faulty = Arc::new(FaultyDisk::default());
        let (mut disk, contents) = Disk::open(Arc::clone(&faulty) as _).unwrap();
        disk.keep_reserve(Box::new(FaultyReserve(Arc::clone(&faulty))));
        (Store::on_disk(disk, contents, None).unwrap(), faulty)
    }

    /// An empty store on such a disk.
    pub(super) fn store() -> (Store, Arc<FaultyDisk>) {
        let faulty = Arc::new(FaultyDisk::default());
        let (disk, contents) = Disk::open(Arc::clone(&faulty) as _).unwrap();
        (Store::on_disk(disk, contents, None).unwrap(), faulty)
    }
}

impl StorageBackend for FaultyDisk {
    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.storage.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.storage.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.cannot_sync.load(Ordering::Relaxed) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        // The header is there already, and needs no room.
        const HEADER: u64 = 4096;
        let is_full = self.is_full.load(Ordering::Relaxed) && !self.is_released.load(Ordering::Relaxed);
        if is_full && offset >= HEADER {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.storage.write(offset, data)
    }
}

/// Room on such a disk.
#[derive(Debug)]
struct FaultyReserve(Arc<FaultyDisk>);

impl reserve::Reserve for FaultyReserve {
    fn release(&mut self) {
        self.0.is_released.store(true, Ordering::Relaxed);
    }

    fn refill(&mut self) -> io::Result<()> {
        if self.0.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.is_released.store(false, Ordering::Relaxed);
        Ok(())
    }
}
