//! The same questions to the same server, in the same process and over HTTPS: nobody can tell the difference.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use krafla_api::{Key, Kind, Uid};
use krafla_cluster::{Client, ClientError, Event, EventType, Step};
use serde_json::{Value, json};

use crate::support::{Server, config_map, delete, patch};

/// Both clients of a server.
async fn both() -> (Server, [(&'static str, Arc<dyn Client>); 2]) {
    let server = Server::start().await;
    let clients: [(_, Arc<dyn Client>); 2] = [("local", server.local.clone()), ("https", server.https())];
    (server, clients)
}

fn parsed(json: &Bytes) -> Value {
    serde_json::from_slice(json).unwrap()
}

/// An object as everybody sees it. Who wrote which field is only kept of what comes over HTTP.
fn object(json: &Bytes) -> Value {
    let mut object = parsed(json);
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    object
}

#[tokio::test]
async fn what_one_writes_the_other_reads() {
    let (_server, clients) = both().await;
    for (way, client) in &clients {
        let written = client.write(&config_map(way)).await.unwrap();
        assert_eq!(written.key, Key::new("default", way));
        let read: Vec<Value> = futures_util::future::join_all(
            clients.iter().map(|(_, client)| client.get(Kind::ConfigMap, &written.key)),
        )
        .await
        .into_iter()
        .map(|json| object(&json.unwrap()))
        .collect();
        assert_eq!(read[0], read[1]);
        assert_eq!(read[0]["metadata"]["uid"], *written.uid.0);
        assert_eq!(read[0]["metadata"]["resourceVersion"], written.revision.to_string());
        assert_eq!(read[0]["data"], json!({ "k": "v" }));
    }
}

#[tokio::test]
async fn fields_belong_to_whoever_the_client_writes_as() {
    let server = Server::start().await;
    let client = server.https().as_ref().clone().writing_as("krafla-controllers");
    let queue = json!({ "metadata": { "name": "team" }, "spec": { "weight": 1 } });
    let made = server.https().write(&Step::Create { kind: Kind::Queue, object: queue }).await.unwrap();
    let state = Step::Patch {
        kind: Kind::Queue,
        key: made.key,
        uid: made.uid,
        revision: None,
        of_status: true,
        patch: json!({ "status": { "state": "Closing" } }),
    };
    let written = client.write(&state).await.unwrap();
    let queue = parsed(&client.get(Kind::Queue, &written.key).await.unwrap());
    let owners = queue["metadata"]["managedFields"].as_array().unwrap();
    let owns_state = |entry: &&Value| entry["fieldsV1"]["f:status"]["f:state"].is_object();
    let owner = owners.iter().find(owns_state).expect("somebody owns the state");
    assert_eq!((&owner["manager"], &owner["subresource"]), (&json!("krafla-controllers"), &json!("status")));
}

#[tokio::test]
async fn lists_are_the_same_however_many_pages_they_have() {
    let (server, clients) = both().await;
    for n in 0..10 {
        server.local.write(&config_map(&format!("m{n}"))).await.unwrap();
    }
    for kind in [Kind::ConfigMap, Kind::Queue, Kind::VcJob, Kind::Pod, Kind::Node] {
        // The server goes on with its own objects after its start: lists of one revision are compared.
        let (local, https) = loop {
            let [local, https] = [&clients[0].1, &clients[1].1].map(|client| client.list(kind));
            let (local, https) = (local.await.unwrap(), https.await.unwrap());
            if local.revision == https.revision {
                break (local, https);
            }
        };
        let objects = |items: &[Bytes]| items.iter().map(parsed).collect::<Vec<_>>();
        assert_eq!(objects(&local.items), objects(&https.items), "{kind}");
    }
}

async fn next(events: &mut (impl StreamExt<Item = Result<Event, ClientError>> + Unpin)) -> Event {
    loop {
        let event = events.next().await.expect("the watch goes on").unwrap();
        if event.event_type != EventType::Bookmark {
            return event;
        }
    }
}

#[tokio::test]
async fn watches_tell_the_same_story() {
    let (server, clients) = both().await;
    let revision = server.local.list(Kind::ConfigMap).await.unwrap().revision;
    let mut watches = clients.each_ref().map(|(_, client)| client.watch(Kind::ConfigMap, revision));
    let made = server.local.write(&config_map("a")).await.unwrap();
    let changed = server.local.write(&patch(&made, None, json!({ "data": { "k": "w" } }))).await.unwrap();
    server.local.write(&delete(&made.key, &made.uid)).await.unwrap();
    let expected = [(EventType::Added, "v"), (EventType::Modified, "w"), (EventType::Deleted, "w")];
    for (event_type, value) in expected {
        let [local, https] = watches.each_mut();
        let (local, https) = (next(local).await, next(https).await);
        assert_eq!((local.event_type, https.event_type), (event_type, event_type));
        assert_eq!(local.revision, https.revision);
        assert_eq!(parsed(&local.object), parsed(&https.object));
        assert_eq!(parsed(&https.object)["data"]["k"], value);
    }
    assert!(changed.revision > made.revision);
}

#[tokio::test]
async fn a_watch_from_nothing_begins_with_what_is_there() {
    let (server, clients) = both().await;
    server.local.write(&config_map("a")).await.unwrap();
    for (way, client) in &clients {
        let events = client.watch(Kind::ConfigMap, 0);
        let named = events.filter(|event| {
            let object = event.as_ref().map(|event| String::from_utf8_lossy(&event.object).into_owned());
            std::future::ready(object.unwrap().contains(r#""name":"a""#))
        });
        let first = Box::pin(named).next().await.unwrap().unwrap();
        assert_eq!(first.event_type, EventType::Added, "{way}");
    }
}

#[tokio::test]
async fn refusals_mean_the_same() {
    let (_server, clients) = both().await;
    for (way, client) in &clients {
        let made = client.write(&config_map(&format!("{way}-a"))).await.unwrap();
        let again = client.write(&config_map(&format!("{way}-a"))).await.unwrap_err();
        assert_eq!(again.label(), "already_exists", "{way}: {again}");

        let stale = client.write(&patch(&made, Some(1), json!({ "data": null }))).await.unwrap_err();
        assert_eq!(stale.label(), "conflict", "{way}: {stale}");

        let mut other = made.clone();
        other.uid = Uid("somebody-else".into());
        let not_that_one = client.write(&patch(&other, None, json!({ "data": null }))).await.unwrap_err();
        assert_eq!(not_that_one.label(), "conflict", "{way}: {not_that_one}");
        let not_that_one = client.write(&delete(&other.key, &other.uid)).await.unwrap_err();
        assert_eq!(not_that_one.label(), "conflict", "{way}: {not_that_one}");

        let nowhere = Key::new("default", "nowhere");
        let gone = client.write(&delete(&nowhere, &made.uid)).await.unwrap_err();
        assert_eq!(gone.label(), "not_found", "{way}: {gone}");
        let gone = client.get(Kind::ConfigMap, &nowhere).await.unwrap_err();
        assert_eq!(gone.label(), "not_found", "{way}: {gone}");

        let nameless =
            Step::Create { kind: Kind::ConfigMap, object: json!({ "metadata": { "namespace": "default" } }) };
        let refused = client.write(&nameless).await.unwrap_err();
        assert_eq!(refused.label(), "refused", "{way}: {refused}");

        let future = client.watch(Kind::ConfigMap, u64::MAX >> 1).next().await.unwrap().unwrap_err();
        assert_ne!(future.label(), "refused", "{way}: {future}");

        client.write(&delete(&made.key, &made.uid)).await.unwrap();
        assert_eq!(client.get(Kind::ConfigMap, &made.key).await.unwrap_err().label(), "not_found", "{way}");
    }
}

#[tokio::test]
async fn a_status_is_written_beside_the_spec() {
    let (_server, clients) = both().await;
    for (way, client) in &clients {
        let spec = json!({ "minAvailable": 1, "tasks": [{ "name": "t", "replicas": 1, "template": { "spec": {
            "containers": [{ "name": "c", "image": "i" }] } } }] });
        let object = json!({ "metadata": { "namespace": "default", "name": way }, "spec": spec });
        let made = client.write(&Step::Create { kind: Kind::VcJob, object }).await.unwrap();
        let status = Step::Patch {
            kind: Kind::VcJob,
            key: made.key.clone(),
            uid: made.uid.clone(),
            revision: Some(made.revision),
            of_status: true,
            patch: json!({ "status": { "running": 3 } }),
        };
        let written = client.write(&status).await.unwrap();
        let job = parsed(&client.get(Kind::VcJob, &made.key).await.unwrap());
        assert_eq!(job["status"]["running"], 3, "{way}");
        assert_eq!(job["metadata"]["generation"], 1, "{way}");
        assert_eq!(job["metadata"]["resourceVersion"], written.revision.to_string(), "{way}");
    }
}

#[tokio::test]
async fn a_pod_is_given_to_a_node() {
    let (_server, clients) = both().await;
    for (way, client) in &clients {
        let pod = json!({ "metadata": { "namespace": "default", "name": way }, "spec": {
            "containers": [{ "name": "c", "image": "i" }] } });
        let made = client.write(&Step::Create { kind: Kind::Pod, object: pod }).await.unwrap();
        let bind = Step::Bind { pod: made.key.clone(), uid: made.uid.clone(), node: "n".to_owned() };
        let bound = client.write(&bind).await.unwrap();
        assert!(bound.revision > made.revision && bound.uid == made.uid, "{way}");
        let pod = parsed(&client.get(Kind::Pod, &made.key).await.unwrap());
        assert_eq!(pod["spec"]["nodeName"], "n", "{way}");
        assert_eq!(client.write(&bind).await.unwrap_err().label(), "conflict", "{way}");
    }
}
