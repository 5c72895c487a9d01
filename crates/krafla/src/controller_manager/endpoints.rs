//! What a manager tells about itself over HTTP: whether it lives, whether it acts, and what it has counted.
//!
//! Two addresses as in Volcano's manager, because one is for the cluster's probes and the other for
//! dashboards. Health is served over TLS if there are files for that. Nothing can be changed here.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use krafla_runtime::metrics::Metrics;
use krafla_runtime::{Clock, SystemClock};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::tls;
use crate::cli::Endpoints as Flags;
use crate::serving::{self, Handler, Limits};

/// A probe and a scrape or two are all that is expected.
const LIMITS: Limits =
    Limits { connections_max: 64, patience: Duration::from_secs(5), connection_max: Duration::from_secs(60) };

/// How far a manager is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The cluster has not answered yet.
    Connecting,
    /// Another one acts.
    Waiting,
    Acting,
}

/// What there is to be told.
#[derive(Clone)]
struct Told {
    page: Page,
    stage: watch::Receiver<Stage>,
    metrics: Arc<Metrics>,
}

/// What is told at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Health,
    Metrics,
}

/// Listens where the flags say, for as long as the returned tasks are kept.
pub(super) async fn serve(
    flags: &Flags,
    stage: &watch::Receiver<Stage>,
    metrics: &Arc<Metrics>,
) -> Result<JoinSet<()>> {
    let mut tasks = JoinSet::new();
    let tls = tls::acceptor(&flags.tls)?;
    let wanted = [
        (flags.enable_healthz, Page::Health, flags.healthz_address, "--healthz-address", tls),
        (flags.enable_metrics, Page::Metrics, flags.listen_address, "--listen-address", None),
    ];
    for (_, page, address, flag, tls) in wanted.into_iter().filter(|(is_enabled, ..)| *is_enabled) {
        let listener =
            serving::listen(address).await.with_context(|| format!("cannot use {flag} {address}"))?;
        tracing::info!(address = %listener.local_addr()?, "{page:?} is told");
        let told = Told { page, stage: stage.clone(), metrics: metrics.clone() };
        tasks.spawn(async move {
            // It runs until the task is dropped.
            let (_running, stopped) = watch::channel(false);
            serving::serve(listener, tls, LIMITS, told, stopped).await;
        });
    }
    Ok(tasks)
}

impl Handler for Told {
    fn answer(self, request: Request<Incoming>) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        std::future::ready(self.page(request.method(), request.uri().path()))
    }
}

impl Told {
    fn page(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let (status, text) = match (self.page, method, path) {
            (_, method, _) if method != Method::GET && method != Method::HEAD => {
                (405, "only GET is supported\n".to_owned())
            }
            (Page::Health, _, "/healthz" | "/healthz/ping" | "/livez") => (200, "ok".to_owned()),
            (Page::Health, _, "/readyz") => readiness(*self.stage.borrow()),
            (Page::Metrics, _, "/metrics") => (200, self.metrics.page(SystemClock.now())),
            (Page::Health, ..) => (404, "unknown path: use /healthz, /livez or /readyz\n".to_owned()),
            (Page::Metrics, ..) => (404, "unknown path: use /metrics\n".to_owned()),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
        let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
        response
    }
}

/// One that waits for its turn is ready: it could act at once.
fn readiness(stage: Stage) -> (u16, String) {
    match stage {
        Stage::Connecting => (503, "the cluster has not answered yet\n".to_owned()),
        Stage::Waiting => (200, "ok: waiting for the lease\n".to_owned()),
        Stage::Acting => (200, "ok: acting\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_tells_its_own_page_and_names_it_to_those_who_are_lost() {
        let (stage, seen) = watch::channel(Stage::Connecting);
        let status = |page, method: Method, path| {
            let told = Told { page, stage: seen.clone(), metrics: Arc::default() };
            told.page(&method, path).status().as_u16()
        };
        assert_eq!(status(Page::Health, Method::GET, "/healthz"), 200, "it lives, though it is not ready");
        assert_eq!(status(Page::Health, Method::GET, "/readyz"), 503);
        stage.send_replace(Stage::Waiting);
        assert_eq!(status(Page::Health, Method::GET, "/readyz"), 200, "it could act at once");
        stage.send_replace(Stage::Acting);
        assert_eq!(status(Page::Health, Method::HEAD, "/readyz"), 200);
        assert_eq!(status(Page::Health, Method::GET, "/metrics"), 404);
        assert_eq!(status(Page::Metrics, Method::GET, "/metrics"), 200);
        assert_eq!(status(Page::Metrics, Method::GET, "/healthz"), 404);
        assert_eq!(status(Page::Metrics, Method::POST, "/metrics"), 405);
    }
}
