//! Where progress is shown: a picture that is redrawn in place on a terminal, plain lines elsewhere.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use rustix::termios::tcgetwinsize;

/// What is assumed of a terminal that does not say how large it is.
const WIDTH_DEFAULT: usize = 80;
const HEIGHT_DEFAULT: usize = 24;

/// Standard output or standard error, with a picture at its bottom.
pub(crate) struct Screen {
    /// Progress goes to standard error where standard output is for the result.
    to_stderr: bool,
    is_live: bool,
    /// The picture as it stands there now.
    picture: Mutex<Vec<String>>,
}

impl Screen {
    pub(crate) fn new(to_stderr: bool) -> Screen {
        let is_terminal =
            if to_stderr { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        let is_live = is_terminal && can_be_drawn_on(std::env::var_os("TERM").as_deref());
        Screen { to_stderr, is_live, picture: Mutex::default() }
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

    /// Draws a picture over the one before. Without a terminal nothing happens.
    pub(crate) fn draw(&self, picture: Vec<String>) {
        if self.is_live {
            self.change(&[], false, Some(picture));
        }
    }

    /// A line of progress, above the picture.
    pub(crate) fn line(&self, line: &str) {
        self.change(&[line], self.to_stderr, None);
    }

    /// A line that a pod wrote, above the picture.
    pub(crate) fn log(&self, line: &str) {
        self.change(&[line], false, None);
    }

    /// Prints lines, and the picture anew. What can not be printed because nobody reads it is lost, and the jobs
    /// go on.
    fn change(&self, lines: &[&str], lines_to_stderr: bool, new: Option<Vec<String>>) {
        let mut picture = self.picture.lock().unwrap_or_else(PoisonError::into_inner);
        let up = match picture.len() {
            0 => String::new(),
            n => format!("\u{1b}[{n}A\u{1b}[J"),
        };
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if let Some(new) = new {
            *picture = new;
        }
        let picture: String = picture.iter().map(|line| format!("{line}\n")).collect();
        if lines_to_stderr == self.to_stderr {
            write(self.to_stderr, &format!("{up}{lines}{picture}"));
        } else {
            write(self.to_stderr, &up);
            write(lines_to_stderr, &lines);
            write(self.to_stderr, &picture);
        }
    }
}

fn write(to_stderr: bool, text: &str) {
    let _ = if to_stderr {
        std::io::stderr().write_all(text.as_bytes())
    } else {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
    };
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
