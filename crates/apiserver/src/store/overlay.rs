//! A file that can be tried out: it reads like the file below it, and keeps writes to itself.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

use super::head::Header;

const PAGE_BYTES: u64 = 4096;

/// A file over another file, which it never changes.
#[derive(Debug)]
pub(super) struct Overlay {
    below: Arc<dyn StorageBackend>,
    changed: Mutex<Changed>,
}

#[derive(Debug)]
struct Changed {
    len: u64,
    /// How much of the file below is still part of this one.
    len_below: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    /// A file as it is, or as it would be with another header.
    pub(super) fn new(below: Arc<dyn StorageBackend>, header: Option<&Header>) -> io::Result<Overlay> {
        let len = below.len()?;
        let changed = Mutex::new(Changed { len, len_below: len, pages: BTreeMap::new() });
        let overlay = Overlay { below, changed };
        if let Some(header) = header {
            overlay.write(0, header)?;
        }
        Ok(overlay)
    }

    fn page(&self, changed: &Changed, number: u64) -> io::Result<Vec<u8>> {
        if let Some(page) = changed.pages.get(&number) {
            return Ok(page.clone());
        }
        let begin = number.saturating_mul(PAGE_BYTES);
        let n_below = changed.len_below.saturating_sub(begin).min(PAGE_BYTES);
        let mut page = vec![0; usize::try_from(n_below).unwrap_or_default()];
        if !page.is_empty() {
            self.below.read(begin, &mut page)?;
        }
        page.resize(PAGE_BYTES as usize, 0);
        Ok(page)
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changed.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changed = self.changed.lock();
        if offset.saturating_add(out.len() as u64) > changed.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let page = self.page(&changed, at / PAGE_BYTES)?;
            let from = page.get((at % PAGE_BYTES) as usize..).unwrap_or_default();
            let n_bytes = from.len().min(rest.len());
            let (now, later) = rest.split_at_mut(n_bytes);
            now.copy_from_slice(from.get(..n_bytes).unwrap_or_default());
            (at, rest) = (at + n_bytes as u64, later);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changed = self.changed.lock();
        // What is cut off does not come back.
        if len < changed.len && !len.is_multiple_of(PAGE_BYTES) {
            let mut page = self.page(&changed, len / PAGE_BYTES)?;
            page.truncate((len % PAGE_BYTES) as usize);
            page.resize(PAGE_BYTES as usize, 0);
            changed.pages.insert(len / PAGE_BYTES, page);
        }
        changed.len = len;
        changed.len_below = changed.len_below.min(len);
        changed.pages.retain(|number, _| number.saturating_mul(PAGE_BYTES) < len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changed = self.changed.lock();
        changed.len = changed.len.max(offset.saturating_add(data.len() as u64));
        let (mut at, mut rest) = (offset, data);
        while !rest.is_empty() {
            let number = at / PAGE_BYTES;
            let mut page = self.page(&changed, number)?;
            let to = page.get_mut((at % PAGE_BYTES) as usize..).unwrap_or_default();
            let n_bytes = to.len().min(rest.len());
            let (now, later) = rest.split_at(n_bytes);
            to.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
            changed.pages.insert(number, page);
            (at, rest) = (at + n_bytes as u64, later);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_file_below_does_not_change() {
        let below = InMemoryBackend::new();
        below.set_len(10_000).unwrap();
        below.write(0, &[1; 10_000]).unwrap();
        let below: Arc<dyn StorageBackend> = Arc::new(below);
        let overlay = Overlay::new(Arc::clone(&below), None).unwrap();
        overlay.set_len(20_000).unwrap();
        overlay.write(4_000, &[2; 200]).unwrap();
        let mut all = vec![9; 20_000];
        overlay.read(0, &mut all).unwrap();
        let expected = [vec![1; 4_000], vec![2; 200], vec![1; 5_800], vec![0; 10_000]].concat();
        assert!(all == expected);
        assert!(overlay.read(19_999, &mut [0; 2]).is_err());
        overlay.set_len(5_000).unwrap();
        overlay.set_len(10_000).unwrap();
        let mut end = vec![9; 5_000];
        overlay.read(5_000, &mut end).unwrap();
        assert!(end.iter().all(|byte| *byte == 0));
        let mut found = vec![0; 10_000];
        below.read(0, &mut found).unwrap();
        assert!(found == vec![1; 10_000]);
    }
}
