//! `kubectl exec` and `kubectl attach`: a connection becomes the streams of a command.
//!
//! Clients since Kubernetes 1.31 speak WebSocket first, older ones SPDY.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE,
};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use krafla_api::Key;
use krafla_cluster::ExecOptions;
use krafla_schema::object;
use serde_json::Value;
use tokio::io::AsyncWrite;
use tokio::sync::watch;

use super::body::{self, Reply};
use super::channels::{self, Protocol};
use super::pods::{PodAccess, container};
use super::query::Query;
use super::stopped;
use super::streams::{self, Version};
use crate::status::Status;

/// What a WebSocket server adds to a client's key before it hashes it: RFC 6455, section 1.3.
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A command that runs, and its streams.
pub struct Session {
    /// Where its standard input is written to. Dropping it closes it.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// What it writes.
    pub output: BoxStream<'static, Output>,
    /// Changes the size of its terminal: columns and rows.
    pub resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
    /// Its exit code, or what went wrong. Dropping it ends the command.
    pub end: BoxFuture<'static, Result<i32, String>>,
}

/// Something that a command wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// To its standard output.
    Stdout(Bytes),
    /// To its standard error.
    Stderr(Bytes),
}

/// What a request wants to connect to.
pub(super) struct Connect<'a> {
    pub(super) pod: &'a Key,
    /// The pod as it is stored.
    pub(super) object: &'a Value,
    pub(super) query: &'a Query,
    pub(super) headers: &'a HeaderMap,
    pub(super) upgrade: Option<OnUpgrade>,
    /// Whether a command is named, or what runs already is meant.
    pub(super) is_exec: bool,
}

impl Connect<'_> {
    /// Answers, and connects as soon as the answer is out.
    pub(super) fn answer(
        self,
        access: Option<&Arc<dyn PodAccess>>,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<Reply, Status> {
        let container = container(self.pod, self.object, self.query.text("container"))?;
        if object::text_at(self.object, "spec.nodeName").is_empty() {
            return Err(Status::bad_request(format!("pod {} does not have a host assigned", self.pod.name)));
        }
        let options = self.options()?;
        let Some(access) = access.cloned() else {
            return Err(Status::unavailable(
                "this server has no node: nothing runs that could be connected to",
            ));
        };
        let (transport, reply) = agree(self.headers)?;
        let Some(upgrade) = self.upgrade else {
            return Err(Status::bad_request("this connection can not be upgraded: use HTTP/1.1"));
        };
        let pod = self.pod.clone();
        tokio::spawn(async move {
            let serve = async {
                match upgrade.await {
                    Ok(socket) => {
                        let session = access.exec(&pod, &container, options.clone());
                        match transport {
                            Transport::WebSocket(protocol) => {
                                channels::serve(socket, protocol, &options, session).await;
                            }
                            Transport::Spdy(version) => {
                                streams::serve(TokioIo::new(socket), version, &options, session).await;
                            }
                        }
                    }
                    Err(error) => tracing::debug!(%error, "a client left before it was connected"),
                }
            };
            tokio::select! {
                () = serve => {}
                () = stopped(&mut stopping) => {}
            }
        });
        Ok(reply)
    }

    fn options(&self) -> Result<ExecOptions, Status> {
        let options = ExecOptions {
            command: self.query.all("command").map(str::to_owned).collect(),
            stdin: self.query.flag("stdin"),
            stdout: self.query.flag("stdout"),
            stderr: self.query.flag("stderr"),
            tty: self.query.flag("tty"),
        };
        if self.is_exec && options.command.is_empty() {
            return Err(Status::bad_request("you must specify at least one command for the container"));
        }
        if !options.stdin && !options.stdout && !options.stderr {
            return Err(Status::bad_request("you must specify at least 1 of stdin, stdout, stderr"));
        }
        Ok(options)
    }
}

/// How the streams of a command come over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    WebSocket(Protocol),
    Spdy(Version),
}

/// Agrees on WebSocket or SPDY, and on one of the protocols above it.
fn agree(headers: &HeaderMap) -> Result<(Transport, Reply), Status> {
    match Upgrading::read(headers)? {
        Upgrading::WebSocket => {
            let protocol = match offered(headers, SEC_WEBSOCKET_PROTOCOL.as_str()).as_slice() {
                [] => Protocol::Unnamed,
                names => names.iter().find_map(|name| Protocol::of_name(name)).ok_or_else(|| {
                    let (names, known) = (names.join(", "), Protocol::names());
                    Status::bad_request(format!(
                        "none of the protocols {names:?} is known: offer one of {known}"
                    ))
                })?,
            };
            Ok((Transport::WebSocket(protocol), websocket_reply(headers, protocol.name())?))
        }
        Upgrading::Spdy => {
            let offered = offered(headers, STREAM_PROTOCOL);
            let chosen = Version::choose(offered.iter().map(String::as_str));
            let (version, name) = chosen.ok_or_else(|| no_stream_protocol(&offered, "v4.channel.k8s.io"))?;
            Ok((Transport::Spdy(version), spdy_reply(name)))
        }
    }
}

/// The header in which clients of SPDY offer protocols, one after the other.
const STREAM_PROTOCOL: &str = "x-stream-protocol-version";
const SPDY: &str = "SPDY/3.1";

/// What a connection is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upgrading {
    WebSocket,
    Spdy,
}

impl Upgrading {
    pub(super) fn read(headers: &HeaderMap) -> Result<Upgrading, Status> {
        let wanted = super::header(headers, UPGRADE.as_str()).unwrap_or_default();
        if wanted.eq_ignore_ascii_case("websocket") {
            Ok(Upgrading::WebSocket)
        } else if wanted.eq_ignore_ascii_case(SPDY) {
            Ok(Upgrading::Spdy)
        } else {
            Err(Status::bad_request("Upgrade request required"))
        }
    }
}

/// What a client offers in a header, in its order.
pub(super) fn offered(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(',')).map(|name| name.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// The protocols that a client of SPDY offers.
pub(super) fn offered_streams(headers: &HeaderMap) -> Vec<String> {
    offered(headers, STREAM_PROTOCOL)
}

/// Refuses a client of SPDY that offers nothing that is known.
pub(super) fn no_stream_protocol(offered: &[String], known: &str) -> Status {
    let offered = offered.join(" ");
    let why = format!(
        "unable to upgrade: unable to negotiate protocol: client supports [{offered}], server accepts [{known}]"
    );
    Status::bad_request(why)
}

/// Agrees on SPDY with a protocol above it.
pub(super) fn spdy_reply(protocol: &'static str) -> Reply {
    let mut reply = body::text(101, "");
    let headers = reply.headers_mut();
    headers.clear();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(SPDY));
    headers.insert(STREAM_PROTOCOL, HeaderValue::from_static(protocol));
    reply
}

/// Agrees on a WebSocket with a protocol above it, which may have no name.
pub(super) fn websocket_reply(headers: &HeaderMap, protocol: &'static str) -> Result<Reply, Status> {
    let key = super::header(headers, SEC_WEBSOCKET_KEY.as_str()).unwrap_or_default();
    let (true, Ok(accept)) = (!key.is_empty(), HeaderValue::from_str(&accept_key(&key))) else {
        return Err(Status::bad_request("a WebSocket needs a Sec-WebSocket-Key"));
    };
    let mut reply = body::text(101, "");
    let headers = reply.headers_mut();
    headers.clear();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if !protocol.is_empty() {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    }
    Ok(reply)
}

/// Shows the client that the server has understood.
pub(super) fn accept_key(key: &str) -> String {
    let text = format!("{key}{ACCEPT_SUFFIX}");
    let algorithm = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
    STANDARD.encode(aws_lc_rs::digest::digest(algorithm, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// What is answered to a request with these headers.
    fn check(headers: &[(&'static str, &'static str)], expected: Expect) {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
        let answer = match agree(&headers.collect()) {
            Ok((transport, reply)) => {
                let accept =
                    reply.headers().get(SEC_WEBSOCKET_ACCEPT).map(|value| value.to_str().unwrap_or("?"));
                format!("{} {transport:?} {}\n", reply.status().as_u16(), accept.unwrap_or("-"))
            }
            Err(status) => format!("{} {}\n", status.code, status.message),
        };
        expected.assert_eq(&answer);
    }

    #[test]
    fn the_first_protocol_that_both_know_is_taken() {
        // The key and its answer are the example of RFC 6455, section 1.3.
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        check(
            &[
                ("upgrade", "websocket"),
                key,
                ("sec-websocket-protocol", "v9.channel.k8s.io, v5.channel.k8s.io"),
            ],
            expect![[r#"
                101 WebSocket(V5) s3pPLMBiTxaQ9kYGzzhZRbK+xOo=
            "#]],
        );
        check(
            &[
                ("upgrade", "WebSocket"),
                key,
                ("sec-websocket-protocol", "v4.channel.k8s.io,v5.channel.k8s.io"),
            ],
            expect![[r#"
                101 WebSocket(V4) s3pPLMBiTxaQ9kYGzzhZRbK+xOo=
            "#]],
        );
    }

    #[test]
    fn older_protocols_are_known_too() {
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        check(
            &[("upgrade", "websocket"), key, ("sec-websocket-protocol", "base64.channel.k8s.io")],
            expect![[r#"
                101 WebSocket(V1Base64) s3pPLMBiTxaQ9kYGzzhZRbK+xOo=
            "#]],
        );
        check(
            &[("upgrade", "websocket"), key],
            expect![[r#"
                101 WebSocket(Unnamed) s3pPLMBiTxaQ9kYGzzhZRbK+xOo=
            "#]],
        );
        check(
            &[("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "v4.channel.k8s.io, v3.channel.k8s.io")],
            expect![[r#"
                101 Spdy(V4) -
            "#]],
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_with_the_remedy() {
        check(
            &[],
            expect![[r#"
                400 Upgrade request required
            "#]],
        );
        check(
            &[("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "v9.channel.k8s.io")],
            expect![[r#"
                400 unable to upgrade: unable to negotiate protocol: client supports [v9.channel.k8s.io], server accepts [v4.channel.k8s.io]
            "#]],
        );
        check(
            &[("upgrade", "websocket"), ("sec-websocket-protocol", "v9.channel.k8s.io")],
            expect![[r#"
                400 none of the protocols "v9.channel.k8s.io" is known: offer one of v5.channel.k8s.io, v4.channel.k8s.io, v4.base64.channel.k8s.io, channel.k8s.io, base64.channel.k8s.io
            "#]],
        );
        check(
            &[("upgrade", "websocket"), ("sec-websocket-protocol", "v5.channel.k8s.io")],
            expect![[r#"
                400 a WebSocket needs a Sec-WebSocket-Key
            "#]],
        );
    }
}
