//! The files of a log, read as one, while the supervisor may be adding new ones and removing old ones.

use std::collections::VecDeque;
use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::supervisor::log_file::segments;

/// How much is read at a time.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// All that there is of a log, and a place in it.
pub(super) struct Segments {
    path: PathBuf,
    /// What is still to be read, the oldest first. The last one read stays, for it may grow.
    files: VecDeque<Segment>,
}

struct Segment {
    file: File,
    /// Which file it is, whatever it is called by now.
    inode: u64,
}

impl Segments {
    /// The log from its beginning. It need not exist yet.
    pub(super) async fn open(path: PathBuf) -> io::Result<Segments> {
        let files = open_all(&path).await?;
        Ok(Segments { path, files })
    }

    /// Goes to where the last `n_lines` entries begin.
    pub(super) async fn seek_tail(&mut self, n_lines: u64) -> io::Result<()> {
        // The line end of the last entry does not begin another one.
        let mut n_ends_left = n_lines.saturating_add(1);
        let mut is_found = false;
        for segment in self.files.iter_mut().rev() {
            let end = segment.file.seek(SeekFrom::End(0)).await?;
            if is_found {
                continue;
            }
            let begin = find_nth_last_line(&mut segment.file, end, &mut n_ends_left).await?;
            segment.file.seek(SeekFrom::Start(begin)).await?;
            is_found = n_ends_left == 0;
        }
        Ok(())
    }

    /// Reads on. Zero means that there is no more at the moment.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(current) = self.files.front_mut() else {
                self.files = open_all(&self.path).await?;
                if self.files.is_empty() {
                    return Ok(0);
                }
                continue;
            };
            let n_read = current.file.read(buffer).await?;
            if n_read > 0 {
                return Ok(n_read);
            }
            if self.files.len() == 1 {
                let newer = self.newer_files().await?;
                if newer.is_empty() {
                    return Ok(0);
                }
                self.files.extend(newer);
                // What was written to the old file before the new one began may have come after the read
                // above.
                continue;
            }
            self.files.pop_front();
        }
    }

    async fn newer_files(&self) -> io::Result<VecDeque<Segment>> {
        let Some(current) = self.files.front().map(|segment| segment.inode) else {
            return Ok(VecDeque::new());
        };
        if tokio::fs::metadata(&self.path).await.is_ok_and(|newest| newest.ino() == current) {
            return Ok(VecDeque::new());
        }
        let mut all = open_all(&self.path).await?;
        if let Some(position) = all.iter().position(|segment| segment.inode == current) {
            all.drain(..=position);
        }
        Ok(all)
    }
}

/// Opens all files that exist, the oldest first. The newest is opened first, so that one that becomes older
/// meanwhile is found twice, and not missed.
async fn open_all(path: &std::path::Path) -> io::Result<VecDeque<Segment>> {
    let mut files: VecDeque<Segment> = VecDeque::new();
    for path in segments(path) {
        let file = match File::open(&path).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let inode = file.metadata().await?.ino();
        if files.iter().all(|known| known.inode != inode) {
            files.push_front(Segment { file, inode });
        }
    }
    Ok(files)
}

/// Counts line ends from the end of a file, and returns the position after the last of `n_left`; 0 if there
/// are fewer.
async fn find_nth_last_line(file: &mut File, mut end: u64, n_left: &mut u64) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK_BYTES];
    while end > 0 {
        let begin = end.saturating_sub(CHUNK_BYTES as u64);
        let length = usize::try_from(end.saturating_sub(begin)).unwrap_or(CHUNK_BYTES);
        let piece = chunk.get_mut(..length).unwrap_or_default();
        file.seek(SeekFrom::Start(begin)).await?;
        file.read_exact(piece).await?;
        for (position, _) in piece.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            *n_left = n_left.saturating_sub(1);
            if *n_left == 0 {
                return Ok(begin.saturating_add(position as u64).saturating_add(1));
            }
        }
        end = begin;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    async fn rest(log: &mut Segments) -> String {
        let mut text = Vec::new();
        let mut buffer = [0; 7];
        loop {
            match log.read(&mut buffer).await.unwrap() {
                0 => return String::from_utf8(text).unwrap(),
                n => text.extend_from_slice(&buffer[..n]),
            }
        }
    }

    fn rotate(path: &Path, newest: &str) {
        let _ = fs::rename(path.with_added_extension("1"), path.with_added_extension("2"));
        fs::rename(path, path.with_added_extension("1")).unwrap();
        fs::write(path, newest).unwrap();
    }

    #[tokio::test]
    async fn a_log_of_several_files_reads_like_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "1\n2\n").unwrap();
        rotate(&path, "3\n4\n");
        rotate(&path, "5\n6\n");
        let mut log = Segments::open(path.clone()).await.unwrap();
        assert_eq!(rest(&mut log).await, "1\n2\n3\n4\n5\n6\n");
        for (n_lines, expected) in
            [(0, ""), (1, "6\n"), (2, "5\n6\n"), (3, "4\n5\n6\n"), (9, "1\n2\n3\n4\n5\n6\n")]
        {
            let mut log = Segments::open(path.clone()).await.unwrap();
            log.seek_tail(n_lines).await.unwrap();
            assert_eq!(rest(&mut log).await, expected, "{n_lines}");
        }
    }

    #[tokio::test]
    async fn a_reader_goes_on_with_files_that_are_new() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = Segments::open(path.clone()).await.unwrap();
        assert_eq!(rest(&mut log).await, "");
        fs::write(&path, "1\n").unwrap();
        assert_eq!(rest(&mut log).await, "1\n");
        rotate(&path, "2\n");
        rotate(&path, "3\n");
        assert_eq!(rest(&mut log).await, "2\n3\n");
        assert_eq!(rest(&mut log).await, "");
    }
}
