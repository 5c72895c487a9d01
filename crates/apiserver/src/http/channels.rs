//! The streams of a command over one WebSocket. The first byte of each message names the stream.
//!
//! ```text
//!   client ── 0 stdin, 4 size of the terminal, 255 end of a stream ──> server
//!          <── 1 stdout, 2 stderr, 3 how it ended (a Status) ─────────
//! ```

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::exec::{ExecOptions, Output, Session};
use crate::status::Status;

/// The longest message that is taken. Clients send at most 32 KiB at once.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// How long output is waited for after a command has ended: something that it started may never close it.
const DRAIN: Duration = Duration::from_secs(1);
/// How long a client has to say goodbye, which it does at once.
const FAREWELL: Duration = Duration::from_secs(5);

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// A version of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// As described above, without the end of a stream.
    V4,
    /// As described above.
    V5,
}

impl Protocol {
    pub(super) fn of_name(name: &str) -> Option<Protocol> {
        [Protocol::V4, Protocol::V5].into_iter().find(|protocol| protocol.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Protocol::V4 => "v4.channel.k8s.io",
            Protocol::V5 => "v5.channel.k8s.io",
        }
    }
}

/// Connects a client with a command until either ends.
pub(super) async fn serve(
    socket: Upgraded,
    protocol: Protocol,
    options: &ExecOptions,
    session: impl Future<Output = Result<Session, Status>>,
) {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(socket), Role::Server, Some(config)).await;
    let (mut sink, mut source) = socket.split();
    let outcome = match session.await {
        Ok(session) => {
            let Session { stdin, output, resize, end } = session;
            let mut input = Input { protocol, stdin: stdin.filter(|_| options.stdin), resize };
            tokio::select! {
                outcome = pass_on(&mut sink, output, end, options) => outcome,
                () = input.take_in(&mut source) => return,
            }
        }
        Err(status) => Ok(status.to_json()),
    };
    let Ok(status) = outcome else { return };
    let farewell = async {
        sink.send(message(ERROR, status.to_string().as_bytes())).await?;
        // Clients take any other code for a failure, whatever the Status says.
        let normal = CloseFrame { code: CloseCode::Normal, reason: Default::default() };
        sink.send(Message::Close(Some(normal))).await?;
        // Closing with something unread would make the client's side forget what it has not read yet.
        while source.next().await.is_some() {}
        Ok::<(), Error>(())
    };
    // A client that does not listen to the end does not miss it.
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

fn message(channel: u8, data: &[u8]) -> Message {
    let mut message = BytesMut::with_capacity(data.len().saturating_add(1));
    message.put_u8(channel);
    message.extend_from_slice(data);
    Message::Binary(message.freeze())
}

/// Sends what the command writes until it has ended, and returns how; an error if the client is gone.
async fn pass_on(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    mut output: impl Stream<Item = Output> + Unpin,
    mut end: impl Future<Output = Result<i32, String>> + Unpin,
    options: &ExecOptions,
) -> Result<Value, Error> {
    // The first message tells the client that it is connected.
    sink.send(message(if options.stdout { STDOUT } else { ERROR }, b"")).await?;
    let mut is_open = true;
    let end = loop {
        tokio::select! {
            chunk = output.next(), if is_open => match chunk {
                Some(chunk) => send(sink, chunk, options).await?,
                None => is_open = false,
            },
            end = &mut end => break end,
        }
    };
    let drain = async {
        while let Some(chunk) = output.next().await {
            send(sink, chunk, options).await?;
        }
        Ok::<(), Error>(())
    };
    tokio::time::timeout(DRAIN, drain).await.unwrap_or(Ok(()))?;
    Ok(status_of(end))
}

async fn send(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    output: Output,
    options: &ExecOptions,
) -> Result<(), Error> {
    match output {
        Output::Stdout(data) if options.stdout => sink.send(message(STDOUT, &data)).await,
        Output::Stderr(data) if options.stderr => sink.send(message(STDERR, &data)).await,
        Output::Stdout(_) | Output::Stderr(_) => Ok(()),
    }
}

/// How a command ended, in the words of a kubelet.
fn status_of(end: Result<i32, String>) -> Value {
    match end {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: {code}"),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(why) => Status::internal(&why).to_json(),
    }
}

/// Where a client's messages go.
struct Input {
    protocol: Protocol,
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
}

/// The size of a terminal, as clients send it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TerminalSize {
    width: u16,
    height: u16,
}

impl Input {
    /// Returns when the client is gone.
    async fn take_in(&mut self, source: &mut (impl Stream<Item = Result<Message, Error>> + Unpin)) {
        while let Some(Ok(message)) = source.next().await {
            match message {
                Message::Binary(data) => self.take_message(data).await,
                Message::Close(_) => return,
                // The library answers pings; this protocol has no texts.
                Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    async fn take_message(&mut self, mut data: Bytes) {
        let Ok(channel) = bytes::Buf::try_get_u8(&mut data) else { return };
        match (channel, &mut self.stdin) {
            (STDIN, Some(stdin)) => {
                let written = async {
                    stdin.write_all(&data).await?;
                    stdin.flush().await
                };
                // A command need not read to the end.
                if written.await.is_err() {
                    self.stdin = None;
                }
            }
            (CLOSE, Some(_)) if self.protocol == Protocol::V5 && *data == [STDIN] => self.stdin = None,
            (RESIZE, _) => {
                if let (Some(resize), Ok(size)) =
                    (&self.resize, serde_json::from_slice::<TerminalSize>(&data))
                {
                    resize(size.width, size.height);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_is_told_as_a_cause() {
        assert_eq!(status_of(Ok(0))["status"], "Success");
        let status = status_of(Ok(3));
        assert_eq!(status["reason"], "NonZeroExitCode");
        assert_eq!(status["details"]["causes"][0], json!({"reason": "ExitCode", "message": "3"}));
        let status = status_of(Err("container \"main\" has ended".to_owned()));
        assert_eq!(status["message"], "Internal error occurred: container \"main\" has ended");
    }

    #[tokio::test]
    async fn messages_go_where_their_first_byte_says() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let (sizes, said) = std::sync::mpsc::channel();
        let resize = move |columns, rows| sizes.send((columns, rows)).unwrap();
        let mut input =
            Input { protocol: Protocol::V5, stdin: Some(Box::new(ours)), resize: Some(Box::new(resize)) };
        let messages = [
            &b"\0one "[..],
            b"\0two",
            b"\x04{\"Width\":80,\"Height\":25}",
            b"\x04?",
            b"",
            b"\x09x",
            b"\xff\0",
        ];
        let messages = messages.map(|data| Ok(Message::Binary(Bytes::from_static(data))));
        input.take_in(&mut futures_util::stream::iter(messages)).await;
        let mut written = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut theirs, &mut written).await.unwrap();
        assert_eq!(written, "one two", "and the end of the stream was passed on");
        assert_eq!(said.try_iter().collect::<Vec<_>>(), [(80, 25)]);
    }
}
