//! Servers that fall silent, are busy, forget, or answer nonsense.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use krafla_api::{Key, Kind};
use krafla_client::{Access, Credentials, HttpsClient, Limits, Token};
use krafla_cluster::{Client, EventType};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::proxy::Proxy;
use crate::support::{Server, config_map};

#[tokio::test]
async fn a_watch_that_is_cut_goes_on_where_it_was() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.running.address()).await;
    let client = HttpsClient::new(server.access_at(proxy.address), Limits::default()).unwrap();
    let start = client.list(Kind::ConfigMap).await.unwrap().revision;
    let mut watch = client.watch(Kind::ConfigMap, start);
    let first = server.local.write(&config_map("a")).await.unwrap();
    let seen = watch.next().await.unwrap().unwrap();
    assert_eq!((seen.event_type, seen.revision), (EventType::Added, first.revision));

    proxy.cut(server.running.address());
    let end = loop {
        match watch.next().await {
            Some(Ok(event)) => assert_eq!(event.event_type, EventType::Bookmark),
            end => break end,
        }
    };
    assert_eq!(end.unwrap().unwrap_err().label(), "unknown");
    let second = server.local.write(&config_map("b")).await.unwrap();
    let mut watch = client.watch(Kind::ConfigMap, seen.revision);
    assert_eq!(watch.next().await.unwrap().unwrap().revision, second.revision);
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_talked_to() {
    let (server, other) = (Server::start().await, Server::start().await);
    let access = Access { authorities: other.access().authorities, ..server.access() };
    let client = HttpsClient::new(access, Limits::default()).unwrap();
    let error = client.version().await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_certificate_serves_in_place_of_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::in_dir(dir.path()).await;
    let ca_key =
        rcgen::KeyPair::from_pem(&std::fs::read_to_string(dir.path().join("ca.key")).unwrap()).unwrap();
    let mut authority = rcgen::CertificateParams::default();
    authority.distinguished_name.push(rcgen::DnType::CommonName, "krafla-ca");
    let issuer = rcgen::Issuer::new(authority, ca_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let mut administrator = rcgen::CertificateParams::new(Vec::new()).unwrap();
    administrator.distinguished_name.push(rcgen::DnType::CommonName, "administrator");
    administrator.distinguished_name.push(rcgen::DnType::OrganizationName, "system:masters");
    let chain = administrator.signed_by(&key, &issuer).unwrap().pem();
    let certificate = krafla_keys::tls::Certificate { chain: chain.into(), key: key.serialize_pem().into() };
    let nobody = Access { credentials: Credentials::default(), ..server.access() };
    let shown = Credentials { certificate: Some(certificate), token: None };
    let somebody = Access { credentials: shown, ..server.access() };
    let list =
        |access| async { HttpsClient::new(access, Limits::default()).unwrap().list(Kind::ConfigMap).await };
    assert_eq!(list(nobody).await.unwrap_err().label(), "refused");
    assert!(list(somebody).await.is_ok());
}

/// Requests as they came, and the answers that each gets.
struct Script {
    answers: Mutex<Vec<&'static str>>,
    requests: Mutex<Vec<String>>,
}

/// A server over plain HTTP/1.1 that says what it is told to say; when it runs out of answers, it says nothing.
async fn scripted(answers: &[&'static str]) -> (Arc<Script>, Access) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let answers = Mutex::new(answers.iter().rev().copied().collect());
    let script = Arc::new(Script { answers, requests: Mutex::default() });
    let played = script.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(play(played.clone(), stream));
        }
    });
    let credentials = Credentials::default();
    let access = Access {
        server,
        authorities: Vec::new(),
        server_name: None,
        skips_verification: false,
        proxy: None,
        credentials,
        context: String::new(),
        namespace: String::new(),
        origin: "script".to_owned(),
    };
    (script, access)
}

async fn play(script: Arc<Script>, stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        stream.read_exact(&mut vec![0; length]).await.unwrap();
        script.requests.lock().push(head);
        let Some(answer) = script.answers.lock().pop() else { return std::future::pending().await };
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

const BUSY: &str = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n{}";
const POD: &str =
    "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{\"metadata\":{\"resourceVersion\":\"5\"}}    ";

#[tokio::test]
async fn a_busy_server_is_given_the_time_it_asks_for() {
    let (script, access) = scripted(&[BUSY, BUSY, POD, BUSY]).await;
    let client = HttpsClient::new(access, Limits::default()).unwrap();
    let start = std::time::Instant::now();
    client.get(Kind::Pod, &Key::new("default", "a")).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(script.requests.lock().len(), 3);
    // A write is not repeated here: whoever made it is told when to try again, and whether to.
    let busy = client.write(&config_map("a")).await.unwrap_err();
    assert!(
        matches!(&busy, krafla_cluster::ClientError::Busy { retry_after: Some(after), .. } if after.as_secs() == 1),
        "{busy}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for_forever() {
    let (_script, access) = scripted(&[]).await;
    let limits = Limits { request: Duration::from_millis(20), ..Limits::default() };
    let client = HttpsClient::new(access, limits).unwrap();
    let slow = client.write(&config_map("a")).await.unwrap_err();
    assert_eq!(slow.to_string(), "outcome unknown: no answer within 20ms");
    let slow = client.watch(Kind::Pod, 1).next().await.unwrap().unwrap_err();
    assert_eq!(slow.label(), "unknown");
}

fn page(items: &str, rest: &str) -> &'static str {
    let body = format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{rest}"}},"items":[{items}]}}"#);
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).leak()
}

#[tokio::test]
async fn a_list_that_the_server_forgot_is_asked_for_at_once() {
    const GONE: &str = "HTTP/1.1 410 Gone\r\nContent-Length: 2\r\n\r\n{}";
    let whole = page(r#"{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}"#, "");
    let (script, access) = scripted(&[page(r#"{"metadata":{"name":"a"}}"#, "a+b"), GONE, whole]).await;
    let client = HttpsClient::new(access, Limits { page: 1, ..Limits::default() }).unwrap();
    let listed = client.list(Kind::Pod).await.unwrap();
    assert_eq!((listed.revision, listed.items.len()), (9, 2));
    let lines: Vec<String> =
        script.requests.lock().iter().map(|head| head.lines().next().unwrap().to_owned()).collect();
    assert_eq!(
        lines,
        [
            "GET /api/v1/pods?limit=1 HTTP/1.1",
            "GET /api/v1/pods?limit=1&continue=a%2Bb HTTP/1.1",
            "GET /api/v1/pods?limit=0 HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn a_token_that_was_renewed_is_read_again() {
    const STRANGER: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "old\n").unwrap();
    let (script, mut access) = scripted(&[POD, STRANGER, POD]).await;
    access.credentials.token = Some(Token::File(file.clone()));
    let client = HttpsClient::new(access, Limits::default()).unwrap();
    let key = Key::new("default", "a");
    client.get(Kind::Pod, &key).await.unwrap();
    std::fs::write(&file, "new\n").unwrap();
    client.get(Kind::Pod, &key).await.unwrap();
    let tokens: Vec<bool> =
        script.requests.lock().iter().map(|head| head.contains("authorization: Bearer new\r\n")).collect();
    assert_eq!(tokens, [false, false, true]);
}

#[tokio::test]
async fn a_kind_that_is_not_there_is_named_with_the_remedy() {
    const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\n404 page not found";
    let (_script, access) = scripted(&[NOT_FOUND]).await;
    let client = HttpsClient::new(access, Limits::default()).unwrap();
    let error = client.list(Kind::JobFlow).await.unwrap_err().to_string();
    assert!(error.contains("jobflows.flow.volcano.sh") && error.contains("krafla crds"), "{error}");
}
