//! Tells pods of changes of the ConfigMaps and Secrets that their volumes are made of, so that containers see them change.

use bytes::Bytes;
use krafla_api::Kind;
use krafla_cluster::{Event, EventType};

use super::feed::Observer;
use super::pods::Pods;
use super::refuse::Glance;

/// The pods, as those who are told of ConfigMaps or of Secrets.
pub(super) struct Readers<'a> {
    pub(super) kind: Kind,
    pub(super) pods: &'a Pods,
}

impl Observer for Readers<'_> {
    async fn listed(&self, _: &[Bytes]) {
        self.pods.source_changed(None);
    }

    async fn observed(&self, event: &Event) {
        let is_news = matches!(event.event_type, EventType::Added | EventType::Modified);
        if let Some(object) = Glance::at(&event.object).filter(|_| is_news) {
            self.pods.source_changed(Some((self.kind, &object.key())));
        }
    }
}
