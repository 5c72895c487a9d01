//! Handing objects to a cluster, with the file and the remedy in every complaint.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use futures_util::future::BoxFuture;
use krafla_api::{Key, Kind, Quantity, Scope, Served, Uid};
use krafla_apiserver::registry::custom;
use krafla_cluster::{ClientError, Manifests, Propagation, Refusal, Step, Written};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::catalogue::{Manifest, is_workload};
use crate::home::{Home, plainly};
use crate::run::BadInput;
use crate::screen::tell;

/// What was done to an object that was not there.
pub(crate) const CREATED: &str = "created";
/// How often a write is repeated for a server that is busy.
const BUSY_RETRIES_MAX: usize = 10;
/// How long to wait for a busy server that does not say.
const BUSY_WAIT: Duration = Duration::from_secs(1);
/// How long a cluster may take to serve what a definition defines, and how often it is asked.
const SERVED_MAX: Duration = Duration::from_secs(30);
const SERVED_ASKED_EVERY: Duration = Duration::from_millis(100);
/// How long a quota may take to give back what was deleted.
const QUOTA_FREED_MAX: Duration = Duration::from_secs(10);
/// How often it is asked whether what is deleted is gone, with the pods that end in order.
const GONE_ASKED_EVERY: Duration = Duration::from_millis(50);
/// How soon it is asked whether a queue is open, which takes a moment, and how often if it takes longer.
const OPENED_ASKED_FIRST: Duration = Duration::from_millis(5);
const OPENED_ASKED_EVERY: Duration = Duration::from_millis(320);

/// An object that the cluster has.
pub(crate) struct Submitted {
    pub(crate) key: Key,
    pub(crate) uid: Uid,
    /// What was done, as kubectl says it.
    pub(crate) done: &'static str,
    /// What will hardly go as it was meant, a sentence each.
    pub(crate) doubts: Vec<String>,
}

/// An object that is being made.
pub(crate) struct Making {
    /// Its kind, if a run waits for its end.
    pub(crate) kind: Option<Kind>,
    pub(crate) task: JoinHandle<Result<Written, ClientError>>,
}

/// Refuses a manifest that the cluster would not take now. Nothing is made.
pub(crate) async fn check(home: &Home, manifest: &Manifest, replaces: bool) -> Result<()> {
    let object = prepared(home, manifest);
    match patiently(|| home.manifests.check(&manifest.of, &object)).await {
        Err(ClientError::AlreadyExists(_)) if manifest.followed().is_none() => Ok(()),
        Err(error) if replaces && is_in_the_way(home, manifest, &error).await => Ok(()),
        Err(error) => Err(complaint(home, manifest, error)),
        Ok(()) => Ok(()),
    }
}

/// Whether it is the one whose place is to be taken that keeps a job from being made: it has its name, or its part of a quota.
/// Who is refused for a quota could be made otherwise: servers look at that last.
async fn is_in_the_way(home: &Home, manifest: &Manifest, error: &ClientError) -> bool {
    match error {
        _ if manifest.followed().is_none() => false,
        ClientError::AlreadyExists(_) => true,
        error if lacks_quota(error) => {
            uid_of(home, manifest, &manifest.key()).await.is_ok_and(|uid| uid.is_some())
        }
        _ => false,
    }
}

/// Whether an object is refused because of what others have of a quota. What asks for more than there is in all is never made.
fn lacks_quota(error: &ClientError) -> bool {
    let ClientError::Refused(refusal) = error else { return false };
    let Some((_, told)) = refusal.message.split_once("exceeded quota: ") else { return false };
    let [requested, limited] = ["requested", "limited"].map(|word| amounts(told, word));
    !requested.is_empty()
        && requested.iter().all(|(name, amount)| limited.get(name).is_some_and(|limit| amount <= limit))
}

/// What a server says of quotas after a word: `requested: pods=1,cpu=2, used: ...`.
fn amounts<'a>(told: &'a str, word: &str) -> BTreeMap<&'a str, Quantity> {
    let list =
        told.split(", ").find_map(|part| part.strip_prefix(word)?.strip_prefix(": ")).unwrap_or_default();
    let amounts = list.split(',').filter_map(|it| it.split_once('='));
    amounts.filter_map(|(name, amount)| Some((name, amount.parse().ok()?))).collect()
}

/// The object as the cluster gets it.
fn prepared(home: &Home, manifest: &Manifest) -> Value {
    let mut object = manifest.object.clone();
    if let Some(dir) = &home.workdir {
        start_in(dir, manifest.of.known(), &mut object);
    }
    object
}

/// What the cluster said of an object that it does not take: what is wrong with it is the user's to mend.
fn complaint(home: &Home, manifest: &Manifest, error: ClientError) -> anyhow::Error {
    let Manifest { place, of, .. } = manifest;
    let text = match error {
        ClientError::AlreadyExists(Refusal { message, .. }) if manifest.followed().is_some() => {
            let (name, namespace) = (manifest.text("/metadata/name"), manifest.text("/metadata/namespace"));
            let elsewhere =
                if *namespace == home.namespace { String::new() } else { format!(" -n {namespace}") };
            let Served { singular, group, .. } = of;
            let of_group = if group.is_empty() { String::new() } else { format!(".{group}") };
            let remedy = format!(
                "use --replace to replace it, or remove it with `kubectl delete {singular}{of_group} \
                 {name}{elsewhere}`, or give this one another name"
            );
            format!("{message}: {remedy}")
        }
        // What is new can miss nothing but its namespace.
        ClientError::NotFound(Refusal { message, .. }) if of.scope == Scope::Namespaced => {
            let remedy = "add the Namespace to the files, or use another one";
            format!("metadata.namespace: {message}: {remedy}")
        }
        ClientError::Refused(refusal) | ClientError::NotFound(refusal) => refusal.message,
        error => return anyhow!("{place}: {}", plainly(&error)),
    };
    BadInput(anyhow!("{place}: {text}")).into()
}

/// Makes an object, or brings one that is there in line with its manifest. A job that is there is somebody else's run, and
/// stays unless this one `replaces` it.
pub(crate) async fn submit(
    home: &Home,
    manifest: &Manifest,
    replaces: bool,
    making: &mut Option<Making>,
) -> Result<Submitted> {
    let Manifest { place, of, .. } = manifest;
    let kind = of.known();
    let mut object = prepared(home, manifest);
    let mut doubts = endless_tasks(place, kind, &object);
    if home.runs_processes() {
        doubts.extend(idle_containers(kind, &mut object).iter().map(|container| {
            let why =
                "images are not pulled here, so it only waits until its pod is deleted: give it a command";
            format!("container {container} has no command, and {why}")
        }));
    }
    if home.is_krafla {
        doubts.extend(unattended(of));
    }
    let cluster = &home.manifests;
    let mut made = make(cluster, manifest, &object, making).await;
    let mut done = CREATED;
    // The server looks at what is new before it looks whether there is one: this one could be made.
    if let (true, Some(kind), Err(error)) = (replaces, manifest.followed(), &made)
        && is_in_the_way(home, manifest, error).await
    {
        remove(home, kind, manifest).await.map_err(|error| anyhow!("{place}: {}", plainly(&error)))?;
        done = "replaced";
        made = make(cluster, manifest, &object, making).await;
        let deadline = Instant::now() + QUOTA_FREED_MAX;
        // What was removed may be part of a quota for a moment longer.
        while made.as_ref().is_err_and(lacks_quota) && Instant::now() < deadline {
            tokio::time::sleep(GONE_ASKED_EVERY).await;
            made = make(cluster, manifest, &object, making).await;
        }
    }
    let made = match made {
        Err(ClientError::AlreadyExists(_)) if manifest.followed().is_none() => {
            change(&**cluster, manifest, &object).await
        }
        made => made.map(|written| (written, done)),
    };
    let (Written { key, uid, .. }, done) = made.map_err(|error| complaint(home, manifest, error))?;
    match kind {
        Some(Kind::CustomResourceDefinition) => until_served(&**cluster, manifest).await?,
        Some(Kind::Queue) => until_opened(&**cluster, &manifest.of, &key).await?,
        _ => {}
    }
    Ok(Submitted { key, uid, done, doubts })
}

/// Makes an object, whether or not somebody still waits for that: what is in the making stays in `making` until it is known
/// whether it was made.
async fn make(
    cluster: &Arc<dyn Manifests>,
    manifest: &Manifest,
    object: &Value,
    making: &mut Option<Making>,
) -> Result<Written, ClientError> {
    let (cluster, of, object) = (cluster.clone(), manifest.of.clone(), object.clone());
    let task = tokio::spawn(async move { patiently(|| cluster.make(&of, &object)).await });
    let Making { task, .. } = making.insert(Making { kind: manifest.followed(), task });
    let made = task.await.unwrap_or_else(|error| Err(ClientError::Unknown(error.to_string())));
    *making = None;
    made
}

/// Deletes the job, flow, CronJob or pod that has the name of a manifest, and waits until it and all that it made is gone.
async fn remove(home: &Home, kind: Kind, manifest: &Manifest) -> Result<(), ClientError> {
    let key = manifest.key();
    let Some(uid) = uid_of(home, manifest, &key).await? else { return Ok(()) };
    tell(&format!("{}/{} exists: deleting it first\n", manifest.of.singular, key.name));
    let step = deletion(kind, &key, &uid);
    match patiently(|| home.client.write(&step)).await {
        // Somebody else was faster.
        Ok(_) | Err(ClientError::NotFound(_) | ClientError::Conflict(_)) => {}
        Err(error) => return Err(error),
    }
    while uid_of(home, manifest, &key).await?.as_ref() == Some(&uid) {
        tokio::time::sleep(GONE_ASKED_EVERY).await;
    }
    Ok(())
}

/// That a job goes, when all that it made has.
pub(crate) fn deletion(kind: Kind, key: &Key, uid: &Uid) -> Step {
    Step::Delete {
        kind,
        key: key.clone(),
        uid: uid.clone(),
        revision: None,
        propagation: Propagation::Foreground,
        grace_seconds: None,
    }
}

/// Which object has the name of a manifest.
async fn uid_of(home: &Home, manifest: &Manifest, key: &Key) -> Result<Option<Uid>, ClientError> {
    let there = match home.manifests.read(&manifest.of, key).await {
        Err(ClientError::NotFound(_)) => return Ok(None),
        there => there?,
    };
    let there: Value = serde_json::from_slice(&there).unwrap_or_default();
    Ok(there.pointer("/metadata/uid").and_then(Value::as_str).map(Uid::from))
}

/// Gives an object that is there the fields of a manifest.
async fn change(
    cluster: &dyn Manifests,
    manifest: &Manifest,
    object: &Value,
) -> Result<(Written, &'static str), ClientError> {
    let key = manifest.key();
    let there = cluster.read(&manifest.of, &key).await?;
    let there: Value = serde_json::from_slice(&there).unwrap_or_default();
    let field = |pointer: &str| there.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let uid = Uid(field("/metadata/uid").into());
    let written = patiently(|| cluster.amend(&manifest.of, &key, &uid, object)).await?;
    let is_same = field("/metadata/resourceVersion") == written.revision.to_string();
    Ok((written, if is_same { "unchanged" } else { "configured" }))
}

/// Makes a write, again if the server is busy.
pub(crate) async fn patiently<'a, T>(
    write: impl Fn() -> BoxFuture<'a, Result<T, ClientError>>,
) -> Result<T, ClientError> {
    for _ in 0..BUSY_RETRIES_MAX {
        match write().await {
            Err(ClientError::Busy { retry_after, .. }) => {
                tokio::time::sleep(retry_after.unwrap_or(BUSY_WAIT)).await;
            }
            answer => return answer,
        }
    }
    write().await
}

/// Waits until the kinds of a definition can be made.
async fn until_served(cluster: &dyn Manifests, manifest: &Manifest) -> Result<()> {
    let awaited: Vec<Served> = custom::resources(&manifest.object).iter().map(Served::from).collect();
    let deadline = Instant::now() + SERVED_MAX;
    for of in awaited {
        let is_it = |served: &Served| served.kind == of.kind && served.plural == of.plural;
        while !cluster.served(&of.api_version()).await?.iter().any(is_it) {
            let key = Key::new("", manifest.text("/metadata/name"));
            let there: Value =
                serde_json::from_slice(&cluster.read(&manifest.of, &key).await?).unwrap_or_default();
            let refusal = refusal_of_names(&there);
            if refusal.is_some() || Instant::now() > deadline {
                let why = refusal.unwrap_or("the cluster does not serve it yet");
                let (place, kind) = (&manifest.place, &of.kind);
                return Err(BadInput(anyhow!("{place}: cannot create {kind}: {why}")).into());
            }
            tokio::time::sleep(SERVED_ASKED_EVERY).await;
        }
    }
    Ok(())
}

/// Waits until a queue has a state: before that, no job may name it. On a cluster where nobody gives it one, a job says so.
async fn until_opened(cluster: &dyn Manifests, of: &Served, key: &Key) -> Result<()> {
    let deadline = Instant::now() + SERVED_MAX;
    let mut pause = OPENED_ASKED_FIRST;
    while Instant::now() < deadline {
        let there: Value = serde_json::from_slice(&cluster.read(of, key).await?).unwrap_or_default();
        let state = there.pointer("/status/state").and_then(Value::as_str).unwrap_or_default();
        if !state.is_empty() {
            break;
        }
        // After a second somebody may wonder.
        if pause == OPENED_ASKED_EVERY.saturating_mul(4) {
            tell(&format!("queue/{}: waiting until it is open\n", key.name));
        }
        tokio::time::sleep(pause.min(OPENED_ASKED_EVERY)).await;
        pause = pause.saturating_mul(2);
    }
    Ok(())
}

/// Why a definition does not get the names that it wants.
fn refusal_of_names(definition: &Value) -> Option<&str> {
    let conditions = definition.pointer("/status/conditions")?.as_array()?;
    let refused = conditions.iter().find(|it| it["type"] == "NamesAccepted" && it["status"] == "False")?;
    refused.get("message")?.as_str()
}

/// That nobody makes the pods of an object: beside an embedded server there is nobody but the controllers of jobs.
fn unattended(of: &Served) -> Option<String> {
    is_workload(of).then(|| {
        format!("it is stored, but no controller here creates the pods of a {}: use a Job or Pods", of.kind)
    })
}

/// Lets containers without a workingDir start in a directory, so that a job finds the files beside its manifest.
fn start_in(dir: &Path, kind: Option<Kind>, object: &mut Value) {
    for container in containers(kind, object) {
        container.entry("workingDir").or_insert_with(|| dir.to_string_lossy().into());
    }
}

/// Containers without a command: what their images would run is not known where images are not pulled.
fn idle_containers(kind: Option<Kind>, object: &mut Value) -> Vec<String> {
    let says_nothing = |field: Option<&Value>| field.and_then(Value::as_array).is_none_or(Vec::is_empty);
    let is_idle = |container: &&mut Map<String, Value>| {
        ["command", "args"].iter().all(|field| says_nothing(container.get(*field)))
    };
    let idle = containers(kind, object).into_iter().filter(is_idle);
    idle.map(|container| container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned())
        .collect()
}

/// Tasks of Volcano's jobs whose containers are started again also when they have done their work. That is what a pod
/// that says nothing gets, and hardly anybody means it.
fn endless_tasks(place: &str, kind: Option<Kind>, object: &Value) -> Vec<String> {
    let path = match kind {
        Some(Kind::VcJob | Kind::JobTemplate) => "spec.tasks",
        Some(Kind::VcCronJob) => "spec.jobTemplate.spec.tasks",
        _ => return Vec::new(),
    };
    let tasks = object.pointer(&format!("/{}", path.replace('.', "/"))).and_then(Value::as_array);
    let is_endless = |task: &Value| {
        let policy = task.pointer("/template/spec/restartPolicy");
        policy.is_none_or(|policy| policy.is_null() || policy == "Always")
    };
    let endless = tasks.into_iter().flatten().enumerate().filter(|(_, task)| is_endless(task));
    let sentence = |index: usize| {
        format!(
            "{place}: {path}[{index}].template.spec.restartPolicy is Always, or missing, which is the same: its containers \
             restart whenever they end, and its pods never succeed; fix: set it to OnFailure or Never"
        )
    };
    endless.map(|(index, _)| sentence(index)).collect()
}

/// All containers of all pods that an object stands for.
fn containers(kind: Option<Kind>, object: &mut Value) -> Vec<&mut Map<String, Value>> {
    let specs: Vec<&mut Value> = match kind {
        Some(Kind::Pod) => object.get_mut("spec").into_iter().collect(),
        Some(Kind::Job) => object.pointer_mut("/spec/template/spec").into_iter().collect(),
        Some(Kind::CronJob) => {
            object.pointer_mut("/spec/jobTemplate/spec/template/spec").into_iter().collect()
        }
        Some(Kind::VcJob | Kind::JobTemplate) => of_tasks(object.pointer_mut("/spec/tasks")),
        Some(Kind::VcCronJob) => of_tasks(object.pointer_mut("/spec/jobTemplate/spec/tasks")),
        _ => Vec::new(),
    };
    let lists = specs.into_iter().filter_map(Value::as_object_mut).flat_map(|spec| {
        spec.iter_mut().filter(|(name, _)| ["initContainers", "containers"].contains(&name.as_str()))
    });
    let containers = lists.filter_map(|(_, list)| list.as_array_mut()).flatten();
    containers.filter_map(Value::as_object_mut).collect()
}

fn of_tasks(tasks: Option<&mut Value>) -> Vec<&mut Value> {
    let tasks = tasks.and_then(Value::as_array_mut).into_iter().flatten();
    tasks.filter_map(|task| task.pointer_mut("/template/spec")).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;
    use tokio::sync::Notify;

    use super::*;

    /// A cluster that takes its time to make something, and can do nothing else.
    #[derive(Default)]
    struct Slow {
        asked: Notify,
        allowed: Notify,
    }

    impl Manifests for Slow {
        fn served(&self, _: &str) -> BoxFuture<'_, Result<Vec<Served>, ClientError>> {
            unreachable!()
        }

        fn read<'a>(&'a self, _: &'a Served, _: &'a Key) -> BoxFuture<'a, Result<Bytes, ClientError>> {
            unreachable!()
        }

        fn check<'a>(&'a self, _: &'a Served, _: &'a Value) -> BoxFuture<'a, Result<(), ClientError>> {
            unreachable!()
        }

        fn make<'a>(&'a self, _: &'a Served, _: &'a Value) -> BoxFuture<'a, Result<Written, ClientError>> {
            self.asked.notify_one();
            Box::pin(async {
                self.allowed.notified().await;
                Ok(Written { key: Key::new("ns", "a"), uid: Uid::from("1"), revision: 7 })
            })
        }

        fn amend<'a>(
            &'a self,
            _: &'a Served,
            _: &'a Key,
            _: &'a Uid,
            _: &'a Value,
        ) -> BoxFuture<'a, Result<Written, ClientError>> {
            unreachable!()
        }
    }

    #[tokio::test]
    async fn a_job_that_is_made_when_nobody_waits_for_it_any_more_is_known() {
        let slow = Arc::new(Slow::default());
        let cluster: Arc<dyn Manifests> = slow.clone();
        let (of, object) = (Served::from(Kind::VcJob), json!({ "metadata": { "name": "a" } }));
        let manifest = Manifest { place: String::new(), of, object };
        let mut making = None;
        // An interrupt comes while it is being made.
        tokio::select! {
            _ = make(&cluster, &manifest, &manifest.object, &mut making) => unreachable!(),
            () = slow.asked.notified() => {}
        }
        slow.allowed.notify_one();
        let Making { kind, task } = making.take().unwrap();
        assert_eq!((kind, task.await.unwrap().unwrap().uid), (Some(Kind::VcJob), Uid::from("1")));

        slow.allowed.notify_one();
        let made = make(&cluster, &manifest, &manifest.object, &mut making).await;
        assert!(made.is_ok() && making.is_none());
    }

    #[test]
    fn only_what_fits_in_a_quota_takes_somebodys_place() {
        let lacks = |message: &str| {
            lacks_quota(&ClientError::forbidden(format!("pods \"b\" is forbidden: {message}")))
        };
        for (message, expected) in [
            ("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1", true),
            (
                "exceeded quota: q, requested: cpu=600m,pods=1, used: cpu=1,pods=1, limited: cpu=1,pods=1",
                true,
            ),
            ("exceeded quota: q, requested: cpu=2, used: cpu=1, limited: cpu=1", false),
            ("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=0", false),
            ("exceeded quota: q", false),
            ("failed quota: q: must specify cpu", false),
        ] {
            assert_eq!(lacks(message), expected, "{message}");
        }
    }

    #[test]
    fn containers_start_where_the_run_was_started_unless_they_say_otherwise() {
        let spec = || json!({ "initContainers": [{ "name": "i" }], "containers": [{ "workingDir": "/b" }] });
        let moved = json!({ "initContainers": [{ "name": "i", "workingDir": "/a" }], "containers": [{ "workingDir": "/b" }] });
        for (kind, before, after) in [
            (Kind::Pod, json!({ "spec": spec() }), json!({ "spec": moved })),
            (
                Kind::Job,
                json!({ "spec": { "template": { "spec": spec() } } }),
                json!({ "spec": { "template": { "spec": moved } } }),
            ),
            (
                Kind::VcJob,
                json!({ "spec": { "tasks": [{ "template": { "spec": spec() } }, 7] } }),
                json!({ "spec": { "tasks": [{ "template": { "spec": moved } }, 7] } }),
            ),
            (Kind::ConfigMap, json!({ "spec": spec() }), json!({ "spec": spec() })),
            (Kind::VcJob, json!({ "spec": null }), json!({ "spec": null })),
        ] {
            let mut object = before;
            start_in(Path::new("/a"), Some(kind), &mut object);
            assert_eq!(object, after, "{kind}");
        }
    }

    #[test]
    fn a_container_is_idle_without_a_command_and_without_arguments() {
        let spec = json!({ "initContainers": [{ "name": "i", "command": [] }], "containers": [
            { "name": "a", "command": ["true"] }, { "name": "b", "args": ["true"] }, { "name": "c", "args": null }] });
        let mut job = json!({ "spec": { "tasks": [{ "template": { "spec": spec } }] } });
        let mut idle = idle_containers(Some(Kind::VcJob), &mut job);
        idle.sort();
        assert_eq!(idle, ["c", "i"]);
    }

    #[test]
    fn a_task_that_never_succeeds_is_named_with_the_remedy() {
        let task = |spec: Value| json!({ "template": { "spec": spec } });
        let tasks = json!([
            task(json!({ "restartPolicy": "Never" })),
            task(json!({})),
            task(json!({ "restartPolicy": "Always" }))
        ]);
        let told = endless_tasks("a.yaml", Some(Kind::VcJob), &json!({ "spec": { "tasks": tasks } }));
        assert_eq!(told.len(), 2, "{told:?}");
        let start = "a.yaml: spec.tasks[1].template.spec.restartPolicy is Always, or missing";
        assert!(told[0].starts_with(start) && told[0].ends_with("set it to OnFailure or Never"), "{told:?}");
        let told = endless_tasks(
            "a.yaml",
            Some(Kind::VcCronJob),
            &json!({ "spec": { "jobTemplate": { "spec": { "tasks": tasks } } } }),
        );
        assert!(told[1].starts_with("a.yaml: spec.jobTemplate.spec.tasks[2].template"), "{told:?}");
        // Kubernetes refuses it in a Job of its own.
        assert_eq!(endless_tasks("a.yaml", Some(Kind::Job), &json!({})), Vec::<String>::new());
    }
}
