//! Connections: TCP, and TLS over it, within a time limit. Which version of HTTP is spoken is agreed on with TLS.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;

use crate::proxy::Proxy;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// Makes connections to one server.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: TlsConnector,
    /// The name that the server's certificate must have, where it is not that of the address.
    server_name: Option<String>,
    proxy: Option<(Proxy, TlsConnector)>,
    timeout: Duration,
}

impl Connector {
    pub(crate) fn new(
        mut tls: rustls::ClientConfig,
        server_name: Option<String>,
        timeout: Duration,
    ) -> Connector {
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Connector { tls: TlsConnector::from(Arc::new(tls)), server_name, proxy: None, timeout }
    }

    /// The same through a proxy. `tls` is for proxies that are reached over TLS.
    pub(crate) fn through(self, proxy: Proxy, tls: rustls::ClientConfig) -> Connector {
        Connector { proxy: Some((proxy, TlsConnector::from(Arc::new(tls)))), ..self }
    }

    /// Bytes to and from the server, before TLS.
    async fn stream(&self, host: &str, port: u16) -> io::Result<Pin<Box<dyn Bytes>>> {
        let Some((proxy, tls)) = &self.proxy else {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            return Ok(Box::pin(stream));
        };
        let (proxy_host, proxy_port) = proxy.address();
        let stream = TcpStream::connect((proxy_host, proxy_port)).await;
        let mut stream = stream.map_err(|error| {
            io::Error::new(error.kind(), format!("proxy {proxy_host}:{proxy_port}: {error}"))
        })?;
        stream.set_nodelay(true)?;
        let Some(name) = proxy.tls_name() else {
            proxy.open(&mut stream, host, port).await?;
            return Ok(Box::pin(stream));
        };
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let mut stream = tls.connect(name, stream).await?;
        proxy.open(&mut stream, host, port).await?;
        Ok(Box::pin(stream))
    }

    async fn connect(self, server: Uri) -> io::Result<TokioIo<Stream>> {
        let is_private = server.scheme_str() == Some("https");
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = server.port_u16().unwrap_or(if is_private { 443 } else { 80 });
        let stream = self.stream(&host, port).await?;
        if !is_private {
            return Ok(TokioIo::new(Stream { inner: stream, is_http2: false }));
        }
        let name = ServerName::try_from(self.server_name.unwrap_or(host)).map_err(io::Error::other)?;
        let stream = self.tls.connect(name, stream).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(TokioIo::new(Stream { inner: Box::pin(stream), is_http2 }))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let (connector, timeout) = (self.clone(), self.timeout);
        Box::pin(async move {
            let too_slow =
                |_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {timeout:?}"));
            tokio::time::timeout(timeout, connector.connect(server)).await.map_err(too_slow)?
        })
    }
}

trait Bytes: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Bytes for T {}

/// A connection, private or not.
pub(crate) struct Stream {
    inner: Pin<Box<dyn Bytes>>,
    is_http2: bool,
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        if self.is_http2 { Connected::new().negotiated_h2() } else { Connected::new() }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_read(cx, into)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.inner.as_mut().poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_shutdown(cx)
    }
}
