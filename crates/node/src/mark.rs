//! The mark by which a process, and all that it starts, is known to belong to a container.
//!
//! Process groups, sessions and parents change hands when programs turn themselves into daemons, and a program can drop its
//! environment or write over it. What every process inherits, keeps through `exec`, and has no reason to change, are its resource
//! limits. One of them, the number of locks that it may hold, means nothing to any Linux since 2.4.25: so it can hold a number of
//! ours, and everybody can read it in `/proc`.
//!
//! ```text
//!   62 bits:   root directory (35)  |  beside a container (1)  |  which (26)
//! ```
//!
//! It needs no rights, no process and no file: starting a container costs three short system calls more.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use parking_lot::Mutex;
use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};

const NUMBER_BITS: u32 = 26;
const BESIDE_BIT: u32 = 1;
const ROOT_BITS: u32 = 35;

/// A mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marked {
    /// A process of a container.
    Container(u32),
    /// One that the node has run beside a container: a command of `kubectl exec`, a probe, a hook.
    Beside(u32),
}

/// The marks of one root directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    root: u64,
}

impl Marks {
    /// The marks of a root directory, which must be called by its own name.
    pub(crate) fn of(root: &Path) -> Marks {
        // FNV-1a: any spread will do. A part that is zero could be anybody's limit.
        let bytes = root.as_os_str().as_encoded_bytes();
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Marks { root: (hash >> (u64::BITS - ROOT_BITS)).max(1) }
    }

    pub(crate) fn mark(self, marked: Marked) -> Mark {
        let (beside, number) = match marked {
            Marked::Container(number) => (0, number),
            Marked::Beside(number) => (1, number),
        };
        Mark((self.root << BESIDE_BIT | beside) << NUMBER_BITS | u64::from(number))
    }

    /// What the mark of a process says; none if it has none of this root directory.
    pub(crate) fn of_process(self, pid: Pid) -> Option<Marked> {
        self.read(&limits_of(pid)?)
    }

    fn read(self, limits: &str) -> Option<Marked> {
        let mark = raw(limits)?;
        let number = u32::try_from(mark & ((1 << NUMBER_BITS) - 1)).ok()?;
        let (root, beside) = (mark >> (NUMBER_BITS + BESIDE_BIT), mark >> NUMBER_BITS & 1);
        (root == self.root).then_some(if beside == 1 {
            Marked::Beside(number)
        } else {
            Marked::Container(number)
        })
    }
}

/// The number that all processes of a container have in common, if they are marked.
pub(crate) fn raw_of_process(pid: Pid) -> Option<u64> {
    raw(&limits_of(pid)?)
}

/// How many files a process may have open; none if that is not limited.
pub(crate) fn open_files_of(pid: Pid) -> Option<u64> {
    soft(&limits_of(pid)?, "Max open files")
}

fn raw(limits: &str) -> Option<u64> {
    soft(limits, "Max file locks")
}

fn soft(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Held while this process has a mark that is meant for another.
static MARKING: Mutex<()> = Mutex::new(());

impl Mark {
    /// Has a process started with this mark. Where the limit is not ours to change, it is started without.
    pub(crate) fn put_on<T>(self, start: impl FnOnce() -> T) -> T {
        let _marking = MARKING.lock();
        let own = getrlimit(Resource::Locks);
        let is_set = setrlimit(Resource::Locks, Rlimit { current: Some(self.0), maximum: own.maximum });
        let started = start();
        if is_set.is_ok() {
            // It was this process' own a moment ago.
            let _ = setrlimit(Resource::Locks, own);
        }
        started
    }
}

/// Has a process started that belongs to no container.
pub(crate) fn unmarked<T>(start: impl FnOnce() -> T) -> T {
    let _marking = MARKING.lock();
    start()
}

/// Numbers of which each is in use once.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    next: u32,
    used: BTreeSet<u32>,
}

impl Numbers {
    /// A number that nobody uses, and as late as possible one that somebody has used.
    pub(crate) fn take(&mut self) -> u32 {
        let mut number = self.next;
        // There are more of them than processes on any machine.
        while !self.used.insert(number) {
            number = next_after(number);
        }
        self.next = next_after(number);
        number
    }

    pub(crate) fn give_back(&mut self, number: u32) {
        self.used.remove(&number);
    }
}

fn next_after(number: u32) -> u32 {
    number.wrapping_add(1) & ((1 << NUMBER_BITS) - 1)
}

/// Kills all processes but this one that `is_meant` names. Returns how many there were; those that are dead already and only wait for
/// somebody to take notice do not count.
pub(crate) fn kill_all(is_meant: impl Fn(Pid) -> bool) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = pids.filter_map(Pid::from_raw).filter(|pid| *pid != getpid());
    let meant = others.filter(|pid| is_meant(*pid) && !is_dead(*pid));
    meant.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count()
}

/// The process that started another one, or has taken it in.
pub(crate) fn parent_of(pid: Pid) -> Option<Pid> {
    stat_of(pid, 1)?.parse().ok().and_then(Pid::from_raw)
}

fn is_dead(pid: Pid) -> bool {
    stat_of(pid, 0).is_none_or(|state| state == "Z" || state == "X")
}

/// A field after the name, which is in parentheses and may contain anything.
fn stat_of(pid: Pid, field: usize) -> Option<String> {
    let stat = String::from_utf8_lossy(&read(pid, "stat").ok()?).into_owned();
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(field).map(str::to_owned)
}

fn limits_of(pid: Pid) -> Option<String> {
    String::from_utf8(read(pid, "limits").ok()?).ok()
}

/// What `/proc` says of a process. It does not say how long that is, and in a small buffer it would be read by the line.
pub(crate) fn read(pid: Pid, file: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 << 10);
    File::open(format!("/proc/{}/{file}", pid.as_raw_nonzero()))?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn limits(mark: Mark) -> String {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max locked memory         8388608              8388608              bytes     \n\
             Max file locks            {}                   unlimited            locks     \n",
            mark.0
        )
    }

    #[test]
    fn a_mark_says_whose_a_process_is() {
        let (ours, theirs) = (Marks::of(Path::new("/data/a")), Marks::of(Path::new("/data/b")));
        let last = (1 << NUMBER_BITS) - 1;
        for marked in [Marked::Container(0), Marked::Container(last), Marked::Beside(0), Marked::Beside(last)]
        {
            let limits = limits(ours.mark(marked));
            assert_eq!(ours.read(&limits), Some(marked));
            assert_eq!(theirs.read(&limits), None);
        }
        assert_eq!(
            ours.read("Max file locks            unlimited            unlimited            locks"),
            None
        );
        assert_eq!(
            ours.read("Max file locks            0                    0                    locks"),
            None
        );
    }

    #[test]
    fn what_a_marked_process_starts_is_marked_and_this_one_is_not() {
        // Of nobody else, who may run the same test.
        let root = tempfile::tempdir().unwrap();
        let marks = Marks::of(root.path());
        let mark = marks.mark(Marked::Container(7));
        let mut command = Command::new("sh");
        // The shell says that it is there, waits, and so keeps the other one.
        command.args(["-c", "env -i setsid sleep 1000 & echo $!; wait"]).stdout(Stdio::piped());
        let mut shell = mark.put_on(|| command.spawn()).unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(shell.stdout.as_mut().unwrap()), &mut line).unwrap();
        let other = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        let found = [Pid::from_child(&shell), other, getpid()].map(|pid| marks.of_process(pid));
        assert_eq!(found, [Some(Marked::Container(7)), Some(Marked::Container(7)), None]);

        let n_killed = kill_all(|pid| marks.of_process(pid) == Some(Marked::Container(7)));
        assert_eq!(n_killed, 2);
        shell.wait().unwrap();
    }

    #[test]
    fn a_number_that_is_in_use_is_not_given_again() {
        let mut numbers = Numbers::default();
        assert_eq!([numbers.take(), numbers.take()], [0, 1]);
        numbers.give_back(0);
        assert_eq!(numbers.take(), 2);
        numbers.next = (1 << NUMBER_BITS) - 1;
        assert_eq!([numbers.take(), numbers.take(), numbers.take()], [(1 << NUMBER_BITS) - 1, 0, 3]);
    }
}
