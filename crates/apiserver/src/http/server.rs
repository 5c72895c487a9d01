//! Listening, TLS, and ending in order.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use krafla_admission::rbac::User;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::aggregation::Aggregation;
use super::audit::{Audit, AuditConfig};
use super::auth::Credentials;
use super::body::Body;
use super::certificates::{FrontProxy, Identity, Shown, keep_good};
use super::connections::{Busy, Connection, Connections, IDLE_MAX, room_for_connections};
use super::metrics::Metrics;
use super::unread::{Outbox, PIECE_BYTES, READ_WITHIN, Reading};
use super::{BODY_WITHIN, Context, IN_FLIGHT_MAX, Peer, PodAccess, stopped, x509};
use crate::authorizer::AuthorizationMode;
use crate::ops::Api;
use crate::tokens::Tokens;

/// The port at which clients look for a server of which they know the name alone.
const HTTPS: u16 = 443;
/// How many addresses are tried for it.
const BY_NAME_TRIES: u32 = 16;
/// How long a client may take to agree on encryption.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of an answer is held for a client that does not read it; heads of requests are no longer either.
const BUFFER_BYTES: usize = 128 * 1024;
/// How long connections have to end what they are doing when the server stops.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Where and how to listen.
#[derive(Clone)]
pub struct ServerConfig {
    /// The address; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// Where certificates and the token are kept; without it they last as long as the server.
    pub data_dir: Option<PathBuf>,
    /// Access to what runs in pods.
    pub pod_access: Option<Arc<dyn PodAccess>>,
    /// What makes and knows the tokens of service accounts.
    pub tokens: Arc<Tokens>,
    /// What the controllers in this process count, to be shown beside the server's own numbers.
    pub controllers: Option<Arc<dyn krafla_metrics::Page>>,
    /// Where to listen on the port of HTTPS too, for clients that find the server by a name alone.
    pub by_name: Option<Ipv4Addr>,
    /// Whether requests without a token and a certificate are looked at at all; what they may do is up to roles.
    pub allows_anonymous: bool,
    /// Users with tokens of their own, beside the administrator.
    pub users: Vec<(String, Arc<User>)>,
    /// Where every request is noted.
    pub audit: Option<AuditConfig>,
    /// How long a client may leave an answer unread, a watch included, before its connection is closed.
    pub read_within: Duration,
}

impl ServerConfig {
    /// A server without pods, files and other users.
    pub fn new(listen: SocketAddr, tokens: Arc<Tokens>) -> ServerConfig {
        ServerConfig {
            listen,
            data_dir: None,
            pod_access: None,
            tokens,
            controllers: None,
            by_name: None,
            allows_anonymous: true,
            users: Vec::new(),
            audit: None,
            read_within: READ_WITHIN,
        }
    }
}

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The files of the data directory cannot be written.
    #[error("cannot write certificates to {}", dir.display())]
    Files {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The audit log cannot be opened.
    #[error("cannot open the audit log {}", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Certificates could not be made or read.
    #[error("certificates: {0}")]
    Certificates(String),
}

/// A server that listens. Dropping it stops it without waiting.
pub struct RunningServer {
    address: SocketAddr,
    by_name: Result<Option<SocketAddr>, ServeError>,
    identity: Identity,
    stop: watch::Sender<bool>,
    listening: JoinHandle<()>,
}

/// Listens, and answers requests from then on.
pub async fn serve(
    api: Api,
    env: Arc<dyn crate::Env>,
    config: ServerConfig,
) -> Result<RunningServer, ServeError> {
    let identity =
        Identity::load_or_make(config.data_dir.as_deref(), config.listen.ip(), jiff::Timestamp::now())?;
    let shown = Shown::new(&identity)?;
    let acceptor = TlsAcceptor::from(Arc::new(identity.tls(shown.clone())?));
    let renewal = keep_good(identity.clone(), shown, config.data_dir.clone());
    let cannot_listen = |source| ServeError::Listen { address: config.listen, source };
    let listener = bind(config.listen, config.data_dir.as_deref()).await.map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let (by_name, at_name) = match config.by_name {
        Some(wanted) if address.port() != HTTPS => match bind_by_name(wanted).await {
            Ok((listener, address)) => (Ok(Some(address)), Some(listener)),
            Err(error) => (Err(error), None),
        },
        Some(_) => (Ok(Some(address)), None),
        None => (Ok(None), None),
    };
    let (stop, stopping) = watch::channel(false);
    let audit = config.audit.as_ref().map(|audit| {
        Audit::open(audit).map_err(|source| ServeError::Audit { path: audit.path.clone(), source })
    });
    let is_by_roles = api.authorizer().mode() == AuthorizationMode::Rbac;
    let context = Arc::new(Context {
        api,
        env,
        credentials: Credentials {
            token: identity.token.clone(),
            tokens: config.tokens,
            users: config.users,
        },
        // Else a request that shows nothing could do everything.
        allows_anonymous: config.allows_anonymous && is_by_roles,
        audit: audit.transpose()?,
        address: address.to_string(),
        pod_access: config.pod_access,
        in_flight: Semaphore::new(IN_FLIGHT_MAX),
        turns: Default::default(),
        body_within: BODY_WITHIN,
        metrics: Metrics::new(),
        openapi: Default::default(),
        aggregation: Aggregation::new(FrontProxy::make(&identity.ca_pem)?),
        controllers: config.controllers,
        stopping,
    });
    let open = Connections::new(room_for_connections(), config.read_within);
    let closing = open.clone();
    let second = at_name.map(|listener| listen(listener, acceptor.clone(), context.clone(), open.clone()));
    let first = listen(listener, acceptor, context.clone(), open);
    let listening = tokio::spawn(async move {
        let second = async {
            if let Some(second) = second {
                second.await;
            }
        };
        let served = futures_util::future::join3(first, second, context.run_aggregation());
        tokio::select! {
            _ = served => {}
            () = renewal => {}
            () = closing.close_stalled() => {}
        }
    });
    Ok(RunningServer { address, by_name, identity, stop, listening })
}

impl RunningServer {
    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the server listens on the port of HTTPS, or why it does not; nothing if nobody asked for it.
    pub fn by_name(&self) -> Result<Option<SocketAddr>, &ServeError> {
        self.by_name.as_ref().map(|address| *address)
    }

    /// The certificate of the server's own authority.
    pub fn ca_pem(&self) -> &str {
        &self.identity.ca_pem
    }

    /// What the administrator shows.
    pub fn token(&self) -> &str {
        &self.identity.token
    }

    /// What `kubectl` needs to reach this server.
    pub fn kubeconfig(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        let ca = STANDARD.encode(&self.identity.ca_pem);
        let token = &self.identity.token;
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: krafla\n  \
               cluster:\n    \
                 server: https://{address}\n    \
                 certificate-authority-data: {ca}\n\
             users:\n\
             - name: krafla\n  \
               user:\n    \
                 token: {token}\n\
             contexts:\n\
             - name: krafla\n  \
               context:\n    \
                 cluster: krafla\n    \
                 user: krafla\n    \
                 namespace: default\n\
             current-context: krafla\n"
        )
    }

    /// Stops listening, ends watches, lets requests finish for a moment, and is done.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        // Only a panic in it could make it fail, and then it has stopped as well.
        let _ = (&mut self.listening).await;
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Writes a file that nobody else may read, in one step: it is there as a whole or not at all.
pub fn write_private(path: &Path, content: &str) -> io::Result<()> {
    // A start on a full disk must not depend on what is there already.
    let is_private = |found: std::fs::Metadata| found.permissions().mode() & 0o077 == 0;
    if path.metadata().is_ok_and(is_private) && std::fs::read_to_string(path).is_ok_and(|it| it == content) {
        return Ok(());
    }
    std::fs::rename(write_unfinished(path, content)?, path)
}

/// Writes such a file under another name, which is returned.
pub(super) fn write_unfinished(path: &Path, content: &str) -> io::Result<PathBuf> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    Ok(unfinished.into())
}

/// The file with the port on which the server last listened.
const PORT: &str = "port";

/// Port 0 takes the same one as the last time, so that pods and copies of the kubeconfig find the server again after a restart;
/// if that is not free, any other.
async fn bind(listen: SocketAddr, data_dir: Option<&Path>) -> io::Result<TcpListener> {
    let file = data_dir.filter(|_| listen.port() == 0).map(|dir| dir.join(PORT));
    let Some(file) = file else { return TcpListener::bind(listen).await };
    let last = std::fs::read_to_string(&file).ok().and_then(|port| port.trim().parse::<u16>().ok());
    if let Some(port) = last
        && let Ok(listener) = TcpListener::bind((listen.ip(), port)).await
    {
        return Ok(listener);
    }
    let listener = TcpListener::bind(listen).await?;
    write_private(&file, &listener.local_addr()?.port().to_string())?;
    Ok(listener)
}

/// Listens on the port of HTTPS at an address of this machine, or at one of the next if somebody else listens there.
async fn bind_by_name(wanted: Ipv4Addr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let mut address = SocketAddr::from((wanted, HTTPS));
    for offset in 0..BY_NAME_TRIES {
        address.set_ip(Ipv4Addr::from_bits(wanted.to_bits().saturating_add(offset)).into());
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok((listener, address)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(source) => return Err(ServeError::Listen { address, source }),
        }
    }
    Err(ServeError::Listen { address, source: io::ErrorKind::AddrInUse.into() })
}

async fn listen(listener: TcpListener, acceptor: TlsAcceptor, context: Arc<Context>, open: Arc<Connections>) {
    let mut stopping = context.stopping.clone();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = stopped(&mut stopping) => break,
        };
        match accepted {
            Ok((stream, peer)) => match open.admit(peer.ip()) {
                Some(place) => {
                    connections.spawn(connection(stream, acceptor.clone(), context.clone(), place));
                }
                None => drop(stream),
            },
            // Too many open files, most likely: wait for some to be closed.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    // What is not done by then is cut off: the store has what was acknowledged.
    let _ = tokio::time::timeout(LAST_WORDS, all_ended).await;
    connections.abort_all();
}

/// The body of an answer, on a connection that is busy until it is sent.
struct Answering {
    body: Body,
    /// What is left of the last frame.
    rest: Bytes,
    number: u64,
    reading: Reading,
    outbox: Arc<Outbox>,
    _busy: Busy,
}

impl Answering {
    fn new(body: Body, reading: Reading, outbox: &Arc<Outbox>, busy: Busy) -> Answering {
        let (number, outbox) = (outbox.answer(), outbox.clone());
        Answering { body, rest: Bytes::new(), number, reading, outbox, _busy: busy }
    }

    /// The next piece of a frame.
    fn next_piece(&mut self) -> Frame<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES));
        Frame::data(self.outbox.give(self.number, self.reading, piece))
    }
}

impl hyper::body::Body for Answering {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let answering = self.get_mut();
        if !answering.rest.is_empty() {
            return Poll::Ready(Some(Ok(answering.next_piece())));
        }
        let frame = std::task::ready!(Pin::new(&mut answering.body).poll_frame(context));
        Poll::Ready(frame.map(|Ok(frame)| match frame.into_data() {
            Ok(data) => {
                answering.rest = data;
                Ok(answering.next_piece())
            }
            Err(other) => Ok(other),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

/// A connection that keeps its place for as long as it is open, whatever becomes of it.
struct Placed {
    stream: TlsStream<TcpStream>,
    _place: Arc<Connection>,
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Placed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, context: Arc<Context>, place: Arc<Connection>) {
    let address = stream.peer_addr().ok();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot turn delays off");
    }
    let agreed = tokio::select! {
        agreed = tokio::time::timeout(PATIENCE, acceptor.accept(stream)) => agreed,
        () = place.told_to_go() => return tracing::debug!("a connection made room before encryption was agreed on"),
    };
    let stream = match agreed {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "no encryption was agreed on"),
        Err(_) => return tracing::debug!("a client was too slow to agree on encryption"),
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let certificate = certificate.and_then(|shown| x509::user(shown)).map(Arc::new);
    let peer = Peer { certificate, address };
    let mut stopping = context.stopping.clone();
    let served = place.clone();
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let (context, peer, place, busy) = (context.clone(), peer.clone(), served.clone(), served.request());
        request.extensions_mut().insert(served.clone());
        async move {
            let reply = context.answer(request, &peer).await;
            if reply.status() == StatusCode::SWITCHING_PROTOCOLS {
                place.is_upgraded();
            }
            let reading = reply.extensions().get().copied().unwrap_or(Reading::Steady);
            // The connection is not idle before all of the answer is sent; that of a watch takes long.
            let answering = |body| Answering::new(body, reading, place.outbox(), busy);
            Ok::<_, std::convert::Infallible>(reply.map(answering))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_MAX).max_buf_size(BUFFER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .max_send_buf_size(BUFFER_BYTES)
        .keep_alive_interval(Duration::from_secs(30));
    let connection = builder
        .serve_connection_with_upgrades(TokioIo::new(Placed { stream, _place: place.clone() }), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = place.told_to_go() => return tracing::debug!("a connection made room for another"),
        () = place.idled() => {
            connection.as_mut().graceful_shutdown();
            // A client that sends nothing does not end in order either.
            match tokio::time::timeout(LAST_WORDS, connection).await {
                Ok(outcome) => outcome,
                Err(_) => return tracing::debug!("an idle connection was closed"),
            }
        }
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
}
