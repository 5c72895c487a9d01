//! Bodies of requests and answers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use krafla_schema::{encode, yaml_out};
use serde_json::Value;

use super::accept::Encoding;
use crate::status::Status;

/// The body of an answer.
pub(super) type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;
/// An answer.
pub(super) type Reply = Response<Body>;

/// The media type of protobuf.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The largest body that is read.
pub(super) const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How much is gathered before it is sent.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// Room for that and for the object that goes beyond it, so that what is gathered need not be moved.
const CHUNK_ROOM_BYTES: usize = CHUNK_BYTES + 8 * 1024;

/// Reads the whole body of a request, which must arrive within a time: as long as it is awaited, nobody else is served
/// in its place.
pub(super) async fn read(body: Incoming, within: Duration) -> Result<Bytes, Status> {
    match tokio::time::timeout(within, Limited::new(body, BODY_BYTES_MAX).collect()).await {
        Err(_) => Err(Status::timeout(format!("the body of the request did not arrive within {within:?}"))),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Status::too_large(format_args!("limit is {BODY_BYTES_MAX}")))
        }
        Ok(Err(error)) => {
            Err(Status::bad_request(format!("the body of the request could not be read: {error}")))
        }
    }
}

/// An answer with a body that is known in full.
pub(super) fn full(code: u16, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()).boxed_unsync());
    *reply.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// An answer in plain text.
pub(super) fn text(code: u16, body: impl Into<Bytes>) -> Reply {
    full(code, "text/plain; charset=utf-8", body)
}

/// An answer that is made while it is sent.
pub(super) fn stream(
    content_type: &'static str,
    chunks: impl Stream<Item = Bytes> + Send + 'static,
) -> Reply {
    use futures_util::StreamExt;
    let frames = chunks.map(|chunk| Ok(Frame::data(chunk)));
    let mut reply = Response::new(StreamBody::new(frames).boxed_unsync());
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// An object that is there as JSON already.
pub(super) fn json(code: u16, body: Bytes) -> Reply {
    full(code, "application/json", body)
}

/// A value.
pub(super) fn value(code: u16, value: &Value, encoding: Encoding) -> Reply {
    match encoding {
        Encoding::Json => json(code, value.to_string().into()),
        Encoding::Yaml => full(code, "application/yaml", yaml_out::write(value)),
        Encoding::Protobuf => match encode::sealed(value) {
            Some(bytes) => full(code, PROTOBUF, bytes),
            None => json(code, value.to_string().into()),
        },
    }
}

/// A refusal. It carries what it says, so that it can still be [`written`] otherwise.
pub(super) fn refusal(status: &Status) -> Reply {
    let mut reply = value(status.code, &status.to_json(), Encoding::Json);
    reply.extensions_mut().insert(status.clone());
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    reply
}

/// A refusal in the encoding that its client wants; other answers are in theirs already.
pub(super) fn written(mut reply: Reply, encoding: Encoding) -> Reply {
    if let Some(status) = reply.extensions_mut().remove::<Status>()
        && encoding != Encoding::Json
    {
        let (head, body) = value(status.code, &status.to_json(), encoding).into_parts();
        *reply.body_mut() = body;
        reply.headers_mut().extend(head.headers);
    }
    reply
}

/// Gathers pieces into chunks worth sending, as they are asked for.
pub(super) fn chunks(
    pieces: impl Iterator<Item = Bytes> + Send + 'static,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let mut pieces = pieces.fuse();
    futures_util::stream::iter(std::iter::from_fn(move || {
        let mut chunk = BytesMut::with_capacity(CHUNK_ROOM_BYTES);
        for piece in pieces.by_ref() {
            chunk.extend_from_slice(&piece);
            if chunk.len() >= CHUNK_BYTES {
                break;
            }
        }
        (!chunk.is_empty()).then(|| chunk.freeze())
    }))
}
