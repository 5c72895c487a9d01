//! A container's output as the log file that a container runtime would write: `<time> <stream> <F|P> <text>`.
//!
//! `P` marks a line that goes on in the next entry of the same stream: an overlong one, or the last one if
//! the container did not end it. Readers put the parts together again. What talks with a person is written at
//! once, line end or not: a prompt has none.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// What containerd writes at most into one entry.
const ENTRY_BYTES_MAX: usize = 16 << 10;

/// A kubelet's defaults: when a file is full, and how many are kept.
const FILE_BYTES_MAX: u64 = 10 << 20;
const FILES_MAX: u32 = 5;

/// Which of the two standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, and all that is written to a terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// As it stands in a log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// The log of one attempt, open for writing.
///
/// There is no file until there is something to write, for many containers write nothing. A full file makes
/// room for a new one, and the oldest goes, so that no container can fill the disk.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    open: Option<Open>,
    entries: Entries,
    /// Whether a line is written before it has ended.
    is_prompt: bool,
    file_bytes_max: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    n_bytes: u64,
}

impl LogFile {
    /// A log in which lines are written as soon as they have ended or, if it `is_prompt`, before.
    pub(super) fn new(path: PathBuf, is_prompt: bool) -> LogFile {
        LogFile { path, open: None, entries: Entries::default(), is_prompt, file_bytes_max: FILE_BYTES_MAX }
    }

    /// Takes in what a stream wrote. Returns whether the log grew.
    pub(super) fn write(&mut self, stream: Stream, bytes: &[u8], at: Timestamp) -> io::Result<bool> {
        self.entries.add(stream, bytes, at);
        if self.is_prompt {
            self.entries.finish(at);
        }
        self.flush()
    }

    /// Writes what was not ended by a line end. Returns whether the log grew.
    pub(super) fn finish(&mut self, at: Timestamp) -> io::Result<bool> {
        self.entries.finish(at);
        self.flush()
    }

    /// One write call per chunk of output, so that a reader sees whole entries.
    fn flush(&mut self) -> io::Result<bool> {
        let bytes = std::mem::take(&mut self.entries.bytes);
        if bytes.is_empty() {
            return Ok(false);
        }
        if self.open.as_ref().is_some_and(|open| open.n_bytes >= self.file_bytes_max) {
            self.open = None;
            shift(&self.path);
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let file = open_in_directory(&self.path)?;
                self.open.insert(Open { n_bytes: file.metadata()?.len(), file })
            }
        };
        open.file.write_all(&bytes)?;
        open.n_bytes = open.n_bytes.saturating_add(bytes.len() as u64);
        Ok(true)
    }
}

/// Opens a file for adding to it, and makes its directory if there is none yet.
fn open_in_directory(path: &Path) -> io::Result<File> {
    let open = || File::options().create(true).append(true).open(path);
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
    fn a_full_file_makes_room_and_the_oldest_goes() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("made when it is needed");
        let path = directory.join("main.0.log");
        let mut log = LogFile { file_bytes_max: 1, ..LogFile::new(path.clone(), false) };
        assert!(!path.exists());
        for number in 0..7 {
            log.write(Stdout, format!("{number}\n").as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
        }
        let last = |path: PathBuf| fs::read_to_string(path).unwrap().trim().chars().last().unwrap();
        assert_eq!(segments(&path).map(last).collect::<String>(), "65432");
        assert_eq!(fs::read_dir(directory).unwrap().count(), 5);
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
