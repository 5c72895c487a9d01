//! Writes that meet others which are accepted but not yet durable: nobody who did not name a revision is told of a conflict.

use std::pin::pin;

use futures_util::future::LocalBoxFuture;

use super::*;
use crate::store::tests::gate::Gate;

const WRITERS: usize = 64;

fn cluster_on(store: Store) -> Cluster {
    let api = Api::new(store, Arc::new(Still::default()), Admission::default());
    Cluster(api)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

async fn create(cluster: &Cluster, kind: Kind, object: Value) {
    let resource = cluster.resource(kind);
    let object = crate::codec::normalise(&resource, &object).unwrap();
    let namespace = if resource.is_namespaced() { "default" } else { "" };
    cluster.0.create(&resource, namespace, object, &WriteOptions::default()).await.unwrap();
}

fn options() -> WriteOptions {
    WriteOptions { manager: Some("test".to_owned()), ..WriteOptions::default() }
}

/// A write of a Deployment that names no revision, by its name.
fn write<'a>(cluster: &'a Cluster, name: &str) -> LocalBoxFuture<'a, Result<(), Status>> {
    let resource = cluster.0.registry().find("apps", "v1", "deployments").unwrap();
    let (api, key, name) = (&cluster.0, Key::new("default", "d"), name.to_owned());
    Box::pin(async move {
        let label = Patch::Merge(json!({"metadata": {"labels": {"mine": "x"}}}));
        match name.as_str() {
            "patch" => api.patch(&resource, &key, Part::Main, &label, &options()).await.map(drop),
            "status" => {
                let patch = Patch::Merge(json!({"status": {"replicas": 3}}));
                api.patch(&resource, &key, Part::Status, &patch, &options()).await.map(drop)
            }
            "finalizer" => {
                let patch = Patch::Merge(json!({"metadata": {"finalizers": ["a.b/c"]}}));
                api.patch(&resource, &key, Part::Main, &patch, &options()).await.map(drop)
            }
            "scale" => {
                let scaled = |old: &Value| {
                    let mut scale = old.clone();
                    scale["spec"]["replicas"] = 7.into();
                    Ok(scale)
                };
                api.change_scale(&resource, &key, &options(), scaled).await.map(drop)
            }
            "apply" => {
                let metadata = json!({"name": "d", "namespace": "default", "labels": {"mine": "x"}});
                let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata});
                let applied = Applied { object, is_forced: false };
                api.apply(&resource, &key, Part::Main, &applied, &options()).await.map(drop)
            }
            "update" => {
                let object = crate::codec::normalise(&resource, &deployment()).unwrap();
                api.update(&resource, &key, Part::Main, object, &options()).await.map(drop)
            }
            "delete" => {
                let uid = api.get(&resource, &key)?.uid.0.to_string();
                let how = DeleteOptions { uid: Some(uid), ..DeleteOptions::default() };
                api.delete(&resource, &key, &how).await.map(drop)
            }
            "nothing" => {
                let nothing = Patch::Merge(json!({"metadata": {"labels": {"theirs": "x"}}}));
                api.patch(&resource, &key, Part::Main, &nothing, &options()).await.map(drop)
            }
            other => panic!("no write is called {other}"),
        }
    })
}

fn deployment() -> Value {
    let template = json!({
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "busybox"}]},
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    })
}

/// A store that holds a deployment.
fn with_deployment(store: Store) -> Cluster {
    let cluster = cluster_on(store);
    runtime().block_on(async {
        cluster.0.bootstrap().await.unwrap();
        let resource = cluster.0.registry().find("apps", "v1", "deployments").unwrap();
        let object = crate::codec::normalise(&resource, &deployment()).unwrap();
        cluster.0.create(&resource, "default", object, &WriteOptions::default()).await.unwrap();
    });
    cluster
}

#[test]
fn a_write_is_computed_from_what_is_accepted() {
    for name in ["patch", "status", "finalizer", "scale", "apply", "update", "delete", "nothing"] {
        let (store, gate) = Gate::store();
        let cluster = with_deployment(store);
        let resource = cluster.0.registry().find("apps", "v1", "deployments").unwrap();
        let key = Key::new("default", "d");
        gate.close();
        let theirs = Patch::Merge(json!({"metadata": {"labels": {"theirs": "x"}}}));
        let (theirs_options, ours) = (options(), write(&cluster, name));
        let mut theirs = pin!(cluster.0.patch(&resource, &key, Part::Main, &theirs, &theirs_options));
        let mut ours = pin!(ours);
        assert!(theirs.as_mut().now_or_never().is_none());
        let early = ours.as_mut().now_or_never();
        assert!(early.is_none(), "{name}: answered before what it depends on is durable: {early:?}");
        gate.open();
        runtime().block_on(async {
            theirs.await.unwrap();
            ours.await.unwrap_or_else(|status| panic!("{name}: {status}"));
        });
        if !matches!(name, "delete" | "update") {
            let object = parse(&cluster.0.get(&resource, &key).unwrap()).unwrap();
            assert_eq!(object["metadata"]["labels"]["theirs"], "x", "{name}: {object}");
        }
    }
}

#[test]
fn whoever_names_a_revision_is_told_that_it_is_not_the_newest() {
    let (store, gate) = Gate::store();
    let cluster = with_deployment(store);
    let resource = cluster.0.registry().find("apps", "v1", "deployments").unwrap();
    let key = Key::new("default", "d");
    let seen = cluster.0.get(&resource, &key).unwrap().revision;
    gate.close();
    let theirs = Patch::Merge(json!({"metadata": {"labels": {"theirs": "x"}}}));
    let theirs_options = options();
    let mut theirs = pin!(cluster.0.patch(&resource, &key, Part::Main, &theirs, &theirs_options));
    assert!(theirs.as_mut().now_or_never().is_none());
    let ours = Patch::Merge(json!({"metadata": {"resourceVersion": seen.to_string(), "labels": {"a": "b"}}}));
    gate.open();
    let refused =
        runtime().block_on(cluster.0.patch(&resource, &key, Part::Main, &ours, &options())).unwrap_err();
    assert_eq!(refused.code, 409);
    runtime().block_on(theirs).unwrap();
}

#[test]
fn many_writers_of_one_object_lose_nothing_and_meet_no_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = cluster_on(Store::open(dir.path()).unwrap());
    runtime().block_on(async {
        cluster.0.bootstrap().await.unwrap();
        create(&cluster, Kind::ConfigMap, config_map("a")).await;
        let resource = cluster.resource(Kind::ConfigMap);
        let writers = (0..WRITERS).map(|n| {
            let (api, resource) = (cluster.0.clone(), resource.clone());
            tokio::spawn(async move {
                let patch = Patch::Merge(json!({"data": {format!("k{n}"): "v"}}));
                api.patch(&resource, &key(Kind::ConfigMap, "a"), Part::Main, &patch, &options()).await
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap().unwrap();
        }
        let object = cluster.get(Kind::ConfigMap, "a").unwrap();
        assert_eq!(object["data"].as_object().unwrap().len(), WRITERS + 1, "{object}");
    });
}
