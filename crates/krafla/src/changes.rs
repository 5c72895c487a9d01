//! What happens to a kind, for as long as somebody wants to know: watches that end or break are begun anew where they
//! were, and nothing that happened in between is missed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use krafla_api::{Key, Kind};
use krafla_cluster::{Client, ClientError, Event, EventType};
use serde::Deserialize;
use serde_json::json;

/// How long to wait before a watch that broke is begun anew.
const RETRY: Duration = Duration::from_millis(500);

/// All changes of a kind after a revision. An error says that there is no contact; the stream goes on all the same.
pub(crate) fn changes(
    client: Arc<dyn Client>,
    kind: Kind,
    revision: u64,
) -> BoxStream<'static, Result<Event, ClientError>> {
    let watch = client.watch(kind, revision);
    let follower = Follower { client, kind, revision, watch, known: BTreeMap::new(), pending: Vec::new() };
    stream::unfold(follower, |mut follower| async move { Some((follower.next().await, follower)) }).boxed()
}

struct Follower {
    client: Arc<dyn Client>,
    kind: Kind,
    revision: u64,
    watch: BoxStream<'static, Result<Event, ClientError>>,
    /// Who is there, to notice who is gone after a new list.
    known: BTreeMap<String, Key>,
    /// What a new list led to, last first.
    pending: Vec<Event>,
}

impl Follower {
    async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            if let Some(event) = self.pending.pop() {
                return Ok(event);
            }
            match self.watch.next().await {
                Some(Ok(event)) => {
                    self.observe(&event);
                    return Ok(event);
                }
                None => self.watch = self.client.watch(self.kind, self.revision),
                Some(Err(ClientError::Expired(_))) => self.list().await?,
                Some(Err(error)) => {
                    tokio::time::sleep(RETRY).await;
                    self.watch = self.client.watch(self.kind, self.revision);
                    return Err(error);
                }
            }
        }
    }

    fn observe(&mut self, event: &Event) {
        self.revision = self.revision.max(event.revision);
        if event.event_type == EventType::Bookmark {
            return;
        }
        let named = Named::read(&event.object);
        if event.event_type == EventType::Deleted {
            self.known.remove(&named.uid);
        } else {
            self.known.entry(named.uid).or_insert_with(|| Key::new(&named.namespace, &named.name));
        }
    }

    /// Begins anew with all that is there, and tells of what is not there any more.
    async fn list(&mut self) -> Result<(), ClientError> {
        let listed = match self.client.list(self.kind).await {
            Ok(listed) => listed,
            Err(error) => {
                tokio::time::sleep(RETRY).await;
                // That watch will say again that a list is needed.
                self.watch = self.client.watch(self.kind, self.revision);
                return Err(error);
            }
        };
        let mut gone = std::mem::take(&mut self.known);
        for object in &listed.items {
            let event = Event::new(EventType::Modified, listed.revision, object.clone());
            gone.remove(&Named::read(object).uid);
            self.observe(&event);
            self.pending.push(event);
        }
        for (uid, key) in gone {
            let metadata = json!({ "namespace": &*key.namespace, "name": &*key.name, "uid": uid });
            let object = Bytes::from(json!({ "metadata": metadata }).to_string());
            self.pending.push(Event::new(EventType::Deleted, listed.revision, object));
        }
        self.revision = listed.revision;
        self.watch = self.client.watch(self.kind, self.revision);
        Ok(())
    }
}

/// What an object is known by. Nothing else of it is looked at: there may be very many.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    namespace: String,
    name: String,
    uid: String,
}

impl Named {
    /// An object that can not be read has no name.
    fn read(json: &[u8]) -> Named {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Envelope {
            metadata: Named,
        }
        serde_json::from_slice::<Envelope>(json).unwrap_or_default().metadata
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use krafla_cluster::Step;
    use krafla_cluster::{Listed, Written};
    use krafla_plan::Object;
    use parking_lot::Mutex;

    use super::*;

    type Watch = Vec<Result<Event, ClientError>>;

    /// A server that says what it is told to say, one watch after the other.
    struct Scripted {
        watches: Mutex<Vec<Watch>>,
        asked: Mutex<Vec<u64>>,
        listed: Listed,
    }

    impl Client for Scripted {
        fn list(&self, _: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
            Box::pin(async { Ok(self.listed.clone()) })
        }

        fn watch(&self, _: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
            self.asked.lock().push(revision);
            let mut watches = self.watches.lock();
            if watches.is_empty() {
                return stream::pending().boxed();
            }
            stream::iter(watches.remove(0)).boxed()
        }

        fn get(&self, _: Kind, _: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
            Box::pin(async { Err(ClientError::Unknown("not asked for".to_owned())) })
        }

        fn write<'a>(&'a self, _: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
            Box::pin(async { Err(ClientError::Unknown("not asked for".to_owned())) })
        }
    }

    fn object(name: &str) -> Bytes {
        let metadata =
            json!({ "namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1" });
        json!({ "metadata": metadata }).to_string().into()
    }

    fn added(name: &str, revision: u64) -> Result<Event, ClientError> {
        Ok(Event::new(EventType::Added, revision, object(name)))
    }

    #[tokio::test]
    async fn nothing_is_missed_when_watches_end_break_and_expire() {
        let server = Arc::new(Scripted {
            watches: Mutex::new(vec![
                vec![added("a", 11), added("b", 12)],
                vec![Err(ClientError::Unknown("cut".to_owned()))],
                vec![Err(ClientError::expired("too old"))],
                vec![added("d", 31)],
            ]),
            asked: Mutex::default(),
            listed: Listed { revision: 30, items: vec![object("b"), object("c")] },
        });
        let events = changes(server.clone(), Kind::VcJob, 10).take(7);
        let mut told: Vec<String> = events
            .map(|event| match event {
                Ok(event) => {
                    let name = Object::decode(Kind::VcJob, &event.object).meta.key.name;
                    format!("{:?} {name}", event.event_type)
                }
                Err(error) => error.to_string(),
            })
            .collect()
            .await;
        // What a list says comes in no order.
        told[3..6].sort_unstable();
        let expected = [
            "Added a",
            "Added b",
            "outcome unknown: cut",
            "Deleted a",
            "Modified b",
            "Modified c",
            "Added d",
        ];
        assert_eq!(told, expected);
        assert_eq!(*server.asked.lock(), [10, 12, 12, 30]);
    }
}
