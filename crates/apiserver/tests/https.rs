//! The server as a stranger sees it: over TLS, byte by byte.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]

use std::net::SocketAddr;
use std::sync::Arc;

use krafla_apiserver::admit::Admission;
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, RunningServer, ServerConfig, SystemEnv, Tokens, serve};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

async fn start(data_dir: Option<&std::path::Path>) -> RunningServer {
    let env = Arc::new(SystemEnv);
    let api = Api::new(Store::in_memory(), env.clone(), Admission::default());
    api.bootstrap().await.unwrap();
    api.bootstrap_roles().await.unwrap();
    let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
    let tokens = Arc::new(Tokens::for_now());
    let config = ServerConfig { data_dir: data_dir.map(Into::into), ..ServerConfig::new(listen, tokens) };
    serve(api, env, config).await.unwrap()
}

async fn connect(server: &RunningServer) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// Sends a request and returns the code and the rest of the answer.
async fn ask(server: &RunningServer, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = connect(server).await;
    send(&mut stream, token, method, path, body).await;
    answer(stream).await
}

/// The code and the rest of an answer.
async fn answer(mut stream: TlsStream<TcpStream>) -> (u16, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let code = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (code, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

async fn send(stream: &mut TlsStream<TcpStream>, token: &str, method: &str, path: &str, body: &str) {
    send_as(stream, "application/json", token, method, path, body).await;
}

async fn send_as(
    stream: &mut TlsStream<TcpStream>,
    content_type: &str,
    token: &str,
    method: &str,
    path: &str,
    body: &str,
) {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn only_who_has_the_token_is_answered() {
    let server = start(None).await;
    assert_eq!(ask(&server, "wrong", "GET", "/version", "").await.0, 401);
    let (code, version) = ask(&server, server.token(), "GET", "/version", "").await;
    assert_eq!(code, 200);
    assert!(version.contains("+krafla"), "{version}");
    server.shutdown().await;
}

#[tokio::test]
async fn objects_are_made_listed_and_deleted() {
    let server = start(None).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let (code, _) =
        ask(&server, server.token(), "POST", maps, r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#).await;
    assert_eq!(code, 201);
    let (code, list) = ask(&server, server.token(), "GET", maps, "").await;
    assert_eq!(code, 200);
    assert!(list.contains(r#""kind":"ConfigMapList""#) && list.contains(r#""data":{"k":"v"}"#), "{list}");
    assert_eq!(ask(&server, server.token(), "DELETE", &format!("{maps}/a"), "").await.0, 200);
    assert_eq!(ask(&server, server.token(), "GET", &format!("{maps}/a"), "").await.0, 404);
    server.shutdown().await;
}

/// One bad request: who sends it how, and what it is told.
struct Bad<'a> {
    token: &'a str,
    request: (&'a str, &'a str),
    content_type: &'a str,
    body: String,
    code: u16,
    says: &'a str,
}

#[tokio::test]
async fn bad_input_is_refused_with_its_code_and_reason() {
    const JSON: &str = "application/json";
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    const ONE: &str = "/api/v1/namespaces/default/configmaps/a";
    let server = start(None).await;
    let token = server.token();
    let create = r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#;
    assert_eq!(ask(&server, token, "POST", MAPS, create).await.0, 201);
    let before = ask(&server, token, "GET", MAPS, "").await.1;

    let post = |content_type, body: &str, code, says| {
        let body = body.to_owned();
        Bad { token, request: ("POST", MAPS), content_type, body, code, says }
    };
    let get = |path, code, says| Bad {
        token,
        request: ("GET", path),
        content_type: JSON,
        body: String::new(),
        code,
        says,
    };
    let patch = |content_type, body: String, code, says| Bad {
        token,
        request: ("PATCH", ONE),
        content_type,
        body,
        code,
        says,
    };
    let operation = r#"{"op":"test","path":"/data/k","value":"v"}"#;
    let too_many = format!("[{}{operation}]", format!("{operation},").repeat(10_000));
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let huge = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "x".repeat(3 * 1024 * 1024));
    let stale = r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#.to_owned();
    let cases = [
        Bad { token: "wrong", ..get(MAPS, 401, "Unauthorized") },
        post(JSON, &huge, 413, "RequestEntityTooLarge"),
        post(JSON, &nested(20_000), 400, "BadRequest"),
        post(JSON, r#"{"metadata":"#, 400, "BadRequest"),
        post("application/yaml", "metadata: [", 400, "BadRequest"),
        post("application/vnd.kubernetes.protobuf", "k8s\u{0}nonsense", 400, "BadRequest"),
        post("application/x-odd", create, 415, "UnsupportedMediaType"),
        post(JSON, r#"{"kind":"Odd","apiVersion":"v1","metadata":{"name":"b"}}"#, 400, "BadRequest"),
        post(JSON, r#"{"metadata":{"name":"B/"}}"#, 422, "Invalid"),
        get("/api/v1/namespaces/default/configmaps?labelSelector=a+in", 400, "BadRequest"),
        get("/api/v1/namespaces/default/configmaps?fieldSelector=data.k=v", 400, "BadRequest"),
        get("/api/v1/namespaces/default/configmaps?resourceVersion=odd", 400, "BadRequest"),
        get("/api/v1/namespaces/default/configmaps?limit=1&continue=odd", 400, "BadRequest"),
        get("/api/v1/namespaces/default/odds", 404, "NotFound"),
        get("/api/v1/namespaces/default/configmaps/missing", 404, "NotFound"),
        Bad { token, request: ("PUT", ONE), content_type: JSON, body: stale, code: 409, says: "Conflict" },
        patch("application/json-patch+json", too_many, 413, "RequestEntityTooLarge"),
        patch(
            "application/json-patch+json",
            r#"[{"op":"test","path":"/data/k","value":"w"}]"#.to_owned(),
            422,
            "Invalid",
        ),
        patch("application/merge-patch+json", nested(20_000), 400, "BadRequest"),
        patch("application/strategic-merge-patch+json", nested(20_000), 400, "BadRequest"),
        Bad {
            request: ("PATCH", "/api/v1/namespaces/default/configmaps/a?fieldManager=m"),
            ..patch("application/apply-patch+yaml", nested(20_000), 400, "BadRequest")
        },
    ];
    for Bad { token, request: (method, path), content_type, body, code, says } in cases {
        let mut stream = connect(&server).await;
        send_as(&mut stream, content_type, token, method, path, &body).await;
        let (answered, status) = answer(stream).await;
        let sent = body.get(..80).unwrap_or(&body);
        assert_eq!(answered, code, "{method} {path} {sent}: {status}");
        assert!(status.contains(&format!(r#""reason":"{says}""#)), "{method} {path} {sent}: {status}");
    }
    assert_eq!(ask(&server, token, "GET", MAPS, "").await.1, before, "nothing of it was stored");
    server.shutdown().await;
}

#[tokio::test]
async fn a_watch_tells_what_happens_and_ends_with_the_server() {
    let server = start(None).await;
    let mut stream = connect(&server).await;
    send(&mut stream, server.token(), "GET", "/api/v1/namespaces/default/configmaps?watch=true", "").await;
    let create = r#"{"metadata":{"name":"a"}}"#;
    ask(&server, server.token(), "POST", "/api/v1/namespaces/default/configmaps", create).await;
    let mut lines = BufReader::new(stream).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("the watch goes on");
        if line.starts_with(r#"{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap""#) {
            break;
        }
    }
    server.shutdown().await;
    while let Ok(Some(_)) = lines.next_line().await {}
}

#[tokio::test]
async fn certificates_and_token_outlive_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let first = start(Some(dir.path())).await;
    let (ca, token) = (first.ca_pem().to_owned(), first.token().to_owned());
    assert!(first.kubeconfig().contains(&token));
    first.shutdown().await;
    let second = start(Some(dir.path())).await;
    assert_eq!((second.ca_pem(), second.token()), (ca.as_str(), token.as_str()));
    assert_eq!(ask(&second, &token, "GET", "/healthz", "").await, (200, "ok".to_owned()));
    second.shutdown().await;
}

/// Sends a request as it stands, and returns everything that comes back until the server has no more to say.
async fn ask_raw(server: &RunningServer, head: &str) -> Vec<u8> {
    let mut stream = connect(server).await;
    stream.write_all(head.replace('\n', "\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A WebSocket ends without the farewell of TLS.
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

const WEBSOCKET: &str = "Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

#[tokio::test]
async fn a_watch_over_websocket_sends_one_event_in_each_message() {
    let server = start(None).await;
    let token = server.token();
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b"] {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        assert_eq!(ask(&server, token, "POST", maps, &body).await.0, 201);
    }
    let head = format!(
        "GET {maps}?watch=true&timeoutSeconds=1 HTTP/1.1\nHost: localhost\nAuthorization: Bearer {token}\n\
         Sec-WebSocket-Protocol: base64.binary.k8s.io\n{WEBSOCKET}\n\n"
    );
    let answer = ask_raw(&server, &head).await;
    let text = String::from_utf8_lossy(&answer);
    let (head, _) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.to_lowercase().contains("sec-websocket-protocol: base64.binary.k8s.io"), "{head}");
    let body = &answer[head.len() + 4..];
    // Two texts, each one event, and the end: the first byte of a message says which it is.
    let mut rest = body;
    for name in ["a", "b"] {
        assert_eq!(rest[0], 0x81, "a text");
        assert_eq!(rest[1], 126, "of middling length");
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        let event: serde_json::Value = serde_json::from_slice(&rest[4..4 + length]).unwrap();
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&"ADDED".into(), &name.into()));
        rest = &rest[4 + length..];
    }
    assert_eq!(rest, [0x88, 0x02, 0x03, 0xe8], "it ends in order");
    server.shutdown().await;
}

#[tokio::test]
async fn whoever_shows_nothing_sees_health_and_version_only() {
    let server = start(None).await;
    for (path, code) in [
        ("/healthz", 200),
        ("/livez", 200),
        ("/readyz", 200),
        ("/version", 200),
        ("/metrics", 403),
        ("/api/v1/pods", 403),
    ] {
        let head = format!("GET {path} HTTP/1.1\nHost: localhost\nConnection: close\n\n");
        let answer = ask_raw(&server, &head).await;
        let line = format!("HTTP/1.1 {code} ");
        assert!(answer.starts_with(line.as_bytes()), "{path}: {}", String::from_utf8_lossy(&answer));
    }
    server.shutdown().await;
}

#[tokio::test]
async fn answers_are_protobuf_for_those_who_want_it() {
    let server = start(None).await;
    let token = server.token();
    let accept = |path: &str, accept: &str| {
        format!(
            "GET {path} HTTP/1.1\nHost: localhost\nConnection: close\nAuthorization: Bearer {token}\n\
             Accept: {accept}\n\n"
        )
    };
    let protobuf = "application/vnd.kubernetes.protobuf,application/json";
    let has = |answer: &[u8], part: &[u8]| answer.windows(part.len()).any(|window| window == part);
    for (path, kind) in [
        ("/api/v1/namespaces/default", "Namespace"),
        ("/api/v1/namespaces", "NamespaceList"),
        ("/api/v1/namespaces/none", "Status"),
        ("/apis", "APIGroupList"),
    ] {
        let answer = ask_raw(&server, &accept(path, protobuf)).await;
        assert!(has(&answer, b"content-type: application/vnd.kubernetes.protobuf\r\n"), "{path}");
        assert!(has(&answer, b"k8s\0") && has(&answer, kind.as_bytes()), "{path}");
    }
    let watch = accept("/api/v1/namespaces?watch=true&timeoutSeconds=1", protobuf);
    let answer = ask_raw(&server, &watch).await;
    assert!(has(&answer, b"content-type: application/vnd.kubernetes.protobuf;stream=watch\r\n"));
    assert!(has(&answer, b"\n\x05ADDED\x12"), "{}", String::from_utf8_lossy(&answer));
    let gnostic = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let answer = ask_raw(&server, &accept("/openapi/v2", gnostic)).await;
    assert!(has(&answer, b"content-type: application/com.github.proto-openapi.spec.v2.v1.0+protobuf\r\n"));
    let answer = ask_raw(&server, &accept("/openapi/v2", "application/json")).await;
    assert!(has(&answer, br##""$ref":"#/definitions/io.k8s.api.core.v1.PodSpec""##));
    server.shutdown().await;
}
