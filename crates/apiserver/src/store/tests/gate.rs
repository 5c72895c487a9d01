//! A disk in memory that syncs only when its gate is open: what lies between accepted and durable lasts as long as a test
//! wants.

use std::io;

use parking_lot::{Condvar, Mutex};
use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::*;

/// Whether the disk syncs.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    storage: InMemoryBackend,
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// An empty store behind an open gate.
    pub(crate) fn store() -> (Store, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        let (disk, contents) = Disk::open(Arc::clone(&gate) as _).unwrap();
        (Store::on_disk(disk, contents, None).unwrap(), gate)
    }

    /// Nothing becomes durable from now on.
    pub(crate) fn close(&self) {
        *self.is_closed.lock() = true;
    }

    /// Everything does.
    pub(crate) fn open(&self) {
        *self.is_closed.lock() = false;
        self.opened.notify_all();
    }
}

impl StorageBackend for Gate {
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
        self.opened.wait_while(&mut self.is_closed.lock(), |is_closed| *is_closed);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.storage.write(offset, data)
    }
}
