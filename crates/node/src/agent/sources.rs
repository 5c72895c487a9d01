//! Watches the ConfigMaps and Secrets that volumes are made of, so that containers see them change.

use futures_util::StreamExt;
use krafla_api::Kind;
use krafla_runtime::{ClientError, EventType};

use super::refuse::Glance;
use super::{RETRY_AFTER, Shared};

/// Tells the pods concerned of every change, until the future is dropped.
pub(super) async fn watch(shared: &Shared, kind: Kind) {
    loop {
        match shared.client.list(kind).await {
            Ok(listed) => {
                // Whatever changed while nobody was watching is found by looking at all of them.
                shared.pods.source_changed(None);
                follow(shared, kind, listed.revision).await;
            }
            Err(error) => {
                tracing::warn!(%kind, %error, "list failed");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

/// Follows the watch until the objects have to be listed again.
async fn follow(shared: &Shared, kind: Kind, mut revision: u64) {
    loop {
        let mut events = shared.client.watch(kind, revision);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    revision = event.revision;
                    let is_news = matches!(event.event_type, EventType::Added | EventType::Modified);
                    if let Some(object) = Glance::at(&event.object).filter(|_| is_news) {
                        shared.pods.source_changed(Some((kind, &object.key())));
                    }
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
