//! A client that sends exactly what a case says, over HTTP/1.1 and TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use crate::case::Who;

/// How long a server may take to answer. It is long because other work may keep the machine busy.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// What goes wrong is this case's failure, in words.
pub type Outcome<T> = Result<T, String>;

/// An answer, whole.
#[allow(missing_docs, reason = "the names are those of HTTP")]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A server that listens with TLS, and what an administrator needs to be let in.
#[derive(Clone)]
pub struct Target {
    address: SocketAddr,
    token: String,
    limited_token: Option<String>,
    tls: TlsConnector,
}

impl Target {
    /// A server whose certificate one of these authorities has signed, for the address that it listens on.
    pub fn new(address: SocketAddr, authorities_pem: &str, token: &str) -> Target {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities_pem.as_bytes()) {
            roots.add(certificate.expect("a certificate")).expect("an authority");
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = TlsConnector::from(Arc::new(config));
        Target { address, token: token.to_owned(), limited_token: None, tls }
    }

    /// The same server with the token of a user without rights.
    pub fn with_limited(self, token: &str) -> Target {
        Target { limited_token: Some(token.to_owned()), ..self }
    }
}

/// One case's way to the server. The connection is kept between requests.
pub struct Client {
    target: Target,
    kept: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// A client without a connection yet.
    pub fn new(target: Target) -> Client {
        Client { target, kept: None }
    }

    /// The connection of the last request, unless the server has closed it.
    async fn connection(&mut self) -> Outcome<SendRequest<Full<Bytes>>> {
        if let Some(mut kept) = self.kept.take()
            && kept.ready().await.is_ok()
        {
            return Ok(kept);
        }
        self.connect().await
    }

    async fn connect(&self) -> Outcome<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.target.address).await.map_err(|error| error.to_string())?;
        let name = ServerName::from(self.target.address.ip());
        let stream = self.target.tls.connect(name, stream).await.map_err(|error| error.to_string())?;
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        tokio::spawn(connection.with_upgrades());
        Ok(sender)
    }

    /// Sends a request and reads the whole answer.
    pub async fn ask(&mut self, who: Who, request: Request<Bytes>) -> Outcome<Answer> {
        let answered = tokio::time::timeout(ANSWERED_WITHIN, self.ask_for_ever(who, request));
        answered.await.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWERED_WITHIN.as_secs())))
    }

    async fn ask_for_ever(&mut self, who: Who, request: Request<Bytes>) -> Outcome<Answer> {
        let mut sender = self.connection().await?;
        let response =
            sender.send_request(self.signed(who, request)).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        // After an upgrade a connection has another use, and one whose body was not read to its end is closed.
        if ![101, 413].contains(&head.status.as_u16()) {
            self.kept = Some(sender);
        }
        Ok(Answer { code: head.status.as_u16(), headers: head.headers, body })
    }

    /// Opens a watch on a connection of its own.
    pub async fn watch(&self, who: Who, request: Request<Bytes>) -> Outcome<Result<Watch, Answer>> {
        let mut sender = self.connect().await?;
        let response =
            sender.send_request(self.signed(who, request)).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        if head.status != 200 {
            let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
            return Ok(Err(Answer { code: head.status.as_u16(), headers: head.headers, body }));
        }
        let (events, received) = mpsc::unbounded_channel();
        let pump = tokio::spawn(async move {
            pump(body, events).await;
            drop(sender);
        });
        Ok(Ok(Watch { headers: head.headers, received, pump }))
    }

    fn signed(&self, who: Who, request: Request<Bytes>) -> Request<Full<Bytes>> {
        let token = match who {
            Who::Admin => Some(self.target.token.as_str()),
            Who::Wrong => Some("not-a-token"),
            Who::Limited => self.target.limited_token.as_deref(),
            Who::Nobody => None,
        };
        let (mut head, body) = request.into_parts();
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().expect("tokens are letters");
            head.headers.insert(http::header::AUTHORIZATION, value);
        }
        head.headers.insert(http::header::HOST, "localhost".parse().expect("a name"));
        head.headers.entry(http::header::USER_AGENT).or_insert("golden/1.0".parse().expect("a name"));
        Request::from_parts(head, Full::new(body))
    }
}

/// An open watch.
pub struct Watch {
    /// The headers of the answer that opened it.
    pub headers: HeaderMap,
    received: mpsc::UnboundedReceiver<Value>,
    pump: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

/// Hands on events, one a line, until the stream ends.
async fn pump(mut body: Incoming, events: mpsc::UnboundedSender<Value>) {
    let mut buffer = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let Ok(event) = serde_json::from_slice(&line) else { return };
            if events.send(event).is_err() {
                return;
            }
        }
    }
}

/// How much of a stream is to be read.
pub struct Reading {
    /// How many events to wait for.
    pub count: usize,
    /// Whether to read until the server ends the stream.
    pub until_closed: bool,
    /// Whether bookmarks count as events.
    pub keeps_bookmarks: bool,
    /// How long to wait for the events.
    pub patience: Duration,
    /// How long to wait for events that should not come.
    pub settle: Duration,
}

impl Watch {
    /// The events, and whether the stream has ended.
    pub async fn read(&mut self, reading: &Reading) -> (Vec<Value>, bool) {
        let mut events = Vec::new();
        let deadline = Instant::now() + reading.patience;
        loop {
            let is_full = events.len() >= reading.count && !reading.until_closed;
            let until = if is_full { Instant::now() + reading.settle } else { deadline };
            match tokio::time::timeout_at(until, self.received.recv()).await {
                Err(_) => return (events, false),
                Ok(None) => return (events, true),
                Ok(Some(event)) if reading.keeps_bookmarks || !is_plain_bookmark(&event) => {
                    events.push(event)
                }
                Ok(Some(_)) => {}
            }
        }
    }
}

/// A bookmark other than the one that ends the initial events: the server sends them when it likes.
fn is_plain_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && !event.to_string().contains("k8s.io/initial-events-end")
}
