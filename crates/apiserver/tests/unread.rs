//! Clients that do not read what they asked for: they cost little, and not for long.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafla_apiserver::admit::Admission;
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, RunningServer, ServerConfig, SystemEnv, Tokens, serve};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// As the program that serves in production.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const N_WATCHES: usize = 300;
/// The name and the data of one event: more than all buffers between a server and a client hold.
const NEWS_BYTES: usize = 1 << 20;
const N_NEWS: usize = 12;
/// How much a watch may cost whose client does not read, the connection and the client of this test included.
const WATCH_BYTES_MAX: usize = 400 << 10;

async fn start() -> RunningServer {
    let env = Arc::new(SystemEnv);
    let api = Api::new(Store::in_memory(), env.clone(), Admission::default());
    api.bootstrap().await.unwrap();
    let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
    let tokens = Arc::new(Tokens::for_now());
    let config = ServerConfig { read_within: Duration::from_secs(6), ..ServerConfig::new(listen, tokens) };
    serve(api, env, config).await.unwrap()
}

async fn request(server: &RunningServer, tls: &TlsConnector, head: &str, body: &str) -> TlsStream<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(server.address()).await.unwrap();
    let mut stream = tls.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let (token, length) = (server.token(), body.len());
    let request = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\
         Content-Type: application/json\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

fn connector(server: &RunningServer) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// How much memory this process has.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// How many files this process has open.
fn n_open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_are_not_read_cost_little_and_are_closed() {
    let server = start().await;
    let tls = connector(&server);
    let path = "/api/v1/namespaces/default/configmaps";
    let watch = format!("GET {path}?watch=true&resourceVersion=1&allowWatchBookmarks=false");
    let mut reader = BufReader::new(request(&server, &tls, &watch, "").await).split(b'\n');
    let mut unread = Vec::new();
    for _ in 0..N_WATCHES {
        let mut stream = request(&server, &tls, &watch, "").await;
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200 OK");
        unread.push(stream);
    }
    let (before, n_files) = (resident_bytes(), n_open_files());

    let data = "x".repeat(NEWS_BYTES - 1000);
    for number in 0..N_NEWS {
        let object = format!(r#"{{"metadata":{{"name":"news-{number}"}},"data":{{"x":"{data}"}}}}"#);
        let mut answer = request(&server, &tls, &format!("POST {path}"), &object).await;
        let mut begin = [0; 12];
        answer.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 201");
        // Whoever reads is told of all.
        let news = format!(r#""name":"news-{number}""#);
        loop {
            let line = reader.next_segment().await.unwrap().unwrap();
            if line.windows(news.len()).any(|part| part == news.as_bytes()) {
                break;
            }
        }
    }
    let per_watch = resident_bytes().saturating_sub(before) / N_WATCHES;
    assert!(per_watch < WATCH_BYTES_MAX, "{per_watch} bytes for each watch");

    let deadline = Instant::now() + Duration::from_secs(60);
    while n_open_files() > n_files - N_WATCHES / 2 {
        assert!(Instant::now() < deadline, "{} files are open, {n_files} before", n_open_files());
        tokio::task::yield_now().await;
    }
    let answer = request(&server, &tls, &format!("GET {path}/none"), "").await;
    let line = BufReader::new(answer).lines().next_line().await.unwrap();
    assert_eq!(line.as_deref(), Some("HTTP/1.1 404 Not Found"));
    drop(unread);
    println!("{per_watch} bytes for each watch, {} at the end", resident_bytes() / N_WATCHES);
}
