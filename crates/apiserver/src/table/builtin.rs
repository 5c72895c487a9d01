//! The columns of the built-in kinds.

use std::collections::BTreeSet;

use krafla_api::Time;
use krafla_schema::object::{self, text_at, time_at};
use serde_json::{Map, Value};

use super::human::{age, human};
use super::setup::balancer;
use super::{Builtin, pod};

pub(super) const NAME: (&str, &str, i32, &str) = ("Name", "string", 0, "Name of the object");
pub(super) const AGE: (&str, &str, i32, &str) = ("Age", "string", 0, "Time since creation");

/// A kind that has no columns of its own.
pub const NAME_AND_TIME: Builtin = Builtin {
    columns: &[NAME, ("Created At", "date", 0, "Time of creation")],
    cells: |object, _| vec![name(object), object::meta(object, "creationTimestamp").into()],
};

/// What comes before the columns that a custom kind asks for.
pub const NAME_ONLY: Builtin = Builtin { columns: &[NAME], cells: |object, _| vec![name(object)] };

/// A custom kind that asks for no columns.
pub const NAME_AND_AGE: Builtin = Builtin {
    columns: &[NAME, ("Age", "date", 0, "Time since creation")],
    cells: |object, now| vec![name(object), created(object, now)],
};

/// Pods.
pub const POD: Builtin = Builtin {
    columns: &[
        NAME,
        ("Ready", "string", 0, "Containers that are ready, of all"),
        ("Status", "string", 0, "What the containers do"),
        ("Restarts", "string", 0, "Restarts of all containers, and how long ago the last was"),
        AGE,
        ("IP", "string", 1, "Address of the pod"),
        ("Node", "string", 1, "Where the pod runs"),
        ("Nominated Node", "string", 1, "Where room is being made for the pod"),
        ("Readiness Gates", "string", 1, "Further conditions that are met, of all"),
    ],
    cells: pod::cells,
};

/// ConfigMaps.
pub const CONFIG_MAP: Builtin = Builtin {
    columns: &[NAME, ("Data", "string", 0, "Number of keys"), AGE],
    cells: |map, now| {
        vec![name(map), (count(map, "data") + count(map, "binaryData")).into(), created(map, now)]
    },
};

/// Secrets.
pub const SECRET: Builtin = Builtin {
    columns: &[
        NAME,
        ("Type", "string", 0, "What the secret is for"),
        ("Data", "string", 0, "Number of keys"),
        AGE,
    ],
    cells: |secret, now| {
        vec![name(secret), text_at(secret, "type").into(), count(secret, "data").into(), created(secret, now)]
    },
};

/// Events.
pub const EVENT: Builtin = Builtin {
    columns: &[
        ("Last Seen", "string", 0, "Time since it last happened"),
        ("Type", "string", 0, "Normal or Warning"),
        ("Reason", "string", 0, "Why, in one word"),
        ("Object", "string", 0, "What it happened to"),
        ("Subobject", "string", 1, "Which part of it"),
        ("Source", "string", 1, "Who says so"),
        ("Message", "string", 0, "What happened"),
        ("First Seen", "string", 1, "Time since it first happened"),
        ("Count", "string", 1, "How often it happened"),
        ("Name", "string", 1, "Name of the event"),
    ],
    cells: event_cells,
};

/// Namespaces.
pub const NAMESPACE: Builtin = Builtin {
    columns: &[NAME, ("Status", "string", 0, "Active or Terminating"), AGE],
    cells: |namespace, now| {
        vec![name(namespace), text_at(namespace, "status.phase").into(), created(namespace, now)]
    },
};

/// Nodes.
pub const NODE: Builtin = Builtin {
    columns: &[
        NAME,
        ("Status", "string", 0, "Whether the node is ready"),
        ("Roles", "string", 0, "What the node is for"),
        AGE,
        ("Version", "string", 0, "Version of the node's agent"),
        ("Internal-IP", "string", 1, "Address inside the cluster"),
        ("External-IP", "string", 1, "Address outside the cluster"),
        ("OS-Image", "string", 1, "Operating system"),
        ("Kernel-Version", "string", 1, "Kernel"),
        ("Container-Runtime", "string", 1, "What runs containers"),
    ],
    cells: node_cells,
};

/// Claims.
pub const PERSISTENT_VOLUME_CLAIM: Builtin = Builtin {
    columns: &[
        NAME,
        ("Status", "string", 0, "Pending, Bound or Lost"),
        ("Volume", "string", 0, "The bound volume"),
        ("Capacity", "string", 0, "Size of the bound volume"),
        ("Access Modes", "string", 0, "How the volume may be mounted"),
        ("StorageClass", "string", 0, "Class of storage"),
        ("VolumeAttributesClass", "string", 0, "Class of attributes"),
        AGE,
        ("VolumeMode", "string", 1, "Filesystem or Block"),
    ],
    cells: claim_cells,
};

/// Service accounts.
pub const SERVICE_ACCOUNT: Builtin =
    Builtin { columns: &[NAME, AGE], cells: |account, now| vec![name(account), created(account, now)] };

/// Services.
pub const SERVICE: Builtin = Builtin {
    columns: &[
        NAME,
        ("Type", "string", 0, "How the service is reached"),
        ("Cluster-IP", "string", 0, "Address inside the cluster"),
        ("External-IP", "string", 0, "Address outside the cluster"),
        ("Port(s)", "string", 0, "Ports"),
        AGE,
        ("Selector", "string", 1, "Labels of the pods behind it"),
    ],
    cells: service_cells,
};

/// Jobs of batch/v1.
pub const JOB: Builtin = Builtin {
    columns: &[
        NAME,
        ("Status", "string", 0, "How the job is doing"),
        ("Completions", "string", 0, "Pods that succeeded, of those wanted"),
        ("Duration", "string", 0, "Time from start to completion, or until now"),
        AGE,
        ("Containers", "string", 1, "Containers of the template"),
        ("Images", "string", 1, "Images of the template"),
        ("Selector", "string", 1, "Labels of the job's pods"),
    ],
    cells: job_cells,
};

/// CronJobs of batch/v1.
pub const CRON_JOB: Builtin = Builtin {
    columns: &[
        NAME,
        ("Schedule", "string", 0, "When jobs are made"),
        ("Timezone", "string", 0, "Where that is the time"),
        ("Suspend", "boolean", 0, "Whether no jobs are made"),
        ("Active", "integer", 0, "Running jobs"),
        ("Last Schedule", "string", 0, "Time since the last job was made"),
        AGE,
        ("Containers", "string", 1, "Containers of the template"),
        ("Images", "string", 1, "Images of the template"),
        ("Selector", "string", 1, "Labels of the pods"),
    ],
    cells: cron_job_cells,
};

/// Leases.
pub const LEASE: Builtin = Builtin {
    columns: &[NAME, ("Holder", "string", 0, "Who has it"), AGE],
    cells: |lease, now| vec![name(lease), text_at(lease, "spec.holderIdentity").into(), created(lease, now)],
};

/// Network policies.
pub const NETWORK_POLICY: Builtin = Builtin {
    columns: &[NAME, ("Pod-Selector", "string", 0, "Labels of the pods it is about"), AGE],
    cells: |policy, now| {
        vec![name(policy), selector(policy.pointer("/spec/podSelector")).into(), created(policy, now)]
    },
};

/// Priority classes.
pub const PRIORITY_CLASS: Builtin = Builtin {
    columns: &[
        NAME,
        ("Value", "integer", 0, "The priority; more comes first"),
        ("Global-Default", "boolean", 0, "Whether pods without a class have it"),
        AGE,
        ("PreemptionPolicy", "string", 0, "Whether others have to make room"),
    ],
    cells: |class, now| {
        vec![
            name(class),
            class.get("value").cloned().unwrap_or_else(|| 0.into()),
            (class["globalDefault"] == true).into(),
            created(class, now),
            text_at(class, "preemptionPolicy").into(),
        ]
    },
};

/// CustomResourceDefinitions.
pub const CUSTOM_RESOURCE_DEFINITION: Builtin = Builtin {
    columns: &[NAME, ("Created At", "date", 0, "Time of creation")],
    cells: |definition, _| vec![name(definition), object::meta(definition, "creationTimestamp").into()],
};

fn event_cells(event: &Value, now: Time) -> Vec<Value> {
    // Events of both groups look the same.
    let mut event = event.clone();
    crate::kinds::event::to_stored(krafla_schema::object::fields(&mut event));
    let event = &event;
    let time = |fields: &[&str]| fields.iter().find_map(|field| time_at(event, field));
    let first = time(&["/firstTimestamp", "/eventTime"]);
    let last = time(&["/series/lastObservedTime", "/lastTimestamp"]).or(first);
    let subject = |field: &str| text_at(event, &format!("involvedObject.{field}"));
    let object = match (subject("kind").to_lowercase(), subject("name")) {
        (kind, name) if name.is_empty() => kind,
        (kind, name) => format!("{kind}/{name}"),
    };
    let component = text_at(event, "source.component");
    let component = if component.is_empty() { text_at(event, "reportingComponent") } else { component };
    let instance = text_at(event, "source.host");
    let instance = if instance.is_empty() { text_at(event, "reportingInstance") } else { instance };
    let source = if instance.is_empty() { component } else { format!("{component}, {instance}") };
    let count = |pointer: &str| event.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let count = match event.get("series") {
        Some(Value::Object(_)) => count("/series/count"),
        _ => count("/count").max(1),
    };
    vec![
        age(last, now).into(),
        text_at(event, "type").into(),
        text_at(event, "reason").into(),
        object.into(),
        subject("fieldPath").into(),
        source.into(),
        text_at(event, "message").trim().into(),
        age(first, now).into(),
        count.into(),
        name(event),
    ]
}

fn node_cells(node: &Value, now: Time) -> Vec<Value> {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let mut status = match ready {
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let roles = labels.filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) if !role.is_empty() => Some(role),
        _ => value.as_str().filter(|value| key == "kubernetes.io/role" && !value.is_empty()),
    });
    let roles: Vec<&str> = roles.collect::<BTreeSet<&str>>().into_iter().collect();
    let info = |field: &str, absent: &str| match text_at(node, &format!("status.nodeInfo.{field}")) {
        text if text.is_empty() => absent.to_owned(),
        text => text,
    };
    let architecture = match info("architecture", "") {
        name if name.is_empty() => name,
        name => format!(" ({name})"),
    };
    vec![
        name(node),
        status.into(),
        or_none(roles.join(",")).into(),
        created(node, now),
        info("kubeletVersion", "").into(),
        address(node, "InternalIP").into(),
        address(node, "ExternalIP").into(),
        info("osImage", "<unknown>").into(),
        format!("{}{architecture}", info("kernelVersion", "<unknown>")).into(),
        info("containerRuntimeVersion", "<unknown>").into(),
    ]
}

fn address(node: &Value, kind: &str) -> String {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array).into_iter().flatten();
    let found =
        addresses.filter(|address| address["type"] == kind).find_map(|address| address["address"].as_str());
    found.unwrap_or("<none>").to_owned()
}

fn claim_cells(claim: &Value, now: Time) -> Vec<Value> {
    let status =
        if object::is_deleting(claim) { "Terminating".into() } else { text_at(claim, "status.phase") };
    let volume = text_at(claim, "spec.volumeName");
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        let capacity =
            Some(text_at(claim, "status.capacity.storage")).filter(|capacity| !capacity.is_empty());
        (capacity.unwrap_or_else(|| "0".into()), access_modes(claim.pointer("/status/accessModes")))
    };
    let attributes = text_at(claim, "spec.volumeAttributesClassName");
    vec![
        name(claim),
        status.into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        text_at(claim, "spec.storageClassName").into(),
        if attributes.is_empty() { "<unset>".into() } else { attributes.into() },
        created(claim, now),
        text_at(claim, "spec.volumeMode").into(),
    ]
}

pub(super) fn access_modes(modes: Option<&Value>) -> String {
    let short = |mode: &&str| match *mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    object::strings(modes).iter().map(short).collect::<Vec<_>>().join(",")
}

fn service_cells(service: &Value, now: Time) -> Vec<Value> {
    let kind = text_at(service, "spec.type");
    let external_addresses = object::strings(service.pointer("/spec/externalIPs")).join(",");
    let external = match &*kind {
        "ExternalName" => text_at(service, "spec.externalName"),
        "LoadBalancer" => match balancer(service) {
            places if places.is_empty() && external_addresses.is_empty() => "<pending>".to_owned(),
            places => [places, external_addresses]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(","),
        },
        _ => external_addresses,
    };
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let ports = ports.map(|port| match port["nodePort"].as_i64().unwrap_or(0) {
        0 => format!("{}/{}", port["port"], text_at(port, "protocol")),
        node_port => format!("{}:{node_port}/{}", port["port"], text_at(port, "protocol")),
    });
    let ports: Vec<String> = ports.collect();
    vec![
        name(service),
        kind.into(),
        or_none(text_at(service, "spec.clusterIP")).into(),
        or_none(external).into(),
        or_none(ports.join(",")).into(),
        created(service, now),
        labels(service.pointer("/spec/selector")).into(),
    ]
}

fn job_cells(job: &Value, now: Time) -> Vec<Value> {
    let number = |path: &str| job.pointer(path).and_then(Value::as_i64);
    let succeeded = number("/status/succeeded").unwrap_or(0);
    let parallelism = number("/spec/parallelism").unwrap_or(0);
    let completions = match number("/spec/completions") {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let duration = match (time_at(job, "/status/startTime"), time_at(job, "/status/completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => human(end.unwrap_or(now).0.as_second() - start.0.as_second()),
    };
    let [containers, images] = template(job.pointer("/spec/template/spec/containers"));
    vec![
        name(job),
        job_status(job).into(),
        completions.into(),
        duration.into(),
        created(job, now),
        containers.into(),
        images.into(),
        selector(job.pointer("/spec/selector")).into(),
    ]
}

fn job_status(job: &Value) -> &'static str {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    let holds = |name: &str| {
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == name && one["status"] == "True"))
    };
    let said = ["Complete", "Failed"].into_iter().find(|name| holds(name));
    let going = || object::is_deleting(job).then_some("Terminating");
    let other = || ["Suspended", "FailureTarget", "SuccessCriteriaMet"].into_iter().find(|name| holds(name));
    said.or_else(going).or_else(other).unwrap_or("Running")
}

fn cron_job_cells(cron: &Value, now: Time) -> Vec<Value> {
    let last = time_at(cron, "/status/lastScheduleTime");
    let suspended = cron.pointer("/spec/suspend") == Some(&Value::Bool(true));
    let active = cron.pointer("/status/active").and_then(Value::as_array).map_or(0, Vec::len);
    let [containers, images] = template(cron.pointer("/spec/jobTemplate/spec/template/spec/containers"));
    vec![
        name(cron),
        text_at(cron, "spec.schedule").into(),
        or_none(text_at(cron, "spec.timeZone")).into(),
        if suspended { "True" } else { "False" }.into(),
        active.into(),
        last.map_or_else(|| "<none>".into(), |last| age(Some(last), now)).into(),
        created(cron, now),
        containers.into(),
        images.into(),
        selector(cron.pointer("/spec/jobTemplate/spec/selector")).into(),
    ]
}

/// Names and images of containers.
pub(super) fn template(containers: Option<&Value>) -> [String; 2] {
    let containers = containers.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    ["name", "image"].map(|field| {
        let texts: Vec<&str> = containers.iter().filter_map(|container| container[field].as_str()).collect();
        texts.join(",")
    })
}

/// A label selector in `kubectl`'s notation: its requirements in the order of their keys.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let part = |name: &str| selector.and_then(|selector| selector.get(name));
    let pairs = part("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut parts: Vec<(String, String)> = pairs
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for requirement in part("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = text_at(requirement, "key");
        let mut values = object::strings(requirement.get("values"));
        values.sort_unstable();
        let values = values.join(",");
        let text = match requirement["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.clone(),
            _ => format!("!{key}"),
        };
        parts.push((key, text));
    }
    parts.sort_by(|one, other| one.0.cmp(&other.0));
    or_none(parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(","))
}

/// Labels in `kubectl`'s notation.
pub(super) fn labels(labels: Option<&Value>) -> String {
    let pairs = labels.and_then(Value::as_object).into_iter().flatten();
    let pairs: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or(""))).collect();
    or_none(pairs.join(","))
}

pub(super) fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".into() } else { text }
}

fn count(object: &Value, field: &str) -> usize {
    object.get(field).and_then(Value::as_object).map_or(0, Map::len)
}

pub(super) fn name(object: &Value) -> Value {
    object::name(object).into()
}

pub(super) fn created(object: &Value, now: Time) -> Value {
    age(time_at(object, "/metadata/creationTimestamp"), now).into()
}
