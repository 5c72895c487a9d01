//! The head: what the store acknowledged last, in a file of its own.
//!
//! redb checks what it reads, but a damaged header can make it take the last commit but one for the last, and an older copy of the
//! file is a sound file too. The head says which revision the file must have at least, and keeps a copy of its header.
//!
//! ```text
//!   magic 8, revision 8, chain 8, header of the file 320, checksum 8: numbers are little-endian
//! ```
//!
//! It is written after each commit and not synced: a killed process leaves it exact, and after a power cut it may be behind the store,
//! never ahead of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use redb::StorageBackend;

/// How many bytes of the file redb changes with each commit.
pub(super) const HEADER_BYTES: usize = 320;
/// By this a head is known, and its format.
const MAGIC: [u8; 8] = *b"krafla-1";
const RECORD_BYTES: usize = 8 + 8 + 8 + HEADER_BYTES + 8;

/// The beginning of a file as redb left it.
pub(super) type Header = [u8; HEADER_BYTES];

/// What was acknowledged last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) revision: u64,
    /// Tells histories apart that have reached the same revision.
    pub(super) chain: u64,
    pub(super) header: Header,
}

/// How what a file holds compares with what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Everything acknowledged is there.
    Whole,
    /// The file ends before the last acknowledged write.
    Behind,
    /// The file has another history.
    Another,
}

impl Record {
    /// Compares a file at this revision with the record. A file that is ahead has a commit that nobody was told of, or the machine lost
    /// its power.
    pub(super) fn judge(&self, revision: u64, chain: u64) -> Verdict {
        match revision.cmp(&self.revision) {
            std::cmp::Ordering::Less => Verdict::Behind,
            std::cmp::Ordering::Equal if chain != self.chain => Verdict::Another,
            std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => Verdict::Whole,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(RECORD_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(self.revision.to_le_bytes());
        bytes.extend(self.chain.to_le_bytes());
        bytes.extend(self.header);
        bytes.extend(hash(SEED, &bytes).to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Record> {
        let (rest, sum) = bytes.split_last_chunk::<8>()?;
        let is_whole = bytes.len() == RECORD_BYTES && hash(SEED, rest) == u64::from_le_bytes(*sum);
        let rest = rest.strip_prefix(&MAGIC).filter(|_| is_whole)?;
        let (revision, rest) = rest.split_first_chunk::<8>()?;
        let (chain, header) = rest.split_first_chunk::<8>()?;
        Some(Record {
            revision: u64::from_le_bytes(*revision),
            chain: u64::from_le_bytes(*chain),
            header: header.try_into().ok()?,
        })
    }
}

/// The header that a file has now.
pub(super) fn header_of(file: &dyn StorageBackend) -> io::Result<Header> {
    let mut header = [0; HEADER_BYTES];
    file.read(0, &mut header)?;
    Ok(header)
}

/// The file with the record.
#[derive(Debug)]
pub(super) struct Head {
    file: File,
}

impl Head {
    /// Opens the file, or makes an empty one.
    pub(super) fn open(path: &Path) -> io::Result<Head> {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        Ok(Head { file })
    }

    /// What a file says; nothing if it does not exist, or does not say it clearly.
    pub(super) fn read(path: &Path) -> Option<Record> {
        let bytes = std::fs::read(path).ok().filter(|bytes| !bytes.is_empty())?;
        let record = Record::from_bytes(&bytes);
        if record.is_none() {
            tracing::warn!("{} is damaged: it is written anew, and cannot be compared", path.display());
        }
        record
    }

    /// Writes down what is acknowledged next. A head that is behind does no harm, so a failure is none of the writer's.
    pub(super) fn write(&self, record: &Record) {
        if let Err(error) = self.file.write_all_at(&record.to_bytes(), 0) {
            tracing::warn!(%error, "the head of the store cannot be written");
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Where hashes begin.
pub(super) const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: it finds damage and tells histories apart; nobody attacks it.
pub(super) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_or_not_at_all() {
        let record = Record { revision: 7, chain: 8, header: [9; HEADER_BYTES] };
        let bytes = record.to_bytes();
        assert_eq!(Record::from_bytes(&bytes), Some(record));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::from_bytes(&damaged), None, "bit {bit}");
        }
        assert_eq!(Record::from_bytes(&bytes[1..]), None);
        assert_eq!(Record::from_bytes(b""), None);
    }

    #[test]
    fn a_file_holds_all_that_was_acknowledged_or_it_is_refused() {
        let record = Record { revision: 7, chain: 8, header: [0; HEADER_BYTES] };
        assert_eq!(record.judge(7, 8), Verdict::Whole);
        assert_eq!(record.judge(8, 1), Verdict::Whole);
        assert_eq!(record.judge(7, 9), Verdict::Another);
        assert_eq!(record.judge(6, 8), Verdict::Behind);
    }
}
