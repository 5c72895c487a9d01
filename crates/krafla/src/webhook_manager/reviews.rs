//! Requests of the API server, and their answers over HTTP.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use krafla_admission::Settings;
use krafla_admission::webhook::{Endpoint, NotAReview};
use serde_json::Value;

use super::lookup::Lookup;
use crate::serving::Handler;

/// The longest body that is read, as in Volcano.
const BODY_BYTES_MAX: usize = 3 << 20;
/// How long a body may take.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// Answers AdmissionReviews at the paths that are enabled.
#[derive(Clone)]
pub(super) struct Reviews {
    pub(super) endpoints: Arc<[&'static Endpoint]>,
    pub(super) settings: Arc<ArcSwap<Settings>>,
    pub(super) lookup: Arc<Lookup>,
}

impl Handler for Reviews {
    async fn answer(self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        self.reply(request).await
    }
}

impl Reviews {
    async fn reply(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        let Some(endpoint) = self.endpoints.iter().copied().find(|endpoint| endpoint.path == path) else {
            return text(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        let is_json = request.headers().get(CONTENT_TYPE).is_some_and(|value| value == "application/json");
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
        let body = match tokio::time::timeout(BODY_PATIENCE, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return text(StatusCode::PAYLOAD_TOO_LARGE, "request body too large\n");
            }
            Ok(Err(error)) => {
                return text(StatusCode::BAD_REQUEST, &format!("cannot read the body: {error}\n"));
            }
            Err(_) => return text(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time\n"),
        };
        // Volcano answers other content types with nothing.
        if !is_json {
            return text(StatusCode::OK, "");
        }
        let answer = match parse(&body) {
            Some(review) => self.review(endpoint, &review).await,
            None => Ok(Err(NotAReview)),
        };
        match answer {
            Ok(Ok(answer)) => json(&answer),
            Ok(Err(NotAReview)) => text(
                StatusCode::BAD_REQUEST,
                "the body must be an AdmissionReview of admission.k8s.io/v1 with a request\n",
            ),
            Err(problem) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{problem}\n")),
        }
    }

    /// The answer, or the problem that prevents one: the API server then follows the failure policy of the webhook.
    async fn review(&self, endpoint: &Endpoint, review: &Value) -> Result<Result<Value, NotAReview>, String> {
        if !self.lookup.is_complete() {
            return Err("queues and namespaces are not read yet".to_owned());
        }
        let cluster = self.lookup.view(&endpoint.queues_named(review)).await;
        let cluster = cluster.map_err(|error| format!("cannot read a queue: {error}"))?;
        Ok(endpoint.answer(review, &self.settings.load(), &cluster))
    }
}

/// The document in a body. Volcano reads YAML too, whatever the content type says.
fn parse(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok().or_else(|| {
        let text = std::str::from_utf8(body).ok()?;
        serde_saphyr::from_str(text).ok()
    })
}

fn json(answer: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(answer.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn text(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
