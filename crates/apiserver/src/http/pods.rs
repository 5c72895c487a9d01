//! What runs in pods, over HTTP: access to it, and logs.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use krafla_api::{Key, Time};
use krafla_cluster::{ExecOptions, LogOptions};
use krafla_schema::field::FieldError;
use krafla_schema::object;
use krafla_schema::scalar;
use serde_json::Value;

use super::body::{self, Reply};
use super::exec::Session;
use super::query::Query;
use super::unread::Reading;
use super::usage::Usage;
use crate::status::{Qualified, Status};

/// Access to what runs in pods. The node has it; the server only passes it on.
pub trait PodAccess: Send + Sync {
    /// The log of a container. The stream ends with the log or, when it is followed, with the container.
    fn logs<'a>(
        &'a self,
        pod: &'a Key,
        container: &'a str,
        options: LogOptions,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Bytes>, Status>>;

    /// Runs a command in a container or, without one, connects to what runs there already.
    fn exec<'a>(
        &'a self,
        pod: &'a Key,
        container: &'a str,
        options: ExecOptions,
    ) -> BoxFuture<'a, Result<Session, Status>>;

    /// What nodes and pods use now.
    fn usage(&self) -> BoxFuture<'_, Result<Usage, Status>> {
        let nobody = Status::unavailable("this server has no node: nothing can be measured");
        Box::pin(std::future::ready(Err(nobody)))
    }

    /// Whether pods only seem to run. The server's version says so, too.
    fn is_simulated(&self) -> bool {
        false
    }
}

/// The options in the query of a log request.
fn log_options(pod: &str, query: &Query) -> Result<LogOptions, Status> {
    let refuse = |error: FieldError| {
        Err(Status::invalid(&Qualified { group: "", what: "PodLogOptions" }, pod, &[error]))
    };
    let (tail, limit) = (query.number("tailLines")?, query.number("limitBytes")?);
    let since = query.number("sinceSeconds")?;
    match (tail, limit, since) {
        (Some(lines @ ..0), _, _) => {
            return refuse(FieldError::invalid("tailLines", lines, "must be greater than or equal to 0"));
        }
        (_, Some(bytes @ ..1), _) => {
            return refuse(FieldError::invalid("limitBytes", bytes, "must be greater than 0"));
        }
        (_, _, Some(seconds @ ..1)) => {
            return refuse(FieldError::invalid("sinceSeconds", seconds, "must be greater than 0"));
        }
        _ => {}
    }
    let since_time = query.text("sinceTime");
    if !since_time.is_empty() {
        scalar::parse_time(since_time, scalar::Precision::Seconds).map_err(Status::bad_request)?;
    }
    if since.is_some() && !since_time.is_empty() {
        // Upstream names no field here, and shows that as an empty index.
        let rule = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        return refuse(FieldError::forbidden("[]", rule));
    }
    if !query.text("stream").is_empty() {
        return refuse(FieldError::forbidden("stream", "may not be specified"));
    }
    let positive = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    Ok(LogOptions {
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        attempt: query.number("attempt")?.and_then(|attempt| u32::try_from(attempt).ok()),
        timestamps: query.flag("timestamps"),
        tail_lines: positive(tail),
        limit_bytes: positive(limit),
        since_seconds: positive(since),
        since_time: query.get("sinceTime").and_then(|text| text.parse().ok()).map(Time),
        stream: None,
    })
}

/// `GET .../pods/NAME/log`.
pub(super) async fn log(
    access: Option<&Arc<dyn PodAccess>>,
    key: &Key,
    pod: &Value,
    query: &Query,
) -> Result<Reply, Status> {
    let options = log_options(&key.name, query)?;
    let container = container(key, pod, query.text("container"))?;
    if object::text_at(pod, "spec.nodeName").is_empty() {
        return Ok(no_content());
    }
    let Some(access) = access else {
        return Err(Status::unavailable("this server has no node: logs are not available"));
    };
    let mut reply = body::stream("text/plain", access.logs(key, &container, options).await?);
    reply.extensions_mut().insert(Reading::AtWill);
    Ok(reply)
}

fn no_content() -> Reply {
    let mut reply = body::text(204, "");
    reply.headers_mut().remove(http::header::CONTENT_TYPE);
    reply
}

/// The container that is meant: the one named, or the only one.
pub(super) fn container(key: &Key, pod: &Value, named: &str) -> Result<String, Status> {
    let names = |list: &str| {
        let containers =
            pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten();
        containers
            .filter_map(|container| container["name"].as_str())
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let containers = names("containers");
    if named.is_empty() {
        return match containers.as_slice() {
            [only] => Ok(only.clone()),
            several => {
                let (pod, choice) = (&key.name, several.join(" "));
                let message =
                    format!("a container name must be specified for pod {pod}, choose one of: [{choice}]");
                Err(Status::bad_request(message))
            }
        };
    }
    let all = [containers, names("initContainers"), names("ephemeralContainers")].concat();
    if all.iter().any(|name| name == named) {
        return Ok(named.to_owned());
    }
    Err(Status::bad_request(format!("container {named} is not valid for pod {}", key.name)))
}
