//! Requests to a cluster, and their limits: time, number, size.

use std::error::Error;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use krafla_api::{Key, Kind, Served, Uid};
use krafla_cluster::{Client, ClientError, Event, Listed, LogOptions, Manifests, Step, Written};
use krafla_keys::tls;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::access::{Access, AccessError, Token};
use crate::answer;
use crate::bearer::{Bearer, Credential};
use crate::connector::Connector;
use crate::identity::{Identity, NoVerification};
use crate::proxy::Proxy;
use crate::request::{Request, collection_path, encoded, object_path, version_path};
use crate::watching;

/// The longest answer that is read: a page of large objects.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// How often a read is repeated for a server that is busy before whoever asked is told.
const BUSY_RETRIES_MAX: usize = 5;
/// How long to wait for a busy server that does not say.
const BUSY_WAIT: Duration = Duration::from_secs(1);
/// How often an idle connection is asked whether it is still there, and how long it may take to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const KEEP_ALIVE_PATIENCE: Duration = Duration::from_secs(10);
/// HTTP/1.1 connections that are kept for later; HTTP/2 needs one for everything.
const IDLE_CONNECTIONS_MAX: usize = 16;

/// How much is asked for at once, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a connection may take to be made.
    pub connect: Duration,
    /// How long an answer may take; servers give up after a minute by themselves.
    pub request: Duration,
    /// How long the server should keep a watch.
    pub watch: Duration,
    /// How many requests may be under way at once. Watches do not count: there is one per kind.
    pub requests_in_flight: usize,
    /// How many objects are listed at once.
    pub page: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(65),
            watch: Duration::from_secs(290),
            requests_in_flight: 64,
            page: 500,
        }
    }
}

/// A cluster over HTTPS.
#[derive(Clone)]
pub struct HttpsClient {
    shared: Arc<Shared>,
    /// Whose the fields are that it sets.
    manager: Arc<str>,
}

struct Shared {
    /// What comes before every path.
    base: String,
    /// Anew when a login command has printed another certificate, which only new connections show.
    http: RwLock<legacy::Client<Connector, Full<Bytes>>>,
    connector: Connector,
    token: Option<Bearer>,
    limits: Limits,
    in_flight: Semaphore,
}

impl HttpsClient {
    /// A client of this cluster. Nothing is asked yet.
    pub fn new(access: Access, limits: Limits) -> Result<HttpsClient, AccessError> {
        let unusable = |error: &dyn std::fmt::Display| AccessError::unusable(&access.origin, error);
        let mut tls = tls::trusting(&access.authorities, access.credentials.certificate.as_ref())
            .map_err(|error| unusable(&error))?;
        if access.skips_verification {
            tls.dangerous().set_certificate_verifier(Arc::new(NoVerification::new()));
        }
        let identity = Arc::<Identity>::default();
        if matches!(access.credentials.token, Some(Token::Login(_)))
            && access.credentials.certificate.is_none()
        {
            tls.client_auth_cert_resolver = identity.clone();
        }
        let mut connector = Connector::new(tls, access.server_name, limits.connect);
        let proxy = match access.proxy {
            Some(proxy) => Some(proxy),
            None => Proxy::from_environment(&access.server, |name| std::env::var(name).ok())
                .map_err(|error| unusable(&error))?,
        };
        if let Some(proxy) = proxy {
            let tls = tls::trusting(&[], None).map_err(|error| unusable(&error))?;
            connector = connector.through(proxy, tls);
        }
        let shared = Shared {
            base: access.server.to_string().trim_end_matches('/').to_owned(),
            http: RwLock::new(connections(connector.clone())),
            connector,
            token: access.credentials.token.map(|token| Bearer::new(token, identity)),
            limits,
            in_flight: Semaphore::new(limits.requests_in_flight.max(1)),
        };
        Ok(HttpsClient { shared: Arc::new(shared), manager: "krafla".into() })
    }

    /// The same as the manager of the fields that it sets.
    pub fn writing_as(self, manager: &str) -> HttpsClient {
        HttpsClient { manager: manager.into(), ..self }
    }

    /// The server's version, as in `v1.35.0`; that of the embedded server ends with `+krafla`, or with
    /// `+krafla.simulated` where pods only seem to run.
    pub async fn version(&self) -> Result<String, ClientError> {
        let body = self.shared.read(&Request::get("/version".to_owned())).await?;
        let version: Value = serde_json::from_slice(&body).unwrap_or_default();
        let version = version.get("gitVersion").and_then(Value::as_str);
        version
            .map(str::to_owned)
            .ok_or_else(|| ClientError::Unknown("not a Kubernetes API server".to_owned()))
    }

    /// A copy of all objects of an embedded server, which only administrators get.
    pub async fn backup(&self) -> Result<BoxStream<'static, Result<Bytes, ClientError>>, ClientError> {
        let response = self.shared.open(&Request::get("/krafla/v1/backup".to_owned())).await?;
        let pieces = response.into_body().into_data_stream();
        Ok(pieces.map_err(|error| ClientError::Unknown(error.to_string())).boxed())
    }

    /// Asks something that has no method of its own, and returns the body of the answer.
    pub async fn ask(&self, request: &Request) -> Result<Bytes, ClientError> {
        self.shared.ask(request).await
    }

    /// Reads something as often as a busy server needs, and returns the body of the answer.
    pub async fn read(&self, request: &Request) -> Result<Bytes, ClientError> {
        self.shared.read(request).await
    }

    /// The lines of an answer as they come, as in a watch.
    pub async fn lines(
        &self,
        request: &Request,
    ) -> Result<BoxStream<'static, Result<Bytes, ClientError>>, ClientError> {
        let response = self.shared.open(request).await?;
        let silence_max = self.shared.limits.watch.saturating_add(self.shared.limits.request);
        Ok(watching::lines_of(response.into_body(), silence_max))
    }

    /// What a container has written and, if asked for, writes from now on.
    pub async fn log(
        &self,
        pod: &Key,
        container: &str,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Result<Bytes, ClientError>>, ClientError> {
        let response = self.shared.open(&Request::log(pod, container, options)).await?;
        let pieces = response.into_body().into_data_stream();
        Ok(pieces.map_err(|error| ClientError::Unknown(error.to_string())).boxed())
    }
}

impl Client for HttpsClient {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        Box::pin(self.shared.list(kind))
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        let shared = self.shared.clone();
        let opened = stream::once(async move { shared.watch(kind, revision).await });
        opened
            .flat_map(|opened| match opened {
                Ok(events) => events,
                Err(error) => stream::once(async { Err(error) }).boxed(),
            })
            .boxed()
    }

    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        let request = Request::get(object_path(kind, key));
        Box::pin(async move { self.shared.read(&request).await })
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        Box::pin(self.shared.write(step, &self.manager))
    }
}

impl Manifests for HttpsClient {
    fn served(&self, api_version: &str) -> BoxFuture<'_, Result<Vec<Served>, ClientError>> {
        let api_version = api_version.to_owned();
        Box::pin(async move {
            match self.shared.read(&Request::get(version_path(&api_version))).await {
                Err(ClientError::NotFound(_)) => Ok(Vec::new()),
                document => answer::served(&api_version, &document?),
            }
        })
    }

    fn read<'a>(&'a self, of: &'a Served, key: &'a Key) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(async move { self.shared.read(&Request::get(object_path(of, key))).await })
    }

    fn check<'a>(&'a self, of: &'a Served, object: &'a Value) -> BoxFuture<'a, Result<(), ClientError>> {
        Box::pin(async move { self.shared.ask(&Request::check(of, object)).await.map(drop) })
    }

    fn make<'a>(&'a self, of: &'a Served, object: &'a Value) -> BoxFuture<'a, Result<Written, ClientError>> {
        Box::pin(async move { answer::written(&self.shared.ask(&Request::make(of, object)).await?, None) })
    }

    fn amend<'a>(
        &'a self,
        of: &'a Served,
        key: &'a Key,
        uid: &'a Uid,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<Written, ClientError>> {
        Box::pin(async move {
            answer::written(&self.shared.ask(&Request::amend(of, key, uid, patch)).await?, None)
        })
    }
}

impl Shared {
    /// All objects of a kind, page by page. If a page comes so late that the server has forgotten the list, the whole of
    /// it is asked for at once.
    async fn list(&self, kind: Kind) -> Result<Listed, ClientError> {
        match self.list_pages(kind, self.limits.page).await {
            Err(ClientError::Expired(_)) => self.list_pages(kind, 0).await,
            listed => listed,
        }
    }

    async fn list_pages(&self, kind: Kind, page_size: usize) -> Result<Listed, ClientError> {
        let path = collection_path(kind, "");
        let mut listed = Listed::default();
        let mut rest = String::new();
        loop {
            let query = format!("{path}?limit={page_size}{rest}");
            let body = self.read(&Request::get(query)).await.map_err(|error| not_served(kind, error))?;
            let page = answer::page(kind, &body)?;
            listed.revision = page.revision;
            listed.items.extend(page.items);
            if page.rest.is_empty() {
                return Ok(listed);
            }
            rest = format!("&continue={}", encoded(&page.rest));
        }
    }

    async fn watch(
        &self,
        kind: Kind,
        revision: u64,
    ) -> Result<BoxStream<'static, Result<Event, ClientError>>, ClientError> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds={}",
            collection_path(kind, ""),
            self.limits.watch.as_secs().max(1)
        );
        let response = self.open(&Request::get(path)).await.map_err(|error| not_served(kind, error))?;
        // The server ends a watch by itself; one that stays silent for longer than that is dead.
        let silence_max = self.limits.watch.saturating_add(self.limits.request);
        Ok(watching::events(kind, response.into_body(), silence_max))
    }

    async fn write(&self, step: &Step, manager: &str) -> Result<Written, ClientError> {
        let request = match step {
            Step::CreateGenerated { kind, object, recipe } => {
                let drawn = tokio::task::spawn_blocking(krafla_keys::ssh::key_pair).await;
                let pair =
                    drawn.unwrap_or_else(|error| Err(error.to_string())).map_err(ClientError::Unknown)?;
                let mut object = object.clone();
                recipe.fill(&mut object, &pair);
                Request::of_step(&Step::Create { kind: *kind, object }, manager)
            }
            _ => Request::of_step(step, manager),
        };
        let body = self.ask(&request).await?;
        match step {
            Step::Delete { key, uid, .. } => answer::written(&body, Some((key, uid))),
            // The answer to a binding says nothing about the pod, but the pod's new revision is needed.
            Step::Bind { pod, .. } => {
                answer::written(&self.read(&Request::get(object_path(Kind::Pod, pod))).await?, None)
            }
            Step::Create { .. } | Step::CreateGenerated { .. } | Step::Patch { .. } => {
                answer::written(&body, None)
            }
        }
    }

    /// Asks something that may be asked as often as one likes, and with patience if the server is busy. Writes are
    /// not repeated here: whoever made them knows whether they are still wanted.
    async fn read(&self, request: &Request) -> Result<Bytes, ClientError> {
        for _ in 0..BUSY_RETRIES_MAX {
            match self.ask(request).await {
                Err(ClientError::Busy { retry_after, .. }) => {
                    tokio::time::sleep(retry_after.unwrap_or(BUSY_WAIT)).await;
                }
                answer => return answer,
            }
        }
        self.ask(request).await
    }

    /// Asks, and waits for the whole answer.
    async fn ask(&self, request: &Request) -> Result<Bytes, ClientError> {
        let _permit =
            self.in_flight.acquire().await.map_err(|error| ClientError::Unknown(error.to_string()))?;
        let answer = async {
            let response = self.send(request).await?;
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let cut_off = |error: Box<dyn Error + Send + Sync>| {
                ClientError::Unknown(format!("the answer was cut off: {error}"))
            };
            body.map(|body| body.to_bytes()).map_err(cut_off)
        };
        self.in_time(answer).await
    }

    /// Asks, and waits for the beginning of the answer: the rest comes for as long as it comes.
    async fn open(&self, request: &Request) -> Result<Response<Incoming>, ClientError> {
        self.in_time(self.send(request)).await
    }

    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let limit = self.limits.request;
        let too_slow = |_| ClientError::Unknown(format!("no answer within {limit:?}"));
        tokio::time::timeout(limit, answer).await.map_err(too_slow)?
    }

    /// Sends a request, and once more with a new token if the one in use is not good any more.
    async fn send(&self, request: &Request) -> Result<Response<Incoming>, ClientError> {
        let response = self.send_once(request).await?;
        let is_stranger = response.status() == StatusCode::UNAUTHORIZED;
        let response = match &self.token {
            Some(token) if is_stranger && token.forget().await => self.send_once(request).await?,
            _ => response,
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map(|body| body.to_bytes());
        Err(answer::refusal(head.status.as_u16(), &head.headers, &body.unwrap_or_default()))
    }

    async fn send_once(&self, request: &Request) -> Result<Response<Incoming>, ClientError> {
        let body = if request.body.is_null() { String::new() } else { request.body.to_string() };
        let mut built = http::Request::builder()
            .method(request.method.clone())
            .uri(format!("{}{}", self.base, request.path))
            .header(USER_AGENT, concat!("krafla/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, request.accept);
        if !body.is_empty() {
            built = built.header(CONTENT_TYPE, request.content_type);
        }
        if let Some(token) = &self.token {
            let Credential { header, has_new_certificate } = token.credential().await?;
            if has_new_certificate {
                *self.http.write().unwrap_or_else(PoisonError::into_inner) =
                    connections(self.connector.clone());
            }
            if let Some(header) = header {
                built = built.header(AUTHORIZATION, header);
            }
        }
        let built = built.body(Full::from(body)).map_err(|error| ClientError::Unknown(error.to_string()))?;
        let http = self.http.read().unwrap_or_else(PoisonError::into_inner).clone();
        http.request(built).await.map_err(|error| {
            // What the library calls its own error says nothing to whoever reads this.
            let what = if error.is_connect() { "no connection" } else { "no answer" };
            ClientError::Unknown(format!("{what}{}", causes(&error)))
        })
    }
}

/// A pool of connections.
fn connections(connector: Connector) -> legacy::Client<Connector, Full<Bytes>> {
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .http2_adaptive_window(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(KEEP_ALIVE_PATIENCE)
        .build(connector)
}

/// A kind that is not there at all is no missing object.
fn not_served(kind: Kind, error: ClientError) -> ClientError {
    match error {
        ClientError::NotFound(_) => {
            let name = kind.info().qualified_plural();
            let remedy =
                "Volcano's kinds are installed with `krafla crds | kubectl apply --server-side -f -`";
            ClientError::not_found(format!("the cluster does not serve {name}; {remedy}"))
        }
        error => error,
    }
}

/// All that led to an error.
fn causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(String::new(), |text, cause| format!("{text}: {cause}"))
}
