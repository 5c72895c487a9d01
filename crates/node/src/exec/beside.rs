//! What runs beside containers, and what is left of it.
//!
//! A command is killed with its process group when no task waits for it any more. What has left the group before has the command's mark,
//! and is looked for a moment later. Looking costs a walk through `/proc`, so the ends of many commands share one.

use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::process::{Child, Command};
use tokio::sync::Notify;

use crate::mark::{Mark, Marked, Marks, Numbers, kill_all};

/// How long after the end of a command its strays are looked for.
const SWEEP_AFTER: Duration = Duration::from_millis(250);

/// All that runs beside containers of one node.
#[derive(Debug)]
pub(crate) struct Beside {
    root: PathBuf,
    marks: OnceLock<Marks>,
    numbers: Mutex<Numbers>,
    /// The numbers of commands that have ended, until nothing is left of them.
    ended: Mutex<BTreeSet<u32>>,
    news: Notify,
}

impl Beside {
    /// The root directory need not be there yet.
    pub(crate) fn of(root: &Path) -> Beside {
        Beside {
            root: root.to_owned(),
            marks: OnceLock::new(),
            numbers: Mutex::default(),
            ended: Mutex::default(),
            news: Notify::new(),
        }
    }

    fn marks(&self) -> Marks {
        // By its own name, as the supervisor knows it.
        let of_root = || Marks::of(&self.root.canonicalize().unwrap_or_else(|_| self.root.clone()));
        *self.marks.get_or_init(of_root)
    }

    /// A number for a new command.
    pub(super) fn enter(self: &Arc<Self>) -> Entry {
        Entry { beside: self.clone(), number: self.numbers.lock().take() }
    }

    /// Ends what commands leave behind, until the future is dropped.
    pub(crate) async fn run(self: &Arc<Self>) {
        loop {
            self.news.notified().await;
            tokio::time::sleep(SWEEP_AFTER).await;
            let beside = self.clone();
            // It reads a file of each process of the machine.
            let _ = tokio::task::spawn_blocking(move || beside.sweep()).await;
        }
    }

    fn sweep(&self) {
        let ended = self.ended.lock().clone();
        let is_left = |marked| matches!(marked, Marked::Beside(number) if ended.contains(&number));
        let marks = self.marks();
        if kill_all(|pid| marks.of_process(pid).is_some_and(is_left)) > 0 {
            // What these have started meanwhile is found the next time.
            return self.news.notify_one();
        }
        for number in ended {
            self.ended.lock().remove(&number);
            self.numbers.lock().give_back(number);
        }
    }
}

/// One command's place among all.
#[derive(Debug)]
pub(super) struct Entry {
    beside: Arc<Beside>,
    number: u32,
}

impl Entry {
    pub(super) fn mark(&self) -> Mark {
        self.beside.marks().mark(Marked::Beside(self.number))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.beside.ended.lock().insert(self.number);
        self.beside.news.notify_one();
    }
}

/// A command that can be started beside a container, with its streams still to be chosen.
pub(crate) struct Marking {
    pub(super) command: Command,
    pub(super) beside: Arc<Beside>,
}

impl Marking {
    /// A command of a node that has no other.
    #[cfg(test)]
    pub(crate) fn alone(command: Command) -> Marking {
        Marking { command, beside: Arc::new(Beside::of(Path::new("/"))) }
    }

    pub(crate) fn stdin(&mut self, stdin: Stdio) -> &mut Marking {
        self.command.stdin(stdin);
        self
    }

    pub(crate) fn stdout(&mut self, stdout: Stdio) -> &mut Marking {
        self.command.stdout(stdout);
        self
    }

    pub(crate) fn stderr(&mut self, stderr: Stdio) -> &mut Marking {
        self.command.stderr(stderr);
        self
    }

    pub(crate) fn spawn(&mut self) -> io::Result<Running> {
        let entry = self.beside.enter();
        let child = entry.mark().put_on(|| self.command.spawn())?;
        Ok(Running { child, _entry: entry })
    }
}

/// A command that runs beside a container. What is left of it goes after this.
pub(crate) struct Running {
    pub(super) child: Child,
    pub(super) _entry: Entry,
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}
