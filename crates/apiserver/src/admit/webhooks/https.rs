//! One question and one answer over HTTPS. Connections are not kept: a webhook is asked once per write, and one that was
//! replaced since must not be asked through an old connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Caller, Destination};

/// The longest answer that is read: a patch may hold a whole object.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Calls webhooks over the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Https;

impl Caller for Https {
    fn call<'a>(
        &'a self,
        destination: &'a Destination,
        question: Bytes,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Bytes, String>> {
        Box::pin(async move {
            let asked = tokio::time::timeout(timeout, ask(destination, question)).await;
            let answer = asked.unwrap_or_else(|_| Err("context deadline exceeded".into()));
            answer.map_err(|why| format!("Post {:?}: {why}", destination.url))
        })
    }
}

async fn ask(destination: &Destination, question: Bytes) -> Result<Bytes, String> {
    let Destination { url, host, port, server_name, authorities } = destination;
    let tls = krafla_keys::tls::trusting(authorities, None).map_err(|error| format!("caBundle: {error}"))?;
    let tls = TlsConnector::from(Arc::new(tls));
    let name = ServerName::try_from(server_name.clone()).map_err(|error| error.to_string())?;
    let stream = TcpStream::connect((host.as_str(), *port)).await;
    let stream = stream.map_err(|error| format!("dial tcp {host}:{port}: {}", shown(&error)))?;
    let stream = tls.connect(name, stream).await.map_err(|error| format!("tls: {error}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    // The connection ends with the exchange, whichever way that ends.
    let connection = Ended(tokio::spawn(connection));
    let uri: http::Uri = url.parse().map_err(|error| format!("{error}"))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = http::Request::post(path)
        .header(HOST, uri.authority().map_or(server_name.as_str(), |authority| authority.as_str()))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, "krafla-apiserver-admission")
        .body(Full::new(question))
        .map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let code = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    drop(connection);
    let body = body.map_err(|error| format!("the answer cannot be read: {error}"))?.to_bytes();
    if code.is_success() {
        return Ok(body);
    }
    let said: String = String::from_utf8_lossy(&body).chars().take(200).collect();
    Err(format!("the server answered {code}: {said}"))
}

/// A task that ends when nobody waits for it any more.
struct Ended(tokio::task::JoinHandle<hyper::Result<()>>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What Go says when nobody listens, since tests of webhooks compare it.
fn shown(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".into(),
        _ => error.to_string(),
    }
}
