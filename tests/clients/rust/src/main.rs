//! What kube-rs sees of a cluster: `client-rust KUBECONFIG` prints one line for each thing that happened. Its watcher and
//! its reflector list and watch, and watch again, in the way controllers written in Rust do.

use std::error::Error;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

type Failure = Box<dyn Error + Send + Sync>;

const NAMESPACE: &str = "rust";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let path = std::env::args().nth(1).ok_or("usage: client-rust KUBECONFIG")?;
    // The first provider that is asked for counts.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config =
        Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &KubeConfigOptions::default()).await?;
    tokio::time::timeout(Duration::from_secs(60), run(Client::try_from(config)?)).await?
}

async fn run(client: Client) -> Result<(), Failure> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &made(json!({"metadata": {"name": NAMESPACE}}))?).await?;
    config_maps(client.clone()).await?;
    custom_objects(client).await
}

/// Every change is seen by a reflector before the next one is made.
async fn config_maps(client: Client) -> Result<(), Failure> {
    let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    // Every namespace has a ConfigMap of the cluster's own.
    let ours = watcher::Config::default().fields("metadata.name!=kube-root-ca.crt");
    let (cache, writer) = reflector::store();
    let mut changes = reflector(writer, watcher(api.clone(), ours)).touched_objects().boxed();

    let new = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    api.create(&PostParams::default(), &made(new)?).await?;
    see("created", &mut changes).await?;
    let merged = Patch::Merge(json!({"data": {"k": "w"}}));
    api.patch("a", &PatchParams::default(), &merged).await?;
    see("patched", &mut changes).await?;
    let applied =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"l": "x"}});
    api.patch("a", &PatchParams::apply("client-rust"), &Patch::Apply(applied)).await?;
    see("applied", &mut changes).await?;
    println!("cached {}", cache.state().len());
    api.delete("a", &DeleteParams::default()).await?;
    see("deleted", &mut changes).await?;
    println!("missing: {}", code(api.get("a").await.map(drop)));
    Ok(())
}

/// Kinds that this program was not built for are found by discovery's names.
async fn custom_objects(client: Client) -> Result<(), Failure> {
    let kind = GroupVersionKind::gvk("batch.volcano.sh", "v1alpha1", "Job");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &resource);
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let job =
        |tasks: Value| json!({"metadata": {"name": "j"}, "spec": {"tasks": tasks, "schedulerName": "none"}});
    let task = json!([{"name": "t", "replicas": 1, "template": template}]);
    let named = |mut object: Value| -> Result<DynamicObject, Failure> {
        object["apiVersion"] = resource.api_version.clone().into();
        object["kind"] = resource.kind.clone().into();
        made(object)
    };
    api.create(&PostParams::default(), &named(job(task))?).await?;
    let listed = api.list(&ListParams::default()).await?;
    println!("jobs {:?}", listed.iter().filter_map(|job| job.metadata.name.as_deref()).collect::<Vec<_>>());
    let refused = api.create(&PostParams::default(), &named(job(json!([])))?).await.map(drop);
    println!("wrong job: {}", code(refused));
    Ok(())
}

type Changes = BoxStream<'static, watcher::Result<ConfigMap>>;

/// Waits for the next change, and tells of it.
async fn see(change: &str, changes: &mut Changes) -> Result<(), Failure> {
    let seen = changes.try_next().await?.ok_or("the watch has ended")?;
    println!("{change} {:?}", seen.data.unwrap_or_default());
    Ok(())
}

fn made<K: DeserializeOwned>(object: Value) -> Result<K, Failure> {
    Ok(serde_json::from_value(object)?)
}

/// The code of the Status that an answer was refused with.
fn code(answer: kube::Result<()>) -> u16 {
    match answer {
        Err(kube::Error::Api(status)) => status.code,
        Err(_) | Ok(()) => 0,
    }
}
