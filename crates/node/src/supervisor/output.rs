//! Carries what a process writes into its log file.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};

use jiff::Timestamp;
use krafla_cluster::Stream;
use pty_process::OwnedReadPty;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::task::AbortHandle;

use super::log_file::LogFile;
use super::outbox::Outbox;
use crate::container::ContainerId;

/// What a pipe holds by default on Linux, and so what one read can bring.
const CHUNK_BYTES: usize = 64 << 10;

/// Where what was read waits to be written: one place for all containers, since nothing stays in it. Single-threaded:
/// nobody waits while holding it.
#[derive(Clone)]
pub(super) struct Chunk(Rc<RefCell<Vec<u8>>>);

impl Default for Chunk {
    fn default() -> Chunk {
        Chunk(Rc::new(RefCell::new(vec![0; CHUNK_BYTES])))
    }
}

/// What is read at most from a pipe after its main process has ended. A process that escaped may go on
/// writing for ever; what was written before is in the pipe, which holds no more than this.
const LAST_BYTES_MAX: usize = 1 << 20;

/// The output of one running process.
pub(super) struct Output {
    sink: Sink,
    sources: Vec<(Stream, Source)>,
    readers: Vec<AbortHandle>,
}

/// What is read from. Reading never waits.
enum Source {
    Pipe(Rc<Receiver>),
    Terminal(OwnedFd),
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Source::Pipe(pipe) => pipe.as_fd(),
            Source::Terminal(terminal) => terminal.as_fd(),
        }
    }
}

/// Where output goes.
#[derive(Clone)]
pub(super) struct Sink {
    pub(super) id: ContainerId,
    pub(super) log: Rc<RefCell<LogFile>>,
    pub(super) outbox: Rc<Outbox>,
    pub(super) chunk: Chunk,
}

impl Sink {
    fn write(&self, stream: Stream, bytes: &[u8]) {
        let outcome = self.log.borrow_mut().write(stream, bytes, Timestamp::now());
        self.tell(outcome);
    }

    /// Carries over what is in a pipe now. Returns whether more may come.
    fn take_in(&self, stream: Stream, pipe: &Receiver) -> bool {
        let mut chunk = self.chunk.0.borrow_mut();
        match pipe.try_read(&mut chunk) {
            Ok(0) => return false,
            Ok(n) => self.write(stream, chunk.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        true
    }

    /// Lets the container wait if it has written more than its log can bear.
    async fn rest(&self) {
        let rest = self.log.borrow().rest(Timestamp::now());
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
        }
    }

    fn tell(&self, outcome: io::Result<bool>) {
        match outcome {
            Ok(true) => self.outbox.grew(&self.id),
            Ok(false) => {}
            // A full disk must not stop the container: its output is lost, and this says so.
            Err(error) => note!("container {}: cannot write its log: {error}", self.id),
        }
    }
}

impl Output {
    /// Begins to carry what a process writes to its two pipes into its log.
    pub(super) fn of_pipes(sink: Sink, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Output> {
        let stdout = Rc::new(Receiver::from_owned_fd(stdout)?);
        let stderr = Rc::new(Receiver::from_owned_fd(stderr)?);
        let pipes = [(Stream::Stdout, stdout), (Stream::Stderr, stderr)];
        let begin = |(stream, pipe): &(Stream, Rc<Receiver>)| {
            tokio::task::spawn_local(carry(sink.clone(), *stream, Rc::downgrade(pipe))).abort_handle()
        };
        let readers = pipes.iter().map(begin).collect();
        let sources = pipes.into_iter().map(|(stream, pipe)| (stream, Source::Pipe(pipe))).collect();
        Ok(Output { sink, sources, readers })
    }

    /// The same for a terminal; `source` is another handle on it.
    pub(super) fn of_terminal(sink: Sink, reader: OwnedReadPty, source: OwnedFd) -> Output {
        let readers = vec![tokio::task::spawn_local(carry_terminal(sink.clone(), reader)).abort_handle()];
        Output { sink, sources: vec![(Stream::Stdout, Source::Terminal(source))], readers }
    }

    /// Takes in what the process wrote last, and closes the log. Not the end of the pipe is waited for but an
    /// empty pipe: a process that escaped could keep it open.
    pub(super) fn finish(self) {
        self.readers.iter().for_each(AbortHandle::abort);
        let mut chunk = self.sink.chunk.0.borrow_mut();
        for (stream, source) in &self.sources {
            let mut n_read = 0;
            while n_read < LAST_BYTES_MAX {
                // Not `try_read`: it trusts what the reactor saw last, which may be older than the last
                // output.
                let Ok(n @ 1..) = rustix::io::read(source, chunk.as_mut_slice()) else { break };
                self.sink.write(*stream, chunk.get(..n).unwrap_or_default());
                n_read += n;
            }
        }
        let outcome = self.sink.log.borrow_mut().finish(Timestamp::now());
        self.sink.tell(outcome);
    }
}

/// A process that has ended before this has its turn has closed its pipe: of many short ones in a row, each would keep
/// two files open that all those after it inherit and close.
async fn carry(sink: Sink, stream: Stream, pipe: Weak<Receiver>) {
    let Some(pipe) = pipe.upgrade() else { return };
    while pipe.readable().await.is_ok() && sink.take_in(stream, &pipe) {
        sink.rest().await;
    }
}

/// A terminal that nobody has open any more can not be read: that is its end.
async fn carry_terminal(sink: Sink, mut terminal: OwnedReadPty) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(n @ 1..) = terminal.read(&mut chunk).await {
        sink.write(Stream::Stdout, chunk.get(..n).unwrap_or_default());
        sink.rest().await;
    }
}
