//! A connection to an API server: HTTPS with HTTP/1.1, one request at a time, like one worker of a client.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Failure;
use crate::target::Target;

/// One open connection.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    authorization: String,
}

impl Client {
    /// Connects.
    pub(crate) async fn connect(target: &Target) -> Result<Self, Failure> {
        let stream = TcpStream::connect(&target.address).await?;
        stream.set_nodelay(true)?;
        let stream = TlsConnector::from(target.tls.clone()).connect(target.server_name()?, stream).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends with the sender; a connection that breaks shows in the next request.
        tokio::spawn(connection);
        let authorization = format!("Bearer {}", target.token);
        Ok(Self { sender, host: target.address.clone(), authorization })
    }

    /// Sends a request and waits for the head of the answer, which must be a success.
    pub(crate) async fn open(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = Request::builder()
            .method(&method)
            .uri(path)
            .header(HOST, &self.host)
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, content_type)
            .body(Full::new(body))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let code = response.status();
        if code.is_success() {
            return Ok(response);
        }
        let body = response.into_body().collect().await?.to_bytes();
        Err(format!("{method} {path} was answered with {code}: {}", String::from_utf8_lossy(&body)).into())
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<Bytes, Failure> {
        Ok(self.open(method, path, content_type, body).await?.into_body().collect().await?.to_bytes())
    }

    /// Reads something.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Bytes, Failure> {
        self.ask(Method::GET, path, "application/json", Bytes::new()).await
    }

    /// Makes an object.
    pub(crate) async fn create(&mut self, path: &str, object: String) -> Result<(), Failure> {
        self.ask(Method::POST, path, "application/json", object.into()).await.map(drop)
    }
}
