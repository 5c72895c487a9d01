//! Events go after a while, as in a cluster whose etcd forgets them.
//!
//! Every write of an Event gives it the same time again. So the order of the writes is the order of the ends, and one timer,
//! for the oldest, is enough.

use std::collections::VecDeque;
use std::time::Duration;

use krafla_api::{Key, Time};
use krafla_schema::object;
use serde_json::Value;
use tokio::time::Instant;

use super::{Api, parse};
use crate::store::{Change, CommitError, Entry, EventType, Expect, Write};

const EVENTS: &str = "events";
/// Events that end within this time of each other go together.
const TOGETHER: Duration = Duration::from_secs(1);

/// A write of an Event, and when the Event ends if it was the last one.
struct Due {
    at: Instant,
    key: Key,
    revision: u64,
}

impl Api {
    /// Removes Events a time after they were last written, for as long as it is polled.
    pub async fn run_event_expiry(self, ttl: Duration) {
        loop {
            self.expire_events(ttl).await;
        }
    }

    /// The same, until the history of Events is lost.
    async fn expire_events(&self, ttl: Duration) {
        let snapshot = self.store().snapshot(&EVENTS.into());
        let (started_at, now) = (Instant::now(), self.env().now());
        let due = |entry: &Entry| {
            let age = now.since(last_seen(entry).unwrap_or(now));
            Due { at: started_at + ttl.saturating_sub(age), key: entry.key.clone(), revision: entry.revision }
        };
        let mut queue: Vec<Due> = snapshot.entries.values().map(|entry| due(entry)).collect();
        queue.sort_by_key(|due| due.at);
        let mut queue = VecDeque::from(queue);
        let Ok(mut writes) = self.store().watch(&EVENTS.into(), snapshot.revision) else { return };
        loop {
            let next = queue.front().map(|due| due.at);
            let timer = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                written = writes.next() => match written {
                    Ok(event) if event.event_type == EventType::Deleted => {}
                    Ok(event) => {
                        let (key, revision) = (event.entry.key.clone(), event.entry.revision);
                        queue.push_back(Due { at: Instant::now() + ttl, key, revision });
                    }
                    Err(_) => return,
                },
                () = timer => {
                    let until = Instant::now() + TOGETHER;
                    while queue.front().is_some_and(|due| due.at <= until) {
                        if let Some(due) = queue.pop_front() {
                            self.expire(&due).await;
                        }
                    }
                }
            }
        }
    }

    /// Removes an Event, unless it has been written since.
    async fn expire(&self, due: &Due) {
        let Some(resource) = self.registry().find("", "v1", EVENTS) else { return };
        let Some(entry) = self.store().get(&EVENTS.into(), &due.key) else { return };
        if entry.revision != due.revision {
            return;
        }
        let Ok(draft) = self.last_draft(&resource, &entry) else { return };
        let write = Write {
            resource: EVENTS.into(),
            key: due.key.clone(),
            expect: Expect::Revision(due.revision),
            change: Change::Delete(draft),
        };
        match self.store().commit(write).await {
            // It was written a moment ago, or another process has removed it.
            Ok(_) | Err(CommitError::Stale { .. } | CommitError::Missing) => {}
            Err(error) => tracing::warn!(event = %due.key, %error, "cannot remove an old event"),
        }
    }
}

/// When an Event was last written, as far as it says.
fn last_seen(entry: &Entry) -> Option<Time> {
    let event: Value = parse(entry).ok()?;
    let times = ["/metadata/creationTimestamp", "/lastTimestamp", "/eventTime", "/series/lastObservedTime"];
    times.iter().filter_map(|pointer| object::time_at(&event, pointer)).max()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::SystemEnv;
    use crate::admit::Admission;
    use crate::env::Env;
    use crate::ops::WriteOptions;
    use crate::store::Store;

    async fn api_with_event(name: &str, last_seen: Time) -> Api {
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default());
        api.bootstrap().await.unwrap();
        write(&api, name, last_seen).await;
        api
    }

    async fn write(api: &Api, name: &str, last_seen: Time) {
        let events = api.registry().find("", "v1", "events").unwrap();
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"namespace": "default"}, "lastTimestamp": last_seen.to_string(),
        });
        api.create(&events, "default", event, &WriteOptions::default()).await.unwrap();
    }

    fn n_events(api: &Api) -> usize {
        api.store().snapshot(&EVENTS.into()).entries.len()
    }

    async fn until_gone(api: &Api) {
        let expiry = tokio::spawn(api.clone().run_event_expiry(Duration::from_millis(1500)));
        while n_events(api) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        expiry.abort();
    }

    #[tokio::test]
    async fn events_go_when_their_time_is_over() {
        let api = api_with_event("a", SystemEnv.now()).await;
        let expiry = tokio::spawn(api.clone().run_event_expiry(Duration::from_secs(3600)));
        tokio::task::yield_now().await;
        write(&api, "b", SystemEnv.now()).await;
        tokio::task::yield_now().await;
        assert_eq!(n_events(&api), 2, "theirs is not");
        expiry.abort();
        until_gone(&api).await;
    }

    #[tokio::test]
    async fn events_of_an_earlier_run_go_by_what_they_say() {
        let api = api_with_event("a", Time::from_seconds(1_000_000_000)).await;
        let entry = api.store().snapshot(&EVENTS.into()).entries.values().next().cloned().unwrap();
        let age = SystemEnv.now().since(last_seen(&entry).unwrap());
        assert!(age < Duration::from_secs(60), "it was made just now, whatever it tells of");
        until_gone(&api).await;
    }
}
