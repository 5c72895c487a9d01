//! Answers that are streams, over a WebSocket: watches and logs. Browsers, and clients that use the same library for all
//! they follow, ask for them so.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::{SinkExt, Stream, StreamExt};
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE,
};
use http_body_util::BodyDataStream;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::body::{self, Reply};
use super::exec::accept_key;
use super::unread::READ_WITHIN;
use crate::status::Status;

/// The longest message that is taken. Clients have nothing to say here.
const MESSAGE_BYTES_MAX: usize = 4096;

/// A request that may want to become a WebSocket.
pub(super) struct Upgrade {
    /// The headers of the request.
    pub(super) headers: HeaderMap,
    /// The connection itself.
    pub(super) connection: Option<OnUpgrade>,
}

/// How a stream is cut into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Messages {
    /// Each line is a text.
    Lines,
    /// Each piece as it is, after an empty message.
    Binary,
    /// Each piece in base64, after an empty message.
    Base64,
}

impl Upgrade {
    /// Whether the client asks for a WebSocket.
    pub(super) fn is_asked(&self) -> bool {
        let has = |name: &str, word: &str| {
            let value = super::header(&self.headers, name).unwrap_or_default();
            value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
        };
        has(UPGRADE.as_str(), "websocket") && has(CONNECTION.as_str(), "upgrade")
    }

    /// Sends lines of text, each as a message. Whatever single protocol the client names is agreed to: it says nothing
    /// about lines.
    pub(super) fn lines(self, lines: impl Stream<Item = Bytes> + Send + 'static) -> Result<Reply, Status> {
        let offered = self.offered();
        if offered.len() > 1 {
            return Err(Status::bad_request("a watch has one WebSocket protocol at most"));
        }
        let protocol = offered.into_iter().next();
        self.answer(protocol, lines, Messages::Lines)
    }

    /// Sends the body of an answer in place of the answer.
    pub(super) fn body(self, reply: Reply) -> Result<Reply, Status> {
        let offered = self.offered();
        let known = ["binary.k8s.io", "base64.binary.k8s.io"];
        let protocol = offered.iter().find(|name| known.contains(&name.as_str())).cloned();
        if protocol.is_none() && !offered.is_empty() {
            let offered = offered.join(", ");
            return Err(Status::bad_request(format!("requested protocol(s) are not supported: [{offered}]")));
        }
        let is_text = protocol.as_deref() == Some("base64.binary.k8s.io");
        let pieces = BodyDataStream::new(reply.into_body()).filter_map(async |piece| piece.ok());
        self.answer(protocol, pieces, if is_text { Messages::Base64 } else { Messages::Binary })
    }

    fn offered(&self) -> Vec<String> {
        protocols(&self.headers).into_iter().filter(|name| !name.starts_with(BEARER)).collect()
    }

    fn answer(
        self,
        protocol: Option<String>,
        pieces: impl Stream<Item = Bytes> + Send + 'static,
        messages: Messages,
    ) -> Result<Reply, Status> {
        let reply = handshake(&self.headers, protocol.as_deref())?;
        let Some(connection) = self.connection else {
            return Err(Status::bad_request("this connection cannot be upgraded: use HTTP/1.1"));
        };
        tokio::spawn(async move {
            match connection.await {
                Ok(socket) => {
                    let config = WebSocketConfig::default()
                        .max_message_size(Some(MESSAGE_BYTES_MAX))
                        .max_frame_size(Some(MESSAGE_BYTES_MAX));
                    let socket =
                        WebSocketStream::from_raw_socket(TokioIo::new(socket), Role::Server, Some(config))
                            .await;
                    send_all(socket, std::pin::pin!(pieces), messages).await;
                }
                Err(error) => tracing::debug!(%error, "a client left before it was connected"),
            }
        });
        Ok(reply)
    }
}

/// What the name of a protocol begins with that carries a token.
const BEARER: &str = "base64url.bearer.authorization.k8s.io.";

fn protocols(headers: &HeaderMap) -> Vec<String> {
    let offered = super::header(headers, SEC_WEBSOCKET_PROTOCOL.as_str()).unwrap_or_default();
    offered.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The token among the protocols of a WebSocket: browsers cannot send it in another header.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<String> {
    let protocols = protocols(headers);
    let encoded = protocols.iter().find_map(|name| name.strip_prefix(BEARER))?;
    String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()
}

/// The answer that makes the connection a WebSocket.
fn handshake(headers: &HeaderMap, protocol: Option<&str>) -> Result<Reply, Status> {
    let key = super::header(headers, SEC_WEBSOCKET_KEY.as_str()).unwrap_or_default();
    let (true, Ok(accept)) = (!key.is_empty(), HeaderValue::from_str(&accept_key(&key))) else {
        return Err(Status::bad_request("a WebSocket needs a Sec-WebSocket-Key"));
    };
    let mut reply = body::text(101, "");
    let headers = reply.headers_mut();
    headers.clear();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(Ok(protocol)) = protocol.map(HeaderValue::from_str) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(reply)
}

/// Sends a stream to its end, or until the client leaves.
async fn send_all<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    mut pieces: impl Stream<Item = Bytes> + Unpin,
    messages: Messages,
) {
    let (mut sink, mut source) = socket.split();
    let sending = async {
        if messages != Messages::Lines {
            sink.send(one(messages, Bytes::new())).await?;
        }
        while let Some(piece) = pieces.next().await {
            let writing = async {
                for message in cut(messages, &piece) {
                    sink.feed(message).await?;
                }
                sink.flush().await
            };
            // A watch is read as it arrives; the log of a pod may be paused.
            if messages == Messages::Lines {
                let Ok(written) = tokio::time::timeout(READ_WITHIN, writing).await else {
                    tracing::debug!("a client does not read its watch");
                    return Ok(());
                };
                written?;
            } else {
                writing.await?;
            }
        }
        let normal = CloseFrame { code: CloseCode::Normal, reason: Default::default() };
        sink.send(Message::Close(Some(normal))).await
    };
    // What a client says means nothing here; that it says no more means that it is gone.
    let leaving = async { while let Some(Ok(_)) = source.next().await {} };
    tokio::select! {
        sent = sending => if let Err(error) = sent {
            tracing::debug!(%error, "a client left its stream");
        },
        () = leaving => {}
    }
}

fn cut(messages: Messages, piece: &Bytes) -> Vec<Message> {
    if messages != Messages::Lines {
        return vec![one(messages, piece.clone())];
    }
    piece.split_inclusive(|byte| *byte == b'\n').map(|line| one(messages, piece.slice_ref(line))).collect()
}

fn one(messages: Messages, piece: Bytes) -> Message {
    match messages {
        Messages::Lines => Message::text(String::from_utf8_lossy(&piece).into_owned()),
        Messages::Binary => Message::Binary(piece),
        Messages::Base64 => Message::text(STANDARD.encode(&piece)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upgrade(headers: &[(&'static str, &'static str)]) -> Upgrade {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
        Upgrade { headers: headers.collect(), connection: None }
    }

    #[test]
    fn a_websocket_is_asked_for_by_two_headers() {
        assert!(upgrade(&[("upgrade", "WebSocket"), ("connection", "keep-alive, Upgrade")]).is_asked());
        assert!(!upgrade(&[("upgrade", "SPDY/3.1"), ("connection", "Upgrade")]).is_asked());
        assert!(!upgrade(&[("upgrade", "websocket")]).is_asked());
    }

    #[test]
    fn the_answer_names_the_protocol_that_was_agreed_on() {
        let headers = upgrade(&[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")]).headers;
        let reply = handshake(&headers, Some("base64.binary.k8s.io")).unwrap();
        assert_eq!(reply.status(), 101);
        assert_eq!(reply.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(reply.headers()[SEC_WEBSOCKET_PROTOCOL], "base64.binary.k8s.io");
        assert!(!handshake(&headers, None).unwrap().headers().contains_key(SEC_WEBSOCKET_PROTOCOL));
        assert_eq!(handshake(&HeaderMap::new(), None).map_err(|status| status.code).err(), Some(400));
    }

    #[test]
    fn a_token_among_the_protocols_is_not_one_of_them() {
        let bearer = "base64url.bearer.authorization.k8s.io.c2VjcmV0, base64.binary.k8s.io";
        let asked = upgrade(&[("sec-websocket-protocol", bearer)]);
        assert_eq!(bearer_token(&asked.headers).as_deref(), Some("secret"));
        assert_eq!(asked.offered(), ["base64.binary.k8s.io"]);
        assert_eq!(bearer_token(&HeaderMap::new()), None);
    }

    #[test]
    fn lines_are_messages_and_other_pieces_stay_as_they_are() {
        let piece = Bytes::from_static(b"one\ntwo\n");
        assert_eq!(cut(Messages::Lines, &piece), [Message::text("one\n"), Message::text("two\n")]);
        assert_eq!(cut(Messages::Binary, &piece), [Message::Binary(piece.clone())]);
        assert_eq!(cut(Messages::Base64, &piece), [Message::text("b25lCnR3bwo=")]);
    }
}
