//! Carries out what a probe or a hook asks for.

use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

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
        } else if let Some(socket) = handler.tcp_socket.as_ref().or(handler.grpc.as_ref()) {
            let address = address(container, &socket.port, &socket.host, context.address)?;
            connect(&address).await.map(drop)
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

async fn connect(address: &str) -> Result<TcpStream, String> {
    TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))
}

/// Only whether an encrypted server answers at all is looked at: its certificate is not one that anybody
/// could check.
async fn http_get(address: &str, get: &HttpGetAction) -> Result<(), String> {
    let mut stream = connect(address).await?;
    if get.scheme.eq_ignore_ascii_case("https") {
        return Ok(());
    }
    stream
        .write_all(request(address, get).as_bytes())
        .await
        .map_err(|error| format!("{address}: {error}"))?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream).take(ANSWER_BYTES_MAX);
    reader.read_line(&mut line).await.map_err(|error| format!("{address}: {error}"))?;
    let code =
        line.strip_prefix("HTTP/").and_then(|rest| rest.split(' ').nth(1)).and_then(|code| code.parse().ok());
    match code {
        Some(200..400) => Ok(()),
        Some(code) => Err(format!("HTTP probe failed with statuscode: {code}")),
        None => Err(format!("{address} does not speak HTTP")),
    }
}

fn request(address: &str, get: &HttpGetAction) -> String {
    let path = if get.path.starts_with('/') { get.path.clone() } else { format!("/{}", get.path) };
    let mut headers = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
    let has = |name: &str| get.http_headers.iter().any(|header| header.name.eq_ignore_ascii_case(name));
    for (name, value) in [("Host", address), ("User-Agent", "kube-probe/krafla"), ("Accept", "*/*")] {
        if !has(name) {
            headers += &format!("{name}: {value}\r\n");
        }
    }
    for header in &get.http_headers {
        // A line end in a header would be another header.
        let clean = |text: &str| text.replace(['\r', '\n'], " ");
        headers += &format!("{}: {}\r\n", clean(&header.name), clean(&header.value));
    }
    headers + "\r\n"
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::pod::{HttpHeader, Port};

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

    #[tokio::test]
    async fn a_server_is_well_if_it_says_so() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n", Ok(())),
            ("HTTP/1.0 302 Found\r\n\r\n", Ok(())),
            ("HTTP/1.1 503 Busy\r\n\r\n", Err("HTTP probe failed with statuscode: 503".to_owned())),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 1024];
                let n = stream.read(&mut request).await.unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
                String::from_utf8_lossy(&request[..n]).into_owned()
            };
            let http_headers =
                vec![HttpHeader { name: "X-Who".to_owned(), value: "me\r\nEvil: 1".to_owned() }];
            let get = HttpGetAction { path: "health".to_owned(), http_headers, ..HttpGetAction::default() };
            let (request, outcome) = tokio::join!(serve, http_get(&address, &get));
            assert_eq!(outcome, expected);
            assert!(request.starts_with("GET /health HTTP/1.1\r\n"), "{request}");
            assert!(request.contains("X-Who: me  Evil: 1\r\n"), "{request}");
        }
    }
}
