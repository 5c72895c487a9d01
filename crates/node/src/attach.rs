//! Connects a person with what a container runs: `kubectl attach`, and `kubectl run -i` after it.
//!
//! What the container writes is read from its log, so that any number can be attached and none can hold it up.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use krafla_api::Key;
use krafla_cluster::{LogOptions, Stream};
use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use crate::agent::{Node, Shared};
use crate::container::ContainerId;
use crate::exec::{ExecError, Output, Session};
use crate::supervisor::protocol::Request;

impl Node {
    /// Connects to what a container runs. It can only be written to if its manifest says so (`stdin`) and, if it
    /// is to be written to once (`stdinOnce`), by the first that comes.
    pub async fn attach(&self, namespace: &str, pod: &str, container: &str) -> Result<Session, ExecError> {
        let view = self.find(&Key::new(namespace, pod)).ok_or_else(|| ExecError::NoPod(pod.to_owned()))?;
        let spec = view.pod.all_containers().find(|it| it.name == container);
        let running = view.attempts.latest(container).filter(|record| record.is_running());
        let (Some(spec), Some(running)) = (spec, running) else {
            return Err(ExecError::NotRunning { pod: pod.to_owned(), container: container.to_owned() });
        };
        // What it writes from now on: it is read from before anything is written to it.
        let follow = async |stream| {
            let from_now_on = LogOptions {
                follow: true,
                tail_lines: Some(0),
                stream: Some(stream),
                ..LogOptions::default()
            };
            let log = self.logs(namespace, pod, Some(container), from_now_on).await;
            let log = log.map_err(|error| ExecError::NotStarted(error.to_string()))?;
            Ok::<_, ExecError>(log.scan((), |(), piece| std::future::ready(piece.ok())))
        };
        let stdout = follow(Stream::Stdout).await?.map(Output::Stdout);
        let stderr = follow(Stream::Stderr).await?.map(Output::Stderr);
        let (shared, id) = (self.shared.clone(), running.id.clone());
        let stdin = Input::open(&shared, &id, spec.stdin_once);
        let resize = spec.tty.then(|| -> Box<dyn Fn(u16, u16) + Send + Sync> {
            Box::new(move |columns, rows| shared.link.send(Request::Resize { id: id.clone(), columns, rows }))
        });
        // The session is over when both logs are, which is when the container has ended.
        let (ended, end) = oneshot::channel();
        let last = stream::once(async move {
            // Nobody is interested any more if this can not be sent.
            let _ = ended.send(0);
            Output::Stdout(Bytes::new())
        });
        let output = stream::select(stdout, stderr).chain(last);
        let end = Box::pin(async move { Ok(end.await.unwrap_or(0)) });
        Ok(Session { stdin, output: output.boxed(), resize, end })
    }
}

/// A container's standard input.
struct Input {
    pipe: pipe::Sender,
    /// Who is told when it is over.
    once: Option<(Arc<Shared>, ContainerId)>,
}

impl Input {
    /// None if the container has no input, or none any more.
    fn open(
        shared: &Arc<Shared>,
        id: &ContainerId,
        is_once: bool,
    ) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        let pipe = pipe::OpenOptions::new().open_sender(id.stdin_path(&shared.config.pods())).ok()?;
        let once = is_once.then(|| (shared.clone(), id.clone()));
        Some(Box::new(Input { pipe, once }))
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Some((shared, id)) = self.once.take() {
            shared.link.send(Request::CloseInput { id });
        }
    }
}

impl AsyncWrite for Input {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().pipe).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_shutdown(cx)
    }
}
