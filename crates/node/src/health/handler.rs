//! Carries out what a probe or a hook asks for.

use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use krafla_plan::probe::HttpGet;
use krafla_runtime::dial;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::{grpc, tls};
use crate::agent::Context;
use crate::container::ContainerId;
use crate::exec::{self, GroupGuard};
use crate::pod::{Container, Handler, HttpGetAction, PortRef};

/// How much of an answer is looked at.
const ANSWER_BYTES_MAX: u64 = 10 << 10;

/// Carries out a handler within a time. An error says what was wrong, for people.
pub(super) async fn carry_out(
    context: &Context,
    id: &ContainerId,
    container: &Container,
    handler: &Handler,
    within: Duration,
) -> Result<(), String> {
    let work = async {
        if let Some(exec) = &handler.exec {
            run(context, id, &exec.command).await
        } else if let Some(get) = &handler.http_get {
            let address = address(container, &get.port, &get.host, context.address)?;
            http_get(&address, get).await
        } else if let Some(socket) = &handler.tcp_socket {
            let address = address(container, &socket.port, &socket.host, context.address)?;
            connect(&address).await
        } else if let Some(asked) = &handler.grpc {
            grpc::check(&format!("{}:{}", context.address, asked.port), &asked.service).await
        } else if let Some(sleep) = &handler.sleep {
            tokio::time::sleep(Duration::from_secs(sleep.seconds.into())).await;
            Ok(())
        } else {
            Err("it names no action that this node knows".to_owned())
        }
    };
    match tokio::time::timeout(within, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no answer within {} s", within.as_secs())),
    }
}

/// Runs a command with the environment and in the directory of a container.
async fn run(context: &Context, id: &ContainerId, command: &[String]) -> Result<(), String> {
    let prepared = exec::prepare(context, id, command).await?;
    let mut command = prepared.command();
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = spawned.map_err(|error| prepared.not_started(&error))?;
    let group = GroupGuard::of(&child);
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // What comes after that is of no interest, but the command shall not fail because nobody reads it.
        let mut stdout = stdout.take(ANSWER_BYTES_MAX);
        let _ = stdout.read_to_end(&mut output).await;
        let _ = tokio::io::copy(&mut stdout.into_inner(), &mut tokio::io::sink()).await;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    drop(group);
    let code = status.code().or_else(|| status.signal().map(|signal| signal.saturating_add(128)));
    match code {
        Some(0) => Ok(()),
        code => {
            Err(format!("exit code {}: {}", code.unwrap_or(1), String::from_utf8_lossy(&output).trim_end()))
        }
    }
}

fn address(container: &Container, port: &PortRef, host: &str, pod: Ipv4Addr) -> Result<String, String> {
    let number = match port {
        PortRef::Number(number) => *number,
        PortRef::Name(name) => {
            let named =
                container.ports.iter().find(|port| port.name == *name).map(|port| port.container_port);
            named
                .or_else(|| name.parse().ok())
                .ok_or_else(|| format!("the container has no port {name:?}"))?
        }
    };
    Ok(if host.is_empty() { format!("{pod}:{number}") } else { format!("{host}:{number}") })
}

async fn connect(address: &str) -> Result<(), String> {
    TcpStream::connect(address).await.map(drop).map_err(|error| format!("{address}: {error}"))
}

async fn http_get(address: &str, get: &HttpGetAction) -> Result<(), String> {
    let headers = get.http_headers.iter().map(|header| (header.name.clone(), header.value.clone()));
    let asked = HttpGet { path: get.path.clone(), headers: headers.collect() };
    if get.scheme.eq_ignore_ascii_case("https") {
        let stream = tls::connect(address).await?;
        return dial::http_get_over(stream, address, &asked).await;
    }
    dial::http_get(address, &asked).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt};
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::pod::{HttpHeader, Port};

    /// Answers a request whose head has `word` with 200, and others with 503.
    async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, word: &str) {
        let mut stream = tokio::io::BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).await.is_ok_and(|n| n > 0) {}
        let status = if head.contains(word) { "200 OK" } else { "503 Service Unavailable" };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        // Who only wanted to know whether somebody listens is gone already.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    }

    /// A server of such answers, over TLS if there is an acceptor.
    async fn server(word: &'static str, tls: Option<TlsAcceptor>) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                match &tls {
                    None => answer(stream, word).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answer(stream, word).await;
                        }
                    }
                }
            }
        });
        address
    }

    /// With a certificate that nobody vouches for, and for another name than that of the server.
    fn acceptor() -> TlsAcceptor {
        let made = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).unwrap();
        let key = made.signing_key.serialize_der().try_into().unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    fn get(value: &str, scheme: &str) -> HttpGetAction {
        HttpGetAction {
            path: "/ready".to_owned(),
            scheme: scheme.to_owned(),
            http_headers: vec![HttpHeader { name: "X-Probe".to_owned(), value: value.to_owned() }],
            ..HttpGetAction::default()
        }
    }

    #[tokio::test]
    async fn a_server_is_well_when_it_answers_well() {
        let unwell = || Err("HTTP probe failed with statuscode: 503".to_owned());
        let plain = server("X-Probe: me", None).await;
        assert_eq!(http_get(&plain, &get("me", "HTTP")).await, Ok(()));
        assert_eq!(http_get(&plain, &get("you", "")).await, unwell());
        let private = server("X-Probe: me", Some(acceptor())).await;
        assert_eq!(http_get(&private, &get("me", "HTTPS")).await, Ok(()));
        assert_eq!(http_get(&private, &get("you", "HTTPS")).await, unwell());
    }

    #[tokio::test]
    async fn a_server_that_does_not_speak_tls_is_not_well_when_it_should() {
        let plain = server("", None).await;
        let refused = http_get(&plain, &get("me", "HTTPS")).await.unwrap_err();
        assert!(refused.starts_with(&format!("{plain}: no TLS: ")), "{refused}");
    }

    #[tokio::test]
    async fn a_socket_is_well_when_somebody_listens() {
        assert_eq!(connect(&server("", None).await).await, Ok(()));
        // Nobody has this address, which is not a pod's, and nobody listens at this port.
        let refused = connect("127.0.77.1:1").await.unwrap_err();
        assert!(refused.starts_with("127.0.77.1:1: "), "{refused}");
    }

    #[test]
    fn a_port_is_a_number_or_a_name() {
        let ports = vec![Port { name: "web".to_owned(), container_port: 8080 }];
        let container = Container { ports, ..Container::default() };
        let pod = Ipv4Addr::new(127, 64, 0, 1);
        let of = |port| address(&container, &port, "", pod);
        assert_eq!(of(PortRef::Number(80)).unwrap(), "127.64.0.1:80");
        assert_eq!(of(PortRef::Name("web".to_owned())).unwrap(), "127.64.0.1:8080");
        assert_eq!(of(PortRef::Name("none".to_owned())).unwrap_err(), "the container has no port \"none\"");
    }
}
