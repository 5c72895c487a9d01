//! What containers wrote, as `kubectl logs` shows it.

mod entry;
mod segments;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use krafla_api::{Key, Time};

use crate::agent::{Node, Shared, View};
use crate::container::ContainerId;
use crate::pod::Container;
use crate::supervisor::log_file::Stream;
use entry::Printer;
pub(crate) use entry::last_lines;
use segments::{CHUNK_BYTES, Segments};

/// The reader's wishes, as in the query of a log request.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Go on until the container ends.
    pub follow: bool,
    /// The attempt before the current one.
    pub previous: bool,
    /// This attempt and no other: the current one may be over by the time that somebody asks for it.
    pub attempt: Option<u32>,
    /// Only so many lines from the end.
    pub tail_lines: Option<u64>,
    /// Nothing that is older.
    pub since_time: Option<Time>,
    /// Nothing that is older than so many seconds.
    pub since_seconds: Option<u64>,
    /// Each line's time before it.
    pub timestamps: bool,
    /// No more than so many bytes.
    pub limit_bytes: Option<u64>,
    /// Only what was written to this stream.
    pub stream: Option<Stream>,
}

/// Why there is no log. The words are those of a kubelet and a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No such pod runs here.
    #[error("pods {0:?} not found")]
    NoPod(String),
    /// The pod has no such container.
    #[error("container {container} is not valid for pod {pod}")]
    NoContainer {
        /// The pod's name.
        pod: String,
        /// The name asked for.
        container: String,
    },
    /// The pod has several containers, and none was named.
    #[error("a container name must be specified for pod {pod}, choose one of: [{choices}]")]
    WhichContainer {
        /// The pod's name.
        pod: String,
        /// Its containers.
        choices: String,
    },
    /// The container has not started yet.
    #[error("container {container:?} in pod {pod:?} is waiting to start: {reason}")]
    Waiting {
        /// The pod's name.
        pod: String,
        /// The container's name.
        container: String,
        /// What it is waiting for.
        reason: String,
    },
    /// There was no attempt before.
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NoPrevious {
        /// The pod's name.
        pod: String,
        /// The container's name.
        container: String,
    },
    /// The file can not be read.
    #[error("the log of container {container:?} can not be read: {error}")]
    Unreadable {
        /// The container's name.
        container: String,
        /// What the system says.
        error: String,
    },
}

/// A log, piece by piece.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

impl Node {
    /// What a container of one of this node's pods wrote. Without a name it is the only container.
    pub async fn logs(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<&str>,
        options: LogOptions,
    ) -> Result<LogStream, LogError> {
        let view = self.find(&Key::new(namespace, pod)).ok_or_else(|| LogError::NoPod(pod.to_owned()))?;
        let id = attempt(&view, choose(&view, container)?, &options)?;
        let unreadable =
            |error: io::Error| LogError::Unreadable { container: id.name.clone(), error: error.to_string() };
        let mut log = Segments::open(id.log_path(&self.shared.config.pods())).await.map_err(unreadable)?;
        if let Some(n_lines) = options.tail_lines {
            log.seek_tail(n_lines).await.map_err(unreadable)?;
        }
        let printer =
            Printer::new(since(&options, Timestamp::now()), options.timestamps, options.limit_bytes)
                .only(options.stream);
        let following = options.follow.then(|| Following::new(self.shared.clone(), id));
        Ok(stream::unfold(Reader { log, printer, following, rest: Vec::new() }, Reader::next).boxed())
    }
}

fn choose<'a>(view: &'a View, container: Option<&str>) -> Result<&'a Container, LogError> {
    let pod = view.pod.metadata.name.clone();
    match (container, view.pod.spec.containers.as_slice()) {
        (Some(name), _) => view
            .pod
            .all_containers()
            .find(|container| container.name == name)
            .ok_or_else(|| LogError::NoContainer { pod, container: name.to_owned() }),
        (None, [only]) => Ok(only),
        (None, all) => {
            let names: Vec<_> = all.iter().map(|container| container.name.as_str()).collect();
            Err(LogError::WhichContainer { pod, choices: names.join(" ") })
        }
    }
}

fn attempt(view: &View, container: &Container, options: &LogOptions) -> Result<ContainerId, LogError> {
    let (pod, container) = (view.pod.metadata.name.clone(), container.name.clone());
    let Some(latest) = view.attempts.latest(&container) else {
        let status = view.pod.status.container(&container).and_then(|status| status.state.waiting.as_ref());
        let reason = status.map_or("ContainerCreating", |waiting| waiting.reason.as_str()).to_owned();
        return Err(LogError::Waiting { pod, container, reason });
    };
    let number = match options.attempt {
        None if !options.previous => return Ok(latest.id.clone()),
        None => latest.id.attempt.checked_sub(1),
        number => number,
    };
    let record = number.and_then(|number| view.attempts.get(&container, number));
    record.map(|record| record.id.clone()).ok_or(LogError::NoPrevious { pod, container })
}

fn since(options: &LogOptions, now: Timestamp) -> Option<Timestamp> {
    let ago = options
        .since_seconds
        .and_then(|seconds| now.checked_sub(std::time::Duration::from_secs(seconds)).ok());
    options.since_time.map(|time| time.0).or(ago)
}

/// Reads a log file, and goes on as it grows.
struct Reader {
    log: Segments,
    printer: Printer,
    following: Option<Following>,
    /// The beginning of an entry of which the end is still to come.
    rest: Vec<u8>,
}

impl Reader {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Reader)> {
        loop {
            if self.printer.is_full() {
                return None;
            }
            // Whether more may come is asked before the file is read, so that the last output is not missed.
            let change = self.following.as_ref().and_then(Following::change);
            match self.read_chunk().await {
                Ok(0) => match change {
                    Some(change) => change.await,
                    None => return None,
                },
                Ok(_) => {
                    let printed = self.print_entries();
                    if !printed.is_empty() {
                        return Some((Ok(printed.into()), self));
                    }
                }
                Err(error) => {
                    // The error is the last thing the reader hears.
                    self.following = None;
                    self.printer = Printer::new(None, false, Some(0));
                    return Some((Err(error), self));
                }
            }
        }
    }

    async fn read_chunk(&mut self) -> io::Result<usize> {
        let begin = self.rest.len();
        self.rest.resize(begin.saturating_add(CHUNK_BYTES), 0);
        let read = self.log.read(self.rest.get_mut(begin..).unwrap_or_default()).await;
        self.rest.truncate(begin.saturating_add(*read.as_ref().unwrap_or(&0)));
        read
    }

    fn print_entries(&mut self) -> Vec<u8> {
        let mut printed = Vec::new();
        let n_whole =
            self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end.saturating_add(1));
        let rest = self.rest.split_off(n_whole);
        for line in self.rest.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.printer.print(line, &mut printed);
        }
        self.rest = rest;
        printed
    }
}

/// Keeps the supervisor reporting whenever a container has written something.
struct Following {
    shared: Arc<Shared>,
    id: ContainerId,
}

impl Following {
    fn new(shared: Arc<Shared>, id: ContainerId) -> Following {
        shared.link.follow(&id);
        Following { shared, id }
    }

    fn change(&self) -> Option<impl Future<Output = ()> + use<>> {
        self.shared.pods.change_of(&self.id)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.shared.link.unfollow(&self.id);
    }
}
