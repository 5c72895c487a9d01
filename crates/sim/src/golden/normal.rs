//! One form for what was recorded and for what is found: no names of chance, no times, nothing that a server fills in.

use std::collections::BTreeMap;

use krafla_api::volcano::Action;
use krafla_api::{Kind, labels};
use serde_json::{Map, Value, json};

use super::play::all;
use super::site::Site;
use crate::server::resource;

/// The kinds of which a state has a section.
const SECTIONS: [(&str, Kind); 13] = [
    ("jobs", Kind::VcJob),
    ("pods", Kind::Pod),
    ("podgroups", Kind::PodGroup),
    ("services", Kind::Service),
    ("configmaps", Kind::ConfigMap),
    ("secrets", Kind::Secret),
    ("networkpolicies", Kind::NetworkPolicy),
    ("persistentvolumeclaims", Kind::PersistentVolumeClaim),
    ("commands", Kind::Command),
    ("jobflows", Kind::JobFlow),
    ("jobtemplates", Kind::JobTemplate),
    ("cronjobs", Kind::VcCronJob),
    ("queues", Kind::Queue),
];

/// Everything that is there now, in the form of the records.
///
/// `metrics` is the page of numbers that the controllers show.
pub fn state(site: &Site, metrics: &str) -> Value {
    let mut state = Map::new();
    for (section, kind) in SECTIONS {
        let objects = all(site, kind).into_iter().filter(|object| !is_of_cluster(object));
        let objects = objects.map(|object| (name_of(&object), flat(kind, object)));
        let objects: Map<String, Value> = objects.collect();
        if !objects.is_empty() {
            state.insert(section.to_owned(), Value::Object(objects));
        }
    }
    let events: Map<String, Value> = events(site).iter().map(|event| (line(event), json!(1))).collect();
    if !events.is_empty() {
        state.insert("events".to_owned(), Value::Object(events));
    }
    let metrics = self::metrics(site, metrics);
    if !metrics.is_empty() {
        state.insert("metrics".to_owned(), Value::Object(metrics));
    }
    let text = Value::Object(state).to_string().replace(&site.namespace, "{ns}");
    serde_json::from_str(&text).unwrap()
}

/// Volcano's numbers that are about the record's namespace.
fn metrics(site: &Site, page: &str) -> Map<String, Value> {
    let series = page.lines().filter(|line| line.starts_with("volcano_") && line.contains(&site.namespace));
    let series = series.filter_map(|line| line.rsplit_once(' '));
    series.map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// The jobs of CronJobs are named after a minute; of these only the distance to the first stays: `c-{minute+60}`.
pub fn name_minutes(states: &[Value]) -> Vec<Value> {
    let text = json!(states).to_string();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let mut minutes: Vec<u64> =
        words.filter_map(|word| word.parse().ok()).filter(|minute| MINUTES.contains(minute)).collect();
    minutes.sort_unstable();
    minutes.dedup();
    let first = minutes.first().copied().unwrap_or(0);
    let named = minutes.iter().fold(text, |text, minute| {
        text.replace(&format!("-{minute}"), &format!("-{{minute+{}}}", minute - first))
    });
    serde_json::from_str(&named).unwrap()
}

/// The minutes since 1970 in which simulations play.
const MINUTES: std::ops::Range<u64> = 28_000_000..32_000_000;

/// What is said about objects of the namespace, and about those without one that were made for this record.
fn events(site: &Site) -> Vec<Value> {
    // Events about objects without a namespace are in `default`.
    let snapshot = site.server.store.snapshot(&resource(Kind::Event));
    let of_cluster = snapshot.range(Some("default"), None);
    let of_cluster = of_cluster.map(|entry| serde_json::from_slice::<Value>(&entry.bytes).unwrap());
    let of_cluster = of_cluster.filter(|event| {
        let name = event["involvedObject"]["name"].as_str().unwrap_or_default();
        name.contains(&site.namespace)
    });
    all(site, Kind::Event).into_iter().chain(of_cluster).collect()
}

/// What every namespace has.
fn is_of_cluster(object: &Value) -> bool {
    object["metadata"]["name"] == "kube-root-ca.crt"
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

fn line(event: &Value) -> String {
    let about = &event["involvedObject"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!(
        "{} {} {}/{}: {}",
        text(&event["type"]),
        text(&event["reason"]),
        text(&about["kind"]),
        text(&about["name"]),
        text(&event["message"]),
    )
}

/// Metadata without what chance and time put there, beside the rest.
fn flat(kind: Kind, mut object: Value) -> Value {
    let object = object.as_object_mut().unwrap();
    let metadata = object.remove("metadata").unwrap();
    for field in ["apiVersion", "kind"] {
        object.remove(field);
    }
    for field in ["labels", "annotations", "ownerReferences", "finalizers", "uid"] {
        if let Some(value) = metadata.get(field) {
            object.insert(field.to_owned(), value.clone());
        }
    }
    if metadata.get("deletionTimestamp").is_some() {
        object.insert("deleting".to_owned(), true.into());
    }
    match kind {
        Kind::Pod => pod(object),
        Kind::Service => service(object),
        Kind::Secret => secret(object),
        Kind::PersistentVolumeClaim => claim(object),
        Kind::VcCronJob => cronjob(object),
        Kind::PodGroup => drop_empty(object, "status"),
        Kind::VcJob => {
            templates(object);
            conditions(object);
        }
        _ => {}
    }
    let mut object = Value::Object(object.clone());
    without_times(&mut object);
    object
}

/// Fields that say when.
const TIMES: [&str; 6] = [
    "lastTransitionTime",
    "startTimestamp",
    "endTimestamp",
    "createTime",
    "lastScheduleTime",
    "lastSuccessfulTime",
];

/// Of a time with its distance to UTC only that distance stays.
fn time_on_the_wall(value: &Value) -> Value {
    let zone = value.as_str().and_then(|text| text.get(19..)).filter(|zone| *zone != "Z").unwrap_or_default();
    format!("<time{zone}>").into()
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            for (name, value) in fields {
                match name.as_str() {
                    _ if TIMES.contains(&name.as_str()) => *value = "<time>".into(),
                    labels::CRONJOB_SCHEDULED_AT => *value = time_on_the_wall(value),
                    "runningDuration" => *value = "<duration>".into(),
                    _ => without_times(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// Removes fields that have the value which the server fills in.
fn drop_defaults(object: &mut Map<String, Value>, defaults: &Value) {
    for (field, default) in defaults.as_object().unwrap() {
        if object.get(field) == Some(default) {
            object.remove(field);
        }
    }
}

fn pod(pod: &mut Map<String, Value>) {
    let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let restarts: i64 = statuses.filter_map(|status| status["restartCount"].as_i64()).sum();
    let mut status = json!({ "phase": pod["status"]["phase"] });
    if restarts > 0 {
        status["restarts"] = restarts.into();
    }
    pod.insert("status".to_owned(), status);
    let spec = pod["spec"].as_object_mut().unwrap();
    name_volumes(spec);
    spec.remove("nodeName");
    drop_pod_defaults(spec);
}

/// What the server fills into a pod's spec.
fn drop_pod_defaults(spec: &mut Map<String, Value>) {
    if let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
        tolerations.retain(|toleration| toleration["tolerationSeconds"] != 300);
    }
    drop_defaults(
        spec,
        &json!({
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
            "securityContext": {}, "enableServiceLinks": true, "serviceAccountName": "default",
            "serviceAccount": "default", "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [],
        }),
    );
    for field in ["containers", "initContainers"] {
        for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            drop_defaults(
                container.as_object_mut().unwrap(),
                &json!({
                    "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File", "resources": {},
                }),
            );
            for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                drop_defaults(port.as_object_mut().unwrap(), &json!({ "protocol": "TCP" }));
            }
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        for source in ["configMap", "secret", "projected", "downwardAPI"] {
            if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
                drop_defaults(source, &json!({ "defaultMode": 420 }));
            }
        }
    }
}

/// Pods in an order of their own: Volcano runs plugins in any order, and so their variables and volumes are in any order.
pub(super) fn sort_lists(state: &mut Value) {
    sort_statuses(state);
    for (_, pod) in state.get_mut("pods").and_then(Value::as_object_mut).into_iter().flatten() {
        let Some(spec) = pod.get_mut("spec") else { continue };
        sort(spec, "volumes");
        for field in ["containers", "initContainers"] {
            for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
                ["env", "ports", "volumeMounts"].iter().for_each(|list| sort(container, list));
            }
        }
    }
}

/// Volcano lists the jobs of flows and templates in any order.
fn sort_statuses(state: &mut Value) {
    for section in ["jobflows", "jobtemplates"] {
        let objects = state.get_mut(section).and_then(Value::as_object_mut).into_iter().flatten();
        for (_, object) in objects {
            let fields = object.get_mut("status").and_then(Value::as_object_mut).into_iter().flatten();
            for (_, list) in fields.filter_map(|(name, value)| Some((name, value.as_array_mut()?))) {
                list.sort_by_key(|item| (item["name"].to_string(), item.to_string()));
            }
        }
    }
}

fn sort(object: &mut Value, field: &str) {
    if let Some(Value::Array(list)) = object.get_mut(field) {
        list.sort_by_key(|item| (item["name"].to_string(), item.to_string()));
    }
}

/// Random parts of the names of claims and volumes, which are `{rand1}`, `{rand2}`... in records, all look alike.
pub(super) fn without_chance(state: &Value) -> Value {
    let mut text = state.to_string();
    (1..9).for_each(|n| text = text.replace(&format!("{{rand{n}}}"), "{rand}"));
    let mut parts = text.split("-pvc-");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_drawn =
            part.get(..12).is_some_and(|token| token.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let rest = if is_drawn { &part[12..] } else { part };
        plain += if is_drawn { "-pvc-{rand}" } else { "-pvc-" };
        plain += rest;
    }
    serde_json::from_str(&plain).unwrap()
}

/// The volume of a claim has a name of its own: the job's, and twelve letters that stand for the claim.
fn name_volumes(spec: &mut Map<String, Value>) {
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let of_claims = volumes.filter(|volume| volume.get("persistentVolumeClaim").is_some());
    let names: Vec<String> =
        of_claims.filter_map(|volume| Some(volume["name"].as_str()?.to_owned())).collect();
    let mut text = Value::Object(spec.clone()).to_string();
    for name in names {
        if let Some((job, _)) = name.rsplit_once('-').filter(|(_, token)| token.len() == 12) {
            text = text.replace(&format!("\"{name}\""), &format!("\"{job}-{{rand}}\""));
        }
    }
    *spec = serde_json::from_str(&text).unwrap();
}

fn service(service: &mut Map<String, Value>) {
    service.remove("status");
    let spec = service["spec"].as_object_mut().unwrap();
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        spec.remove(field);
    }
    drop_defaults(
        spec,
        &json!({ "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster" }),
    );
    let is_headless = spec.get("clusterIP").is_none_or(|address| address == "None");
    if !is_headless {
        spec.insert("clusterIP".to_owned(), "<ip>".into());
    }
}

/// The values of a secret are told apart by their keys alone: they are drawn anew each time.
fn secret(secret: &mut Map<String, Value>) {
    let data = secret.get_mut("data").and_then(Value::as_object_mut);
    data.into_iter().flatten().for_each(|(_, value)| *value = "<secret>".into());
}

fn drop_empty(object: &mut Map<String, Value>, field: &str) {
    if object.get(field).and_then(Value::as_object).is_some_and(Map::is_empty) {
        object.remove(field);
    }
}

/// Volcano 1.14.1 appends a condition whenever a counter changes, later versions keep one of each phase: the last of each is
/// compared.
fn conditions(job: &mut Map<String, Value>) {
    let conditions = job.get_mut("status").and_then(|status| status.get_mut("conditions"));
    if let Some(conditions) = conditions.and_then(Value::as_array_mut) {
        let all = std::mem::take(conditions);
        let is_last = |position: usize| {
            let later = all.iter().skip(position + 1);
            later.into_iter().all(|later| later["status"] != all[position]["status"])
        };
        *conditions =
            (0..all.len()).filter(|position| is_last(*position)).map(|it| all[it].clone()).collect();
    }
}

/// A client in Go that writes a job back writes empty fields along.
fn templates(job: &mut Map<String, Value>) {
    let tasks = job.get_mut("spec").and_then(|spec| spec.get_mut("tasks")).and_then(Value::as_array_mut);
    for template in tasks.into_iter().flatten().filter_map(|task| task.get_mut("template")?.as_object_mut()) {
        if template.get("metadata").is_some_and(|metadata| *metadata == json!({ "creationTimestamp": null }))
        {
            template.remove("metadata");
        }
        drop_empty(template, "metadata");
        let containers = template.get_mut("spec").and_then(|spec| spec.get_mut("containers"));
        let containers = containers.and_then(Value::as_array_mut).into_iter().flatten();
        containers.filter_map(Value::as_object_mut).for_each(|container| drop_empty(container, "resources"));
    }
}

fn cronjob(cronjob: &mut Map<String, Value>) {
    let active = cronjob.get_mut("status").and_then(|status| status.get_mut("active"));
    for reference in active.and_then(Value::as_array_mut).into_iter().flatten() {
        reference.as_object_mut().map(|reference| reference.remove("resourceVersion"));
    }
}

fn claim(claim: &mut Map<String, Value>) {
    claim.remove("status");
    drop_defaults(claim["spec"].as_object_mut().unwrap(), &json!({ "volumeMode": "Filesystem" }));
}

/// A recorded state in the form of [`state`]: without the values of secrets.
pub(super) fn recorded(mut state: Value) -> Value {
    let sections = state.as_object_mut().unwrap();
    let mut all_of = |section: &str, change: fn(&mut Map<String, Value>)| {
        let objects = sections.get_mut(section).and_then(Value::as_object_mut).into_iter().flatten();
        objects.filter_map(|(_, object)| object.as_object_mut()).for_each(change);
    };
    all_of("jobs", templates);
    all_of("secrets", secret);
    all_of("persistentvolumeclaims", |claim| drop(claim.remove("status")));
    all_of("pods", |pod| {
        pod.get_mut("spec").and_then(Value::as_object_mut).into_iter().for_each(drop_pod_defaults);
    });
    state
}

/// Events by type, reason, object and action: how they are worded is everybody's own business.
pub(super) fn without_wording(state: &mut Value) {
    let Some(Value::Object(events)) = state.get_mut("events") else { return };
    let worded = std::mem::take(events);
    for (event, value) in worded {
        let (what, message) = event.split_once(": ").unwrap_or((&event, ""));
        let words = message.split(|letter: char| !letter.is_ascii_alphanumeric());
        let action =
            words.map(Action::from).find(|action| !matches!(action, Action::Other(_) | Action::Unset));
        let event = action.map_or(what.to_owned(), |action| format!("{what} {action}"));
        events.entry(event).or_insert(value);
    }
}

/// The section, name and identity of every object of a state.
fn with_identities(state: &Value) -> impl Iterator<Item = (&str, &str, &str)> {
    let sections = state.as_object().into_iter().flatten();
    let objects = sections.flat_map(|(section, objects)| {
        objects.as_object().into_iter().flatten().map(move |(name, object)| (section, name, object))
    });
    objects.filter_map(|(section, name, object)| {
        Some((section.as_str(), name.as_str(), object.get("uid")?.as_str()?))
    })
}

/// Whether a word is five groups of hexadecimal digits: 8, 4, 4, 4 and 12 of them.
fn is_identity(word: &str) -> bool {
    let groups = word
        .split('-')
        .map(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(group.len()));
    groups.eq([8, 4, 4, 4, 12].map(Some))
}

/// How identities look in a text.
#[derive(Clone, Copy)]
pub enum Identities {
    /// `{uid:Pod/a-work-0#2}`
    Recorded,
    /// As the simulated server makes them, or as a record's own objects say.
    Found,
}

impl Identities {
    fn next(self, text: &str) -> Option<&str> {
        match self {
            Identities::Recorded => {
                let start = text.find("{uid:")?;
                let end = text.get(start..)?.find('}')?;
                text.get(start..=start + end)
            }
            Identities::Found => text.match_indices('-').find_map(|(at, _)| {
                let start = at.checked_sub(8)?;
                text.get(start..start + 36).filter(|word| is_identity(word))
            }),
        }
    }

    /// Names every identity after the object that has it, in order of their appearance: `<pods/a-work-0 2>`.
    pub fn name_all(self, states: Vec<Value>) -> Vec<Value> {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut n_namesakes: BTreeMap<String, u32> = BTreeMap::new();
        for state in &states {
            // What is named after another object's identity comes after those that have names of their own.
            for is_named_after in [false, true] {
                for (section, name, uid) in with_identities(state) {
                    if self.next(name).is_some() == is_named_after && !names.contains_key(uid) {
                        let what = format!("{section}/{}", self.rename(name, &names));
                        let n = n_namesakes.entry(what.clone()).or_default();
                        *n += 1;
                        names.insert(uid.to_owned(), format!("<{what} {n}>"));
                    }
                }
            }
        }
        states
            .into_iter()
            .map(|state| serde_json::from_str(&self.rename(&state.to_string(), &names)).unwrap())
            .collect()
    }

    fn rename(self, mut text: &str, names: &BTreeMap<String, String>) -> String {
        let mut renamed = String::with_capacity(text.len());
        while let Some(uid) = self.next(text) {
            let (before, after) = text.split_once(uid).unwrap();
            renamed += before;
            renamed += names.get(uid).map_or("<unknown>", String::as_str);
            text = after;
        }
        renamed + text
    }
}
