//! The file behind the store: which objects there are, and the revision at which that is so. No history.
//!
//! ```text
//!   table objects   (resource, namespace, name) -> (revision, uid, what is read of the object, the object)
//!   table store     "format" -> 1, "revision" -> the newest revision
//! ```
//!
//! Each batch is one redb transaction, so that a crash leaves all of it or none.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use krafla_api::{Key, Uid};
use redb::{
    Database, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition, TableError,
};

use super::backend::{ReliableSync, give_up};
use super::entry::{Entry, ResourceId};
use super::event::EventType;
use super::sequencer::{Accepted, Batch};
use super::snapshot::Entries;
use super::state::FIRST_REVISION;

type ObjectKey = (&'static str, &'static str, &'static str);
type ObjectValue = (u64, &'static str, &'static [u8], &'static [u8]);

const OBJECTS: TableDefinition<'_, ObjectKey, ObjectValue> = TableDefinition::new("objects");
const STORE: TableDefinition<'_, &str, u64> = TableDefinition::new("store");

/// The layout of the tables. A program that does not know it must not touch them.
const FORMAT: u64 = 1;

/// The objects are in memory already; redb needs little more than the inner pages of its tree, which are 7 MB for a
/// hundred thousand objects.
const CACHE_BYTES: usize = 8 << 20;

/// A file is made smaller at start if it is larger than this, and holds mostly nothing.
const COMPACT_ABOVE_BYTES: u64 = 64 << 20;

/// The file behind the store.
#[derive(Debug)]
pub(super) struct Disk {
    backend: Arc<dyn StorageBackend>,
    database: Database,
}

/// What a file holds.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) revision: u64,
    pub(super) objects: BTreeMap<ResourceId, Entries>,
    object_bytes: u64,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DiskError {
    /// It holds something else, or nonsense.
    #[error("{0}")]
    Damaged(String),
    /// It is laid out in a way this program does not know.
    #[error("its format is {0}, and this program knows {FORMAT}")]
    UnknownFormat(u64),
    /// It cannot be read or written.
    #[error("{0}")]
    Io(io::Error),
}

impl Disk {
    /// Opens a file and reads all of it.
    pub(super) fn open(backend: Arc<dyn StorageBackend>) -> Result<(Disk, Contents), DiskError> {
        let mut database = open_database(&backend)?;
        let contents = read(&database)?;
        let file_bytes = backend.len().map_err(DiskError::Io)?;
        if file_bytes > COMPACT_ABOVE_BYTES && file_bytes / 4 > contents.object_bytes {
            database.compact().map_err(redb::Error::from)?;
        }
        Ok((Disk { backend, database }, contents))
    }

    /// Makes a batch durable, or leaves the file as it was.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<(), DiskError> {
        let Err(failure) = write(&self.database, batch) else { return Ok(()) };
        // After a failure redb takes nothing more until the file is opened anew, and only then is it known in which
        // of the two states the file is.
        let reopened = open_database(&self.backend)
            .and_then(|database| Ok((read_store_table(&database.begin_read()?)?, database)))
            .unwrap_or_else(|error| {
                give_up(&format!("{failure}; opening the file again failed too: {error}"))
            });
        let (store, database) = reopened;
        self.database = database;
        if store.revision == batch.state.revision() { Ok(()) } else { Err(failure.into()) }
    }
}

fn open_database(backend: &Arc<dyn StorageBackend>) -> Result<Database, redb::Error> {
    let backend = ReliableSync(Arc::clone(backend));
    let mut database = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend)?;
    // Everything is read at start and never again, so this is the moment to notice what the disk has lost.
    database.check_integrity()?;
    Ok(database)
}

fn write(database: &Database, batch: &Batch) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for Accepted { resource, event, .. } in &batch.writes {
            let Entry { key, uid, revision, bytes, meta } = event.entry.as_ref();
            let key = (resource.as_str(), key.namespace.as_ref(), key.name.as_ref());
            match event.event_type {
                EventType::Added | EventType::Modified => {
                    let meta = serde_json::to_vec(meta).map_err(io::Error::from)?;
                    objects.insert(key, (*revision, uid.0.as_ref(), meta.as_slice(), bytes.as_ref()))?;
                }
                EventType::Deleted => {
                    objects.remove(key)?;
                }
            }
        }
        let mut store = transaction.open_table(STORE)?;
        store.insert("format", FORMAT)?;
        store.insert("revision", batch.state.revision())?;
    }
    transaction.commit()?;
    Ok(())
}

fn read(database: &Database) -> Result<Contents, DiskError> {
    let transaction = database.begin_read().map_err(redb::Error::from)?;
    let StoreTable { format, revision } = read_store_table(&transaction)?;
    if format != FORMAT {
        return Err(DiskError::UnknownFormat(format));
    }
    let mut contents = Contents { revision, ..Contents::default() };
    read_objects(&transaction, &mut contents)?;
    Ok(contents)
}

fn read_objects(transaction: &ReadTransaction, contents: &mut Contents) -> Result<(), redb::Error> {
    let Some(objects) = existing(transaction.open_table(OBJECTS))? else { return Ok(()) };
    for record in objects.iter()? {
        let (key, value) = record?;
        let ((resource, namespace, name), (revision, uid, meta, object)) = (key.value(), value.value());
        let key = Key::new(namespace, name);
        let meta = serde_json::from_slice(meta)
            .map_err(|error| redb::Error::Corrupted(format!("{resource} {key}: {error}")))?;
        contents.object_bytes += object.len() as u64;
        let bytes = Bytes::copy_from_slice(object);
        let entry = Entry { key: key.clone(), uid: Uid::from(uid), revision, bytes, meta };
        contents.objects.entry(resource.into()).or_default().insert(key, Arc::new(entry));
    }
    Ok(())
}

struct StoreTable {
    format: u64,
    revision: u64,
}

fn read_store_table(transaction: &ReadTransaction) -> Result<StoreTable, redb::Error> {
    let Some(store) = existing(transaction.open_table(STORE))? else {
        return Ok(StoreTable { format: FORMAT, revision: FIRST_REVISION });
    };
    let format = store.get("format")?.map_or(0, |value| value.value());
    let revision = store.get("revision")?.map_or(0, |value| value.value());
    Ok(StoreTable { format, revision })
}

/// A new file has no tables yet.
fn existing<T>(table: Result<T, TableError>) -> Result<Option<T>, TableError> {
    match table {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl From<redb::Error> for DiskError {
    fn from(error: redb::Error) -> DiskError {
        match error {
            redb::Error::Corrupted(reason) => DiskError::Damaged(reason),
            redb::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                DiskError::Damaged(error.to_string())
            }
            redb::Error::Io(error) => DiskError::Io(error),
            other => DiskError::Damaged(other.to_string()),
        }
    }
}
