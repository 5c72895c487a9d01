//! What containers wrote, as `kubectl logs` shows it.

mod entry;
mod segments;

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use krafla_api::Key;
use krafla_cluster::LogOptions;

use crate::agent::{Node, Shared, View};
use crate::container::ContainerId;
use crate::pod::Container;
use entry::Printer;
pub(crate) use entry::last_lines;
use segments::{Piece, Segments};

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
    #[error("cannot read the log of container {container:?}: {error}")]
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
        let path = id.log_path(&self.shared.config.pods());
        let open = {
            let options = options.clone();
            move || open(path, &options)
        };
        let log = in_background(open).await.map_err(unreadable)?;
        let printer =
            Printer::new(since(&options, Timestamp::now()), options.timestamps, options.limit_bytes)
                .only(options.stream);
        let following = options.follow.then(|| Following::new(self.shared.clone(), id));
        let reader = Reader { log, printer, rest: Vec::new() };
        Ok(stream::unfold((Some(reader), following), next).boxed())
    }
}

/// Does what may wait for the disk where no task waits for it.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn open(path: PathBuf, options: &LogOptions) -> io::Result<Segments> {
    let mut log = Segments::open(path)?;
    if options.follow && options.attempt.is_some() {
        // Of an attempt that is meant by its number all is expected, and of any other what there is, as of a kubelet.
        log = log.expecting_all();
    }
    if let Some(n_lines) = options.tail_lines {
        log.seek_tail(n_lines)?;
    }
    Ok(log)
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
        None => previous(view, &latest.id),
        number => number,
    };
    let record = number.and_then(|number| view.attempts.get(&container, number));
    record.map(|record| record.id.clone()).ok_or(LogError::NoPrevious { pod, container })
}

/// The attempt that the status calls the last one: of a container that waits to be started again that is its newest.
fn previous(view: &View, latest: &ContainerId) -> Option<u32> {
    let reported =
        view.pod.status.container(&latest.name).and_then(|status| status.last_state.terminated.as_ref());
    if reported.is_some_and(|ended| ended.container_id == latest.reported()) {
        return Some(latest.attempt);
    }
    latest.attempt.checked_sub(1)
}

fn since(options: &LogOptions, now: Timestamp) -> Option<Timestamp> {
    let ago = options
        .since_seconds
        .and_then(|seconds| now.checked_sub(std::time::Duration::from_secs(seconds)).ok());
    options.since_time.map(|time| time.0).or(ago)
}

/// The next piece of a log; nothing at its end.
async fn next(
    (mut reader, following): (Option<Reader>, Option<Following>),
) -> Option<(io::Result<Bytes>, (Option<Reader>, Option<Following>))> {
    loop {
        let mut owned = reader.take().filter(|reader| !reader.printer.is_full())?;
        // Whether more may come is asked before the file is read, so that the last output is not missed.
        let change = following.as_ref().and_then(Following::change);
        let read = move || owned.read().map(|printed| (printed, owned));
        match in_background(read).await {
            Ok((Some(printed), reader)) => return Some((Ok(printed.into()), (Some(reader), following))),
            Ok((None, unchanged)) => {
                change?.await;
                reader = Some(unchanged);
            }
            // The error is the last thing that is heard.
            Err(error) => return Some((Err(error), (None, None))),
        }
    }
}

/// Reads the files of a log, and prints their entries.
struct Reader {
    log: Segments,
    printer: Printer,
    /// The beginning of an entry of which the end is still to come.
    rest: Vec<u8>,
}

impl Reader {
    /// What is printed of the next entries; none if there are no more at the moment.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            match self.log.read(&mut self.rest)? {
                Piece::End => return Ok(None),
                Piece::Gone(n_bytes) => {
                    self.rest.clear();
                    self.printer.miss(n_bytes);
                }
                Piece::Bytes => {
                    let printed = self.print_entries();
                    if !printed.is_empty() {
                        return Ok(Some(printed));
                    }
                }
            }
        }
    }

    fn print_entries(&mut self) -> Vec<u8> {
        let mut printed = Vec::with_capacity(self.rest.len());
        let n_whole =
            self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end.saturating_add(1));
        let rest = self.rest.split_off(n_whole);
        let mut entries = self.rest.as_slice();
        while let (entry, Ok(n_bytes @ 1..)) = (entries, entries.skip_until(b'\n')) {
            let entry = entry.get(..n_bytes).and_then(|entry| entry.strip_suffix(b"\n")).unwrap_or_default();
            self.printer.print(entry, &mut printed);
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
