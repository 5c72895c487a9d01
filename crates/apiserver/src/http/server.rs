//! Listening, TLS, and ending in order.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::auth::Credentials;
use super::certificates::Identity;
use super::metrics::Metrics;
use super::{BODY_WITHIN, Context, IN_FLIGHT_MAX, PodAccess, stopped};
use crate::ops::Api;
use crate::tokens::Tokens;

/// The port at which clients look for a server of which they know the name alone.
const HTTPS: u16 = 443;
/// How many addresses are tried for it.
const BY_NAME_TRIES: u32 = 16;
/// How many connections may be open at once.
const CONNECTIONS_MAX: usize = 10_000;
/// How long a client may take to agree on encryption.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a connection may be idle before the head of its next request is there; a kube-apiserver waits as long.
const IDLE_MAX: Duration = Duration::from_secs(90);
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
    pub controllers: Option<Arc<krafla_runtime::metrics::Metrics>>,
    /// Where to listen on the port of HTTPS too, for clients that find the server by a name alone.
    pub by_name: Option<Ipv4Addr>,
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
    let identity = Identity::load_or_make(config.data_dir.as_deref(), config.listen.ip())?;
    let acceptor = TlsAcceptor::from(Arc::new(identity.tls()?));
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
    let context = Arc::new(Context {
        api,
        env,
        credentials: Credentials { token: identity.token.clone(), tokens: config.tokens },
        address: address.to_string(),
        pod_access: config.pod_access,
        in_flight: Semaphore::new(IN_FLIGHT_MAX),
        body_within: BODY_WITHIN,
        metrics: Metrics::new(),
        openapi: Default::default(),
        controllers: config.controllers,
        stopping,
    });
    let second = at_name.map(|listener| listen(listener, acceptor.clone(), context.clone()));
    let first = listen(listener, acceptor, context);
    let listening = tokio::spawn(async move {
        futures_util::future::join(first, async {
            if let Some(second) = second {
                second.await;
            }
        })
        .await;
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

async fn listen(listener: TcpListener, acceptor: TlsAcceptor, context: Arc<Context>) {
    let mut stopping = context.stopping.clone();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
            Some(_) = connections.join_next() => continue,
            () = stopped(&mut stopping) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, acceptor.clone(), context.clone()));
            }
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

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, context: Arc<Context>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot turn delays off");
    }
    let stream = match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "no encryption was agreed on"),
        Err(_) => return tracing::debug!("a client was too slow to agree on encryption"),
    };
    let has_certificate = stream.get_ref().1.peer_certificates().is_some_and(|chain| !chain.is_empty());
    let mut stopping = context.stopping.clone();
    let service = hyper::service::service_fn(move |request| {
        let context = context.clone();
        async move { Ok::<_, std::convert::Infallible>(context.answer(request, has_certificate).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .keep_alive_interval(Duration::from_secs(30));
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
}
