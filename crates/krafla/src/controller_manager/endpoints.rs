//! What a manager tells about itself over HTTP: whether it lives, whether it acts, and what it has counted.
//!
//! Two addresses as in Volcano's manager, because one is for the cluster's probes and the other for whoever draws
//! dashboards. Health is told over TLS if there are files for that. Nothing can be changed here.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::rt::{TokioIo, TokioTimer};
use krafla_runtime::metrics::Metrics;
use krafla_runtime::{Clock, SystemClock};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::tls;
use crate::cli::Endpoints as Flags;

/// A probe and a scrape or two are all that is expected.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may last: a client that wants more comes again.
const CONNECTION_MAX: Duration = Duration::from_secs(60);

/// How long to wait after a connection that could not be accepted.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// How far a manager is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The cluster has not answered yet.
    Connecting,
    /// Another one acts.
    Waiting,
    Acting,
}

/// What there is to be told.
#[derive(Clone)]
struct Told {
    page: Page,
    stage: watch::Receiver<Stage>,
    metrics: Arc<Metrics>,
}

/// What is told at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Health,
    Metrics,
}

/// Listens where the flags say, for as long as the returned tasks are kept.
pub(super) async fn serve(
    flags: &Flags,
    stage: &watch::Receiver<Stage>,
    metrics: &Arc<Metrics>,
) -> Result<JoinSet<()>> {
    let mut tasks = JoinSet::new();
    let tls = tls::acceptor(&flags.tls)?;
    let wanted = [
        (flags.enable_healthz, Page::Health, flags.healthz_address, "--healthz-address", tls),
        (flags.enable_metrics, Page::Metrics, flags.listen_address, "--listen-address", None),
    ];
    for (_, page, address, flag, tls) in wanted.into_iter().filter(|(is_enabled, ..)| *is_enabled) {
        let listener = listen(address).await.with_context(|| format!("cannot use {flag} {address}"))?;
        tracing::info!(address = %listener.local_addr()?, "{page:?} is told");
        let told = Told { page, stage: stage.clone(), metrics: metrics.clone() };
        tasks.spawn(accept(listener, told, tls));
    }
    Ok(tasks)
}

/// Where no host is named, both families of addresses are meant; not every machine has both.
async fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error) if address.is_ipv6() && error.kind() == std::io::ErrorKind::Unsupported => {
            TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        listener => listener,
    }
}

async fn accept(listener: TcpListener, told: Told, tls: Option<TlsAcceptor>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = greet(stream, told.clone(), tls.clone());
                connections.spawn(tokio::time::timeout(CONNECTION_MAX, connection));
            }
            // Too many open files, most likely: wait for some to be closed.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

async fn greet(stream: TcpStream, told: Told, tls: Option<TlsAcceptor>) {
    let Some(tls) = tls else { return connection(stream, told).await };
    match tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
        Ok(Ok(stream)) => connection(stream, told).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, told: Told) {
    let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
        let answer = told.answer(request.method(), request.uri().path());
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    let served = http
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

impl Told {
    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let (status, text) = match (self.page, method, path) {
            (_, method, _) if method != Method::GET && method != Method::HEAD => {
                (405, "only GET is supported\n".to_owned())
            }
            (Page::Health, _, "/healthz" | "/healthz/ping" | "/livez") => (200, "ok".to_owned()),
            (Page::Health, _, "/readyz") => readiness(*self.stage.borrow()),
            (Page::Metrics, _, "/metrics") => (200, self.metrics.page(SystemClock.now())),
            (Page::Health, ..) => (404, "unknown path: use /healthz, /livez or /readyz\n".to_owned()),
            (Page::Metrics, ..) => (404, "unknown path: use /metrics\n".to_owned()),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
        let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
        response
    }
}

/// One that waits for its turn is ready: it could act at once.
fn readiness(stage: Stage) -> (u16, String) {
    match stage {
        Stage::Connecting => (503, "the cluster has not answered yet\n".to_owned()),
        Stage::Waiting => (200, "ok: waiting for the lease\n".to_owned()),
        Stage::Acting => (200, "ok: acting\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_tells_its_own_page_and_names_it_to_those_who_are_lost() {
        let (stage, seen) = watch::channel(Stage::Connecting);
        let status = |page, method: Method, path| {
            let told = Told { page, stage: seen.clone(), metrics: Arc::default() };
            told.answer(&method, path).status().as_u16()
        };
        assert_eq!(status(Page::Health, Method::GET, "/healthz"), 200, "it lives, though it is not ready");
        assert_eq!(status(Page::Health, Method::GET, "/readyz"), 503);
        stage.send_replace(Stage::Waiting);
        assert_eq!(status(Page::Health, Method::GET, "/readyz"), 200, "it could act at once");
        stage.send_replace(Stage::Acting);
        assert_eq!(status(Page::Health, Method::HEAD, "/readyz"), 200);
        assert_eq!(status(Page::Health, Method::GET, "/metrics"), 404);
        assert_eq!(status(Page::Metrics, Method::GET, "/metrics"), 200);
        assert_eq!(status(Page::Metrics, Method::GET, "/healthz"), 404);
        assert_eq!(status(Page::Metrics, Method::POST, "/metrics"), 405);
    }
}
