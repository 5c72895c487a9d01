//! `.../proxy/PATH` of pods, services and nodes: the request goes on to a server in the pod, and its answer comes back.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, HOST, HeaderName, HeaderValue, LOCATION, UPGRADE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use krafla_api::Key;
use krafla_keys::tls::{Certificate, TlsError};
use krafla_schema::object;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Context;
use super::body::{self, Reply};
use super::path::ResourcePath;
use super::unread::Reading;
use crate::registry::Resource;
use crate::status::Status;

const CONNECTING: Duration = Duration::from_secs(10);
/// What is about one connection alone, and is not passed on.
const OF_CONNECTION: [HeaderName; 6] = [
    CONNECTION,
    UPGRADE,
    http::header::PROXY_AUTHENTICATE,
    http::header::TE,
    http::header::TRAILER,
    http::header::TRANSFER_ENCODING,
];

/// A request that is passed on.
pub(super) struct Proxied {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) upgrade: Option<OnUpgrade>,
    pub(super) body: Incoming,
}

/// Whom a path names: `[SCHEME:]NAME[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named<'a> {
    is_https: bool,
    name: &'a str,
    port: &'a str,
}

impl Named<'_> {
    fn parse(text: &str) -> Option<Named<'_>> {
        let named = match *text.split(':').collect::<Vec<_>>() {
            [name] => Named { is_https: false, name, port: "" },
            [name, port] => Named { is_https: false, name, port },
            [scheme @ ("" | "http" | "https"), name, port] => {
                Named { is_https: scheme == "https", name, port }
            }
            _ => return None,
        };
        Some(named).filter(|named| !named.name.is_empty())
    }
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    is_https: bool,
    address: SocketAddr,
}

/// Passes a request on, and its answer back.
pub(super) async fn answer(
    context: &Context,
    resource: &Resource,
    path: &ResourcePath,
    request: Proxied,
) -> Result<Reply, Status> {
    let (prefix, rest) = split(request.uri.path(), path.is_namespaced);
    if rest.is_empty() && matches!(request.method, Method::GET | Method::HEAD) {
        return Ok(with_slash(&request.uri));
    }
    if context.pod_access.as_ref().is_some_and(|access| access.is_simulated()) {
        return Err(Status::unavailable("this cluster is simulated: nothing runs that could answer"));
    }
    let target = find(context, resource, path)?;
    let (prefix, rest) = (prefix.to_owned(), rest.to_owned());
    pass_on(request, target, &prefix, &rest).await
}

/// What comes after `proxy` in a path.
pub(super) fn rest(path: &str, is_namespaced: bool) -> &str {
    split(path, is_namespaced).1
}

/// The path up to `proxy`, and what comes after it.
fn split(path: &str, is_namespaced: bool) -> (&str, &str) {
    // "/api/v1/namespaces/NS/pods/NAME/proxy" has seven parts, "/api/v1/nodes/NAME/proxy" has five.
    let n_parts = if is_namespaced { 7 } else { 5 };
    let end = path.match_indices('/').nth(n_parts).map_or(path.len(), |(index, _)| index);
    path.split_at(end)
}

/// Sends a browser to the same path with a slash, so that relative links lead to the server in the pod.
fn with_slash(uri: &Uri) -> Reply {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut reply = body::text(301, "");
    if let Ok(location) = HeaderValue::from_str(&format!("{}/{query}", uri.path())) {
        reply.headers_mut().insert(LOCATION, location);
    }
    reply
}

fn find(context: &Context, resource: &Resource, path: &ResourcePath) -> Result<Target, Status> {
    let singular = &resource.names.singular;
    let invalid = || Status::bad_request(format!("invalid {singular} request {:?}", path.name));
    let named = Named::parse(&path.name).ok_or_else(invalid)?;
    let key = Key::new(if resource.is_namespaced() { &path.namespace } else { "" }, named.name);
    let entry = context.api.get(resource, &key)?;
    let object: Value =
        serde_json::from_slice(&entry.bytes).map_err(|error| Status::internal(&error.to_string()))?;
    let address = match &*resource.names.plural {
        "pods" => of_pod(&named, &object)?,
        "services" => {
            let endpoints = context.api.registry().find("", "v1", "endpoints");
            let stored = endpoints.and_then(|endpoints| context.api.get(&endpoints, &key).ok());
            let stored = stored.and_then(|entry| serde_json::from_slice(&entry.bytes).ok());
            of_service(&named, &object, &stored.unwrap_or(Value::Null))?
        }
        _ => of_node(&named)?,
    };
    Ok(Target { is_https: named.is_https, address })
}

fn number(port: &str) -> Result<u16, Status> {
    let wrong =
        || Status::bad_request(format!("invalid port {port:?}: must be a number between 1 and 65535"));
    port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)
}

/// A pod's port that is not named is its first one.
fn of_pod(named: &Named<'_>, pod: &Value) -> Result<SocketAddr, Status> {
    let address: IpAddr = object::text_at(pod, "status.podIP")
        .parse()
        .map_err(|_| Status::bad_request(format!("pod {} does not have an address", named.name)))?;
    let port = if named.port.is_empty() {
        let containers = object::at(pod, "/spec/containers").as_array().into_iter().flatten();
        let mut ports =
            containers.filter_map(|container| container.pointer("/ports/0/containerPort")?.as_u64());
        ports.next().and_then(|port| u16::try_from(port).ok()).unwrap_or(80)
    } else {
        number(named.port)?
    };
    Ok((address, port).into())
}

/// One of a service's ready endpoints.
fn of_service(named: &Named<'_>, service: &Value, endpoints: &Value) -> Result<SocketAddr, Status> {
    let none = || Status::unavailable(format!("no endpoints available for service {:?}", named.name));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut port = named.port.to_owned();
    if let Ok(wanted) = named.port.parse::<u64>() {
        let ports = list(object::at(service, "/spec/ports"));
        let found = ports.iter().find(|port| port["port"].as_u64() == Some(wanted)).ok_or_else(|| {
            Status::unavailable(format!("no service port {wanted} found for service {:?}", named.name))
        })?;
        port = found["name"].as_str().unwrap_or_default().to_owned();
    }
    for subset in list(object::at(endpoints, "/subsets")) {
        let ports = list(object::at(&subset, "/ports"));
        let number = ports.iter().find(|one| one["name"].as_str().unwrap_or_default() == port);
        let number = number.and_then(|port| u16::try_from(port["port"].as_u64()?).ok());
        let addresses = list(object::at(&subset, "/addresses"));
        // Which one is asked is left to chance elsewhere; the first is as good, and tests can rely on it.
        let address = addresses.iter().find_map(|address| address["ip"].as_str()?.parse::<IpAddr>().ok());
        if let (Some(address), Some(number)) = (address, number) {
            return Ok((address, number).into());
        }
    }
    Err(none())
}

/// A node is this machine. There is no kubelet on it that could be asked without a port.
fn of_node(named: &Named<'_>) -> Result<SocketAddr, Status> {
    if named.port.is_empty() {
        let why = "there is no kubelet to ask: name a port of the machine, as in nodes/NAME:PORT/proxy";
        return Err(Status::unavailable(why));
    }
    Ok((Ipv4Addr::LOCALHOST, number(named.port)?).into())
}

/// One of the ready endpoints behind a port of a service.
pub(super) fn service_address(context: &Context, key: &Key, port: u16) -> Result<SocketAddr, Status> {
    let read = |plural: &str| -> Result<Value, Status> {
        let resource = context.api.registry().find("", "v1", plural).ok_or_else(Status::unknown_resource)?;
        let entry = context.api.get(&resource, key)?;
        serde_json::from_slice(&entry.bytes).map_err(|error| Status::internal(&error.to_string()))
    };
    let port = port.to_string();
    let named = Named { is_https: true, name: &key.name, port: &port };
    of_service(&named, &read("services")?, &read("endpoints").unwrap_or(Value::Null))
}

/// Passes a request on over a connection whose other end proves who it is.
pub(super) async fn pass_on_over(
    request: Proxied,
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    name: ServerName<'static>,
    path: &str,
) -> Result<Reply, Status> {
    let failed = |why: &dyn std::fmt::Display| {
        Status::unavailable(format!("error trying to reach service: dial tcp {address}: {why}"))
    };
    let stream = tokio::time::timeout(CONNECTING, TcpStream::connect(address)).await;
    let stream = stream.map_err(|_| failed(&"i/o timeout"))?.map_err(|error| failed(&error))?;
    let stream = tokio::time::timeout(CONNECTING, TlsConnector::from(tls).connect(name, stream)).await;
    let stream = stream.map_err(|_| failed(&"i/o timeout"))?.map_err(|error| failed(&error))?;
    exchange(stream, request, Target { is_https: true, address }, "", path).await
}

async fn pass_on(request: Proxied, target: Target, prefix: &str, rest: &str) -> Result<Reply, Status> {
    let failed = |why: &dyn std::fmt::Display| {
        Status::unavailable(format!("error trying to reach service: dial tcp {}: {why}", target.address))
    };
    let stream = tokio::time::timeout(CONNECTING, TcpStream::connect(target.address)).await;
    let stream = stream.map_err(|_| failed(&"i/o timeout"))?.map_err(|error| failed(&error))?;
    if target.is_https {
        let config = tls(None).map_err(|error| failed(&error))?;
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::from(target.address.ip());
        let stream = tokio::time::timeout(CONNECTING, connector.connect(name, stream)).await;
        let stream = stream.map_err(|_| failed(&"i/o timeout"))?.map_err(|error| failed(&error))?;
        exchange(stream, request, target, prefix, rest).await
    } else {
        exchange(stream, request, target, prefix, rest).await
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Proxied,
    target: Target,
    prefix: &str,
    rest: &str,
) -> Result<Reply, Status> {
    let failed = |error: hyper::Error| Status::unavailable(format!("error trying to reach service: {error}"));
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to a pod ended early");
        }
    });
    let Proxied { method, uri, headers, upgrade, body } = request;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let outgoing = Request::builder().method(method).uri(format!("{rest}{query}")).body(body);
    let mut outgoing = outgoing.map_err(|_| Status::bad_request("the path cannot be passed on"))?;
    *outgoing.headers_mut() = passed_on(headers);
    outgoing.headers_mut().remove(AUTHORIZATION);
    if !outgoing.headers().contains_key(HOST) {
        let host = uri.authority().map_or_else(|| target.address.to_string(), ToString::to_string);
        if let Ok(host) = HeaderValue::from_str(&host) {
            outgoing.headers_mut().insert(HOST, host);
        }
    }
    let mut response = sender.send_request(outgoing).await.map_err(failed)?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let theirs = hyper::upgrade::on(&mut response);
        if let Some(ours) = upgrade {
            tokio::spawn(join(ours, theirs));
        }
    }
    Ok(reply(response, target, prefix))
}

/// The headers that are not about one connection alone. Those by which it becomes another one are.
fn passed_on(mut headers: HeaderMap) -> HeaderMap {
    let upgrade = headers.get(UPGRADE).cloned();
    OF_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
    headers.remove("keep-alive");
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, upgrade);
    }
    headers
}

/// Passes on both ways what two sides have agreed on.
async fn join(ours: OnUpgrade, theirs: OnUpgrade) {
    if let (Ok(ours), Ok(theirs)) = tokio::join!(ours, theirs) {
        let (mut ours, mut theirs) = (TokioIo::new(ours), TokioIo::new(theirs));
        // Either side may leave whenever it likes.
        let _ = tokio::io::copy_bidirectional(&mut ours, &mut theirs).await;
    }
}

fn reply(response: Response<Incoming>, target: Target, prefix: &str) -> Reply {
    let (mut head, body) = response.into_parts();
    head.headers = passed_on(head.headers);
    if let Some(location) = head.headers.get(LOCATION).and_then(|value| value.to_str().ok())
        && let Some(location) = relocated(location, target, prefix)
        && let Ok(location) = HeaderValue::from_str(&location)
    {
        head.headers.insert(LOCATION, location);
    }
    // An answer that breaks off ends; there is no way to say why in the middle of a body.
    let frames = futures_util::stream::unfold(body, |mut body| async move {
        let frame: Frame<Bytes> = body.frame().await?.ok()?;
        Some((Ok::<_, std::convert::Infallible>(frame), body))
    });
    head.extensions.insert(Reading::AtWill);
    Response::from_parts(head, http_body_util::StreamBody::new(frames).boxed_unsync())
}

/// Where a redirect leads, seen from outside; none if it leads elsewhere anyway.
fn relocated(location: &str, target: Target, prefix: &str) -> Option<String> {
    let scheme = if target.is_https { "https" } else { "http" };
    let origin = format!("{scheme}://{}", target.address);
    let path = location.strip_prefix(&origin).unwrap_or(location);
    let is_path = path.is_empty() || (path.starts_with('/') && !path.starts_with("//"));
    is_path.then(|| format!("{prefix}{path}"))
}

/// Whose certificate it is, is not asked: nobody could vouch for a pod's.
pub(super) fn tls(shown: Option<&Certificate>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(default_provider());
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody { schemes }));
    krafla_keys::tls::showing(config, shown)
}

/// Takes everybody for who they say they are.
#[derive(Debug)]
struct Anybody {
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_names_scheme_name_and_port() {
        let named = |is_https, name, port| Some(Named { is_https, name, port });
        assert_eq!(Named::parse("web"), named(false, "web", ""));
        assert_eq!(Named::parse("web:80"), named(false, "web", "80"));
        assert_eq!(Named::parse("https:web:443"), named(true, "web", "443"));
        assert_eq!(Named::parse("https:web:"), named(true, "web", ""));
        assert_eq!(Named::parse(":web:80"), named(false, "web", "80"));
        for wrong in ["", "ftp:web:80", "a:b:c:d", ":80"] {
            assert_eq!(Named::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_comes_after_proxy_is_passed_on_as_it_is() {
        let path = "/api/v1/namespaces/ns/pods/p:80/proxy";
        assert_eq!(split(path, true), (path, ""));
        assert_eq!(split(&format!("{path}/a%2Fb//c/"), true), (path, "/a%2Fb//c/"));
        assert_eq!(split("/api/v1/nodes/n/proxy/x", false), ("/api/v1/nodes/n/proxy", "/x"));
    }

    #[test]
    fn ports_are_found() {
        let pod = json!({
            "status": {"podIP": "127.64.0.1"}, "spec": {"containers": [{}, {"ports": [{"containerPort": 8080}]}]},
        });
        let at = |name: &str| {
            let named = Named::parse(name).unwrap();
            of_pod(&named, &pod).map(|address| address.to_string()).map_err(|status| status.message)
        };
        assert_eq!(at("p"), Ok("127.64.0.1:8080".to_owned()));
        assert_eq!(at("p:9"), Ok("127.64.0.1:9".to_owned()));
        assert!(at("p:http").is_err());

        let service =
            json!({"spec": {"ports": [{"name": "web", "port": 80}, {"name": "other", "port": 81}]}});
        let ports = json!([{"name": "web", "port": 8080}]);
        let endpoints = json!({"subsets": [{"addresses": [{"ip": "127.64.0.1"}], "ports": ports}]});
        let at = |name: &str| {
            let named = Named::parse(name).unwrap();
            of_service(&named, &service, &endpoints).map(|to| to.to_string()).map_err(|status| status.message)
        };
        assert_eq!(at("s:web"), Ok("127.64.0.1:8080".to_owned()));
        assert_eq!(at("s:80"), Ok("127.64.0.1:8080".to_owned()));
        assert_eq!(at("s:81"), Err("no endpoints available for service \"s\"".to_owned()));
        assert_eq!(at("s:99"), Err("no service port 99 found for service \"s\"".to_owned()));
    }

    #[test]
    fn a_redirect_stays_behind_the_proxy() {
        let target = Target { is_https: false, address: "127.64.0.1:80".parse().unwrap() };
        let leads = |location: &str| relocated(location, target, "/p/proxy");
        assert_eq!(leads("/login"), Some("/p/proxy/login".to_owned()));
        assert_eq!(leads("http://127.64.0.1:80/login"), Some("/p/proxy/login".to_owned()));
        assert_eq!(leads("https://example.org/"), None);
        assert_eq!(leads("//example.org/"), None);
    }
}
