//! A command's streams over SPDY, as kubectl before 1.30 speaks it: each is a stream of the connection.
//!
//! ```text
//!   client ── opens error, stdin, stdout, stderr, resize ──> server
//!          <── data of stdout and stderr; on error how it ended ──
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf};
use tokio::sync::mpsc;

use super::channels::{DRAIN, FAREWELL, status_of};
use super::exec::{Output, Session};
use super::spdy::{self, Frame, Reader, Replies};
use crate::status::Status;
use krafla_cluster::ExecOptions;

/// How long a client has to open the streams that it asked for.
const OPENING: Duration = Duration::from_secs(30);
/// How many frames wait for a client that reads slowly.
const FRAMES_WAITING_MAX: usize = 16;

/// A version of the protocol above SPDY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Without a size of the terminal; errors are texts.
    V2,
    /// Errors are texts.
    V3,
    /// Errors are Statuses.
    V4,
}

impl Version {
    /// The newest version that a client offers.
    pub(super) fn choose<'a>(offered: impl Iterator<Item = &'a str>) -> Option<(Version, &'static str)> {
        const KNOWN: [(Version, &str); 5] = [
            (Version::V4, "v5.channel.k8s.io"),
            (Version::V4, "v4.channel.k8s.io"),
            (Version::V3, "v3.channel.k8s.io"),
            (Version::V2, "v2.channel.k8s.io"),
            (Version::V2, "channel.k8s.io"),
        ];
        let offered: Vec<&str> = offered.collect();
        KNOWN.into_iter().find(|(_, name)| offered.contains(name))
    }

    fn error(self, status: &Value) -> Option<Bytes> {
        match self {
            Version::V4 => Some(status.to_string().into()),
            Version::V2 | Version::V3 if status["status"] == "Success" => None,
            Version::V2 | Version::V3 => {
                Some(status["message"].as_str().unwrap_or_default().to_owned().into())
            }
        }
    }
}

/// Connects a client with a command until either ends.
pub(super) async fn serve(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin,
    version: Version,
    options: &ExecOptions,
    session: impl Future<Output = Result<Session, Status>>,
) {
    let (source, mut sink) = tokio::io::split(socket);
    let (frames, mut waiting) = mpsc::channel::<Bytes>(FRAMES_WAITING_MAX);
    let write = async {
        while let Some(frame) = waiting.recv().await {
            if sink.write_all(&frame).await.is_err() || sink.flush().await.is_err() {
                return;
            }
        }
        let _ = sink.shutdown().await;
    };
    let run = run(Reader::new(source), frames, version, options, session);
    tokio::join!(run, write);
}

async fn run<S: AsyncRead + AsyncWrite + Send + Unpin>(
    mut reader: Reader<ReadHalf<S>>,
    frames: mpsc::Sender<Bytes>,
    version: Version,
    options: &ExecOptions,
    session: impl Future<Output = Result<Session, Status>>,
) {
    let opened = tokio::time::timeout(OPENING, open(&mut reader, &frames, version, options)).await;
    let Ok(Some(streams)) = opened else { return };
    let status = match session.await {
        Ok(Session { stdin, output, resize, end }) => {
            let stdin = stdin.filter(|_| options.stdin);
            let mut input = Input { streams: &streams, frames: &frames, stdin, resize };
            tokio::select! {
                status = pass_on(&frames, &streams, output, end) => status,
                () = input.take_in(&mut reader) => return,
            }
        }
        Err(status) => status.to_json(),
    };
    for kind in ["stdout", "stderr"] {
        if let Some(stream) = streams.get(kind) {
            let _ = frames.send(spdy::data(*stream, b"", true)).await;
        }
    }
    if let Some(stream) = streams.get("error") {
        let error = version.error(&status).unwrap_or_default();
        let _ = frames.send(spdy::data(*stream, &error, true)).await;
    }
    // Closing with something unread would make the client's side forget what it has not read yet.
    let _ = tokio::time::timeout(FAREWELL, reader.drain()).await;
}

/// The streams of a connection, by their types.
type Streams = BTreeMap<&'static str, u32>;

/// Waits until a client has opened all streams that it asked for; none if it does something else.
async fn open<S: AsyncRead + Unpin>(
    reader: &mut Reader<S>,
    frames: &mpsc::Sender<Bytes>,
    version: Version,
    options: &ExecOptions,
) -> Option<Streams> {
    let is_wanted = |kind: &str| match kind {
        "error" => true,
        "stdin" => options.stdin,
        "stdout" => options.stdout,
        "stderr" => options.stderr && !options.tty,
        _ => options.tty && version != Version::V2,
    };
    let wanted: Vec<&'static str> =
        ["error", "stdin", "stdout", "stderr", "resize"].into_iter().filter(|kind| is_wanted(kind)).collect();
    let (mut streams, mut replies) = (Streams::new(), Replies::default());
    while streams.len() < wanted.len() {
        match reader.next().await.ok()?? {
            Frame::Open { stream, headers } => {
                let kind = headers.get("streamtype").map(String::as_str).unwrap_or_default();
                let Some(kind) = wanted.iter().find(|wanted| **wanted == kind) else {
                    frames.send(spdy::reset(stream)).await.ok()?;
                    continue;
                };
                streams.insert(kind, stream);
                frames.send(replies.accept(stream)).await.ok()?;
            }
            Frame::Ping { id } => frames.send(spdy::ping(id)).await.ok()?,
            Frame::GoAway => return None,
            Frame::Data { .. } | Frame::Reset { .. } | Frame::Other => {}
        }
    }
    Some(streams)
}

/// Sends what the command writes until it has ended, and returns how.
async fn pass_on(
    frames: &mpsc::Sender<Bytes>,
    streams: &Streams,
    mut output: impl futures_util::Stream<Item = Output> + Unpin,
    mut end: impl Future<Output = Result<i32, String>> + Unpin,
) -> Value {
    let send = |output: Output| {
        let (kind, data) = match output {
            Output::Stdout(data) => ("stdout", data),
            Output::Stderr(data) => ("stderr", data),
        };
        let frame = streams.get(kind).map(|stream| spdy::data(*stream, &data, false));
        async move {
            if let Some(frame) = frame {
                let _ = frames.send(frame).await;
            }
        }
    };
    let mut is_open = true;
    let end = loop {
        tokio::select! {
            chunk = output.next(), if is_open => match chunk {
                Some(chunk) => send(chunk).await,
                None => is_open = false,
            },
            end = &mut end => break end,
        }
    };
    let drain = async {
        while let Some(chunk) = output.next().await {
            send(chunk).await;
        }
    };
    let _ = tokio::time::timeout(DRAIN, drain).await;
    status_of(end)
}

/// Where a client's data go.
struct Input<'a> {
    streams: &'a Streams,
    frames: &'a mpsc::Sender<Bytes>,
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TerminalSize {
    width: u16,
    height: u16,
}

impl Input<'_> {
    /// Takes in frames until the client is gone.
    async fn take_in<S: AsyncRead + Unpin>(&mut self, reader: &mut Reader<S>) {
        while let Ok(Some(frame)) = reader.next().await {
            match frame {
                Frame::Data { stream, data, is_last } => self.take_data(stream, &data, is_last).await,
                Frame::Ping { id } => {
                    let _ = self.frames.send(spdy::ping(id)).await;
                }
                Frame::Reset { stream } if self.streams.get("stdin") == Some(&stream) => self.stdin = None,
                Frame::GoAway | Frame::Open { .. } | Frame::Reset { .. } | Frame::Other => {}
            }
        }
    }

    async fn take_data(&mut self, stream: u32, data: &[u8], is_last: bool) {
        if self.streams.get("stdin") == Some(&stream) {
            if let Some(stdin) = &mut self.stdin {
                let written = async {
                    stdin.write_all(data).await?;
                    stdin.flush().await
                };
                // A command need not read to the end.
                if written.await.is_err() || is_last {
                    self.stdin = None;
                }
            }
        } else if self.streams.get("resize") == Some(&stream)
            && let (Some(resize), Ok(size)) = (&self.resize, serde_json::from_slice::<TerminalSize>(data))
        {
            resize(size.width, size.height);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[test]
    fn the_newest_version_is_taken() {
        let chosen = |offered: &[&str]| Version::choose(offered.iter().copied());
        assert_eq!(
            chosen(&["channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"]),
            Some((Version::V3, "v3.channel.k8s.io"))
        );
        assert_eq!(chosen(&["v9.channel.k8s.io"]), None);
    }

    /// What a client is sent that opens these streams and writes to the first of them.
    async fn play(version: Version, code: i32, kinds: &[&str]) -> (Vec<Frame>, Vec<u8>) {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let (stdin, mut written) = tokio::io::duplex(1 << 16);
        let options = ExecOptions { stdin: true, stdout: true, stderr: true, ..ExecOptions::default() };
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        let session = async move {
            let output = vec![Output::Stdout("out".into()), Output::Stderr("err".into())];
            let end = async move {
                let _ = end.await;
                Ok(code)
            };
            Ok(Session {
                stdin: Some(Box::new(stdin)),
                output: stream::iter(output).boxed(),
                resize: None,
                end: Box::pin(end),
            })
        };
        let talk = async {
            for (index, kind) in kinds.iter().enumerate() {
                let stream = 1 + 2 * index as u32;
                let open = spdy::tests::open(stream, &[("streamType", kind)], index == 0);
                client.write_all(&open).await.unwrap();
            }
            client.write_all(&spdy::ping(9)).await.unwrap();
            client.write_all(&spdy::data(3, b"in", true)).await.unwrap();
            let mut input = Vec::new();
            written.read_to_end(&mut input).await.unwrap();
            ended.send(()).unwrap();
            // A client closes when it was told how the command ended; these answers are that.
            let mut sent = vec![0; 1 << 16];
            let mut n_bytes = 0;
            while !spdy::tests::frames(&sent[..n_bytes]).await.iter().any(is_end_of_error) {
                n_bytes += client.read(&mut sent[n_bytes..]).await.unwrap();
            }
            drop(client);
            (spdy::tests::frames(&sent[..n_bytes]).await, input)
        };
        let (_, said) = tokio::join!(serve(server, version, &options, session), talk);
        said
    }

    fn is_end_of_error(frame: &Frame) -> bool {
        matches!(frame, Frame::Data { stream: 1, is_last: true, .. })
    }

    #[tokio::test]
    async fn a_command_has_its_streams_and_its_end() {
        let (sent, input) = play(Version::V4, 3, &["error", "stdin", "stdout", "stderr"]).await;
        assert_eq!(input, b"in");
        assert!(sent.contains(&Frame::Ping { id: 9 }));
        let text = |stream: u32| -> String {
            let data = sent.iter().filter_map(|frame| match frame {
                Frame::Data { stream: of, data, .. } if *of == stream => Some(data),
                _ => None,
            });
            data.map(|data| String::from_utf8_lossy(data).into_owned()).collect()
        };
        assert_eq!((text(5).as_str(), text(7).as_str()), ("out", "err"));
        let status: Value = serde_json::from_str(&text(1)).unwrap();
        assert_eq!(status["details"]["causes"][0]["message"], "3");
    }

    #[tokio::test]
    async fn older_clients_are_told_in_a_text() {
        let (sent, _) = play(Version::V2, 3, &["error", "stdin", "stdout", "stderr"]).await;
        let error = Bytes::from_static(b"command terminated with non-zero exit code: 3");
        assert!(sent.contains(&Frame::Data { stream: 1, data: error, is_last: true }), "{sent:?}");
    }
}
