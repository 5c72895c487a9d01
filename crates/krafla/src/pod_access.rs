//! The node's logs, as the API server passes them on.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use krafla_api::Key;
use krafla_apiserver::http::LogOptions;
use krafla_apiserver::{PodAccess, Status};
use krafla_node::Node;

/// The logs of one node's pods.
pub(crate) struct NodeLogs(pub(crate) Arc<Node>);

impl PodAccess for NodeLogs {
    fn logs<'a>(
        &'a self,
        pod: &'a Key,
        container: &'a str,
        options: LogOptions,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Bytes>, Status>> {
        let options = krafla_node::LogOptions {
            follow: options.follow,
            previous: options.previous,
            tail_lines: options.tail_lines,
            since_time: options.since_time,
            since_seconds: options.since_seconds,
            timestamps: options.timestamps,
            limit_bytes: options.limit_bytes,
        };
        Box::pin(async move {
            let logs = self.0.logs(&pod.namespace, &pod.name, Some(container), options).await;
            let logs = logs.map_err(|error| Status::bad_request(error.to_string()))?;
            // A log that can not be read any further ends; there is no way to say why in the middle of a body.
            Ok(logs
                .take_while(|chunk| std::future::ready(chunk.is_ok()))
                .filter_map(|chunk| std::future::ready(chunk.ok()))
                .boxed())
        })
    }
}
