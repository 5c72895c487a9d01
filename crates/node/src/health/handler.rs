//! Carries out what a probe or a hook asks for.

use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use krafla_plan::probe::HttpGet;
use krafla_runtime::dial::{self, Answer};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::unix::pipe;

use super::redirect::Url;
use super::{grpc, tls};
use crate::agent::Context;
use crate::container::ContainerId;
use crate::exec::{self, GroupGuard, Marking};
use crate::pod::{Container, Handler, HttpGetAction, PortRef};

/// How much of an answer is looked at.
const ANSWER_BYTES_MAX: u64 = 10 << 10;

/// How many requests one probe makes at most.
const REQUESTS_MAX: usize = 10;

/// Whether all was well, if perhaps with something that a person should know; or what was wrong, for people.
pub(super) type Outcome = Result<Option<String>, String>;

/// Carries out a handler within a time.
pub(super) async fn carry_out(
    context: &Context,
    id: &ContainerId,
    container: &Container,
    handler: &Handler,
    within: Duration,
) -> Outcome {
    let work = async {
        if let Some(exec) = &handler.exec {
            run(context, id, &exec.command).await.map(|()| None)
        } else if let Some(get) = &handler.http_get {
            let address = address(container, &get.port, &get.host, context.address)?;
            http_get(&address, get).await
        } else if let Some(socket) = &handler.tcp_socket {
            let address = address(container, &socket.port, &socket.host, context.address)?;
            connect(&address).await.map(|()| None)
        } else if let Some(asked) = &handler.grpc {
            grpc::check(&format!("{}:{}", context.address, asked.port), &asked.service).await.map(|()| None)
        } else if let Some(sleep) = &handler.sleep {
            tokio::time::sleep(Duration::from_secs(sleep.seconds.into())).await;
            Ok(None)
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
    run_to_end(prepared.command(), |error| prepared.not_started(error)).await
}

/// Runs a command to its end. One that fails says why in its own words, wherever it wrote them.
async fn run_to_end(mut command: Marking, not_started: impl Fn(&io::Error) -> String) -> Result<(), String> {
    // One pipe for both, so that their lines stay in order.
    let (reader, writer) = io::pipe().map_err(|error| not_started(&error))?;
    let copy = writer.try_clone().map_err(|error| not_started(&error))?;
    let spawned = command.stdin(Stdio::null()).stdout(writer.into()).stderr(copy.into()).spawn();
    let mut child = spawned.map_err(|error| not_started(&error))?;
    // It holds our ends of the pipe, which would keep it open.
    drop(command);
    let group = GroupGuard::of(&child);
    let output = pipe::Receiver::from_owned_fd(reader.into()).map_err(|error| error.to_string())?;
    let mut output = output.take(ANSWER_BYTES_MAX);
    let mut words = Vec::new();
    // What comes after that is of no interest, but the command shall not fail because nobody reads it.
    let _ = output.read_to_end(&mut words).await;
    let _ = tokio::io::copy(&mut output.into_inner(), &mut tokio::io::sink()).await;
    let status = child.wait().await.map_err(|error| error.to_string())?;
    drop(group);
    let code = status.code().or_else(|| status.signal().map(|signal| signal.saturating_add(128)));
    let words = String::from_utf8_lossy(&words);
    match (code, words.trim_end()) {
        (Some(0), _) => Ok(()),
        (code, "") => Err(format!("exit code {}", code.unwrap_or(1))),
        (_, words) => Err(words.to_owned()),
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

/// Asks a web server, and goes where it leads for as long as that is the same host: elsewhere is nothing that the pod could
/// answer for.
async fn http_get(address: &str, get: &HttpGetAction) -> Outcome {
    let (host, port) = address.rsplit_once(':').ok_or("it names no port")?;
    let port = port.parse().map_err(|_| format!("{port:?} is not a port"))?;
    let is_https = get.scheme.eq_ignore_ascii_case("https");
    let mut url = Url { is_https, host: host.to_owned(), port, path: get.path.clone() };
    let headers = get.http_headers.iter().map(|header| (header.name.clone(), header.value.clone()));
    let mut headers: Vec<_> = headers.collect();
    for _ in 0..REQUESTS_MAX {
        let answer = answer(&url, &headers).await?;
        let location = match answer.code {
            200..300 => return Ok(None),
            301..=303 | 307 | 308 => answer.location,
            300..400 => None,
            code => return Err(format!("HTTP probe failed with statuscode: {code}")),
        };
        let Some(next) = location.and_then(|location| url.to(&location)).filter(|next| next.host == url.host)
        else {
            return Ok(Some("Probe terminated redirects".to_owned()));
        };
        if next.address() != url.address() {
            // The name was that of the server before.
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("host"));
        }
        url = next;
    }
    Err(format!("stopped after {REQUESTS_MAX} redirects"))
}

async fn answer(url: &Url, headers: &[(String, String)]) -> Result<Answer, String> {
    let address = &url.address();
    let asked = HttpGet { path: url.path.clone(), headers: headers.to_vec() };
    if url.is_https {
        return dial::answer_over(tls::connect(address).await?, address, &asked).await;
    }
    let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
    dial::answer_over(stream, address, &asked).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt};
    use tokio::process::Command;
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
        assert_eq!(http_get(&plain, &get("me", "HTTP")).await, Ok(None));
        assert_eq!(http_get(&plain, &get("you", "")).await, unwell());
        let private = server("X-Probe: me", Some(acceptor())).await;
        assert_eq!(http_get(&private, &get("me", "HTTPS")).await, Ok(None));
        assert_eq!(http_get(&private, &get("you", "HTTPS")).await, unwell());
    }

    /// A server that sends whoever asks for `/ready` to a location, and whoever comes from there with their header is well.
    async fn sending_to(location: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = tokio::io::BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).await.is_ok_and(|n| n > 0) {}
                let is_there = head.starts_with("GET /there ") && head.contains("X-Probe: me");
                let status = match (is_there, head.starts_with("GET /ready ")) {
                    (true, _) => "200 OK".to_owned(),
                    (false, true) => format!("302 Found\r\nServer: x\r\nlocation:  {location}"),
                    (false, false) => "404 Not Found".to_owned(),
                };
                stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn a_probe_goes_where_the_server_leads_it_but_not_to_others() {
        let asked = async |location| http_get(&sending_to(location).await, &get("me", "")).await;
        assert_eq!(asked("/there").await, Ok(None));
        assert_eq!(asked("/nowhere").await, Err("HTTP probe failed with statuscode: 404".to_owned()));
        assert_eq!(asked("/ready").await, Err("stopped after 10 redirects".to_owned()));
        let warned = || Ok(Some("Probe terminated redirects".to_owned()));
        assert_eq!(asked("http://elsewhere.example/there").await, warned());
        assert_eq!(asked("ftp://127.0.0.1/there").await, warned());
    }

    async fn shell(script: &str) -> Result<(), String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0);
        run_to_end(Marking::alone(command), |error| error.to_string()).await
    }

    #[tokio::test]
    async fn a_command_that_fails_says_why_in_its_own_words() {
        assert_eq!(shell("echo all is well; echo really >&2").await, Ok(()));
        assert_eq!(shell("echo one; echo two >&2; exit 3").await, Err("one\ntwo".to_owned()));
        assert_eq!(shell("exit 3").await, Err("exit code 3".to_owned()));
        assert_eq!(shell("kill -9 $$").await, Err("exit code 137".to_owned()));
        let missing = shell("exec /no/such/command").await.unwrap_err();
        assert!(missing.contains("/no/such/command"), "{missing}");
    }

    #[tokio::test]
    async fn a_command_that_has_much_to_say_is_heard_to_the_end_but_not_quoted_in_full() {
        let message = shell("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1");
        assert_eq!(message.await.unwrap_err().len() as u64, ANSWER_BYTES_MAX);
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
