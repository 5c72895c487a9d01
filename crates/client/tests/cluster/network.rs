//! The way to a server: through proxies, and without verification.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use krafla_client::{HttpsClient, Limits, Proxy};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::Server;

/// A proxy that takes CONNECT, and how often it was used.
async fn proxy() -> (Proxy, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let n_used = Arc::new(AtomicUsize::new(0));
    let counted = n_used.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut client = BufReader::new(client);
                let mut lines = Vec::new();
                while !lines.ends_with(&["\r\n".to_owned()]) {
                    let mut line = String::new();
                    client.read_line(&mut line).await.unwrap();
                    lines.push(line);
                }
                let target = lines[0].split_whitespace().nth(1).unwrap().to_owned();
                let mut server = TcpStream::connect(target).await.unwrap();
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (Proxy::parse(&format!("http://{address}")).unwrap(), n_used)
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_the_kubeconfig() {
    let server = Server::start().await;
    let (proxy, n_used) = proxy().await;
    let mut access = server.access();
    access.proxy = Some(proxy);
    let client = HttpsClient::new(access, Limits::default()).unwrap();
    assert!(client.version().await.is_ok());
    assert_eq!(n_used.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_server_of_an_unknown_authority_is_used_only_where_the_kubeconfig_says_so() {
    let server = Server::start().await;
    let mut access = server.access();
    access.authorities = Vec::new();
    let version = async |access| HttpsClient::new(access, Limits::default()).unwrap().version().await;
    let refused = version(access.clone()).await.unwrap_err().to_string();
    assert!(refused.contains("certificate"), "{refused}");
    access.skips_verification = true;
    assert!(version(access).await.is_ok());
}
