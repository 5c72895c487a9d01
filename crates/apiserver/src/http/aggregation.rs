//! Groups that other servers answer for: requests go on to the Service that an APIService names.
//!
//! ```text
//!   APIServices, Services, Endpoints ──> look: does the server answer, and what does it serve?
//!                                          |──> condition Available
//!                                          └──> the list by which requests and discovery find the server
//! ```
//!
//! The other server knows users by headers, and trusts them because this one shows a certificate. The authority of that
//! certificate is in the ConfigMap `kube-system/extension-apiserver-authentication`, where such servers look for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::select;
use http::header::{ACCEPT, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use krafla_admission::rbac::User;
use krafla_api::Key;
use krafla_keys::tls::Certificate;
use krafla_schema::object;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::body::Reply;
use super::certificates::FrontProxy;
use super::path::Route;
use super::{Context, proxy, stopped};
use crate::ops::api_services::{GROUP, SERVICES};
use crate::ops::{Part, WriteOptions};
use crate::patch::Patch;
use crate::status::Status;

/// How often servers are asked whether they are well, without another reason.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How long a server may take to say what it serves.
const DISCOVERY_WITHIN: Duration = Duration::from_secs(5);
const DISCOVERY_BYTES_MAX: usize = 1024 * 1024;
const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const USER_GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA: &str = "x-remote-extra-";
/// Who asks other servers what they serve.
const AGGREGATOR: &str = "system:kube-aggregator";

/// What other servers answer for.
pub(super) struct Aggregation {
    servers: ArcSwap<Vec<Server>>,
    identity: FrontProxy,
}

/// A server that answers for one version of a group.
#[derive(Clone)]
struct Server {
    group: String,
    version: String,
    /// Priority of the group and of the version.
    priority: (i64, i64),
    service: Key,
    port: u16,
    tls: Result<Arc<ClientConfig>, String>,
    /// What it serves, as an APIResourceList; none while it does not answer.
    resources: Option<Value>,
}

/// Why a server is not available: reason and message of the condition.
type Unavailable = (&'static str, String);

impl Aggregation {
    pub(super) fn new(identity: FrontProxy) -> Aggregation {
        Aggregation { servers: ArcSwap::default(), identity }
    }

    /// The server that answers a request, if it is not this one.
    fn server(&self, route: &Route) -> Option<Server> {
        let servers = self.servers.load();
        let (group, version) = match route {
            Route::Resources(group, version) => (group, version),
            Route::Resource(path) => (&path.group, &path.version),
            _ => return None,
        };
        servers.iter().find(|server| server.group == *group && server.version == *version).cloned()
    }

    /// Groups of other servers as the old form of discovery shows them.
    pub(super) fn groups(&self) -> Vec<Value> {
        let group = |name: &str, versions: &[&Server]| {
            let shown = |server: &&Server| json!({"groupVersion": format!("{name}/{}", server.version), "version": server.version});
            let preferred = versions.first().map(shown).unwrap_or_default();
            let versions: Vec<Value> = versions.iter().map(shown).collect();
            json!({"name": name, "versions": versions, "preferredVersion": preferred})
        };
        by_group(&self.servers.load(), group)
    }

    /// Groups of other servers as the new form of discovery shows them.
    pub(super) fn groups_in_full(&self) -> Vec<Value> {
        by_group(&self.servers.load(), |name, versions| {
            let versions = versions.iter().map(|server| {
                let freshness = if server.resources.is_some() { "Current" } else { "Stale" };
                let resources =
                    server.resources.as_ref().map(|list| in_full(list, server)).unwrap_or_default();
                json!({"version": server.version, "freshness": freshness, "resources": resources})
            });
            json!({"metadata": {"name": name}, "versions": versions.collect::<Vec<Value>>()})
        })
    }
}

/// One value for each group, whose versions are in the order of their priorities.
fn by_group(servers: &[Server], show: impl Fn(&str, &[&Server]) -> Value) -> Vec<Value> {
    let names: BTreeSet<&str> = servers.iter().map(|server| server.group.as_str()).collect();
    let group = |name: &str| {
        let mut versions: Vec<&Server> = servers.iter().filter(|server| server.group == name).collect();
        versions.sort_by_key(|server| std::cmp::Reverse(server.priority));
        show(name, &versions)
    };
    names.into_iter().map(group).collect()
}

/// Resources of an APIResourceList as the new form of discovery shows them.
fn in_full(list: &Value, server: &Server) -> Vec<Value> {
    let all = object::at(list, "/resources").as_array().cloned().unwrap_or_default();
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let kind = |of: &Value| {
        let or_own = |field: &str, own: &str| match text(of, field) {
            given if given.is_empty() => own.to_owned(),
            given => given,
        };
        json!({
            "group": or_own("group", &server.group), "version": or_own("version", &server.version),
            "kind": text(of, "kind"),
        })
    };
    let resource = |of: &Value| {
        let name = text(of, "name");
        let prefix = format!("{name}/");
        let below = all.iter().filter_map(|of| {
            let subresource = of["name"].as_str()?.strip_prefix(&prefix)?.to_owned();
            Some(json!({"subresource": subresource, "responseKind": kind(of), "verbs": of["verbs"]}))
        });
        let below: Vec<Value> = below.collect();
        let mut shown = json!({
            "resource": name, "responseKind": kind(of), "verbs": of["verbs"],
            "scope": if of["namespaced"] == true { "Namespaced" } else { "Cluster" },
            "singularResource": text(of, "singularName"),
        });
        for field in ["shortNames", "categories"] {
            if let Some(names) = of.get(field) {
                object::set(&mut shown, field, names.clone());
            }
        }
        if !below.is_empty() {
            object::set(&mut shown, "subresources", below);
        }
        shown
    };
    all.iter().filter(|of| !text(of, "name").contains('/')).map(resource).collect()
}

impl Server {
    /// Reads an APIService. Those of this server name no Service.
    fn read(service: &Value, identity: &FrontProxy) -> Option<Server> {
        let spec = service.get("spec")?;
        let reference = spec.get("service").filter(|reference| !reference.is_null())?;
        let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        let number = |of: &Value, field: &str| of[field].as_i64().unwrap_or_default();
        Some(Server {
            group: text(spec, "group"),
            version: text(spec, "version"),
            priority: (number(spec, "groupPriorityMinimum"), number(spec, "versionPriority")),
            service: Key::new(&text(reference, "namespace"), &text(reference, "name")),
            port: u16::try_from(number(reference, "port")).unwrap_or(443),
            tls: tls(spec, &identity.shown).map(Arc::new),
            resources: None,
        })
    }

    /// The name that the certificate of the server must be for.
    fn host(&self) -> String {
        format!("{}.{}.svc", self.service.name, self.service.namespace)
    }
}

fn tls(spec: &Value, shown: &Certificate) -> Result<ClientConfig, String> {
    if spec["insecureSkipTLSVerify"] == true {
        return proxy::tls(Some(shown)).map_err(|error| error.to_string());
    }
    let bundle = STANDARD.decode(spec["caBundle"].as_str().unwrap_or_default());
    let bundle = bundle.map_err(|error| format!("caBundle: {error}"))?;
    krafla_keys::tls::trusting(&bundle, Some(shown)).map_err(|error| format!("caBundle: {error}"))
}

/// The headers that tell another server who asks. Those that a client sends do not count.
fn tell_user(headers: &mut HeaderMap, user: &User) {
    let is_told =
        |name: &HeaderName| [USER, UID, USER_GROUP].contains(name) || name.as_str().starts_with(EXTRA);
    let told: Vec<HeaderName> = headers.keys().filter(|name| is_told(name)).cloned().collect();
    told.iter().for_each(|name| drop(headers.remove(name)));
    let mut tell = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.append(name, value);
        }
    };
    tell(USER, &user.name);
    if !user.uid.is_empty() {
        tell(UID, &user.uid);
    }
    user.groups.iter().for_each(|group| tell(USER_GROUP, group));
    for (key, values) in &user.extra {
        let name = format!("{EXTRA}{}", key.to_lowercase().replace('/', "%2f"));
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
        values.iter().for_each(|value| tell(name.clone(), value));
    }
}

impl Context {
    /// Whether another server answers a request.
    pub(super) fn is_aggregated(&self, route: &Route) -> bool {
        !self.aggregation.servers.load().is_empty() && self.aggregation.server(route).is_some()
    }

    /// Passes a request on to the server that answers for its group.
    pub(super) async fn aggregated(
        &self,
        route: &Route,
        user: &User,
        mut request: proxy::Proxied,
    ) -> Result<Reply, Status> {
        let unavailable = || Status::unavailable("service unavailable");
        let server = self.aggregation.server(route).ok_or_else(unavailable)?;
        if server.resources.is_none() {
            return Err(unavailable());
        }
        let address =
            proxy::service_address(self, &server.service, server.port).map_err(|_| unavailable())?;
        let tls = server.tls.clone().map_err(|why| Status::internal(&why))?;
        let host = server.host();
        tell_user(&mut request.headers, user);
        if let Ok(host) = HeaderValue::from_str(&host) {
            request.headers.insert(HOST, host);
        }
        let name = ServerName::try_from(host).map_err(|error| Status::internal(&error.to_string()))?;
        let path = request.uri.path().to_owned();
        proxy::pass_on_over(request, address, tls, name, &path).await
    }

    /// Keeps the list of other servers, until this one stops.
    pub(super) async fn run_aggregation(&self) {
        if let Err(error) = self.publish_front_proxy().await {
            tracing::warn!(%error, "the ConfigMap extension-apiserver-authentication cannot be written");
        }
        let mut stopping = self.stopping.clone();
        loop {
            let since = self.api.store().revision();
            let n_servers = self.look_at_servers().await;
            let own = format!("{SERVICES}.{GROUP}");
            let watched =
                if n_servers == 0 { vec![own.as_str()] } else { vec![&own, "services", "endpoints"] };
            let watched = watched.into_iter().map(Into::into).collect();
            let changed = Box::pin(self.api.changed_after(since, watched, |_| true));
            // Without another server nothing has to be asked.
            let pause = if n_servers == 0 { Duration::MAX } else { LOOK_EVERY };
            let waited =
                select(Box::pin(stopped(&mut stopping)), Box::pin(tokio::time::timeout(pause, changed)));
            if let futures_util::future::Either::Left(_) = waited.await {
                return;
            }
        }
    }

    /// Asks each server what it serves, and says of each APIService whether it answers. Returns how many there are.
    async fn look_at_servers(&self) -> usize {
        let Some(resource) = self.api.registry().find(GROUP, "v1", SERVICES) else { return 0 };
        let mut servers = Vec::new();
        for entry in self.api.store().snapshot(&resource.storage).entries.values() {
            let Ok(service) = serde_json::from_slice::<Value>(&entry.bytes) else { continue };
            let Some(mut server) = Server::read(&service, &self.aggregation.identity) else { continue };
            let found = self.discover(&server).await;
            let (status, reason, message) = match &found {
                Ok(_) => ("True", "Passed", "all checks passed"),
                Err((reason, message)) => ("False", *reason, message.as_str()),
            };
            server.resources = found.as_ref().ok().cloned();
            servers.push(server);
            let said = json!({"type": "Available", "status": status, "reason": reason, "message": message});
            if let Some(patch) = changed_condition(&service, said, self.api.env().now()) {
                let options = WriteOptions::default();
                let written = self.api.patch(&resource, &entry.key, Part::Status, &patch, &options);
                // It has changed or is gone: the next look tells.
                drop(written.await);
            }
        }
        let n_servers = servers.len();
        self.aggregation.servers.store(Arc::new(servers));
        n_servers
    }

    async fn discover(&self, server: &Server) -> Result<Value, Unavailable> {
        let Key { namespace, name } = &server.service;
        let stored = self.api.store().get(&"services".into(), &server.service);
        let stored = stored.and_then(|entry| serde_json::from_slice::<Value>(&entry.bytes).ok());
        let Some(service) = stored else {
            return Err(("ServiceNotFound", format!("service/{name} in {namespace:?} is not present")));
        };
        let ports = object::at(&service, "/spec/ports").as_array().cloned().unwrap_or_default();
        let port = ports.iter().find(|port| port["port"].as_u64() == Some(u64::from(server.port)));
        let Some(port) = port else {
            let message = format!("service/{name} in {namespace:?} is not listening on port {}", server.port);
            return Err(("ServicePortError", message));
        };
        let address = proxy::service_address(self, &server.service, server.port).map_err(|_| {
            let port = port["name"].as_str().unwrap_or_default();
            let message = format!(
                "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port:?}"
            );
            ("MissingEndpoints", message)
        })?;
        let url = format!("https://{address}/apis/{}/{}", server.group, server.version);
        let failed =
            |why: String| ("FailedDiscoveryCheck", format!("failing or missing response from {url}: {why}"));
        let asked = tokio::time::timeout(DISCOVERY_WITHIN, ask(server, address)).await;
        asked.map_err(|_| failed("context deadline exceeded".to_owned()))?.map_err(failed)
    }

    /// Tells other servers whose certificate and which headers they can trust.
    async fn publish_front_proxy(&self) -> Result<(), Status> {
        let Some(maps) = self.api.registry().find("", "v1", "configmaps") else { return Ok(()) };
        let map = json!({
            "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
            "data": {
                "client-ca-file": self.aggregation.identity.client_authority,
                "requestheader-allowed-names": r#"["front-proxy-client"]"#,
                "requestheader-client-ca-file": self.aggregation.identity.authority,
                "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
                "requestheader-group-headers": r#"["X-Remote-Group"]"#,
                "requestheader-uid-headers": r#"["X-Remote-Uid"]"#,
                "requestheader-username-headers": r#"["X-Remote-User"]"#,
            },
        });
        self.api.bring_to(&maps, map, &["data"]).await
    }
}

/// The change that says a condition, unless it is said already.
fn changed_condition(service: &Value, mut said: Value, now: krafla_api::Time) -> Option<Patch> {
    let conditions = object::at(service, "/status/conditions").as_array().cloned().unwrap_or_default();
    let is_of_type = |condition: &Value| condition.get("type") == said.get("type");
    let old = conditions.iter().find(|condition| is_of_type(condition));
    let is_same = |field: &str| old.is_some_and(|old| old.get(field) == said.get(field));
    if ["status", "reason", "message"].into_iter().all(is_same) {
        return None;
    }
    let since = old.filter(|_| is_same("status")).and_then(|old| old.get("lastTransitionTime")).cloned();
    let mut conditions: Vec<Value> =
        conditions.iter().filter(|condition| !is_of_type(condition)).cloned().collect();
    object::set(&mut said, "lastTransitionTime", since.unwrap_or_else(|| json!(now)));
    conditions.push(said);
    let revision = object::meta(service, "resourceVersion");
    Some(Patch::Merge(
        json!({"metadata": {"resourceVersion": revision}, "status": {"conditions": conditions}}),
    ))
}

/// What a server says that it serves.
async fn ask(server: &Server, address: std::net::SocketAddr) -> Result<Value, String> {
    let tls = TlsConnector::from(server.tls.clone()?);
    let name = ServerName::try_from(server.host()).map_err(|error| error.to_string())?;
    let stream = TcpStream::connect(address).await.map_err(|error| format!("dial tcp {address}: {error}"))?;
    let stream = tls.connect(name, stream).await.map_err(|error| format!("tls: {error}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let mut request = Request::get(format!("/apis/{}/{}", server.group, server.version))
        .header(HOST, server.host())
        .header(ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let groups = vec![krafla_admission::rbac::MASTERS.to_owned()];
    let aggregator = User { name: AGGREGATOR.to_owned(), groups, ..User::default() };
    tell_user(request.headers_mut(), &aggregator);
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let code = response.status();
    let body = Limited::new(response.into_body(), DISCOVERY_BYTES_MAX).collect().await;
    connection.abort();
    if !code.is_success() {
        return Err(format!("bad status: {}", code.as_u16()));
    }
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| format!("the answer is no APIResourceList: {error}"))
}
