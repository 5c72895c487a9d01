//! A copy of a store as lines of text, and a store made from such a copy. Backups hold one.
//!
//! ```text
//!   {"format":1,"revision":7,"cluster":"UID","objects":2}
//!   {"resource":"pods","namespace":"default","name":"a","revision":5,"uid":"...","meta":{...}} TAB the object
//!   ...
//! ```

use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use krafla_api::{Key, Uid};
use serde::{Deserialize, Serialize};

use super::disk::Contents;
use super::entry::{Entry, EntryMeta, ResourceId};
use super::open::OpenError;
use super::{Store, open};

/// The form of the lines. A program that does not know it must not read them.
const FORMAT: u64 = 1;

/// The first line of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyHead {
    format: u64,
    /// The revision of the store.
    pub revision: u64,
    /// Which cluster it is the store of.
    pub cluster: Uid,
    /// How many objects follow.
    pub objects: usize,
}

#[derive(Serialize, Deserialize)]
struct Line {
    resource: String,
    namespace: String,
    name: String,
    revision: u64,
    uid: Uid,
    meta: EntryMeta,
}

/// Why a store cannot be made from a copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// It is not what a store has written, or not all of it.
    #[error("the copy of the store is damaged: {0}")]
    Damaged(String),
    /// It has a form that this program does not know.
    #[error(
        "the copy of the store has format {0}, and this krafla knows {FORMAT}; use the krafla that wrote it"
    )]
    UnknownFormat(u64),
    /// It cannot be read.
    #[error("cannot read the copy of the store: {0}")]
    Read(#[from] io::Error),
    /// The store cannot be written.
    #[error(transparent)]
    Write(#[from] OpenError),
}

impl CopyHead {
    /// Reads the first line of a copy.
    pub fn parse(line: &[u8]) -> Result<CopyHead, CopyError> {
        let head: CopyHead =
            serde_json::from_slice(line).map_err(|error| CopyError::Damaged(error.to_string()))?;
        if head.format == FORMAT { Ok(head) } else { Err(CopyError::UnknownFormat(head.format)) }
    }
}

impl Store {
    /// All objects at one revision, as lines; nothing for a store without a disk. Taking it costs little and stops no write.
    pub fn copy(&self) -> Option<impl Iterator<Item = Bytes> + Send + 'static> {
        let cluster = self.cluster()?.clone();
        let (revision, entries) = self.inner.sequencer.visible().all();
        let head = CopyHead { format: FORMAT, revision, cluster, objects: entries.len() };
        let lines = entries.into_iter().map(|(resource, entry)| line(&resource, &entry));
        Some(std::iter::once(json_line(&head, b"\n")).chain(lines))
    }

    /// Makes a store in a directory that has none, from a copy.
    pub fn from_copy(dir: &Path, mut lines: impl BufRead) -> Result<CopyHead, CopyError> {
        let mut bytes = Vec::new();
        lines.read_until(b'\n', &mut bytes)?;
        let head = CopyHead::parse(&bytes)?;
        let mut contents =
            Contents { revision: head.revision, cluster: head.cluster.clone(), ..Contents::default() };
        for n_read in 0..head.objects {
            bytes.clear();
            lines.read_until(b'\n', &mut bytes)?;
            let (resource, entry) =
                parse(&bytes).ok_or_else(|| CopyError::Damaged(format!("object {n_read} cannot be read")))?;
            contents.objects.entry(resource).or_default().insert(entry.key.clone(), Arc::new(entry));
        }
        open::make_filled(dir, &contents)?;
        Ok(head)
    }
}

fn json_line(head: &impl Serialize, end: &[u8]) -> Bytes {
    // Texts and numbers can always be written.
    let mut line = serde_json::to_vec(head).unwrap_or_default();
    line.extend_from_slice(end);
    line.into()
}

fn line(resource: &ResourceId, entry: &Entry) -> Bytes {
    let Entry { key, uid, revision, bytes, meta } = entry;
    let head = Line {
        resource: resource.to_string(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        revision: *revision,
        uid: uid.clone(),
        meta: meta.clone(),
    };
    json_line(&head, &[b"\t", &**bytes, b"\n"].concat())
}

fn parse(line: &[u8]) -> Option<(ResourceId, Entry)> {
    let line = line.strip_suffix(b"\n")?;
    let (head, object) = line.split_at_checked(line.iter().position(|byte| *byte == b'\t')?)?;
    let Line { resource, namespace, name, revision, uid, meta } = serde_json::from_slice(head).ok()?;
    let bytes = Bytes::copy_from_slice(object.get(1..)?);
    Some((resource.as_str().into(), Entry { key: Key::new(&namespace, &name), uid, revision, bytes, meta }))
}
