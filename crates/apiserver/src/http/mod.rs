//! The server as clients see it: HTTPS, paths, media types, streams. What requests mean is [`crate::ops`]' business.
//!
//! ```text
//!   server.rs     listens, TLS, shutdown          path.rs query.rs accept.rs   what is asked, and in which form
//!      |                                          body.rs show.rs              what is answered
//!   this file     one function for every request: authenticate, route, dispatch
//!      |
//!      +-- discovery.rs openapi.rs plain.rs       what there is
//!      +-- objects.rs lists.rs watches.rs         resources
//!      +-- pods.rs reviews.rs                     what only some resources have
//!      +-- exec.rs channels.rs streams.rs         commands in pods, over WebSocket or SPDY
//!      +-- forward.rs proxy.rs                    ports of pods
//!      +-- usage.rs                               what pods use
//!      +-- aggregation.rs                         groups that other servers answer for
//! ```

mod accept;
mod aggregation;
mod audit;
mod auth;
mod body;
mod certificates;
mod channels;
mod connect_options;
mod connections;
mod delete_options;
mod discovery;
mod duration;
mod exec;
mod flows;
mod forward;
mod impersonation;
mod list_options;
mod lists;
mod metrics;
mod objects;
mod openapi;
mod path;
mod plain;
mod pods;
mod process;
mod proxy;
mod query;
mod request_info;
mod review_rules;
mod reviews;
mod scale;
mod server;
mod show;
mod spdy;
mod streams;
mod turns;
mod unread;
mod usage;
mod watches;
mod websocket;
mod write_options;
mod x509;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use krafla_admission::rbac::{Decision, User};
use krafla_api::Key;
use krafla_schema::json::stored;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::admit::Connection;
use crate::authorizer::forbidden;
use crate::env::Env;
use crate::ops::Api;
use crate::registry::Resource;
use crate::status::Status;
use accept::{Accept, Offers};
use audit::{Answered, Audit, Received, Trace};
use auth::{Asker, Credentials};
use body::Reply;
use exec::Connect;
use forward::Forward;
use metrics::{Counted, Metrics};
use objects::ObjectRequest;
use path::{ResourcePath, Route};
use query::Query;
use request_info::RequestInfo;
use websocket::Upgrade;

pub use audit::AuditConfig;
pub use certificates::gather_noise;
pub use exec::{Output, Session};
pub use plain::{SIMULATED_SUFFIX, VERSION_SUFFIX};
pub use pods::PodAccess;
pub use server::{RunningServer, ServeError, ServerConfig, serve, write_private};
pub use usage::{Amount, Usage};

/// How many requests may be worked on at once; watches and followed logs do not count.
const IN_FLIGHT_MAX: usize = 1000;
/// How many of them may be one user's.
const IN_FLIGHT_OF_USER_MAX: usize = IN_FLIGHT_MAX / 2;
/// How long the body of a request may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(60);

/// Where administrators get a copy of all objects.
const BACKUP: [&str; 3] = ["krafla", "v1", "backup"];

/// What every request needs.
pub(crate) struct Context {
    api: Api,
    env: Arc<dyn Env>,
    credentials: Credentials,
    /// Whether requests without a token and a certificate are looked at at all.
    allows_anonymous: bool,
    audit: Option<Audit>,
    address: String,
    pod_access: Option<Arc<dyn PodAccess>>,
    in_flight: Semaphore,
    /// How many of them are whose.
    turns: turns::Turns,
    /// How long the body of a request may take to arrive.
    body_within: Duration,
    metrics: Metrics,
    /// The one OpenAPI document that shows everything, while somebody asks for it.
    openapi: openapi::Cache,
    /// What other servers answer for.
    aggregation: aggregation::Aggregation,
    /// What the controllers beside the server count.
    controllers: Option<Arc<dyn krafla_metrics::Page>>,
    /// Becomes true when the server stops: watches end then.
    stopping: tokio::sync::watch::Receiver<bool>,
}

/// Waits until the server stops. That its other end is gone means the same.
async fn stopped(stopping: &mut tokio::sync::watch::Receiver<bool>) {
    let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
}

impl Context {
    fn pods(&self) -> Result<Arc<Resource>, Status> {
        self.api.registry().find("", "v1", "pods").ok_or_else(Status::unknown_resource)
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Reply {
        let accept = header(request.headers(), ACCEPT.as_str());
        let mut trace = Trace::default();
        let Some(audit) = &self.audit else {
            let reply = self.answer_known(request, peer, &mut trace).await;
            return body::written(reply, accept::encoding_of_refusal(accept.as_deref()));
        };
        let received = self.received(&request, peer);
        let reply = self.answer_known(request, peer, &mut trace).await;
        let answered = Answered { code: reply.status().as_u16(), status: reply.extensions().get::<Status>() };
        audit.note(&received, &trace, answered, self.env.now());
        body::written(reply, accept::encoding_of_refusal(accept.as_deref()))
    }

    /// What the audit log says of a request.
    fn received(&self, request: &Request<Incoming>, peer: &Peer) -> Received {
        let headers = request.headers();
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let path = request.uri().path();
        let id = header(headers, "audit-id").filter(|id| !id.is_empty());
        Received {
            id: id.unwrap_or_else(|| self.env.uid().0.to_string()),
            at: self.env.now(),
            uri: request.uri().path_and_query().map_or_else(|| path.to_owned(), ToString::to_string),
            info: RequestInfo::read(request.method(), path, &query),
            user_agent: header(headers, USER_AGENT.as_str()).unwrap_or_default(),
            address: peer.address,
            is_long_running: is_long_running(&path::route(path), &query),
        }
    }

    async fn answer_known(&self, request: Request<Incoming>, peer: &Peer, trace: &mut Trace) -> Reply {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let route = path::route(request.uri().path());
        if !is_long_running(&route, &query)
            && let Err(status) = query.check_timeout()
        {
            return body::refusal(&status);
        }
        let user =
            match self.credentials.authenticate(&self.api, request.headers(), peer.certificate.as_ref()) {
                Asker::Known(user) => {
                    if let Some(connection) = request.extensions().get::<Arc<connections::Connection>>() {
                        connection.is_known(&user.name);
                    }
                    user
                }
                Asker::Anonymous if self.allows_anonymous => crate::users::anonymous(),
                Asker::Unknown | Asker::Anonymous => return body::refusal(&Status::unauthorized()),
            };
        trace.user = Some(user.clone());
        let user = match self.authorize(user, &request, &route, &query, trace) {
            Ok(user) => user,
            Err(status) => return body::refusal(&status),
        };
        let Ok(_permit) = self.in_flight.try_acquire() else {
            return body::refusal(&Status::too_many_requests("too many requests, please try again later", 1));
        };
        let name = user.name.clone();
        let Some(_turn) = self.turns.take(&name, IN_FLIGHT_OF_USER_MAX) else {
            return body::refusal(&Status::too_many_requests("too many requests, please try again later", 1));
        };
        let flow = flows::headers(&self.api, &user, &request, &route, &query);
        let (mut head, incoming) = request.into_parts();
        let accept = header(&head.headers, ACCEPT.as_str());
        let started = Instant::now();
        let counted = self.counted(&head.method, &route, &query);
        let outcome = match route {
            route if self.is_aggregated(&route) => {
                let upgrade = head.extensions.remove();
                let (method, uri, headers) = (head.method, head.uri, head.headers);
                let request = proxy::Proxied { method, uri, headers, upgrade, body: incoming };
                self.aggregated(&route, &user, request).await
            }
            Route::Other(parts) if parts == BACKUP => self.backup(&head, &query, &user),
            Route::Other(parts) => Ok(plain::answer(self, &head.method, &parts, &head.headers, &query)),
            Route::Unknown => Err(Status::unknown_resource()),
            Route::Resource(path) => {
                let upgrade = head.extensions.remove();
                if path.group == usage::GROUP && self.has_usage() {
                    let used = usage::answer(self, &head.method, &path, &query).await;
                    let reply = used.map(|used| body::json(200, used.to_string().into()));
                    return reply.unwrap_or_else(|status| body::refusal(&status));
                }
                let asked = Asked {
                    uri: head.uri,
                    method: head.method,
                    headers: head.headers,
                    path,
                    query,
                    user,
                    upgrade,
                };
                self.resource(asked, incoming).await
            }
            route => self.discovery(&head.method, route, accept.as_deref()),
        };
        let mut reply = outcome.unwrap_or_else(|status| body::refusal(&status));
        reply.headers_mut().extend(flow);
        self.metrics.answered(&counted, reply.status().as_u16(), started.elapsed());
        reply
    }

    /// The user as whom a request goes on, if it may.
    fn authorize(
        &self,
        user: Arc<User>,
        request: &Request<Incoming>,
        route: &Route,
        query: &Query,
        trace: &mut Trace,
    ) -> Result<Arc<User>, Status> {
        let headers = request.headers();
        // Nothing is asked about those who may do everything.
        if user.is_master() && !impersonation::is_wanted(headers) {
            trace.decision = Some(Decision::allow());
            return Ok(user);
        }
        let info = RequestInfo::read(request.method(), request.uri().path(), query);
        let user = match impersonation::user(&self.api, &user, headers, &info)? {
            Some(other) => {
                let other = Arc::new(other);
                trace.acts_as = Some(other.clone());
                other
            }
            None => user,
        };
        let asked = info.attributes(&user);
        let decision = self.api.authorize(&asked);
        trace.decision = Some(decision.clone());
        if !decision.allowed {
            return Err(forbidden(&asked, &decision.reason));
        }
        if !info.is_about(route) {
            return Err(Status::unknown_resource());
        }
        Ok(user)
    }

    /// Commands in pods and their ports need the right to create, however the connection is made.
    fn authorize_connection(&self, asked: &Asked) -> Result<(), Status> {
        let mut info = RequestInfo::read(&asked.method, asked.uri.path(), &asked.query);
        if info.verb == "create" || asked.user.is_master() {
            return Ok(());
        }
        info.verb = "create".to_owned();
        let attributes = info.attributes(&asked.user);
        let decision = self.api.authorize(&attributes);
        if decision.allowed { Ok(()) } else { Err(forbidden(&attributes, &decision.reason)) }
    }

    /// What a request is counted as. Only what is served has a name there.
    fn counted(&self, method: &Method, route: &Route, query: &Query) -> Counted {
        let Route::Resource(path) = route else { return Counted::other(method) };
        let resource = self.api.registry().find(&path.group, &path.version, &path.resource);
        let is_served = resource
            .is_some_and(|of| path.subresource.is_empty() || of.subresource(&path.subresource).is_some());
        if is_served {
            Counted::resource(method, path, path.is_watch || query.flag("watch"))
        } else {
            Counted::other(method)
        }
    }

    fn discovery(&self, method: &Method, route: Route, accept: Option<&str>) -> Result<Reply, Status> {
        let table = self.api.registry().table();
        let is_aggregated = discovery::is_aggregated(accept);
        let document = match (&route, is_aggregated) {
            (Route::CoreVersions, true) => return Ok(discovery::groups_in_full(&table, true, Vec::new())),
            (Route::Groups, true) => {
                return Ok(discovery::groups_in_full(&table, false, self.other_groups_in_full()));
            }
            (Route::CoreVersions, false) => Some(discovery::core_versions(&table, &self.address)),
            (Route::Groups, false) => Some(discovery::groups(&table, self.other_groups())),
            (Route::Group(name), _) if name == usage::GROUP && self.has_usage() => Some(usage::one_group()),
            (Route::Resources(group, version), _) if group == usage::GROUP && self.has_usage() => {
                usage::resources(version)
            }
            (Route::Group(name), _) => {
                discovery::one_group(&table, name).or_else(|| discovery::named(&self.other_groups(), name))
            }
            (Route::Resources(group, version), _) => discovery::resources(&table, group, version),
            _ => None,
        };
        if *method != Method::GET {
            return Err(Status::method_not_allowed());
        }
        match (document, route) {
            (Some(document), _) => {
                let offers = Offers { protobuf: true, tables: false, streams: false };
                Ok(body::value(200, &document, Accept::negotiate(accept, offers)?.encoding))
            }
            (None, Route::Resources(group, _)) => self.nothing_here(&group),
            (None, _) => Ok(plain::not_found()),
        }
    }

    async fn resource(&self, asked: Asked, incoming: Incoming) -> Result<Reply, Status> {
        let path = &asked.path;
        let registry = self.api.registry();
        let Some(resource) = registry.find(&path.group, &path.version, &path.resource) else {
            return self.nothing_here(&path.group);
        };
        if resource.is_custom && !has_place(&resource, &asked) {
            return Ok(plain::not_found());
        }
        // A request that the kind does not serve gets no warning about the kind.
        let deprecation = resource.deprecation.clone().filter(|_| action(&resource, &asked).is_ok());
        let outcome = self.served(resource, asked, incoming).await;
        objects::warn_first(outcome, deprecation.as_slice())
    }

    /// A group of built-in kinds says no in its own words; for what CRDs define, nobody is there to say it.
    fn nothing_here(&self, group: &str) -> Result<Reply, Status> {
        let is_builtin = self.api.registry().table().has_builtin(group);
        if is_builtin { Err(Status::unknown_resource()) } else { Ok(plain::not_found()) }
    }

    async fn served(
        &self,
        resource: Arc<Resource>,
        asked: Asked,
        incoming: Incoming,
    ) -> Result<Reply, Status> {
        let action = action(&resource, &asked)?;
        if let name @ ("." | "..") = asked.path.name.as_str() {
            return Err(Status::bad_request(format!(
                "Name parameter invalid: \"{name}\": may not be '{name}'"
            )));
        }
        let is_question = matches!(action, Action::Review | Action::Bind | Action::Evict | Action::Token);
        let streams = action == Action::List && !resource.is_custom;
        let offers = Offers { protobuf: !resource.is_custom, tables: !is_question, streams };
        let accept = Accept::negotiate(header(&asked.headers, ACCEPT.as_str()).as_deref(), offers)?;
        if action == Action::List {
            let Asked { headers, path, query, upgrade, .. } = asked;
            let upgrade = Upgrade { headers, connection: upgrade };
            return lists::list_or_watch(self, &resource, &path, &accept, &query, upgrade).await;
        }
        match action {
            Action::Exec => {
                self.authorize_connection(&asked)?;
                self.ask_about_connection(&resource, &asked).await?;
                return self.exec(&resource, asked);
            }
            Action::Forward => {
                self.authorize_connection(&asked)?;
                self.ask_about_connection(&resource, &asked).await?;
                return self.forward(&resource, asked);
            }
            Action::Proxy => {
                self.ask_about_connection(&resource, &asked).await?;
                let Asked { method, uri, headers, path, upgrade, .. } = asked;
                let request = proxy::Proxied { method, uri, headers, upgrade, body: incoming };
                return proxy::answer(self, &resource, &path, request).await;
            }
            _ => {}
        }
        let body = if asked.method == Method::GET {
            Bytes::new()
        } else {
            body::read(incoming, self.body_within).await?
        };
        let content_type = header(&asked.headers, CONTENT_TYPE.as_str()).unwrap_or_default();
        let user_agent = header(&asked.headers, USER_AGENT.as_str()).unwrap_or_default();
        let Asked { path, query, user, headers, upgrade, .. } = asked;
        if action == Action::DeleteCollection {
            let how = lists::How { accept: &accept, content_type: &content_type, body: &body, query: &query };
            return lists::delete(self, &resource, &path, &how, user).await;
        }
        if action == Action::Review {
            let options = write_options::decode(write_options::WriteKind::Create, &query, &user_agent)?;
            let (mut review, warnings) = objects::decode(&resource, &content_type, &body, &query)?;
            options.warnings.extend(warnings);
            let checked = review_rules::check(&resource, &path.namespace, &mut review);
            let answered = checked.and_then(|()| reviews::answer(self, &resource, &path, review, &user));
            let reply = answered.map(|mut answer| {
                review_rules::complete(&mut answer, self.env.now());
                body::value(201, &answer, accept.encoding)
            });
            return objects::warn(reply, &options.warnings.list());
        }
        let request = ObjectRequest {
            context: self,
            resource,
            path,
            accept,
            query,
            user_agent,
            content_type,
            body,
            user,
        };
        let is_scale = request.path.subresource == "scale";
        match action {
            Action::Get if is_scale => request.get_scale().await,
            Action::Update if is_scale => request.update_scale().await,
            Action::Patch if is_scale => request.patch_scale().await,
            Action::Get => request.get().await,
            Action::Create => request.create().await,
            Action::Update => request.update().await,
            Action::Patch => request.patch().await,
            Action::Delete => request.delete().await,
            Action::Bind => request.bind().await,
            Action::Evict => request.evict().await,
            Action::Token => request.token(),
            Action::Log => self.log(&request, Upgrade { headers, connection: upgrade }).await,
            Action::List
            | Action::DeleteCollection
            | Action::Review
            | Action::Exec
            | Action::Forward
            | Action::Proxy => Err(Status::method_not_allowed()),
        }
    }

    async fn log(&self, request: &ObjectRequest<'_>, upgrade: Upgrade) -> Result<Reply, Status> {
        let (key, pod) = self.pod(&request.resource, &request.path)?;
        let reply = pods::log(self.pod_access.as_ref(), &key, &pod, &request.query).await?;
        if upgrade.is_asked() && reply.status() == StatusCode::OK { upgrade.body(reply) } else { Ok(reply) }
    }

    /// A copy of all objects, Secrets among them: for administrators alone, whatever roles say about paths.
    fn backup(&self, head: &http::request::Parts, query: &Query, user: &User) -> Result<Reply, Status> {
        if head.method != Method::GET {
            return Err(Status::method_not_allowed());
        }
        if !user.is_master() {
            let info = RequestInfo::read(&head.method, head.uri.path(), query);
            return Err(forbidden(&info.attributes(user), "a backup is for the group system:masters alone"));
        }
        let Some(lines) = self.api.store().copy() else {
            return Err(Status::bad_request("this cluster is in memory only: there is nothing to back up"));
        };
        Ok(body::stream("application/octet-stream", body::chunks(lines)))
    }

    /// Groups that the registry does not know, in the old form of discovery.
    fn other_groups(&self) -> Vec<Value> {
        let mut groups: Vec<Value> = self.has_usage().then(usage::group).into_iter().collect();
        groups.extend(self.aggregation.groups());
        groups
    }

    /// Groups that the registry does not know, in the new form of discovery.
    fn other_groups_in_full(&self) -> Vec<Value> {
        let mut groups: Vec<Value> = self.has_usage().then(usage::group_in_full).into_iter().collect();
        groups.extend(self.aggregation.groups_in_full());
        groups
    }

    /// Whether there is somebody who can say what pods use.
    fn has_usage(&self) -> bool {
        self.pod_access.as_ref().is_some_and(|access| !access.is_simulated())
    }

    /// Asks webhooks whether a client may connect.
    async fn ask_about_connection(&self, resource: &Resource, asked: &Asked) -> Result<(), Status> {
        let Asked { path, query, uri, user, .. } = asked;
        let Some(body) = resource.subresource(&path.subresource).and_then(|of| of.body) else {
            return Ok(());
        };
        let rest = if path.subresource == "proxy" { proxy::rest(uri.path(), path.is_namespaced) } else { "" };
        let options = connect_options::options(body, path, query, rest);
        let key = Key::new(&path.namespace, &path.name);
        let [_, _, kind] = body;
        let connection = Connection { key: &key, kind };
        self.api.ask_about_connection(resource, &path.subresource, connection, &options, Some(&**user)).await
    }

    /// Makes the connection one to ports of a pod.
    fn forward(&self, resource: &Resource, asked: Asked) -> Result<Reply, Status> {
        let Asked { headers, path, query, upgrade, .. } = asked;
        let (key, pod) = self.pod(resource, &path)?;
        if krafla_schema::object::text_at(&pod, "spec.nodeName").is_empty() {
            return Err(Status::bad_request(format!("pod {} does not have a host assigned", key.name)));
        }
        if self.pod_access.as_ref().is_none_or(|access| access.is_simulated()) {
            return Err(Status::unavailable("nothing runs here that could be connected to"));
        }
        let forward = Forward { pod: &key, object: &pod, query: &query, headers: &headers, upgrade };
        forward.answer(self.stopping.clone())
    }

    /// Makes the connection one to a command in a pod.
    fn exec(&self, resource: &Resource, asked: Asked) -> Result<Reply, Status> {
        let Asked { headers, path, query, upgrade, .. } = asked;
        let (key, pod) = self.pod(resource, &path)?;
        let is_exec = path.subresource == "exec";
        let connect = Connect { pod: &key, object: &pod, query: &query, headers: &headers, upgrade, is_exec };
        connect.answer(self.pod_access.as_ref(), self.stopping.clone())
    }

    fn pod(&self, resource: &Resource, path: &ResourcePath) -> Result<(Key, Value), Status> {
        let key = Key::new(&path.namespace, &path.name);
        let entry = self.api.get(resource, &key)?;
        let pod = stored(&entry.bytes).map_err(|error| Status::internal(&error))?;
        Ok((key, pod))
    }
}

/// The other end of a connection.
#[derive(Clone, Default)]
pub(crate) struct Peer {
    /// The user of its certificate.
    pub certificate: Option<Arc<User>>,
    /// Where it is.
    pub address: Option<std::net::SocketAddr>,
}

/// A request for resources, without its body.
struct Asked {
    uri: http::Uri,
    method: Method,
    headers: HeaderMap,
    path: ResourcePath,
    query: Query,
    user: Arc<User>,
    /// The connection itself, for what is more than a request and an answer.
    upgrade: Option<OnUpgrade>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Get,
    List,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    Bind,
    Evict,
    Token,
    Log,
    Exec,
    Forward,
    Proxy,
    Review,
}

/// What a method means at a path, if the resource allows it.
fn action(resource: &Resource, asked: &Asked) -> Result<Action, Status> {
    let path = &asked.path;
    let is_object_nowhere = resource.is_namespaced() && !path.is_namespaced && !path.name.is_empty();
    if path.is_namespaced && !resource.is_namespaced() || is_object_nowhere {
        return Err(Status::unknown_resource());
    }
    if path.is_watch {
        return Ok(Action::List);
    }
    let (verbs, is_collection) = match (path.name.is_empty(), path.subresource.as_str()) {
        (is_collection, "") => (resource.verbs, is_collection),
        (_, name) => match resource.subresource(name) {
            Some(subresource) => (subresource.verbs, false),
            None if resource.is_custom => {
                return Err(Status::not_found(&resource.qualified(), &path.name));
            }
            None => return Err(Status::unknown_resource()),
        },
    };
    let (verb, action) = match (&asked.method, path.subresource.as_str(), is_collection) {
        (&Method::GET, "log", _) => ("get", Action::Log),
        (&Method::GET, "exec" | "attach", _) => ("get", Action::Exec),
        (&Method::POST, "exec" | "attach", _) => ("create", Action::Exec),
        (&Method::GET, "portforward", _) => ("get", Action::Forward),
        (&Method::POST, "portforward", _) => ("create", Action::Forward),
        (_, "proxy", _) => ("get", Action::Proxy),
        (&Method::POST, "binding", _) => ("create", Action::Bind),
        (&Method::POST, "eviction", _) => ("create", Action::Evict),
        (&Method::POST, "token", _) => ("create", Action::Token),
        (&Method::GET, _, true) => ("list", Action::List),
        (&Method::GET, _, false) => ("get", Action::Get),
        (&Method::POST, "", true) if &*resource.names.plural == "bindings" => ("create", Action::Bind),
        (&Method::POST, "", true) if !resource.verbs.contains(&"get") => ("create", Action::Review),
        (&Method::POST, "", true) => ("create", Action::Create),
        (&Method::PUT, _, false) => ("update", Action::Update),
        (&Method::PATCH, _, false) => ("patch", Action::Patch),
        (&Method::DELETE, _, true) => ("deletecollection", Action::DeleteCollection),
        (&Method::DELETE, _, false) => ("delete", Action::Delete),
        _ => return Err(Status::method_not_allowed()),
    };
    // Namespaced objects are made in a namespace.
    let needs_place = matches!(action, Action::Create | Action::DeleteCollection);
    let has_place = !needs_place || path.is_namespaced == resource.is_namespaced();
    if verbs.contains(&verb) && has_place {
        Ok(action)
    } else if resource.is_custom {
        Err(Status::verb_not_supported(&resource.qualified(), verb))
    } else {
        Err(Status::method_not_allowed())
    }
}

/// Whether a request goes on for as long as both sides want. No time is set for those.
fn is_long_running(route: &Route, query: &Query) -> bool {
    let Route::Resource(path) = route else { return false };
    let is_watch = path.is_watch || path.name.is_empty() && query.flag("watch");
    is_watch || matches!(path.subresource.as_str(), "attach" | "exec" | "proxy" | "log" | "portforward")
}

/// Whether objects of a resource can be where a request looks for them.
fn has_place(resource: &Resource, asked: &Asked) -> bool {
    let is_list = asked.path.name.is_empty() && asked.method == Method::GET;
    asked.path.is_namespaced == resource.is_namespaced() || (!asked.path.is_namespaced && is_list)
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    if values.is_empty() { None } else { Some(values.join(",")) }
}

#[cfg(test)]
mod tests;
