//! The file behind the store: which objects there are, and the revision at which that is so. No history.
//!
//! ```text
//!   table objects   (resource, namespace, name) -> (revision, uid, what is read of the object, the object)
//!   table store     "format" -> 1, "revision" -> the newest revision, "chain" -> a hash of all that was written
//!   table cluster   "id" -> the UID of the cluster
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
use super::head::{Head, Record, hash, header_of};
use super::reserve::{Reserve, is_no_space};
use super::sequencer::{Accepted, Batch};
use super::snapshot::Entries;
use super::state::FIRST_REVISION;
use crate::env::{Env, SystemEnv};

type ObjectKey = (&'static str, &'static str, &'static str);
type ObjectValue = (u64, &'static str, &'static [u8], &'static [u8]);

const OBJECTS: TableDefinition<'_, ObjectKey, ObjectValue> = TableDefinition::new("objects");
const STORE: TableDefinition<'_, &str, u64> = TableDefinition::new("store");
const CLUSTER: TableDefinition<'_, &str, &str> = TableDefinition::new("cluster");

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
    /// See [`super::head::Record::chain`].
    chain: u64,
    head: Option<Head>,
    reserve: Option<Box<dyn Reserve>>,
    /// Whether the reserve has been given free.
    is_full: bool,
}

/// What a file holds.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) revision: u64,
    pub(super) chain: u64,
    /// Which cluster it is the store of.
    pub(super) cluster: Uid,
    pub(super) objects: BTreeMap<ResourceId, Entries>,
    pub(super) object_bytes: u64,
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

impl DiskError {
    /// Whether the disk is full.
    pub(super) fn is_no_space(&self) -> bool {
        matches!(self, DiskError::Io(error) if is_no_space(error))
    }
}

impl Disk {
    /// Opens a file and reads all of it.
    pub(super) fn open(backend: Arc<dyn StorageBackend>) -> Result<(Disk, Contents), DiskError> {
        let mut database = open_database(&backend)?;
        let mut contents = read(&database)?;
        if contents.cluster.is_empty() {
            contents.cluster = SystemEnv.uid();
            name_cluster(&database, &contents.cluster)?;
        }
        let file_bytes = backend.len().map_err(DiskError::Io)?;
        if file_bytes > COMPACT_ABOVE_BYTES && file_bytes / 4 > contents.object_bytes {
            database.compact().map_err(redb::Error::from)?;
        }
        let chain = contents.chain;
        Ok((Disk { backend, database, chain, head: None, reserve: None, is_full: false }, contents))
    }

    /// The revision and the chain that a file has. What has to be written to find out must not be kept.
    pub(super) fn try_out(backend: Arc<dyn StorageBackend>) -> Result<(u64, u64), DiskError> {
        let database = open_database(&backend)?;
        let StoreTable { format, revision, chain } =
            read_store_table(&database.begin_read().map_err(redb::Error::from)?)?;
        if format == FORMAT { Ok((revision, chain)) } else { Err(DiskError::UnknownFormat(format)) }
    }

    /// From now on, what is acknowledged is written down beside the file, too.
    pub(super) fn keep_head(&mut self, head: Head, revision: u64) {
        self.head = Some(head);
        self.write_head(revision);
    }

    /// From now on, room is kept free for deletes.
    pub(super) fn keep_reserve(&mut self, reserve: Box<dyn Reserve>) {
        self.reserve = Some(reserve);
        self.is_full = true;
        self.look_for_room();
    }

    /// Whether only deletes are to be written.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes the reserve back, if there is room again.
    pub(super) fn look_for_room(&mut self) {
        let Some(reserve) = self.reserve.as_mut().filter(|_| self.is_full) else { return };
        match reserve.refill() {
            Ok(()) => self.is_full = false,
            Err(error) if is_no_space(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no room can be kept free for deletes");
                self.is_full = false;
            }
        }
    }

    fn write_head(&self, revision: u64) {
        let Some(head) = &self.head else { return };
        match header_of(self.backend.as_ref()) {
            Ok(header) => head.write(&Record { revision, chain: self.chain, header }),
            Err(error) => tracing::warn!(%error, "the header of the store cannot be read"),
        }
    }

    /// Makes a batch durable, or leaves the file as it was. On a full disk it gives the reserve free, and tries again.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<(), DiskError> {
        let chain = chain_of(self.chain, batch);
        let mut written = self.try_write(batch, chain);
        if matches!(&written, Err(error) if error.is_no_space()) && self.reserve.is_some() {
            written = self.try_write(batch, chain);
        }
        written?;
        self.chain = chain;
        self.write_head(batch.state.revision());
        Ok(())
    }

    fn try_write(&mut self, batch: &Batch, chain: u64) -> Result<(), DiskError> {
        let Err(failure) = write(&self.database, batch, chain).map_err(DiskError::from) else {
            return Ok(());
        };
        if failure.is_no_space()
            && let Some(reserve) = &mut self.reserve
        {
            // Opening the file writes, too.
            reserve.release();
            self.is_full = true;
        }
        // After a failure redb takes nothing more until the file is opened anew, and only then is it known in which
        // of the two states the file is.
        let reopened = open_database(&self.backend)
            .and_then(|database| Ok((read_store_table(&database.begin_read()?)?, database)))
            .unwrap_or_else(|error| {
                give_up(&format!("{failure}; opening the file again failed too: {error}"))
            });
        let (store, database) = reopened;
        self.database = database;
        if store.revision == batch.state.revision() { Ok(()) } else { Err(failure) }
    }

    /// Writes all contents into a new file, and closes it.
    pub(super) fn fill(self, contents: &Contents) -> Result<(), DiskError> {
        let filled = fill(&self.database, contents).map_err(DiskError::from);
        self.close(contents.revision);
        filled
    }

    /// Closes the file, which is at this revision.
    pub(super) fn close(self, revision: u64) {
        let Disk { backend, database, chain, head, .. } = self;
        // It writes the header once more.
        drop(database);
        let (Some(head), Ok(header)) = (head, header_of(backend.as_ref())) else { return };
        head.write(&Record { revision, chain, header });
        // One that is behind does no harm.
        let _ = head.sync();
    }
}

/// The hash of everything written so far, from that before it. UIDs are random, so two histories differ.
fn chain_of(before: u64, batch: &Batch) -> u64 {
    batch.writes.iter().fold(before, |chain, Accepted { event, .. }| {
        let Entry { key, uid, revision, .. } = event.entry.as_ref();
        let parts =
            [key.namespace.as_bytes(), key.name.as_bytes(), uid.0.as_bytes(), &revision.to_le_bytes()];
        parts.iter().fold(chain, |chain, part| hash(chain, part))
    })
}

/// Writes down which cluster a file belongs to.
fn name_cluster(database: &Database, id: &Uid) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(CLUSTER)?.insert("id", id.0.as_ref())?;
    transaction.commit()?;
    Ok(())
}

fn open_database(backend: &Arc<dyn StorageBackend>) -> Result<Database, redb::Error> {
    let backend = ReliableSync(Arc::clone(backend));
    let mut database = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend)?;
    // Everything is read at start and never again, so this is the moment to notice what the disk has lost.
    database.check_integrity()?;
    Ok(database)
}

fn fill(database: &Database, contents: &Contents) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        let mut chain = hash(0, contents.cluster.0.as_bytes());
        for (resource, entries) in &contents.objects {
            for entry in entries.values() {
                let Entry { key, uid, revision, bytes, meta } = entry.as_ref();
                let meta = serde_json::to_vec(meta).map_err(io::Error::from)?;
                let key = (resource.as_str(), key.namespace.as_ref(), key.name.as_ref());
                objects.insert(key, (*revision, uid.0.as_ref(), meta.as_slice(), bytes.as_ref()))?;
                chain = hash(hash(chain, uid.0.as_bytes()), &revision.to_le_bytes());
            }
        }
        let mut store = transaction.open_table(STORE)?;
        store.insert("format", FORMAT)?;
        store.insert("revision", contents.revision)?;
        store.insert("chain", chain)?;
        transaction.open_table(CLUSTER)?.insert("id", contents.cluster.0.as_ref())?;
    }
    transaction.commit()?;
    Ok(())
}

fn write(database: &Database, batch: &Batch, chain: u64) -> Result<(), redb::Error> {
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
        store.insert("chain", chain)?;
    }
    transaction.commit()?;
    Ok(())
}

fn read(database: &Database) -> Result<Contents, DiskError> {
    let transaction = database.begin_read().map_err(redb::Error::from)?;
    let StoreTable { format, revision, chain } = read_store_table(&transaction)?;
    if format != FORMAT {
        return Err(DiskError::UnknownFormat(format));
    }
    let cluster = read_cluster(&transaction)?;
    let mut contents = Contents { revision, chain, cluster, ..Contents::default() };
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

/// The cluster that a file belongs to; empty in files of earlier versions.
fn read_cluster(transaction: &ReadTransaction) -> Result<Uid, redb::Error> {
    let Some(cluster) = existing(transaction.open_table(CLUSTER))? else { return Ok(Uid::default()) };
    Ok(cluster.get("id")?.map(|id| Uid::from(id.value())).unwrap_or_default())
}

struct StoreTable {
    format: u64,
    revision: u64,
    /// Zero in files of earlier versions.
    chain: u64,
}

fn read_store_table(transaction: &ReadTransaction) -> Result<StoreTable, redb::Error> {
    let Some(store) = existing(transaction.open_table(STORE))? else {
        return Ok(StoreTable { format: FORMAT, revision: FIRST_REVISION, chain: 0 });
    };
    let format = store.get("format")?.map_or(0, |value| value.value());
    let revision = store.get("revision")?.map_or(0, |value| value.value());
    let chain = store.get("chain")?.map_or(0, |value| value.value());
    Ok(StoreTable { format, revision, chain })
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
