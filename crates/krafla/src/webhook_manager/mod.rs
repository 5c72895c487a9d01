//! `krafla webhook-manager`: Volcano's admission webhooks, for a cluster.
//!
//! ```text
//!   API server ──> serving ──> reviews ──> admission::webhook::Endpoint::answer (pure)
//!                                │ lookup           queues and namespaces of the cluster
//!   certificate      of TLS, from files or from a Secret
//!   configurations   learn the certificate authority
//! ```

mod certificate;
mod configurations;
mod lookup;
mod reviews;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use arc_swap::ArcSwap;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use krafla_admission::Settings;
use krafla_client::{HttpsClient, Limits};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::certificate::{Current, Known, Source};
use self::lookup::Lookup;
use self::reviews::Reviews;
use crate::cli::webhook_manager::WebhookManager;
use crate::controller_manager::access;
use crate::serving::{self, Handler};

/// API servers keep connections open between their requests.
const REVIEW_LIMITS: serving::Limits = serving::Limits {
    connections_max: 1024,
    patience: Duration::from_secs(90),
    connection_max: Duration::from_secs(3600),
};
/// A probe or two are all that is expected.
const HEALTH_LIMITS: serving::Limits = serving::Limits {
    connections_max: 64,
    patience: Duration::from_secs(5),
    connection_max: Duration::from_secs(60),
};
/// How often the file of resource groups is read again.
const SETTINGS_WAIT: Duration = Duration::from_secs(5);
/// The namespace of Volcano's manifests.
const NAMESPACE: &str = "volcano-system";

/// Serves webhooks until it is stopped.
pub(crate) async fn run(args: WebhookManager) -> Result<ExitCode> {
    let endpoints = args.endpoints().map_err(|error| anyhow!(error))?;
    let settings = Arc::new(ArcSwap::from_pointee(first_settings(&args)?));
    let access = access(args.kubeconfig.as_deref(), args.master.as_deref())?;
    let origin = access.origin.clone();
    let namespace = namespace(&args.webhook_namespace, &access.namespace);
    let names = names(&args, &namespace)?;
    let client = HttpsClient::new(access, Limits::default())?.writing_as("krafla-webhooks");
    let source = source(&args, &client, &namespace);
    let listener = serving::listen(args.address());
    let listener = listener.await.with_context(|| format!("cannot listen on {}", args.address()))?;
    let version = client.version().await.with_context(|| format!("cannot use the cluster of {origin}"))?;

    let current = Arc::new(Current::default());
    let known = watch::Sender::new(certificate::load(&source, &names, &current).await?);
    let lookup = Arc::new(Lookup::new(client.clone(), &endpoints));
    let mut tasks = JoinSet::new();
    if args.enable_healthz {
        let health = Health { lookup: lookup.clone(), certificate: known.subscribe() };
        let address = args.healthz_address;
        let listener = serving::listen(address).await;
        let listener = listener.with_context(|| format!("cannot use --healthz-address {address}"))?;
        tasks.spawn(async move {
            let (_running, stopped) = watch::channel(false);
            serving::serve(listener, None, HEALTH_LIMITS, health, stopped).await;
        });
    }
    let (stop, stopped) = watch::channel(false);
    let address = listener.local_addr()?;
    let reviews =
        Reviews { endpoints: endpoints.clone().into(), settings: settings.clone(), lookup: lookup.clone() };
    let serving =
        serving::serve(listener, Some(certificate::tls(current.clone())?), REVIEW_LIMITS, reviews, stopped);
    let serving = tokio::spawn(serving);
    tracing::info!(%version, cluster = %origin, %address, paths = endpoints.len(), "ready");

    let authority = authority(&mut tasks, &known);
    let grace = args.graceful_shutdown_time;
    tokio::select! {
        () = lookup.watch(), if !endpoints.is_empty() => {}
        () = certificate::keep(&source, &names, &current, &known) => {}
        () = configurations::keep(&client, &endpoints, authority) => {}
        () = keep_settings(&args, &settings) => {}
        stopped = until_stopped() => stopped?,
    }
    stop.send_replace(true);
    if tokio::time::timeout(grace, serving).await.is_err() {
        tracing::warn!("requests did not end within --graceful-shutdown-time");
    }
    Ok(ExitCode::SUCCESS)
}

/// The certificate authority alone: nothing else of the certificate concerns the configurations.
fn authority(tasks: &mut JoinSet<()>, known: &watch::Sender<Known>) -> watch::Receiver<Vec<u8>> {
    let mut known = known.subscribe();
    let (send, receive) = watch::channel(known.borrow().authority.clone());
    tasks.spawn(async move {
        while known.changed().await.is_ok() {
            let now = known.borrow_and_update().authority.clone();
            send.send_if_modified(|authority| {
                let has_changed = *authority != now;
                *authority = now;
                has_changed
            });
        }
    });
    receive
}

async fn until_stopped() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// The names under which the API server calls this program.
fn names(args: &WebhookManager, namespace: &str) -> Result<Vec<String>> {
    let (service, url) = (args.webhook_service_name.as_str(), args.webhook_url.as_str());
    ensure!(
        !service.is_empty() || !url.is_empty() || !args.webhook_namespace.is_empty(),
        "want --webhook-service-name and --webhook-namespace, or --webhook-url: the certificate has to name this program"
    );
    let mut names = Vec::new();
    if !service.is_empty() {
        names.push(format!("{service}.{namespace}.svc"));
    }
    if !url.is_empty() {
        let uri: http::Uri = url.parse().with_context(|| format!("--webhook-url {url} is not an address"))?;
        let host = uri.host().ok_or_else(|| anyhow!("--webhook-url {url} names no host"))?;
        names.push(host.trim_start_matches('[').trim_end_matches(']').to_owned());
    }
    Ok(names)
}

fn namespace(of_flag: &str, of_access: &str) -> String {
    [of_flag, of_access].into_iter().find(|it| !it.is_empty()).unwrap_or(NAMESPACE).to_owned()
}

fn source(args: &WebhookManager, client: &HttpsClient, namespace: &str) -> Source {
    match (&args.ca_cert_file, &args.tls_cert_file, &args.tls_private_key_file) {
        (Some(authority), Some(chain), Some(key)) => {
            Source::Files { authority: authority.clone(), chain: chain.clone(), key: key.clone() }
        }
        _ => Source::Secret { client: client.clone(), namespace: namespace.to_owned() },
    }
}

/// The settings at the start. The file of resource groups may come later, as in Volcano.
fn first_settings(args: &WebhookManager) -> Result<Settings> {
    match args.admission.resource_groups_file() {
        Some(file) if !file.exists() => {
            tracing::warn!(file = %file.display(), "--admission-conf does not exist yet");
            Ok(args.admission.settings_with(Vec::new()))
        }
        _ => args.admission.settings(),
    }
}

/// Reads the file of resource groups again and again. A bad file leaves the groups as they are.
async fn keep_settings(args: &WebhookManager, settings: &ArcSwap<Settings>) {
    let mut reported = String::new();
    loop {
        tokio::time::sleep(SETTINGS_WAIT).await;
        match args.admission.settings() {
            Ok(now) if now != **settings.load() => {
                tracing::info!("resource groups are loaded");
                settings.store(Arc::new(now));
                reported.clear();
            }
            Ok(_) => {}
            Err(error) => {
                let problem = format!("{error:#}");
                if problem != reported {
                    tracing::warn!("resource groups stay as they are: {problem}");
                }
                reported = problem;
            }
        }
    }
}

/// Whether this program lives, and whether it can answer.
#[derive(Clone)]
struct Health {
    lookup: Arc<Lookup>,
    certificate: watch::Receiver<Known>,
}

impl Handler for Health {
    fn answer(self, request: Request<Incoming>) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        let (status, text) = match request.uri().path() {
            "/healthz" | "/healthz/ping" | "/livez" => (StatusCode::OK, "ok".to_owned()),
            "/readyz" => self.readiness(),
            _ => (StatusCode::NOT_FOUND, "unknown path: use /healthz, /livez or /readyz\n".to_owned()),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        std::future::ready(response)
    }
}

impl Health {
    fn readiness(&self) -> (StatusCode, String) {
        match &self.certificate.borrow().problem {
            Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")),
            None if !self.lookup.is_complete() => {
                (StatusCode::SERVICE_UNAVAILABLE, "queues and namespaces are not read yet\n".to_owned())
            }
            None => (StatusCode::OK, "ok".to_owned()),
        }
    }
}
