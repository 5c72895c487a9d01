//! A webhook behind real TLS, asked by a real server.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on stops")]

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafla_api::Kind;
use krafla_apiserver::admit::Admission;
use krafla_apiserver::ops::WriteOptions;
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, Status, SystemEnv};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A webhook that allows what is named `good`, and answers nothing at all to `slow`.
struct Webhook {
    port: u16,
    certificate: String,
    listening: tokio::task::JoinHandle<()>,
}

impl Webhook {
    async fn start() -> Webhook {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listening = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                // A client that does not trust the certificate goes away: that is its right.
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        answer(stream).await;
                    }
                });
            }
        });
        Webhook { port, certificate: made.cert.pem(), listening }
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn answer(mut stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>) {
    let mut received = Vec::new();
    let review: Value = loop {
        let n_read = stream.read_buf(&mut received).await.unwrap();
        assert!(n_read > 0, "the question broke off");
        let text = String::from_utf8_lossy(&received);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(review) = serde_json::from_str(body)
        {
            assert!(head.starts_with("POST /check?timeout="), "{head}");
            break review;
        }
    };
    let name = review["request"]["name"].as_str().unwrap();
    if name == "slow" {
        return std::future::pending().await;
    }
    let response = json!({"uid": review["request"]["uid"], "allowed": name == "good"});
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
}

/// More than an answer takes on a busy machine.
const AMPLE_SECONDS: u32 = 30;

/// A server that asks a webhook about every new ConfigMap.
async fn server(webhook: &Webhook, ca_bundle: &str, timeout_seconds: u32) -> Api {
    let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default());
    api.bootstrap().await.unwrap();
    let group = "admissionregistration.k8s.io";
    let resource = api.registry().find(group, "v1", "validatingwebhookconfigurations").unwrap();
    let url = format!("https://127.0.0.1:{}/check", webhook.port);
    let configuration = json!({"metadata": {"name": "a"}, "webhooks": [{
        "name": "check.example.com",
        "clientConfig": {"url": url, "caBundle": STANDARD.encode(ca_bundle)},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": timeout_seconds,
    }]});
    api.create(&resource, "", configuration, &WriteOptions::default()).await.unwrap();
    api
}

async fn create(api: &Api, name: &str) -> Result<(), Status> {
    let maps = api.registry().of_kind(Kind::ConfigMap).unwrap();
    let map = json!({"metadata": {"name": name}});
    api.create(&maps, "default", map, &WriteOptions::default()).await.map(drop)
}

#[tokio::test]
async fn a_webhook_decides_over_tls() {
    let webhook = Webhook::start().await;
    let api = server(&webhook, &webhook.certificate, AMPLE_SECONDS).await;
    create(&api, "good").await.unwrap();
    let refused = create(&api, "bad").await.unwrap_err();
    assert_eq!(refused.code, 400);
    assert!(refused.message.starts_with("admission webhook \"check.example.com\" denied"), "{refused}");
}

#[tokio::test]
async fn a_webhook_that_takes_too_long_is_not_waited_for() {
    let webhook = Webhook::start().await;
    let api = server(&webhook, &webhook.certificate, 1).await;
    let refused = create(&api, "slow").await.unwrap_err();
    assert!(refused.message.ends_with("/check?timeout=1s\": context deadline exceeded"), "{refused}");
}

#[tokio::test]
async fn a_webhook_that_nobody_vouches_for_is_not_asked() {
    let (webhook, other) = (Webhook::start().await, Webhook::start().await);
    let api = server(&webhook, &other.certificate, AMPLE_SECONDS).await;
    let refused = create(&api, "good").await.unwrap_err();
    assert!(refused.message.contains("certificate"), "{refused}");
}
