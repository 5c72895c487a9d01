//! Follows all objects of one kind: lists them, watches them, and lists them again when the watch has lost its thread.

use bytes::Bytes;
use futures_util::StreamExt;
use krafla_api::Kind;
use krafla_cluster::{Client, ClientError, Event};

use super::RETRY_AFTER;

/// Who is told of the objects of a kind.
pub(super) trait Observer {
    /// They are about to be listed.
    async fn will_be_listed(&self) {}

    /// All that there are. Whatever changed while nobody was watching is among them, or is not there any more.
    async fn listed(&self, items: &[Bytes]);

    /// One that has come, changed or gone since.
    async fn observed(&self, event: &Event);
}

/// Tells an observer of a kind, until the future is dropped.
pub(super) async fn follow(client: &dyn Client, kind: Kind, observer: &impl Observer) {
    loop {
        observer.will_be_listed().await;
        match client.list(kind).await {
            Ok(listed) => {
                observer.listed(&listed.items).await;
                watch(client, kind, listed.revision, observer).await;
            }
            Err(error) => {
                tracing::warn!(%kind, %error, "list failed");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

/// Follows the watch until the objects have to be listed again.
async fn watch(client: &dyn Client, kind: Kind, mut revision: u64, observer: &impl Observer) {
    loop {
        let mut events = client.watch(kind, revision);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    revision = event.revision;
                    observer.observed(&event).await;
                }
                Err(ClientError::Expired(_)) => return,
                Err(error) => {
                    tracing::warn!(%kind, %error, "watch broke");
                    break;
                }
            }
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}
