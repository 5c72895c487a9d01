//! A container's output as the log file that a container runtime would write: `<time> <stream> <F|P> <text>`.
//!
//! `P` marks a line that goes on in the next entry of the same stream: an overlong one, or the last one if the
//! container did not end it. Readers put the parts together again.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;

/// What containerd writes at most into one entry.
const ENTRY_BYTES_MAX: usize = 16 << 10;

/// Which of the two standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    const fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// The log of one attempt, open for writing.
#[derive(Debug)]
pub(super) struct LogFile<W = File> {
    file: W,
    /// What each stream has written since its last line end.
    open_lines: [Vec<u8>; 2],
    /// Entries on their way to the file; kept for its allocation.
    entries: Vec<u8>,
}

impl LogFile {
    pub(super) fn create(path: &Path) -> io::Result<LogFile> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(LogFile::new(file))
    }
}

impl<W: Write> LogFile<W> {
    fn new(file: W) -> Self {
        LogFile { file, open_lines: [Vec::new(), Vec::new()], entries: Vec::new() }
    }

    /// Takes in what a stream wrote. Returns whether the file grew.
    pub(super) fn write(&mut self, stream: Stream, bytes: &[u8], at: Timestamp) -> io::Result<bool> {
        let LogFile { open_lines: [stdout, stderr], entries, .. } = self;
        let open = match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        let time = format!("{at:.9}");
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            open.extend_from_slice(text);
            while open.len() > ENTRY_BYTES_MAX {
                let rest = open.split_off(ENTRY_BYTES_MAX);
                entry(entries, &time, stream, b'P', open);
                *open = rest;
            }
            if ends {
                entry(entries, &time, stream, b'F', open);
                open.clear();
            }
        }
        self.flush()
    }

    /// Writes what was not ended by a line end. Returns whether the file grew.
    pub(super) fn finish(&mut self, at: Timestamp) -> io::Result<bool> {
        let LogFile { open_lines: [stdout, stderr], entries, .. } = self;
        let time = format!("{at:.9}");
        for (stream, open) in [(Stream::Stdout, stdout), (Stream::Stderr, stderr)] {
            if !open.is_empty() {
                entry(entries, &time, stream, b'P', open);
                open.clear();
            }
        }
        self.flush()
    }

    /// One write call per chunk of output, so that a reader sees whole entries.
    fn flush(&mut self) -> io::Result<bool> {
        if self.entries.is_empty() {
            return Ok(false);
        }
        let outcome = self.file.write_all(&self.entries);
        self.entries.clear();
        outcome.map(|()| true)
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
        let mut log = LogFile::new(Vec::new());
        for (stream, text) in chunks {
            log.write(*stream, text.as_bytes(), at).unwrap();
        }
        log.finish(at).unwrap();
        expected.assert_eq(&String::from_utf8(log.file).unwrap());
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
        let at = Timestamp::UNIX_EPOCH;
        let mut log = LogFile::new(Vec::new());
        log.write(Stdout, &[b'x'; 2 * ENTRY_BYTES_MAX], at).unwrap();
        log.write(Stdout, b"y\n", at).unwrap();
        let text = String::from_utf8(log.file).unwrap();
        let shape: Vec<_> = text.lines().map(|l| (l.split(' ').nth(2).unwrap(), l.len())).collect();
        assert_eq!(shape, [("P", 40 + ENTRY_BYTES_MAX), ("P", 40 + ENTRY_BYTES_MAX), ("F", 41)]);
    }
}
