//! The steps of a record: what its users, scheduler and node do.

use std::time::Duration;

use krafla_api::{Key, Kind, Scope, Time, Uid, labels};
use krafla_cluster::{ClientError, Propagation, Step};
use serde_json::{Map, Value, json};

use super::record::merge;
use super::site::{Site, Stage};
use crate::server::resource;

/// Plays one step, up to the moment when all is quiet again. If the server refused it: in which words.
pub fn play(stage: &mut dyn Stage, deed: &Value, n_commands: &mut u32) -> Option<String> {
    let deed = in_place(stage.site(), deed);
    let refusal = act(stage, &deed, n_commands).err();
    stage.settle();
    refusal.map(|refusal| refusal.to_string())
}

/// Makes the objects that a record begins with. If the server refuses one: in which words.
pub fn create_all(site: &Site, objects: &[Value]) -> Result<(), String> {
    let created: Result<(), ClientError> = objects.iter().try_for_each(|object| create(site, object));
    created.map_err(|refusal| refusal.to_string())
}

fn act(stage: &mut dyn Stage, deed: &Value, n_commands: &mut u32) -> Result<(), ClientError> {
    let name = || text(deed, "name").unwrap_or_default();
    match text(deed, "op").unwrap() {
        "initial" | "advance" => {}
        "admit" => admit(stage.site(), deed)?,
        "podgroup" => set_podgroup(stage.site(), deed)?,
        "pods" => set_pods(stage.site(), deed)?,
        "evict" => evict(stage.site(), deed)?,
        "reap" => reap(stage.site(), deed)?,
        "command" => command(stage.site(), deed, n_commands)?,
        "scale" => scale(stage.site(), deed)?,
        "create" => create(stage.site(), &deed["object"])?,
        "patch" => {
            let (kind, patch) = (kind_of(deed), deed["patch"].clone());
            let of_status = text(deed, "subresource") == Some("status");
            patch_object(stage.site(), kind, name(), of_status, patch)?;
        }
        "delete" => delete(stage.site(), deed)?,
        "burst" => {
            for deed in deed["ops"].as_array().unwrap() {
                act(stage, deed, n_commands)?;
            }
        }
        "minute" => stage.pass_to_next_minute(),
        "wait" => stage.pass(Duration::from_secs_f64(deed["seconds"].as_f64().unwrap())),
        "stop_controller" => stage.stop_controllers(),
        "start_controller" | "restart_controller" => stage.start_controllers(),
        other => panic!("unknown step {other}"),
    }
    Ok(())
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

fn kind_of(named: &Value) -> Kind {
    let kind = text(named, "kind").unwrap();
    if let Some(kind) = text(named, "apiVersion").and_then(|version| Kind::of_manifest(version, kind)) {
        return kind;
    }
    // Both Volcano and Kubernetes have a Job, and steps name kinds without their group.
    match kind {
        "Job" => return Kind::VcJob,
        "CronJob" => return Kind::VcCronJob,
        _ => {}
    }
    Kind::ALL.into_iter().find(|it| it.info().kind == kind).unwrap()
}

/// With the namespace and the time of this site: `{time-48h}` is so long ago, `{midnight}` the minute of the last midnight.
fn in_place(site: &Site, value: &Value) -> Value {
    const HOUR: u64 = 3600;
    const DAY: i64 = 24 * 3600;
    let now = site.now().0.as_second();
    let midnight = now.div_euclid(DAY) * DAY / 60;
    let mut text =
        value.to_string().replace("{ns}", &site.namespace).replace("{midnight}", &midnight.to_string());
    for hours in [3, 48, 120] {
        let at = Time::from_seconds(now - i64::try_from(hours * HOUR).unwrap());
        text = text.replace(&format!("{{time-{hours}h}}"), &at.to_string());
    }
    serde_json::from_str(&text).unwrap()
}

/// All objects of a kind in the namespace.
pub(super) fn all(site: &Site, kind: Kind) -> Vec<Value> {
    let is_namespaced = kind.info().scope == Scope::Namespaced;
    let snapshot = site.server.store.snapshot(&resource(kind));
    let entries = snapshot.range(is_namespaced.then_some(site.namespace.as_str()), None);
    let entries = entries.filter(|entry| is_namespaced || entry.key.name.contains(&site.namespace));
    entries.map(|entry| serde_json::from_slice(&entry.bytes).unwrap()).collect()
}

fn create(site: &Site, object: &Value) -> Result<(), ClientError> {
    let mut object = in_place(site, object);
    let api_version = text(&object, "apiVersion").unwrap().to_owned();
    let Some(kind) = Kind::of_manifest(&api_version, text(&object, "kind").unwrap()) else {
        // A quota, which the server counts by itself.
        site.server.create_other(&site.namespace, object);
        return Ok(());
    };
    if kind.info().scope == Scope::Namespaced {
        object["metadata"]["namespace"] = site.namespace.as_str().into();
    }
    let owners = object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten();
    for owner in owners.filter(|owner| owner.get("uid").is_none()) {
        let (kind, name) = (kind_of(owner), text(owner, "name").unwrap().to_owned());
        let found = find(site, kind, &name).ok_or_else(|| ClientError::not_found(name.clone()))?;
        owner["uid"] = found["metadata"]["uid"].clone();
    }
    if object["metadata"]["ownerReferences"].is_null() {
        object["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    }
    let status = object.as_object_mut().unwrap().remove("status");
    let name = text(&object["metadata"], "name").unwrap().to_owned();
    site.server.create(kind, object)?;
    status.map_or(Ok(()), |status| patch_object(site, kind, &name, true, json!({ "status": status })))
}

fn find(site: &Site, kind: Kind, name: &str) -> Option<Value> {
    all(site, kind).into_iter().find(|object| object["metadata"]["name"] == name)
}

fn identity(object: &Value) -> (Key, Uid) {
    let metadata = &object["metadata"];
    let namespace = text(metadata, "namespace").unwrap_or_default();
    (Key::new(namespace, text(metadata, "name").unwrap()), Uid::from(text(metadata, "uid").unwrap()))
}

fn patch_object(
    site: &Site,
    kind: Kind,
    name: &str,
    of_status: bool,
    patch: Value,
) -> Result<(), ClientError> {
    let object = find(site, kind, name).ok_or_else(|| ClientError::not_found(name.to_owned()))?;
    let (key, uid) = identity(&object);
    site.server.write(&Step::Patch { kind, key, uid, revision: None, of_status, patch }).map(drop)
}

fn set_status(site: &Site, kind: Kind, object: &Value, status: Value) -> Result<(), ClientError> {
    let name = text(&object["metadata"], "name").unwrap();
    patch_object(site, kind, name, true, json!({ "status": status }))
}

fn remove(
    site: &Site,
    kind: Kind,
    object: &Value,
    propagation: Propagation,
    grace_seconds: Option<i64>,
) -> Result<(), ClientError> {
    let (key, uid) = identity(object);
    let removal = Step::Delete { kind, key, uid, revision: None, propagation, grace_seconds };
    site.server.write(&removal).map(drop)
}

fn owner_name(object: &Value) -> Option<&str> {
    object.pointer("/metadata/ownerReferences/0/name").and_then(Value::as_str)
}

fn podgroups(site: &Site, deed: &Value) -> Vec<Value> {
    let name = text(deed, "name");
    let is_meant = |group: &Value| {
        text(deed, "job").is_none_or(|job| owner_name(group) == Some(job))
            && name.is_none_or(|name| group["metadata"]["name"] == name || owner_name(group) == Some(name))
    };
    all(site, Kind::PodGroup).into_iter().filter(is_meant).collect()
}

fn admit(site: &Site, deed: &Value) -> Result<(), ClientError> {
    let waits = |group: &Value| {
        let phase = group.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
        ["", "Pending"].contains(&phase)
    };
    for group in podgroups(site, deed).iter().filter(|group| waits(group)) {
        set_status(site, Kind::PodGroup, group, json!({ "phase": "Inqueue" }))?;
    }
    Ok(())
}

fn set_podgroup(site: &Site, deed: &Value) -> Result<(), ClientError> {
    let mut status = deed.as_object().unwrap().clone();
    status.retain(|field, _| !["op", "job", "name"].contains(&field.as_str()));
    for group in &podgroups(site, deed) {
        set_status(site, Kind::PodGroup, group, Value::Object(status.clone()))?;
    }
    Ok(())
}

fn is_deleting(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

/// The pods that a step is about.
fn pods(site: &Site, deed: &Value, deleting: bool) -> Vec<Value> {
    let indexes: Option<Vec<String>> = deed.get("index").map(|index| match index {
        Value::Array(indexes) => indexes.iter().map(Value::to_string).collect(),
        index => vec![index.to_string()],
    });
    let is_meant = |pod: &Value| {
        let annotation = |key: &str| text(&pod["metadata"]["annotations"], key);
        is_deleting(pod) == deleting
            && text(deed, "job").is_none_or(|job| annotation(labels::JOB_NAME) == Some(job))
            && text(deed, "task").is_none_or(|task| annotation(labels::TASK_SPEC) == Some(task))
            && text(deed, "name").is_none_or(|name| pod["metadata"]["name"] == name)
            && text(deed, "from").is_none_or(|phase| pod["status"]["phase"] == phase)
            && indexes.as_ref().is_none_or(|indexes| {
                annotation(labels::TASK_INDEX).is_some_and(|index| indexes.iter().any(|it| it == index))
            })
    };
    all(site, Kind::Pod).into_iter().filter(is_meant).collect()
}

fn set_pods(site: &Site, deed: &Value) -> Result<(), ClientError> {
    let phase = text(deed, "phase").unwrap();
    for pod in &pods(site, deed, deed["deleting"] == true) {
        let (key, uid) = identity(pod);
        if pod["spec"].get("nodeName").is_none() && (phase != "Pending" || deed["bind"] == true) {
            site.server.write(&Step::Bind { pod: key, uid, node: "node-1".to_owned() })?;
        }
        set_status(site, Kind::Pod, pod, pod_status(deed, pod, phase, site.now()))?;
    }
    Ok(())
}

fn pod_status(deed: &Value, pod: &Value, phase: &str, now: Time) -> Value {
    let mut status = Map::from_iter([("phase".to_owned(), phase.into())]);
    if deed["no_statuses"] != true {
        let containers = pod["spec"]["containers"].as_array().unwrap().iter().enumerate();
        let statuses = containers.map(|(position, container)| {
            let is_ready = deed.get("ready").map_or(phase == "Running", |ready| *ready == true);
            let n_restarts = deed.get("restarts").cloned().unwrap_or(json!(0));
            let last_state = match n_restarts.as_i64() {
                None | Some(0) => json!({}),
                Some(_) => json!({ "terminated": { "exitCode": 1, "finishedAt": now } }),
            };
            json!({
                "name": container["name"], "image": container["image"], "imageID": "", "ready": is_ready,
                "restartCount": n_restarts, "lastState": last_state,
                "state": container_state(deed, phase, position, now),
            })
        });
        status.insert("containerStatuses".to_owned(), statuses.collect());
    }
    Value::Object(status)
}

fn container_state(deed: &Value, phase: &str, position: usize, now: Time) -> Value {
    let default_code = if phase == "Failed" && position == 0 { 1 } else { 0 };
    let of_first = deed.get("exit_code").filter(|_| position == 0).cloned();
    let code = deed["exit_codes"].get(position).cloned().or(of_first).unwrap_or(json!(default_code));
    match phase {
        "Running" => json!({ "running": {} }),
        "Succeeded" | "Failed" => json!({ "terminated": { "exitCode": code, "finishedAt": now } }),
        _ => json!({ "waiting": {} }),
    }
}

fn evict(site: &Site, deed: &Value) -> Result<(), ClientError> {
    let grace_seconds = if deed["graceful"] == true { None } else { Some(0) };
    for pod in &pods(site, deed, false) {
        remove(site, Kind::Pod, pod, Propagation::Background, grace_seconds)?;
    }
    Ok(())
}

fn reap(site: &Site, deed: &Value) -> Result<(), ClientError> {
    for pod in &pods(site, deed, true) {
        remove(site, Kind::Pod, pod, Propagation::Background, Some(0))?;
    }
    Ok(())
}

fn command(site: &Site, deed: &Value, n_commands: &mut u32) -> Result<(), ClientError> {
    *n_commands += 1;
    let name = text(deed, "target").unwrap_or_default();
    let kind = text(deed, "kind").unwrap_or("Job");
    let target_kind = if kind == "Queue" { Kind::Queue } else { Kind::VcJob };
    let target = find(site, target_kind, name).filter(|_| target_kind.info().kind == kind);
    let uid = target.map(|target| target["metadata"]["uid"].clone());
    let mut command = json!({
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
        "metadata": { "name": format!("cmd-{n_commands}"), "namespace": site.namespace },
        "action": deed["action"],
    });
    if deed["no_target"] != true {
        command["target"] = json!({
            "apiVersion": text(deed, "apiVersion").map_or_else(|| target_kind.info().api_version(), str::to_owned),
            "kind": kind, "name": name, "controller": true,
            "uid": deed.get("uid").cloned().or(uid).unwrap_or_else(|| "<unknown>".into()),
        });
    }
    site.server.create(Kind::Command, command)
}

fn scale(site: &Site, deed: &Value) -> Result<(), ClientError> {
    let name = text(deed, "job").unwrap();
    let job = find(site, Kind::VcJob, name).ok_or_else(|| ClientError::not_found(name.to_owned()))?;
    let mut spec = json!({ "tasks": job["spec"]["tasks"] });
    for task in spec["tasks"].as_array_mut().unwrap() {
        if Some(&task["name"]) == deed.get("task") {
            for (from, to) in [("replicas", "replicas"), ("taskMinAvailable", "minAvailable")] {
                deed.get(from).inspect(|value| merge(task, &json!({ to: value })));
            }
        }
    }
    deed.get("minAvailable").inspect(|value| merge(&mut spec, &json!({ "minAvailable": value })));
    patch_object(site, Kind::VcJob, name, false, json!({ "spec": spec }))
}

fn delete(site: &Site, deed: &Value) -> Result<(), ClientError> {
    let kind = kind_of(deed);
    let propagation = match text(deed, "propagation") {
        Some("Orphan") => Propagation::Orphan,
        Some("Foreground") => Propagation::Foreground,
        _ => Propagation::Background,
    };
    let found = match text(deed, "name") {
        Some(name) if deed.get("job").is_none() => find(site, kind, name).into_iter().collect(),
        _ => podgroups(site, deed),
    };
    for object in &found {
        remove(site, kind, object, propagation, deed["grace"].as_i64())?;
    }
    Ok(())
}
