//! Another API server behind an APIService: requests reach it, and discovery shows what it serves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on stops"
)]

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafla_api::Key;
use krafla_apiserver::admit::Admission;
use krafla_apiserver::ops::WriteOptions;
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, RunningServer, ServerConfig, SystemEnv, Tokens, serve};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A server of the group `ext.example.com` that answers every request with what it was told about the user.
async fn start_other() -> (u16, String) {
    let made = rcgen::generate_simple_self_signed(["ext.default.svc".to_owned()]).unwrap();
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
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut received = Vec::new();
                while !String::from_utf8_lossy(&received).contains("\r\n\r\n") {
                    if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let body = answer(&String::from_utf8_lossy(&received));
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            });
        }
    });
    (port, made.cert.pem())
}

fn answer(request: &str) -> String {
    let path = request.split(' ').nth(1).unwrap();
    if path == "/apis/ext.example.com/v1" {
        let verbs = json!(["get", "list"]);
        let things = json!({"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": verbs});
        let status = json!({"name": "things/status", "singularName": "", "namespaced": true, "kind": "Thing", "verbs": verbs});
        return json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "ext.example.com/v1",
            "resources": [things, status],
        })
        .to_string();
    }
    let header = |name: &str| {
        let mut lines = request.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    json!({"path": path, "user": header("x-remote-user"), "token": header("authorization")}).to_string()
}

async fn start(port: u16, ca: &str) -> (Api, RunningServer) {
    let env = Arc::new(SystemEnv);
    let api = Api::new(Store::in_memory(), env.clone(), Admission::default());
    api.bootstrap().await.unwrap();
    // Addresses of this machine are for the server alone.
    let options = WriteOptions { is_servers_own: true, ..WriteOptions::default() };
    let ports = json!([{"name": "https", "port": 443}]);
    let service = json!({"metadata": {"name": "ext"}, "spec": {"ports": ports}});
    let subset = json!({"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": port}]});
    let endpoints = json!({"metadata": {"name": "ext"}, "subsets": [subset]});
    let spec = json!({
        "group": "ext.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
        "service": {"namespace": "default", "name": "ext", "port": 443}, "caBundle": STANDARD.encode(ca),
    });
    let registration = json!({"metadata": {"name": "v1.ext.example.com"}, "spec": spec});
    let find = |group: &str, plural: &str| api.registry().find(group, "v1", plural).unwrap();
    api.create(&find("", "services"), "default", service, &options).await.unwrap();
    api.create(&find("", "endpoints"), "default", endpoints, &options).await.unwrap();
    api.create(&find("apiregistration.k8s.io", "apiservices"), "", registration, &options).await.unwrap();
    let config = ServerConfig::new(([127, 0, 0, 1], 0).into(), Arc::new(Tokens::for_now()));
    let server = serve(api.clone(), env, config).await.unwrap();
    (api, server)
}

/// The condition of the APIService, once the server has looked at it.
async fn condition(api: &Api) -> String {
    let services = api.registry().find("apiregistration.k8s.io", "v1", "apiservices").unwrap();
    // The watch begins before the first look, so no change is missed.
    let mut changes = api.store().watch(&services.storage, api.store().revision()).unwrap();
    let stored = async {
        loop {
            let entry = api.store().get(&services.storage, &Key::new("", "v1.ext.example.com")).unwrap();
            let service: Value = serde_json::from_slice(&entry.bytes).unwrap();
            if let Some(condition) = service.pointer("/status/conditions/0") {
                return format!("{} {}", condition["status"], condition["reason"]);
            }
            changes.next().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), stored).await.expect("the APIService has a condition")
}

async fn get(server: &RunningServer, path: &str, accept: &str) -> Value {
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
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\nAccept: {accept}\r\n\
         X-Remote-User: somebody\r\n\r\n",
        server.token()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(body).unwrap_or_else(|_| Value::from(answer.clone()))
}

#[tokio::test]
async fn requests_for_the_group_reach_the_other_server() {
    let (port, ca) = start_other().await;
    let (api, server) = start(port, &ca).await;
    assert_eq!(condition(&api).await, r#""True" "Passed""#);
    let path = "/apis/ext.example.com/v1/namespaces/a/things/b?x=y";
    assert_eq!(
        get(&server, path, "application/json").await,
        json!({"path": path, "user": "krafla:admin", "token": null})
    );
    let groups = get(&server, "/apis", "application/json").await;
    let has_group =
        groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "ext.example.com");
    assert!(has_group, "{groups}");
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let groups = get(&server, "/apis", accept).await;
    let groups = groups["items"].as_array().unwrap();
    let group = groups.iter().find(|group| group["metadata"]["name"] == "ext.example.com").unwrap();
    let things = &group["versions"][0]["resources"][0];
    assert_eq!([&things["resource"], &things["scope"]], ["things", "Namespaced"]);
    assert_eq!(things["subresources"][0]["subresource"], "status");
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_asked() {
    let ((port, _), (_, other)) = (start_other().await, start_other().await);
    let (api, server) = start(port, &other).await;
    assert_eq!(condition(&api).await, r#""False" "FailedDiscoveryCheck""#);
    let refused = get(&server, "/apis/ext.example.com/v1/things", "application/json").await;
    assert_eq!([&refused["code"], &refused["message"]], [&json!(503), &json!("service unavailable")]);
    server.shutdown().await;
}
