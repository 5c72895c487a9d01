//! Where progress is shown: a picture that is redrawn in place on a terminal, plain lines elsewhere.

mod writer;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;

use self::writer::Writer;
use crate::printable;

/// What is assumed of a terminal that does not say how large it is.
const WIDTH_DEFAULT: usize = 80;
const HEIGHT_DEFAULT: usize = 24;
/// On less a picture is of no use.
const WIDTH_MIN: usize = 20;
const HEIGHT_MIN: usize = 4;

/// The least time between two pictures, unless time has passed and that is shown.
const CHANGED_EVERY_MIN: Duration = Duration::from_millis(50);

/// Erases the row that the cursor is in.
const ERASE_ROW: &str = "\u{1b}[2K";
/// Goes up one row and erases it.
const UP_AND_ERASE: &str = "\u{1b}[A\u{1b}[2K";

/// Standard output or standard error, with a picture at its bottom. Nobody waits for whoever reads it who does not want to.
pub(crate) struct Screen {
    /// Progress goes to standard error where standard output is for the result.
    to_stderr: bool,
    is_terminal: bool,
    is_live: bool,
    shown: Mutex<Shown>,
    writer: Arc<Writer>,
}

/// What is on the terminal, or will be in a moment.
#[derive(Default)]
struct Shown {
    /// The picture as it stands there now.
    picture: Vec<String>,
    /// The one that is to take its place.
    next: Option<Vec<String>>,
    /// Lines that came so soon after others that they wait for the next picture: to draw one for each costs more than all
    /// the rest.
    lines: Vec<String>,
    changed_at: Option<Instant>,
}

impl Shown {
    fn is_due(&self) -> bool {
        self.changed_at.is_none_or(|changed_at| changed_at.elapsed() >= CHANGED_EVERY_MIN)
    }
}

impl Screen {
    pub(crate) fn new(to_stderr: bool) -> Screen {
        let is_terminal =
            if to_stderr { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        let (shown, writer) = (Mutex::default(), Writer::start());
        let screen = Screen { to_stderr, is_terminal, is_live: false, shown, writer };
        let [width, height] = screen.size();
        let is_large_enough = width >= WIDTH_MIN && height >= HEIGHT_MIN;
        let is_live = is_terminal && is_large_enough && can_be_drawn_on(std::env::var_os("TERM").as_deref());
        Screen { is_live, ..screen }
    }

    /// Whether a person looks at it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Whether pictures are shown; if not, lines have to tell the same.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// How many characters fit in a line, and how many lines on the terminal.
    pub(crate) fn size(&self) -> [usize; 2] {
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let terminal: BorrowedFd<'_> = if self.to_stderr { stderr.as_fd() } else { stdout.as_fd() };
        let size = tcgetwinsize(terminal).map(|size| [size.ws_col, size.ws_row]).unwrap_or_default();
        let [width, height] = size.map(usize::from);
        let known = |n: usize, default| if n > 0 { n } else { default };
        [known(width, WIDTH_DEFAULT), known(height, HEIGHT_DEFAULT)]
    }

    /// Whether it is worth the while to draw a picture because something happened. When much happens, few of many pictures
    /// are seen, and all of them cost time.
    pub(crate) fn is_due(&self) -> bool {
        self.is_live && self.shown().is_due()
    }

    /// Draws a picture over the one before. Without a terminal nothing happens; one that stands still shows the last of many.
    pub(crate) fn draw(&self, picture: Vec<String>) {
        if self.is_live {
            let mut shown = self.shown();
            shown.next = Some(picture);
            if self.writer.is_idle() {
                self.change(&mut shown);
            }
        }
    }

    /// Leaves the picture where it is: what comes next comes below it.
    pub(crate) fn keep(&self) {
        let mut shown = self.shown();
        // Also if no line waits: a `^C` may stand in the cursor's row.
        self.change(&mut shown);
        shown.picture.clear();
    }

    /// Lines of progress, or of what pods wrote, above the picture.
    pub(crate) fn line(&self, line: &str) {
        let mut shown = self.shown();
        shown.lines.push(for_people(line, self.is_terminal).into_owned());
        if shown.picture.is_empty() || (shown.is_due() && self.writer.is_idle()) {
            self.change(&mut shown);
        }
    }

    /// The same, when all that came before has been written: there may be more than there is room for. It waits for whoever
    /// reads, so it is not for threads that others depend on.
    pub(crate) fn line_in_turn(&self, line: &str) {
        self.writer.until_idle();
        self.line(line);
    }

    /// Text on standard error, after all that came before.
    pub(crate) fn tell(&self, text: &str) {
        let text = for_people(text, std::io::stderr().is_terminal());
        self.writer.write(true, text.into_owned());
    }

    /// Returns when all has been written.
    pub(crate) async fn until_written(&self) {
        let writer = self.writer.clone();
        // It ends badly only if this process does.
        let _ = tokio::task::spawn_blocking(move || writer.until_idle()).await;
    }

    /// Prints the lines that wait, and the picture anew.
    fn change(&self, shown: &mut Shown) {
        let size = if self.is_live { self.size() } else { [WIDTH_DEFAULT, HEIGHT_DEFAULT] };
        let picture = fitted(shown.next.take().unwrap_or_else(|| shown.picture.clone()), size);
        let text = change(&shown.picture, &shown.lines, &picture, size);
        *shown = Shown { picture, changed_at: Some(Instant::now()), ..Shown::default() };
        self.writer.write(self.to_stderr, text);
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A picture that was made for a terminal of another size.
fn fitted(mut picture: Vec<String>, [width, height]: [usize; 2]) -> Vec<String> {
    // The last row is the cursor's.
    picture.truncate(height.saturating_sub(1));
    picture.into_iter().map(|line| printable::cut(&line, width)).collect()
}

/// What a terminal is sent to show lines, and a new picture below them in place of the old one.
fn change(old: &[String], lines: &[String], new: &[String], [width, _]: [usize; 2]) -> String {
    // A terminal that has become narrower has wrapped the lines of the old picture.
    let n_rows: usize = old.iter().map(|line| printable::rows(line, width)).sum();
    // Row by row, from below: told to erase all of a screen at once, tmux keeps what was on it above.
    // The terminal itself may have shown a `^C` at the beginning of the cursor's row.
    let up =
        if n_rows == 0 { String::new() } else { format!("\r{ERASE_ROW}{}", UP_AND_ERASE.repeat(n_rows)) };
    up + &lines.iter().chain(new).map(|line| format!("{line}\n")).collect::<String>()
}

/// Writes to standard error. What can not be written there can not be said anywhere.
pub(crate) fn tell(text: &str) {
    let _ = write_err(&for_people(text, std::io::stderr().is_terminal()));
}

/// The width of the terminal at standard output; none if it is no terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    let width = tcgetwinsize(stdout.as_fd()).map_or(0, |size| usize::from(size.ws_col));
    stdout.is_terminal().then_some(if width == 0 { WIDTH_DEFAULT } else { width })
}

/// A line that a pod wrote, indented, as it is told on standard error.
pub(crate) fn line_of_pod(line: &str) -> String {
    let line = if std::io::stderr().is_terminal() { printable::last_written(line) } else { line };
    format!("  {line}\n")
}

/// Writes what a program was asked for to standard output. A reader who has had enough is content.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match write_out(&for_people(text, std::io::stdout().is_terminal())) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("cannot write to stdout"))
        }
        _ => Ok(()),
    }
}

fn write_out(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

fn write_err(text: &str) -> std::io::Result<()> {
    std::io::stderr().write_all(text.as_bytes())
}

/// What pods wrote and others said is in many texts. On a terminal nothing of it may do more than be read; elsewhere it is
/// left as it is.
fn for_people(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if is_terminal { printable::harmless(text, wants_colour()).into() } else { text.into() }
}

/// Whether a terminal of this name knows how to draw over what it has shown.
fn can_be_drawn_on(name: Option<&OsStr>) -> bool {
    name.is_none_or(|name| name != "dumb")
}

/// Whether a terminal may be given colours: unless somebody asked for none (<https://no-color.org>), or it knows none.
pub(crate) fn wants_colour() -> bool {
    let is_asked_for_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_asked_for_none && can_be_drawn_on(std::env::var_os("TERM").as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal that wraps its lines anew when its size changes, as most do.
    struct Terminal {
        size: [usize; 2],
        /// All lines, also those that have left it at the top. The cursor is on the last one.
        lines: Vec<String>,
    }

    impl Terminal {
        fn write(&mut self, text: &str) {
            let mut text = text;
            if let Some(rest) = text.strip_prefix(&format!("\r{ERASE_ROW}")) {
                let [width, height] = self.size;
                text = rest.trim_start_matches(UP_AND_ERASE);
                let n_rows_up = (rest.len() - text.len()) / UP_AND_ERASE.len();
                let mut n_rows_left = n_rows_up.min(height - 1);
                self.lines.pop();
                while n_rows_left > 0 {
                    let line: Vec<char> = self.lines.pop().expect("there is nothing above").chars().collect();
                    let n_rows = line.len().div_ceil(width).max(1);
                    if n_rows > n_rows_left {
                        self.lines.push(line[..(n_rows - n_rows_left) * width].iter().collect());
                    }
                    n_rows_left = n_rows_left.saturating_sub(n_rows);
                }
                self.lines.push(String::new());
            }
            assert!(!text.contains('\u{1b}'), "{text:?}");
            for line in text.split_inclusive('\n') {
                *self.lines.last_mut().unwrap() += line.trim_end_matches('\n');
                if line.ends_with('\n') {
                    self.lines.push(String::new());
                }
            }
        }
    }

    #[test]
    fn a_terminal_may_become_wider_and_narrower_while_a_picture_is_on_it() {
        let wide: Vec<String> =
            ["job: Running", "  a  ████████████  1 of 2", "", "  b"].map(str::to_owned).into();
        let mut terminal = Terminal { size: [80, 24], lines: vec![String::new()] };
        let mut picture = Vec::new();
        for (n, size) in [[80, 24], [10, 24], [10, 24], [3, 24], [25, 24], [24, 24], [7, 9], [80, 24]]
            .into_iter()
            .enumerate()
        {
            terminal.size = size;
            // A line of a pod comes before the next picture, which has the new size.
            let (line, same) = (format!("line {n} of a pod"), fitted(picture.clone(), size));
            terminal.write(&change(&picture, &[line], &same, size));
            picture = fitted(wide.clone(), size);
            terminal.write(&change(&same, &[], &picture, size));
        }
        let lines = (0..8).map(|n| format!("line {n} of a pod"));
        let expected: Vec<String> = lines.chain(wide).chain([String::new()]).collect();
        assert_eq!(terminal.lines, expected);
    }
}
