//! The files of a log, read as one, while the supervisor may be adding new ones and removing old ones.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::supervisor::log_file::{Begin, FILES_MAX, segments};

/// How much is read at a time.
const CHUNK_BYTES: u64 = 256 << 10;

/// How many files a reader keeps open: those of a log, and as many that are no part of it any more. A reader that is
/// slower still loses something, for what it has yet to read must not fill the disk.
const FILES_OPEN_MAX: usize = 2 * FILES_MAX as usize;

/// All that there is of a log, and a place in it.
pub(super) struct Segments {
    path: PathBuf,
    /// What is still to be read, the oldest first. The last one read stays, for it may grow.
    files: VecDeque<Segment>,
    /// Where the log goes on after what has been read of files that are done with.
    next: Option<u64>,
}

struct Segment {
    file: File,
    /// Which file it is, whatever it is called by now.
    inode: u64,
    begin: Begin,
    /// Where in the log the next read begins.
    position: u64,
}

/// What a read has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Something.
    Bytes,
    /// So many bytes of the log have gone before they could be read.
    Gone(u64),
    /// There is no more at the moment.
    End,
}

impl Segments {
    /// The log from its beginning, or what there is of it. It need not exist yet.
    pub(super) fn open(path: PathBuf) -> io::Result<Segments> {
        let mut log = Segments { path, files: VecDeque::new(), next: None };
        log.find_newer()?;
        Ok(log)
    }

    /// What is missing at its beginning is said to be gone, too.
    pub(super) fn expecting_all(self) -> Segments {
        Segments { next: Some(0), ..self }
    }

    /// Goes to where the last `n_lines` entries begin.
    pub(super) fn seek_tail(&mut self, n_lines: u64) -> io::Result<()> {
        // The line end of the last entry does not begin another one.
        let mut n_ends_left = n_lines.saturating_add(1);
        for segment in self.files.iter_mut().rev() {
            let end = segment.file.metadata()?.len();
            let begin = match n_ends_left {
                0 => end,
                _ => find_nth_last_line(&segment.file, segment.begin.n_bytes, end, &mut n_ends_left)?,
            };
            segment.go_to(begin)?;
        }
        Ok(())
    }

    /// Reads on, and adds what there is.
    pub(super) fn read(&mut self, into: &mut Vec<u8>) -> io::Result<Piece> {
        loop {
            // What was written to a file before the next one began may come after a read, but not after the next one
            // has been seen.
            let is_complete = self.files.len() > 1;
            let Some(current) = self.files.front_mut() else {
                if self.find_newer()? {
                    continue;
                }
                return Ok(Piece::End);
            };
            if let Some(next) = self.next.take()
                && let n_gone @ 1.. = current.begin.position.saturating_sub(next)
            {
                return Ok(Piece::Gone(n_gone));
            }
            if current.read(into)? {
                return Ok(Piece::Bytes);
            }
            if is_complete {
                self.next = Some(current.position);
                self.files.pop_front();
                self.find_newer()?;
            } else if !self.find_newer()? {
                return Ok(Piece::End);
            }
        }
    }

    /// Opens the files that are newer than all that are open. A slow reader does so after each file, since they
    /// go away. Returns whether there are any.
    fn find_newer(&mut self) -> io::Result<bool> {
        let newest = self.files.back();
        if newest.is_some_and(|newest| fs::metadata(&self.path).is_ok_and(|file| file.ino() == newest.inode))
        {
            return Ok(false);
        }
        let newest = newest.map(|newest| newest.begin.position);
        let mut found: Vec<Segment> = Vec::new();
        // From the newest to the oldest: one that becomes older meanwhile is found twice, and not missed.
        for path in segments(&self.path) {
            let is_new = |segment: &Segment| {
                newest.is_none_or(|newest| newest < segment.begin.position)
                    && found.iter().all(|known| known.begin != segment.begin)
            };
            found.extend(Segment::open(&path)?.filter(is_new));
        }
        // By what they say: several may have become older meanwhile.
        found.sort_by_key(|segment| segment.begin.position);
        found.truncate(FILES_OPEN_MAX.saturating_sub(self.files.len()));
        let has_found = !found.is_empty();
        self.files.extend(found);
        Ok(has_found)
    }
}

impl Segment {
    /// None if there is no such file, or nothing in it yet.
    fn open(path: &Path) -> io::Result<Option<Segment>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(begin) = Begin::of(&file)? else { return Ok(None) };
        let mut segment = Segment { inode: file.metadata()?.ino(), file, begin, position: 0 };
        segment.go_to(begin.n_bytes)?;
        Ok(Some(segment))
    }

    fn go_to(&mut self, place: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(place))?;
        self.position = self.begin.position.saturating_add(place);
        Ok(())
    }

    /// Returns whether there was anything.
    fn read(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        let n_read = (&mut self.file).take(CHUNK_BYTES).read_to_end(into)?;
        self.position = self.position.saturating_add(n_read as u64);
        Ok(n_read > 0)
    }
}

/// Counts line ends from the end of a file, and returns the position after the last of `n_left`; `begin` if there
/// are fewer.
fn find_nth_last_line(file: &File, begin: u64, mut end: u64, n_left: &mut u64) -> io::Result<u64> {
    let mut chunk = Vec::new();
    while end > begin {
        let from = end.saturating_sub(CHUNK_BYTES).max(begin);
        chunk.resize(usize::try_from(end.saturating_sub(from)).unwrap_or_default(), 0);
        file.read_exact_at(&mut chunk, from)?;
        for (place, _) in chunk.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            *n_left = n_left.saturating_sub(1);
            if *n_left == 0 {
                return Ok(from.saturating_add(place as u64).saturating_add(1));
            }
        }
        end = from;
    }
    Ok(begin)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::supervisor::log_file::LogFile;
    use krafla_cluster::Stream;

    /// A log of which each file holds two entries, of a line each.
    struct Writer(LogFile);

    impl Writer {
        fn new(path: &Path) -> Writer {
            Writer(LogFile::new(path.to_owned(), false).with_files_of(60))
        }

        fn write(&mut self, numbers: impl IntoIterator<Item = u32>) {
            for number in numbers {
                let line = format!("{number}\n");
                self.0.write(Stream::Stdout, line.as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
            }
        }
    }

    /// What there is, without the entries' times.
    fn rest(log: &mut Segments) -> String {
        let mut all = String::new();
        loop {
            let mut bytes = Vec::new();
            match log.read(&mut bytes).unwrap() {
                Piece::End => return all.trim_end().to_owned(),
                Piece::Gone(n_bytes) => all.push_str(&format!("({n_bytes} gone) ")),
                Piece::Bytes => {
                    let text = String::from_utf8(bytes).unwrap();
                    text.lines()
                        .for_each(|line| all.push_str(&format!("{} ", line.rsplit(' ').next().unwrap())));
                }
            }
        }
    }

    #[test]
    fn a_log_of_several_files_reads_like_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        Writer::new(&path).write(1..=6);
        assert_eq!(rest(&mut Segments::open(path.clone()).unwrap()), "1 2 3 4 5 6");
        for (n_lines, expected) in
            [(0, ""), (1, "6"), (2, "5 6"), (3, "4 5 6"), (4, "3 4 5 6"), (9, "1 2 3 4 5 6")]
        {
            let mut log = Segments::open(path.clone()).unwrap();
            log.seek_tail(n_lines).unwrap();
            assert_eq!(rest(&mut log), expected, "{n_lines}");
        }
    }

    #[test]
    fn a_reader_goes_on_with_files_that_are_new() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = Segments::open(path.clone()).unwrap();
        assert_eq!(rest(&mut log), "");
        let mut writer = Writer::new(&path);
        for (numbers, expected) in [(1..=1, "1"), (2..=5, "2 3 4 5"), (6..=6, "6")] {
            writer.write(numbers);
            assert_eq!(rest(&mut log), expected);
        }
        assert_eq!(rest(&mut log), "");
        // Of eight files five are left, and one that was removed is open.
        writer.write(7..=16);
        assert_eq!(rest(&mut log), "7 8 9 10 11 12 13 14 15 16");
    }

    #[test]
    fn a_reader_that_is_overtaken_learns_how_much_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut writer = Writer::new(&path);
        writer.write(1..=1);
        let mut log = Segments::open(path.clone()).unwrap();
        writer.write(2..=16);
        assert_eq!(rest(&mut log), "1 2 (195 gone) 7 8 9 10 11 12 13 14 15 16");
        assert_eq!(rest(&mut Segments::open(path.clone()).unwrap()), "7 8 9 10 11 12 13 14 15 16");
        let mut whole = Segments::open(path).unwrap().expecting_all();
        assert_eq!(rest(&mut whole), "(279 gone) 7 8 9 10 11 12 13 14 15 16");
    }

    #[test]
    fn a_slow_reader_keeps_files_that_have_gone_but_not_any_number_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut writer = Writer::new(&path);
        writer.write(1..=10);
        let mut log = Segments::open(path).unwrap();
        let mut n_files_max = 0;
        for first in (11..=91).step_by(4) {
            // Two files are written for each that is read.
            writer.write(first..first + 4);
            log.read(&mut Vec::new()).unwrap();
            n_files_max = n_files_max.max(log.files.len());
        }
        assert_eq!(n_files_max, FILES_OPEN_MAX);
        let rest = rest(&mut log);
        assert!(rest.contains("gone") && rest.ends_with("92 93 94"), "{rest}");
    }
}
