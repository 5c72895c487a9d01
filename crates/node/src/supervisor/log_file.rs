//! A container's output as the log file that a container runtime would write: `<time> <stream> <F|P> <text>`.
//!
//! `P` marks a line that goes on in the next entry of the same stream: an overlong one, or the last one if
//! the container did not end it. Readers put the parts together again. What talks with a person is written at
//! once, line end or not: a prompt has none.
//!
//! A log of several files says in the first line of each, but the very first, at which byte of the whole log it begins
//! (`from-byte 10485795`): so a reader knows their order, and whether there were files between them, whatever they
//! are called by the time that it opens them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use krafla_cluster::Stream;

/// What containerd writes at most into one entry.
const ENTRY_BYTES_MAX: usize = 16 << 10;

/// A kubelet's defaults: when a file is full, and how many are kept.
const FILE_BYTES_MAX: u64 = 10 << 20;
pub(crate) const FILES_MAX: u32 = 5;
/// How long it takes at least to fill a file.
const FILE_LASTS_MIN: Duration = Duration::from_millis(100);

/// What the first line of a file begins with, if the log does not begin with the file.
const FROM_BYTE: &str = "from-byte ";
/// That and a number, the longest there is, and a line end.
const FIRST_LINE_BYTES_MAX: usize = 32;

/// The log of one attempt, open for writing.
///
/// There is no file until there is something to write, for many containers write nothing. A full file makes
/// room for a new one, and the oldest goes, so that no container can fill the disk.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    open: Option<Open>,
    entries: Entries,
    /// Whether a line is written before it has ended.
    is_prompt: bool,
    file_bytes_max: u64,
    /// Where in the log its newest file begins.
    begin: u64,
    /// Since when its newest file is written to.
    begun_at: Option<Timestamp>,
    /// When the next one may begin to be written to.
    rests_until: Option<Timestamp>,
}

#[derive(Debug)]
struct Open {
    file: File,
    n_bytes: u64,
}

/// How a file of a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// Where in the log.
    pub(crate) position: u64,
    /// How long the line is that says so.
    pub(crate) n_bytes: u64,
}

impl Begin {
    /// None if nothing has been written yet.
    pub(crate) fn of(file: &File) -> io::Result<Option<Begin>> {
        let mut bytes = [0; FIRST_LINE_BYTES_MAX];
        let n_read = file.read_at(&mut bytes, 0)?;
        Ok(Begin::parse(bytes.get(..n_read).unwrap_or_default()))
    }

    fn parse(bytes: &[u8]) -> Option<Begin> {
        let Some(number) = bytes.strip_prefix(FROM_BYTE.as_bytes()) else {
            return (!bytes.is_empty()).then_some(Begin { position: 0, n_bytes: 0 });
        };
        let end = number.iter().position(|byte| *byte == b'\n')?;
        let position = std::str::from_utf8(number.get(..end)?).ok()?.parse().ok()?;
        Some(Begin {
            position,
            n_bytes: (FROM_BYTE.len() as u64).saturating_add(end as u64).saturating_add(1),
        })
    }
}

impl LogFile {
    /// A log in which lines are written as soon as they have ended or, if it `is_prompt`, before.
    pub(crate) fn new(path: PathBuf, is_prompt: bool) -> LogFile {
        let entries = Entries::default();
        LogFile {
            path,
            open: None,
            entries,
            is_prompt,
            file_bytes_max: FILE_BYTES_MAX,
            begin: 0,
            begun_at: None,
            rests_until: None,
        }
    }

    /// The same with files that are full sooner.
    #[cfg(test)]
    pub(crate) fn with_files_of(self, file_bytes_max: u64) -> LogFile {
        LogFile { file_bytes_max, ..self }
    }

    /// Takes in what a stream wrote. Returns whether the log grew.
    pub(crate) fn write(&mut self, stream: Stream, bytes: &[u8], at: Timestamp) -> io::Result<bool> {
        self.entries.add(stream, bytes, at);
        if self.is_prompt {
            self.entries.finish(at);
        }
        self.flush(at)
    }

    /// How long whoever writes to the log should wait before it goes on. Without that, a container could fill a file faster than
    /// anybody can read one, and those that were to keep what was written before would go unread.
    pub(super) fn rest(&self, now: Timestamp) -> Duration {
        let rest = self.rests_until.map(|until| until.duration_since(now));
        rest.and_then(|rest| Duration::try_from(rest).ok()).unwrap_or_default()
    }

    /// Writes what was not ended by a line end. Returns whether the log grew.
    pub(super) fn finish(&mut self, at: Timestamp) -> io::Result<bool> {
        self.entries.finish(at);
        self.flush(at)
    }

    /// One write call per chunk of output, so that a reader sees whole entries.
    fn flush(&mut self, at: Timestamp) -> io::Result<bool> {
        let mut bytes = std::mem::take(&mut self.entries.bytes);
        if bytes.is_empty() {
            return Ok(false);
        }
        if let Some(full) = self.open.take_if(|open| open.n_bytes >= self.file_bytes_max) {
            self.begin = self.begin.saturating_add(full.n_bytes);
            shift(&self.path);
            let begun_at = self.begun_at.replace(at).unwrap_or(at);
            self.rests_until = begun_at.checked_add(FILE_LASTS_MIN).ok();
        }
        self.begun_at.get_or_insert(at);
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let file = open_in_directory(&self.path)?;
                let n_bytes = file.metadata()?.len();
                if let Some(begin) = Begin::of(&file)? {
                    self.begin = begin.position;
                }
                self.open.insert(Open { file, n_bytes })
            }
        };
        if open.n_bytes == 0 && self.begin > 0 {
            bytes.splice(..0, format!("{FROM_BYTE}{}\n", self.begin).into_bytes());
        }
        open.file.write_all(&bytes).inspect_err(|_| {
            // A disk that became full on the way leaves a part, which would be read as the beginning of what comes next.
            let _ = open.file.set_len(open.n_bytes);
        })?;
        open.n_bytes = open.n_bytes.saturating_add(bytes.len() as u64);
        Ok(true)
    }
}

/// Opens a file for adding to it, and makes its directory if there is none yet.
fn open_in_directory(path: &Path) -> io::Result<File> {
    let open = || File::options().create(true).read(true).append(true).open(path);
    match (open(), path.parent()) {
        (Err(error), Some(directory)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(directory)?;
            open()
        }
        (opened, _) => opened,
    }
}

/// All files that a log may consist of, from the newest to the oldest.
pub(crate) fn segments(path: &Path) -> impl Iterator<Item = PathBuf> {
    let older = (1..FILES_MAX).map(|age| path.with_added_extension(age.to_string()));
    std::iter::once(path.to_owned()).chain(older)
}

/// Makes each file the next older one; the oldest goes.
fn shift(path: &Path) {
    let mut files: Vec<_> = segments(path).collect();
    let mut older = files.pop();
    while let Some(newer) = files.pop() {
        if let Some(older) = &older {
            // The newest ones exist; the older ones may not yet.
            let _ = fs::rename(&newer, older);
        }
        older = Some(newer);
    }
}

/// Entries on their way to the file.
#[derive(Debug, Default)]
struct Entries {
    /// What each stream has written since its last line end.
    open_lines: [Vec<u8>; 2],
    bytes: Vec<u8>,
}

impl Entries {
    fn add(&mut self, stream: Stream, output: &[u8], at: Timestamp) {
        let Entries { open_lines: [stdout, stderr], bytes } = self;
        let open = match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        let time = format!("{at:.9}");
        for piece in output.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            open.extend_from_slice(text);
            while open.len() > ENTRY_BYTES_MAX {
                let rest = open.split_off(ENTRY_BYTES_MAX);
                entry(bytes, &time, stream, b'P', open);
                *open = rest;
            }
            if ends {
                entry(bytes, &time, stream, b'F', open);
                open.clear();
            }
        }
    }

    fn finish(&mut self, at: Timestamp) {
        let Entries { open_lines: [stdout, stderr], bytes } = self;
        let time = format!("{at:.9}");
        for (stream, open) in [(Stream::Stdout, stdout), (Stream::Stderr, stderr)] {
            if !open.is_empty() {
                entry(bytes, &time, stream, b'P', open);
                open.clear();
            }
        }
    }
}

fn entry(entries: &mut Vec<u8>, time: &str, stream: Stream, tag: u8, text: &[u8]) {
    for part in [time.as_bytes(), b" ", stream.name().as_bytes(), b" ", &[tag], b" ", text, b"\n"] {
        entries.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::Stream::{Stderr, Stdout};
    use super::*;

    fn check(chunks: &[(Stream, &str)], expected: Expect) {
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        let mut entries = Entries::default();
        for (stream, text) in chunks {
            entries.add(*stream, text.as_bytes(), at);
        }
        entries.finish(at);
        expected.assert_eq(&String::from_utf8(entries.bytes).unwrap());
    }

    #[test]
    fn each_line_is_an_entry_with_time_stream_and_tag() {
        check(
            &[(Stdout, "one\ntwo\n"), (Stderr, "oh\n\n")],
            expect![[r#"
                2023-11-14T22:13:20.000000000Z stdout F one
                2023-11-14T22:13:20.000000000Z stdout F two
                2023-11-14T22:13:20.000000000Z stderr F oh
                2023-11-14T22:13:20.000000000Z stderr F 
            "#]],
        );
    }

    #[test]
    fn lines_that_arrive_in_pieces_are_not_mixed_up_between_the_streams() {
        check(
            &[(Stdout, "he"), (Stderr, "war"), (Stdout, "llo\n"), (Stderr, "ning\n"), (Stdout, "no end")],
            expect![[r#"
                2023-11-14T22:13:20.000000000Z stdout F hello
                2023-11-14T22:13:20.000000000Z stderr F warning
                2023-11-14T22:13:20.000000000Z stdout P no end
            "#]],
        );
    }

    #[test]
    fn an_overlong_line_is_cut_into_parts() {
        let mut entries = Entries::default();
        entries.add(Stdout, &[b'x'; 2 * ENTRY_BYTES_MAX], Timestamp::UNIX_EPOCH);
        entries.add(Stdout, b"y\n", Timestamp::UNIX_EPOCH);
        let text = String::from_utf8(entries.bytes).unwrap();
        let shape: Vec<_> = text.lines().map(|l| (l.split(' ').nth(2).unwrap(), l.len())).collect();
        assert_eq!(shape, [("P", 40 + ENTRY_BYTES_MAX), ("P", 40 + ENTRY_BYTES_MAX), ("F", 41)]);
    }

    #[test]
    fn who_fills_files_faster_than_they_can_be_read_has_to_rest() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = LogFile::new(directory.path().join("main.0.log"), false).with_files_of(1);
        let at = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
        let mut rest_after = |millis: i64| {
            log.write(Stdout, b"line\n", at(millis)).unwrap();
            log.rest(at(millis)).as_millis()
        };
        assert_eq!(rest_after(0), 0, "the first file is as good as empty");
        assert_eq!(rest_after(30), 70, "it was full after 30 ms");
        assert_eq!(rest_after(1000), 0, "the second one lasted long enough");
        assert_eq!(rest_after(1001), 99);
    }

    #[test]
    fn a_full_file_makes_room_and_the_oldest_goes() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("made when it is needed");
        let path = directory.join("main.0.log");
        let mut log = LogFile::new(path.clone(), false).with_files_of(1);
        assert!(!path.exists());
        for number in 0..7 {
            log.write(Stdout, format!("{number}\n").as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
        }
        let last = |path: PathBuf| fs::read_to_string(path).unwrap().trim().chars().last().unwrap();
        assert_eq!(segments(&path).map(last).collect::<String>(), "65432");
        assert_eq!(fs::read_dir(directory).unwrap().count(), 5);
    }

    #[test]
    fn each_file_but_the_first_says_where_in_the_log_it_begins() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = LogFile::new(path.clone(), false).with_files_of(1);
        let begin = |path: &Path| Begin::of(&File::open(path).unwrap()).unwrap();
        let (mut expected, mut length) = (0, 0);
        for _ in 0..3 {
            log.write(Stdout, b"x\n", Timestamp::UNIX_EPOCH).unwrap();
            expected += length;
            length = fs::metadata(&path).unwrap().len();
            assert_eq!(begin(&path).map(|begin| begin.position), Some(expected));
        }
        // Whoever goes on with a log does so where it was left.
        let mut log = LogFile::new(path.clone(), false).with_files_of(1);
        for _ in 0..2 {
            log.write(Stdout, b"x\n", Timestamp::UNIX_EPOCH).unwrap();
        }
        assert_eq!(
            begin(&path).map(|begin| begin.position),
            Some(expected + fs::metadata(path.with_added_extension("1")).unwrap().len())
        );
    }

    #[test]
    fn the_beginning_of_a_file_is_read_when_it_is_all_there() {
        for (text, expected) in [
            ("", None),
            ("2026-11-15T08:00:00Z stdout F from-byte 7\n", Some((0, 0))),
            ("from-byte 104", None),
            ("from-byte 104\n2026-11-15T08:0", Some((104, 14))),
            ("from-byte 18446744073709551615\n", Some((u64::MAX, 31))),
        ] {
            let begin = Begin::parse(text.as_bytes());
            assert_eq!(begin.map(|begin| (begin.position, begin.n_bytes)), expected, "{text}");
        }
    }

    #[test]
    fn a_prompt_is_written_before_its_line_ends() {
        let directory = tempfile::tempdir().unwrap();
        for (is_prompt, expected) in [(false, ""), (true, "1970-01-01T00:00:00.000000000Z stdout P $ \n")] {
            let path = directory.path().join(is_prompt.to_string());
            let grew = LogFile::new(path.clone(), is_prompt).write(Stdout, b"$ ", Timestamp::UNIX_EPOCH);
            assert_eq!(grew.unwrap(), is_prompt);
            assert_eq!(fs::read_to_string(path).unwrap_or_default(), expected);
        }
    }
}
