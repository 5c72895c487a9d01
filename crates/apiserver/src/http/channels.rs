//! The streams of a command over one WebSocket. The first byte of each message names the stream.
//!
//! ```text
//!   client ── 0 stdin, 4 size of the terminal, 255 end of a stream ──> server
//!          <── 1 stdout, 2 stderr, 3 how it ended (a Status) ─────────
//! ```

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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

use super::exec::{Output, Session};
use crate::status::Status;
use krafla_cluster::ExecOptions;

/// The longest message that is taken. Clients send at most 32 KiB at once.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// How long output is waited for after a command has ended: something that it started may never close it.
pub(super) const DRAIN: Duration = Duration::from_secs(1);
/// How long a client has to say goodbye, which it does at once.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// A version of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// What a client speaks that offers nothing: as `V1`.
    Unnamed,
    /// As `V4`; how a command ended is a text, and there is none if it ended well.
    V1,
    /// As `V1`, in messages of text: the number of the stream as a digit, then the data in base64.
    V1Base64,
    /// As described above, without the end of a stream.
    V4,
    /// As `V4`, in messages of text.
    V4Base64,
    /// As described above.
    V5,
}

impl Protocol {
    const NAMED: [Protocol; 5] =
        [Protocol::V5, Protocol::V4, Protocol::V4Base64, Protocol::V1, Protocol::V1Base64];

    pub(super) fn of_name(name: &str) -> Option<Protocol> {
        Protocol::NAMED.into_iter().find(|protocol| protocol.name() == name)
    }

    /// All names, for messages.
    pub(super) fn names() -> String {
        Protocol::NAMED.map(Protocol::name).join(", ")
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Protocol::Unnamed => "",
            Protocol::V1 => "channel.k8s.io",
            Protocol::V1Base64 => "base64.channel.k8s.io",
            Protocol::V4 => "v4.channel.k8s.io",
            Protocol::V4Base64 => "v4.base64.channel.k8s.io",
            Protocol::V5 => "v5.channel.k8s.io",
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Protocol::V1Base64 | Protocol::V4Base64)
    }

    /// A message to a client.
    pub(super) fn message(self, channel: u8, data: &[u8]) -> Message {
        if self.is_text() {
            let digit = char::from(b'0'.saturating_add(channel));
            return Message::text(format!("{digit}{}", STANDARD.encode(data)));
        }
        let mut message = BytesMut::with_capacity(data.len().saturating_add(1));
        message.put_u8(channel);
        message.extend_from_slice(data);
        Message::Binary(message.freeze())
    }

    /// The channel and the data of a client's message; none if it has neither.
    pub(super) fn read(self, message: Message) -> Option<(u8, Bytes)> {
        let mut data = match message {
            Message::Binary(data) => data,
            Message::Text(text) => text.into(),
            _ => return None,
        };
        let channel = bytes::Buf::try_get_u8(&mut data).ok()?;
        if self.is_text() {
            return Some((channel.checked_sub(b'0')?, STANDARD.decode(&data).ok()?.into()));
        }
        Some((channel, data))
    }

    /// How a command ended, as this protocol says it.
    fn end(self, status: &Value) -> String {
        match self {
            Protocol::V4 | Protocol::V4Base64 | Protocol::V5 => status.to_string(),
            Protocol::Unnamed | Protocol::V1 | Protocol::V1Base64 if status["status"] == "Success" => {
                String::new()
            }
            Protocol::Unnamed | Protocol::V1 | Protocol::V1Base64 => {
                status["message"].as_str().unwrap_or_default().to_owned()
            }
        }
    }
}

/// The socket of a client that has agreed on a WebSocket.
pub(super) async fn accept(socket: Upgraded) -> WebSocketStream<TokioIo<Upgraded>> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    WebSocketStream::from_raw_socket(TokioIo::new(socket), Role::Server, Some(config)).await
}

/// Connects a client with a command until either ends.
pub(super) async fn serve(
    socket: Upgraded,
    protocol: Protocol,
    options: &ExecOptions,
    session: impl Future<Output = Result<Session, Status>>,
) {
    let (mut sink, mut source) = accept(socket).await.split();
    let outcome = match session.await {
        Ok(session) => {
            let Session { stdin, output, resize, end } = session;
            let mut input = Input { protocol, stdin: stdin.filter(|_| options.stdin), resize };
            tokio::select! {
                outcome = pass_on(&mut sink, output, end, (protocol, options)) => outcome,
                () = input.take_in(&mut source) => return,
            }
        }
        Err(status) => Ok(status.to_json()),
    };
    let Ok(status) = outcome else { return };
    let farewell = async {
        let end = protocol.end(&status);
        if !end.is_empty() {
            sink.send(protocol.message(ERROR, end.as_bytes())).await?;
        }
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

/// Sends what the command writes until it has ended, and returns how; an error if the client is gone.
async fn pass_on(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    mut output: impl Stream<Item = Output> + Unpin,
    mut end: impl Future<Output = Result<i32, String>> + Unpin,
    way: (Protocol, &ExecOptions),
) -> Result<Value, Error> {
    let (protocol, options) = way;
    // The first message tells the client that it is connected.
    sink.send(protocol.message(if options.stdout { STDOUT } else { ERROR }, b"")).await?;
    let mut is_open = true;
    let end = loop {
        tokio::select! {
            chunk = output.next(), if is_open => match chunk {
                Some(chunk) => send(sink, chunk, way).await?,
                None => is_open = false,
            },
            end = &mut end => break end,
        }
    };
    let drain = async {
        while let Some(chunk) = output.next().await {
            send(sink, chunk, way).await?;
        }
        Ok::<(), Error>(())
    };
    tokio::time::timeout(DRAIN, drain).await.unwrap_or(Ok(()))?;
    Ok(status_of(end))
}

async fn send(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    output: Output,
    (protocol, options): (Protocol, &ExecOptions),
) -> Result<(), Error> {
    match output {
        Output::Stdout(data) if options.stdout => sink.send(protocol.message(STDOUT, &data)).await,
        Output::Stderr(data) if options.stderr => sink.send(protocol.message(STDERR, &data)).await,
        Output::Stdout(_) | Output::Stderr(_) => Ok(()),
    }
}

/// How a command ended, in the words of a kubelet.
pub(super) fn status_of(end: Result<i32, String>) -> Value {
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
                Message::Close(_) => return,
                // The library answers pings.
                message => {
                    if let Some((channel, data)) = self.protocol.read(message) {
                        self.take_data(channel, data).await;
                    }
                }
            }
        }
    }

    async fn take_data(&mut self, channel: u8, data: Bytes) {
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

    #[test]
    fn each_protocol_reads_what_it_writes() {
        for protocol in Protocol::NAMED {
            let read = protocol.read(protocol.message(STDERR, b"a\0b"));
            assert_eq!(read, Some((STDERR, Bytes::from_static(b"a\0b"))), "{}", protocol.name());
        }
        assert_eq!(Protocol::V4Base64.message(STDOUT, b"hi"), Message::text("1aGk="));
        assert_eq!(Protocol::V1.read(Message::text("")), None);
        assert_eq!(Protocol::V1Base64.read(Message::text("0?")), None);
    }

    #[test]
    fn older_protocols_say_in_a_text_how_a_command_ended() {
        let end = |protocol: Protocol, code: i32| protocol.end(&status_of(Ok(code)));
        assert_eq!(end(Protocol::V1, 0), "");
        assert_eq!(end(Protocol::V1Base64, 3), "command terminated with non-zero exit code: 3");
        assert!(end(Protocol::V4Base64, 0).contains("Success"));
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
