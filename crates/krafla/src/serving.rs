//! Serves HTTP on a listener, within limits.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How long to wait after a connection that could not be accepted.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Limits on clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at a time; more have to wait.
    pub(crate) connections_max: usize,
    /// Time for a TLS handshake, and between two requests of a connection.
    pub(crate) patience: Duration,
    /// Age at which a connection is closed; a request under way is answered first.
    pub(crate) connection_max: Duration,
}

/// What answers requests.
pub(crate) trait Handler: Clone + Send + 'static {
    /// The answer to a request.
    fn answer(self, request: Request<Incoming>) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// Listens at an address. Without a host, both families of addresses are meant; not every machine has both.
pub(crate) async fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error) if address.is_ipv6() && error.kind() == std::io::ErrorKind::Unsupported => {
            TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        listener => listener,
    }
}

/// Answers requests until `stopped` becomes true, then finishes those under way.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    handler: impl Handler,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(), if connections.len() < limits.connections_max => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stopped.wait_for(|is_stopped| *is_stopped) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (handler, tls, stopped) = (handler.clone(), tls.clone(), stopped.clone());
                connections.spawn(greet(stream, tls, limits, handler, stopped));
            }
            // Too many open files, most likely: wait for some to be closed.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn greet(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    handler: impl Handler,
    stopped: watch::Receiver<bool>,
) {
    let Some(tls) = tls else { return connection(stream, limits, handler, stopped).await };
    match tokio::time::timeout(limits.patience, tls.accept(stream)).await {
        Ok(Ok(stream)) => connection(stream, limits, handler, stopped).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    limits: Limits,
    handler: impl Handler,
    mut stopped: watch::Receiver<bool>,
) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(handler.answer(request).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    let served = http
        .timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = async {
            tokio::select! {
                () = tokio::time::sleep(limits.connection_max) => {}
                // A sender that is gone has stopped.
                _ = stopped.wait_for(|is_stopped| *is_stopped) => {}
            }
        } => {
            served.as_mut().graceful_shutdown();
            // A client that reads nothing must not keep the connection.
            tokio::time::timeout(limits.patience, served).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
