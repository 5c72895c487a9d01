//! `kubectl exec` and `kubectl attach`: a connection becomes the streams of a command.
//!
//! Clients since Kubernetes 1.31 speak WebSocket first. Older ones speak SPDY, which is answered with a refusal
//! that says so.

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
use krafla_api::Key;
use serde_json::Value;
use tokio::io::AsyncWrite;
use tokio::sync::watch;

use super::body::{self, Reply};
use super::channels::{self, Protocol};
use super::pods::{PodAccess, container};
use super::query::Query;
use super::stopped;
use crate::object;
use crate::status::Status;

/// What a WebSocket server adds to a client's key before it hashes it: RFC 6455, section 1.3.
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What is to be connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOptions {
    /// The command to run; empty to attach to what runs already.
    pub command: Vec<String>,
    /// Whether something will be written to it.
    pub stdin: bool,
    /// Whether its standard output is wanted.
    pub stdout: bool,
    /// Whether its standard error is wanted.
    pub stderr: bool,
    /// Whether it shall have a terminal.
    pub tty: bool,
}

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
        let (protocol, reply) = agree(self.headers)?;
        let Some(upgrade) = self.upgrade else {
            return Err(Status::bad_request("this connection can not be upgraded: use HTTP/1.1"));
        };
        let pod = self.pod.clone();
        tokio::spawn(async move {
            let serve = async {
                match upgrade.await {
                    Ok(socket) => {
                        let session = access.exec(&pod, &container, options.clone());
                        channels::serve(socket, protocol, &options, session).await;
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

/// Agrees on WebSocket and one of its protocols.
fn agree(headers: &HeaderMap) -> Result<(Protocol, Reply), Status> {
    let text = |name| super::header(headers, name).unwrap_or_default();
    if !text(UPGRADE.as_str()).eq_ignore_ascii_case("websocket") {
        return Err(Status::bad_request(
            "exec and attach want a WebSocket (v5.channel.k8s.io or v4.channel.k8s.io): use kubectl 1.31 or newer",
        ));
    }
    let offered = text(SEC_WEBSOCKET_PROTOCOL.as_str());
    let protocol = offered.split(',').find_map(|name| Protocol::of_name(name.trim())).ok_or_else(|| {
        Status::bad_request(format!("none of the protocols {offered:?} is known: offer v5.channel.k8s.io"))
    })?;
    let key = text(SEC_WEBSOCKET_KEY.as_str());
    let (true, Ok(accept)) = (!key.is_empty(), HeaderValue::from_str(&accept_key(&key))) else {
        return Err(Status::bad_request("a WebSocket needs a Sec-WebSocket-Key"));
    };
    let mut reply = body::text(101, "");
    let headers = reply.headers_mut();
    headers.clear();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol.name()));
    Ok((protocol, reply))
}

/// Shows the client that the server has understood.
fn accept_key(key: &str) -> String {
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
            Ok((protocol, reply)) => {
                let accept =
                    reply.headers().get(SEC_WEBSOCKET_ACCEPT).map(|value| value.to_str().unwrap_or("?"));
                format!("{} {} {}\n", reply.status().as_u16(), protocol.name(), accept.unwrap_or("-"))
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
                101 v5.channel.k8s.io s3pPLMBiTxaQ9kYGzzhZRbK+xOo=
            "#]],
        );
        check(
            &[
                ("upgrade", "WebSocket"),
                key,
                ("sec-websocket-protocol", "v4.channel.k8s.io,v5.channel.k8s.io"),
            ],
            expect![[r#"
                101 v4.channel.k8s.io s3pPLMBiTxaQ9kYGzzhZRbK+xOo=
            "#]],
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_with_the_remedy() {
        check(
            &[("upgrade", "SPDY/3.1")],
            expect![[r#"
                400 exec and attach want a WebSocket (v5.channel.k8s.io or v4.channel.k8s.io): use kubectl 1.31 or newer
            "#]],
        );
        check(
            &[("upgrade", "websocket"), ("sec-websocket-protocol", "channel.k8s.io")],
            expect![[r#"
                400 none of the protocols "channel.k8s.io" is known: offer v5.channel.k8s.io
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
