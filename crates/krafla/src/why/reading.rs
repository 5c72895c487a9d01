//! Reads from a cluster what a diagnosis looks at.

use futures_util::future::join_all;
use krafla_api::Time;
use krafla_client::{HttpsClient, Request, encoded};
use krafla_cluster::ClientError;
use krafla_diagnosis::{Facts, Resource, references};
use serde_json::Value;

use crate::doctor::lease;

/// What is read in the object's namespace.
const NAMESPACED: [Resource; 10] = [
    Resource::VcJob,
    Resource::Job,
    Resource::JobFlow,
    Resource::JobTemplate,
    Resource::CronJob,
    Resource::VcCronJob,
    Resource::Event,
    Resource::PersistentVolumeClaim,
    Resource::ResourceQuota,
    Resource::LimitRange,
];
/// What is read in all namespaces: other jobs wait in the same queues and use the same nodes.
const EVERYWHERE: [Resource; 5] =
    [Resource::PodGroup, Resource::Pod, Resource::Node, Resource::Queue, Resource::PriorityClass];
/// Only metadata: the contents of a Secret are of no interest.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// Path of the lease of Volcano's controllers, unless flags of theirs say otherwise.
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/vc-controller-manager";

/// What was read, and what could not be: the diagnosis is about less then.
pub(super) struct Reading {
    pub(super) facts: Facts,
    pub(super) unread: Vec<String>,
}

/// Reads what a diagnosis of this object may need.
pub(super) async fn read(
    client: &HttpsClient,
    namespace: &str,
    subjects: &[Resource],
    name: &str,
    now: Time,
) -> Reading {
    let mut reading = Reading { facts: Facts::new(now), unread: Vec::new() };
    // The gangs of a queue are in all namespaces, and so are the Events about them.
    let is_everywhere = subjects.iter().all(|it| !it.is_namespaced());
    let in_namespace = if is_everywhere { String::new() } else { encoded(namespace) };
    let lists = NAMESPACED.iter().map(|it| (*it, it.path(&in_namespace)));
    let lists = lists.chain(EVERYWHERE.iter().map(|it| (*it, it.path(""))));
    let answers =
        join_all(lists.map(|(resource, path)| async move { (resource, list(client, path).await) })).await;
    for (resource, answer) in answers {
        match answer {
            Ok(items) => reading.facts.add_all(resource, items),
            // Not every cluster has Volcano's kinds.
            Err(ClientError::NotFound(_)) => {}
            Err(error) => reading.unread.push(format!("{}: {error}", resource.word())),
        }
    }
    for (resource, object) in references(&reading.facts, subjects, namespace, name) {
        let path = format!("{}/{}", resource.path(&encoded(namespace)), encoded(&object));
        match client.ask(&Request::get(path).accepting(METADATA)).await {
            Ok(body) => reading.facts.add(resource, serde_json::from_slice(&body).unwrap_or_default()),
            Err(ClientError::NotFound(_)) => reading.facts.add_absent(resource, namespace, &object),
            Err(error) => reading.unread.push(format!("{} {object}: {error}", resource.word())),
        }
    }
    if let Ok(json) = client.ask(&Request::get(LEASE.to_owned())).await {
        reading.facts.lease = lease(&json, now);
    }
    reading
}

async fn list(client: &HttpsClient, path: String) -> Result<Vec<Value>, ClientError> {
    let body = client.ask(&Request::get(path)).await?;
    let mut listed: Value = serde_json::from_slice(&body).unwrap_or_default();
    match listed.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Ok(Vec::new()),
    }
}
