//! Writes for those who must not wait: a reader that stands still, as a pager does, may never read on.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{write_err, write_out};

/// Writes one text after the other, on a thread of its own.
#[derive(Default)]
pub(super) struct Writer {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// What is to be written, and whether to standard error.
    texts: VecDeque<(bool, String)>,
    is_writing: bool,
    /// Whether there is no such thread: then everybody writes.
    is_unattended: bool,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.texts.is_empty() && !self.is_writing
    }
}

impl Writer {
    pub(super) fn start() -> Arc<Writer> {
        let writer = Arc::new(Writer::default());
        let of_thread = writer.clone();
        let thread = std::thread::Builder::new().name("screen".to_owned());
        if thread.spawn(move || of_thread.run()).is_err() {
            writer.queue().is_unattended = true;
        }
        writer
    }

    /// Has a text written, after all that came before.
    pub(super) fn write(&self, to_stderr: bool, text: String) {
        let mut queue = self.queue();
        if text.is_empty() {
            return;
        }
        if queue.is_unattended {
            return put(to_stderr, &text);
        }
        queue.texts.push_back((to_stderr, text));
        self.changed.notify_all();
    }

    /// Whether all has been written.
    pub(super) fn is_idle(&self) -> bool {
        self.queue().is_idle()
    }

    /// Waits until all has been written.
    pub(super) fn until_idle(&self) {
        let mut queue = self.queue();
        while !queue.is_idle() {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self) {
        let mut queue = self.queue();
        loop {
            let Some((to_stderr, text)) = queue.texts.pop_front() else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.is_writing = true;
            drop(queue);
            put(to_stderr, &text);
            queue = self.queue();
            queue.is_writing = false;
            self.changed.notify_all();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What can not be printed because nobody reads it is lost, and the jobs go on.
fn put(to_stderr: bool, text: &str) {
    drop(if to_stderr { write_err(text) } else { write_out(text) });
}
