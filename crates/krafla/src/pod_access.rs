//! What runs on the node, as the API server passes it on: logs, and commands in containers.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use krafla_api::Key;
use krafla_apiserver::http::{Amount, Output, Session, Usage};
use krafla_apiserver::{PodAccess, Status};
use krafla_cluster::{ExecOptions, LogOptions};
use krafla_node::{LogError, Node};

/// Access to pods that only seem to run: there is nothing of them but what their status says.
pub(crate) struct SimulatedAccess;

impl PodAccess for SimulatedAccess {
    fn logs<'a>(
        &'a self,
        pod: &'a Key,
        _container: &'a str,
        _options: LogOptions,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Bytes>, Status>> {
        let message = format!("pod {} is simulated: it has no logs", pod.name);
        Box::pin(std::future::ready(Err(Status::bad_request(message))))
    }

    fn exec<'a>(
        &'a self,
        pod: &'a Key,
        _container: &'a str,
        _options: ExecOptions,
    ) -> BoxFuture<'a, Result<Session, Status>> {
        let message = format!("pod {} is simulated: it has no processes", pod.name);
        Box::pin(std::future::ready(Err(Status::bad_request(message))))
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

/// Access to one node's pods.
pub(crate) struct NodeAccess(pub(crate) Arc<Node>);

impl PodAccess for NodeAccess {
    fn logs<'a>(
        &'a self,
        pod: &'a Key,
        container: &'a str,
        options: LogOptions,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Bytes>, Status>> {
        Box::pin(async move {
            let logs = self.0.logs(&pod.namespace, &pod.name, Some(container), options).await;
            let logs = logs.map_err(|error| match error {
                // The server knows it. A node that has just started takes up its pods one after the other.
                LogError::NoPod(pod) => Status::unavailable(format!("no node has started pod {pod} yet")),
                error => Status::bad_request(error.to_string()),
            })?;
            // A log that can not be read any further ends; there is no way to say why in the middle of a body.
            Ok(logs
                .take_while(|chunk| std::future::ready(chunk.is_ok()))
                .filter_map(|chunk| std::future::ready(chunk.ok()))
                .boxed())
        })
    }

    fn exec<'a>(
        &'a self,
        pod: &'a Key,
        container: &'a str,
        options: ExecOptions,
    ) -> BoxFuture<'a, Result<Session, Status>> {
        Box::pin(async move {
            let session = if options.command.is_empty() {
                self.0.attach(&pod.namespace, &pod.name, container).await
            } else {
                self.0.exec(&pod.namespace, &pod.name, container, options).await
            };
            let session = session.map_err(|error| Status::bad_request(error.to_string()))?;
            let output = session.output.map(|output| match output {
                krafla_node::Output::Stdout(data) => Output::Stdout(data),
                krafla_node::Output::Stderr(data) => Output::Stderr(data),
            });
            Ok(Session {
                stdin: session.stdin,
                output: output.boxed(),
                resize: session.resize,
                end: session.end,
            })
        })
    }

    fn usage(&self) -> BoxFuture<'_, Result<Usage, Status>> {
        Box::pin(async move {
            let amount = |used: krafla_node::Amount| Amount {
                cpu_nanos: used.cpu_nanos,
                memory_bytes: used.memory_bytes,
            };
            let used = self.0.usage().await;
            let pods = used.pods.into_iter().map(|(pod, containers)| {
                let containers = containers.into_iter().map(|(name, used)| (name, amount(used)));
                (pod, containers.collect())
            });
            let nodes = vec![(self.0.name().to_owned(), amount(used.machine))];
            Ok(Usage { window: used.window, nodes, pods: pods.collect() })
        })
    }
}
