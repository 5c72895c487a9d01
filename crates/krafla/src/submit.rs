//! Handing objects to a cluster, with the file and the remedy in every complaint.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};
use krafla_api::{Key, Kind, Uid};
use krafla_plan::{Object, Step};
use krafla_runtime::{Client, ClientError, Written};
use serde_json::{Map, Value};

use crate::home::Home;
use crate::manifest::Manifest;
use crate::progress::FOLLOWED;
use crate::run::BadInput;

/// How often a write is repeated for a server that is busy.
const BUSY_RETRIES_MAX: usize = 10;
/// How long to wait for a busy server that does not say.
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// An object that the cluster has.
pub(crate) struct Submitted {
    pub(crate) key: Key,
    pub(crate) uid: Uid,
    /// What was done, as kubectl says it.
    pub(crate) done: &'static str,
    /// What will hardly go as it was meant, a sentence each.
    pub(crate) doubts: Vec<String>,
}

/// Makes an object, or brings one that is there in line with its manifest. A job that is there is somebody else's run.
pub(crate) async fn submit(home: &Home, manifest: &Manifest) -> Result<Submitted> {
    let Manifest { place, kind, object } = manifest;
    let mut object = object.clone();
    if let Some(dir) = &home.workdir {
        start_in(dir, *kind, &mut object);
    }
    let mut doubts = endless_tasks(place, *kind, &object);
    if home.runs_processes() {
        doubts.extend(idle_containers(*kind, &mut object).iter().map(|container| {
            let why = "images are not pulled here, so it only waits until it is ended: give it a command";
            format!("container {container} has no command, and {why}")
        }));
    }
    let client = home.client.as_ref();
    let made = match write(client, &Step::Create { kind: *kind, object: object.clone() }).await {
        Err(ClientError::AlreadyExists(message)) if FOLLOWED.contains(kind) => {
            let (name, what) = (name_of(&object), kind.info().singular);
            let group = kind.info().group;
            let remedy = format!(
                "remove it with `kubectl delete {what}.{group} {name}`, or give this one another name"
            );
            return Err(BadInput(anyhow!("{place}: {message}: {remedy}")).into());
        }
        Err(ClientError::AlreadyExists(_)) => {
            change(client, *kind, object).await.map(|written| (written, "configured"))
        }
        made => made.map(|written| (written, "created")),
    };
    match made {
        Ok((Written { key, uid, .. }, done)) => Ok(Submitted { key, uid, done, doubts }),
        Err(ClientError::Refused { message, .. } | ClientError::NotFound(message)) => {
            Err(BadInput(anyhow!("{place}: {message}")).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives an object that is there the fields of a manifest.
async fn change(client: &dyn Client, kind: Kind, object: Value) -> Result<Written, ClientError> {
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let key = Key::new(namespace, name_of(&object));
    let there = Object::decode(kind, &client.get(kind, &key).await?);
    let uid = there.meta.uid;
    write(client, &Step::Patch { kind, key, uid, revision: None, of_status: false, patch: object }).await
}

fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

async fn write(client: &dyn Client, step: &Step) -> Result<Written, ClientError> {
    for _ in 0..BUSY_RETRIES_MAX {
        match client.write(step).await {
            Err(ClientError::Busy { retry_after, .. }) => {
                tokio::time::sleep(retry_after.unwrap_or(BUSY_WAIT)).await;
            }
            answer => return answer,
        }
    }
    client.write(step).await
}

/// Lets containers without a workingDir start in a directory, so that a job finds the files beside its manifest.
fn start_in(dir: &Path, kind: Kind, object: &mut Value) {
    for container in containers(kind, object) {
        container.entry("workingDir").or_insert_with(|| dir.to_string_lossy().into());
    }
}

/// Containers without a command: what their images would run is not known where images are not pulled.
fn idle_containers(kind: Kind, object: &mut Value) -> Vec<String> {
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
fn endless_tasks(place: &str, kind: Kind, object: &Value) -> Vec<String> {
    let path = match kind {
        Kind::VcJob | Kind::JobTemplate => "spec.tasks",
        Kind::VcCronJob => "spec.jobTemplate.spec.tasks",
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
             are started again whenever they end, and its pods never succeed; set it to OnFailure or Never"
        )
    };
    endless.map(|(index, _)| sentence(index)).collect()
}

/// All containers of all pods that an object stands for.
fn containers(kind: Kind, object: &mut Value) -> Vec<&mut Map<String, Value>> {
    let specs: Vec<&mut Value> = match kind {
        Kind::Pod => object.get_mut("spec").into_iter().collect(),
        Kind::Job => object.pointer_mut("/spec/template/spec").into_iter().collect(),
        Kind::CronJob => object.pointer_mut("/spec/jobTemplate/spec/template/spec").into_iter().collect(),
        Kind::VcJob | Kind::JobTemplate => of_tasks(object.pointer_mut("/spec/tasks")),
        Kind::VcCronJob => of_tasks(object.pointer_mut("/spec/jobTemplate/spec/tasks")),
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
    use serde_json::json;

    use super::*;

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
            start_in(Path::new("/a"), kind, &mut object);
            assert_eq!(object, after, "{kind}");
        }
    }

    #[test]
    fn a_container_is_idle_without_a_command_and_without_arguments() {
        let spec = json!({ "initContainers": [{ "name": "i", "command": [] }], "containers": [
            { "name": "a", "command": ["true"] }, { "name": "b", "args": ["true"] }, { "name": "c", "args": null }] });
        let mut job = json!({ "spec": { "tasks": [{ "template": { "spec": spec } }] } });
        let mut idle = idle_containers(Kind::VcJob, &mut job);
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
        let told = endless_tasks("a.yaml", Kind::VcJob, &json!({ "spec": { "tasks": tasks } }));
        assert_eq!(told.len(), 2, "{told:?}");
        let start = "a.yaml: spec.tasks[1].template.spec.restartPolicy is Always, or missing";
        assert!(told[0].starts_with(start) && told[0].ends_with("set it to OnFailure or Never"), "{told:?}");
        let told = endless_tasks(
            "a.yaml",
            Kind::VcCronJob,
            &json!({ "spec": { "jobTemplate": { "spec": { "tasks": tasks } } } }),
        );
        assert!(told[1].starts_with("a.yaml: spec.jobTemplate.spec.tasks[2].template"), "{told:?}");
        // Kubernetes refuses it in a Job of its own.
        assert_eq!(endless_tasks("a.yaml", Kind::Job, &json!({})), Vec::<String>::new());
    }
}
