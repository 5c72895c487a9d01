//! Asks a server by gRPC how it is: `grpc.health.v1.Health/Check`, over HTTP/2 without TLS, as a kubelet does.
//!
//! Both messages have one field, so they are written and read here: a framework would be larger than the node.

use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// How much of an answer is read: a good one has seven bytes.
const ANSWER_BYTES_MAX: usize = 4 << 10;
/// What comes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// What a server answers that does not know the service, or the whole protocol.
const UNIMPLEMENTED: &str = "12";

/// Asks how a service of a server is; the empty name is for the server as a whole. An error says what was wrong.
pub(super) async fn check(address: &str, service: &str) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{address}: {error}");
    let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| failed(&error))?;
    // The connection lives as long as somebody asks: it ends with this function.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "krafla-node")
        .body(Full::new(request(service)?))
        .map_err(|error| failed(&error))?;
    let (head, body) = sender.send_request(request).await.map_err(|error| failed(&error))?.into_parts();
    if head.status != StatusCode::OK {
        return Err(format!("gRPC probe failed with HTTP status {}", head.status.as_u16()));
    }
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| failed(&error))?;
    let trailers = body.trailers().cloned().unwrap_or_default();
    judge(&head.headers, &trailers, body.to_bytes())
}

/// The request, with its prefix: field 1, a string.
fn request(service: &str) -> Result<Bytes, String> {
    // A length takes one byte up to there, and no name of a service is longer.
    let length = u8::try_from(service.len()).ok().filter(|length| *length < 128);
    let length = length.ok_or_else(|| "grpc.service is longer than 127 bytes".to_owned())?;
    let field = if length == 0 { Vec::new() } else { [&[0x0a, length], service.as_bytes()].concat() };
    let n_bytes = u32::try_from(field.len()).unwrap_or(u32::MAX);
    Ok([&[0][..], &n_bytes.to_be_bytes(), &field].concat().into())
}

/// What an answer says. How the call went is told after the message, or before it if there is none.
fn judge(headers: &HeaderMap, trailers: &HeaderMap, body: Bytes) -> Result<(), String> {
    let told = |name: &str| trailers.get(name).or(headers.get(name)).and_then(|value| value.to_str().ok());
    match told("grpc-status") {
        Some("0") => {}
        Some(UNIMPLEMENTED) => {
            return Err(
                "this server does not implement the grpc health protocol (grpc.health.v1.Health)".to_owned()
            );
        }
        code => {
            let (code, message) = (code.unwrap_or("missing"), told("grpc-message").unwrap_or_default());
            return Err(format!("health rpc failed: code {code}: {message}"));
        }
    }
    match serving_status(body) {
        Some(1) => Ok(()),
        Some(0) => Err("service unhealthy (responded with \"UNKNOWN\")".to_owned()),
        Some(2) => Err("service unhealthy (responded with \"NOT_SERVING\")".to_owned()),
        Some(3) => Err("service unhealthy (responded with \"SERVICE_UNKNOWN\")".to_owned()),
        Some(other) => Err(format!("service unhealthy (responded with {other})")),
        None => Err("cannot read its answer".to_owned()),
    }
}

/// Field 1 of the answer, a small number; zero is not written.
fn serving_status(mut body: Bytes) -> Option<u8> {
    if body.len() < PREFIX_BYTES || body.get_u8() != 0 {
        return None;
    }
    let n_bytes = usize::try_from(body.get_u32()).ok()?;
    match body.get(..n_bytes)? {
        [] => Some(0),
        [0x08, status] => Some(*status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http::{HeaderValue, Response};
    use http_body_util::StreamBody;
    use hyper::body::{Frame, Incoming};
    use hyper::service::service_fn;

    use super::*;

    /// A server whose service `db` is in this state, and that answers with this code to questions about others.
    async fn server(db: u8, code: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = move |request: Request<Incoming>| async move {
            let is_check = request.uri().path() == "/grpc.health.v1.Health/Check"
                && request.headers()["te"] == "trailers";
            let asked = request.into_body().collect().await.unwrap().to_bytes();
            let is_db = is_check && asked == super::request("db").unwrap();
            let message = Bytes::from(vec![0, 0, 0, 0, 2, 0x08, db]);
            let status = HeaderValue::from_static(if is_db { "0" } else { code });
            let trailers = Frame::trailers([("grpc-status".parse().unwrap(), status)].into_iter().collect());
            let frames = if is_db { vec![Frame::data(message), trailers] } else { vec![trailers] };
            let frames = frames.into_iter().map(Ok::<_, Infallible>);
            Ok::<_, Infallible>(Response::new(StreamBody::new(stream::iter(frames))))
        };
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(http.serve_connection(TokioIo::new(connection), service_fn(answer)));
            }
        });
        address
    }

    #[tokio::test]
    async fn a_server_is_well_when_its_service_serves() {
        assert_eq!(check(&server(1, "5").await, "db").await, Ok(()));
        let unwell = Err("service unhealthy (responded with \"NOT_SERVING\")".to_owned());
        assert_eq!(check(&server(2, "5").await, "db").await, unwell);
        let unknown = Err("health rpc failed: code 5: ".to_owned());
        assert_eq!(check(&server(1, "5").await, "").await, unknown);
        let other = check(&server(1, UNIMPLEMENTED).await, "cache").await.unwrap_err();
        assert!(other.contains("does not implement the grpc health protocol"), "{other}");
    }

    #[tokio::test]
    async fn what_does_not_speak_grpc_is_not_well() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            }
        });
        let refused = check(&address, "").await.unwrap_err();
        assert!(refused.starts_with(&address), "{refused}");
    }

    #[test]
    fn answers_of_all_shapes_are_judged_without_a_panic() {
        let ok: HeaderMap =
            [("grpc-status".parse().unwrap(), HeaderValue::from_static("0"))].into_iter().collect();
        let of = |body: &'static [u8]| judge(&HeaderMap::new(), &ok, Bytes::from_static(body));
        assert_eq!(of(&[0, 0, 0, 0, 2, 8, 1]), Ok(()));
        for body in [
            &[][..],
            &[0, 0, 0, 0],
            &[1, 0, 0, 0, 2, 8, 1],
            &[0, 255, 255, 255, 255, 8, 1],
            &[0, 0, 0, 0, 1, 8],
        ] {
            assert_eq!(of(body), Err("cannot read its answer".to_owned()), "{body:?}");
        }
        assert_eq!(of(&[0, 0, 0, 0, 0]), Err("service unhealthy (responded with \"UNKNOWN\")".to_owned()));
        assert!(request(&"x".repeat(128)).is_err());
        assert_eq!(request("").unwrap(), Bytes::from_static(&[0, 0, 0, 0, 0]));
    }
}
