//! Turns log entries back into what a container wrote.

use jiff::Timestamp;

use krafla_cluster::Stream;

/// One entry of a log file: `<time> <stream> <tag> <text>`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry<'a> {
    time: &'a str,
    stream: &'a [u8],
    /// Whether the line goes on in the next entry of its stream.
    is_partial: bool,
    text: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Reads an entry without its line end; none if it is not one.
    pub(super) fn parse(line: &'a [u8]) -> Option<Entry<'a>> {
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let (time, stream, tag, text) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        Some(Entry { time: std::str::from_utf8(time).ok()?, stream, is_partial: tag == b"P", text })
    }

    fn is_before(&self, since: Timestamp) -> bool {
        self.time.parse::<Timestamp>().is_ok_and(|time| time < since)
    }
}

/// What entries say at their end, within the limits. The first entry may be cut off.
pub(crate) fn last_lines(entries: &str, n_lines_max: usize, n_bytes_max: usize) -> String {
    let mut printer = Printer::new(None, false, None);
    let mut printed = Vec::new();
    entries.lines().for_each(|line| printer.print(line.as_bytes(), &mut printed));
    let printed = String::from_utf8_lossy(&printed);
    let n_bytes: usize = printed.split_inclusive('\n').rev().take(n_lines_max).map(str::len).sum();
    let begin = printed.len().saturating_sub(n_bytes.min(n_bytes_max));
    let begin = (begin..=printed.len()).find(|begin| printed.is_char_boundary(*begin)).unwrap_or(0);
    printed.get(begin..).unwrap_or_default().to_owned()
}

/// Prints entries by the reader's wishes.
#[derive(Debug)]
pub(super) struct Printer {
    since: Option<Timestamp>,
    has_timestamps: bool,
    bytes_left: Option<u64>,
    stream: Option<Stream>,
    /// Whether the next entry begins a line.
    is_at_start: bool,
    /// How many bytes of the log went before they could be read, of which nothing has been said yet.
    n_bytes_missed: u64,
}

impl Printer {
    pub(super) fn new(since: Option<Timestamp>, has_timestamps: bool, limit_bytes: Option<u64>) -> Printer {
        Printer {
            since,
            has_timestamps,
            bytes_left: limit_bytes,
            stream: None,
            is_at_start: true,
            n_bytes_missed: 0,
        }
    }

    /// Prints what was written to one stream, if one is named.
    pub(super) fn only(self, stream: Option<Stream>) -> Printer {
        Printer { stream, ..self }
    }

    /// Whether as much has been printed as may be.
    pub(super) fn is_full(&self) -> bool {
        self.bytes_left == Some(0)
    }

    /// Has it said before the next entry that something is missing.
    pub(super) fn miss(&mut self, n_bytes: u64) {
        self.n_bytes_missed = self.n_bytes_missed.saturating_add(n_bytes);
    }

    /// Prints one entry. What is not an entry is left out: the file may have been cut by a full disk.
    pub(super) fn print(&mut self, line: &[u8], into: &mut Vec<u8>) {
        let Some(entry) = Entry::parse(line) else { return };
        let is_of_another = self.stream.is_some_and(|stream| entry.stream != stream.name().as_bytes());
        if is_of_another || self.since.is_some_and(|since| entry.is_before(since)) {
            return;
        }
        let begin = into.len();
        let n_missed = std::mem::take(&mut self.n_bytes_missed);
        if n_missed > 0 {
            if !std::mem::replace(&mut self.is_at_start, true) {
                into.push(b'\n');
            }
            self.begin_line(&entry, into);
            let words = "of this log were written faster than they could be read, and are gone";
            into.extend_from_slice(format!("({n_missed} bytes {words})\n").as_bytes());
        }
        if self.is_at_start {
            self.begin_line(&entry, into);
        }
        into.extend_from_slice(entry.text);
        if !entry.is_partial {
            into.push(b'\n');
        }
        self.is_at_start = !entry.is_partial;
        if let Some(left) = &mut self.bytes_left {
            let added = into.len().saturating_sub(begin);
            let kept = usize::try_from(*left).unwrap_or(usize::MAX).min(added);
            into.truncate(begin.saturating_add(kept));
            *left = left.saturating_sub(kept as u64);
        }
    }

    fn begin_line(&self, entry: &Entry<'_>, into: &mut Vec<u8>) {
        if self.has_timestamps {
            into.extend_from_slice(entry.time.as_bytes());
            into.push(b' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const LOG: &str = "\
2026-11-15T08:00:00.000000001Z stdout F one
2026-11-15T08:00:01.000000000Z stderr P tw
2026-11-15T08:00:02.000000000Z stderr F o
garbage
2026-11-15T08:00:03.000000000Z stdout P three";

    fn check(since: Option<&str>, has_timestamps: bool, limit: Option<u64>, expected: Expect) {
        let mut printer = Printer::new(since.map(|since| since.parse().unwrap()), has_timestamps, limit);
        let mut printed = Vec::new();
        LOG.lines().for_each(|line| printer.print(line.as_bytes(), &mut printed));
        expected.assert_eq(&String::from_utf8(printed).unwrap());
    }

    #[test]
    fn parts_of_a_line_are_joined() {
        check(
            None,
            false,
            None,
            expect![[r#"
            one
            two
            three"#]],
        );
    }

    #[test]
    fn one_stream_can_be_told_from_the_other() {
        for (stream, expected) in [(Stream::Stdout, "one\nthree"), (Stream::Stderr, "two\n")] {
            let mut printer = Printer::new(None, false, None).only(Some(stream));
            let mut printed = Vec::new();
            LOG.lines().for_each(|line| printer.print(line.as_bytes(), &mut printed));
            assert_eq!(String::from_utf8(printed).unwrap(), expected);
        }
    }

    #[test]
    fn a_time_stands_before_each_line() {
        check(
            None,
            true,
            None,
            expect![[r#"
            2026-11-15T08:00:00.000000001Z one
            2026-11-15T08:00:01.000000000Z two
            2026-11-15T08:00:03.000000000Z three"#]],
        );
    }

    #[test]
    fn what_is_missing_is_said_in_a_line_of_its_own() {
        let mut printer = Printer::new(None, true, None);
        let mut printed = Vec::new();
        for (n_missed, text) in [(0, "P on"), (0, "P e"), (7, "P two"), (0, "F "), (1, "F three")] {
            printer.miss(n_missed);
            printer.print(format!("2026-11-15T08:00:00Z stdout {text}").as_bytes(), &mut printed);
        }
        let expected = expect![[r#"
            2026-11-15T08:00:00Z one
            2026-11-15T08:00:00Z (7 bytes of this log were written faster than they could be read, and are gone)
            2026-11-15T08:00:00Z two
            2026-11-15T08:00:00Z (1 bytes of this log were written faster than they could be read, and are gone)
            2026-11-15T08:00:00Z three
        "#]];
        expected.assert_eq(&String::from_utf8(printed).unwrap());
    }

    #[test]
    fn older_entries_are_left_out() {
        check(Some("2026-11-15T08:00:03Z"), false, None, expect!["three"]);
    }

    #[test]
    fn the_end_is_cut_to_its_limits() {
        assert_eq!(last_lines(LOG, 80, 2048), "one\ntwo\nthree");
        assert_eq!(last_lines(LOG, 1, 2048), "three");
        assert_eq!(last_lines(LOG, 80, 7), "o\nthree");
        assert_eq!(last_lines("2026-11-15T08:00:00Z stdout F äöü", 80, 4), "ü\n");
    }

    #[test]
    fn no_more_bytes_are_printed_than_asked_for() {
        check(
            None,
            false,
            Some(6),
            expect![[r#"
            one
            tw"#]],
        );
    }
}
