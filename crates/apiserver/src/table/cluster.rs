//! The columns of what controllers keep at a number, and of what belongs to the cluster.

use krafla_api::Time;
use serde_json::{Map, Value};

use super::Builtin;
use super::builtin::{AGE, NAME, access_modes, created, name, selector, template};
use crate::object::{self, text_at};

/// How many of a list are shown.
const SHOWN_MAX: usize = 3;

/// Deployments.
pub const DEPLOYMENT: Builtin = Builtin {
    columns: &[
        NAME,
        ("Ready", "string", 0, "Pods that are ready, of those wanted"),
        ("Up-to-date", "string", 0, "Pods of the present template"),
        ("Available", "string", 0, "Pods that have been ready for long enough"),
        AGE,
        ("Containers", "string", 1, "Containers of the template"),
        ("Images", "string", 1, "Images of the template"),
        ("Selector", "string", 1, "Labels of the pods"),
    ],
    cells: |deployment, now| {
        let ready = format!(
            "{}/{}",
            number(deployment, "/status/readyReplicas"),
            number(deployment, "/spec/replicas")
        );
        let counts = ["/status/updatedReplicas", "/status/availableReplicas"];
        replicated(
            deployment,
            now,
            [ready.into()].into_iter().chain(counts.map(|at| number(deployment, at).into())),
        )
    },
};

/// ReplicaSets.
pub const REPLICA_SET: Builtin = Builtin {
    columns: &[
        NAME,
        ("Desired", "integer", 0, "Pods that are wanted"),
        ("Current", "integer", 0, "Pods that are there"),
        ("Ready", "integer", 0, "Pods that are ready"),
        AGE,
        ("Containers", "string", 1, "Containers of the template"),
        ("Images", "string", 1, "Images of the template"),
        ("Selector", "string", 1, "Labels of the pods"),
    ],
    cells: |set, now| {
        let counts = ["/spec/replicas", "/status/replicas", "/status/readyReplicas"];
        replicated(set, now, counts.map(|at| number(set, at).into()))
    },
};

/// Resource quotas.
pub const RESOURCE_QUOTA: Builtin = Builtin {
    columns: &[
        NAME,
        ("Request", "string", 0, "What is used, of what may be"),
        ("Limit", "string", 0, "The sum of limits, of what it may be"),
        AGE,
    ],
    cells: |quota, now| {
        let [requests, limits] = used_of_hard(quota);
        vec![name(quota), requests.into(), limits.into(), created(quota, now)]
    },
};

/// Endpoint slices.
pub const ENDPOINT_SLICE: Builtin = Builtin {
    columns: &[
        NAME,
        ("AddressType", "string", 0, "What the addresses are"),
        ("Ports", "string", 0, "Ports of all endpoints"),
        ("Endpoints", "string", 0, "Addresses"),
        AGE,
    ],
    cells: |slice, now| {
        let ports = slice["ports"].as_array().into_iter().flatten();
        let ports =
            ports.map(|port| port["port"].as_i64().map_or_else(|| "*".to_owned(), |port| port.to_string()));
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        let addresses = endpoints.flat_map(|endpoint| object::strings(endpoint.get("addresses")));
        vec![
            name(slice),
            text_at(slice, "addressType").into(),
            some_of(ports.collect()).into(),
            some_of(addresses.map(str::to_owned).collect()).into(),
            created(slice, now),
        ]
    },
};

/// Volumes.
pub const PERSISTENT_VOLUME: Builtin = Builtin {
    columns: &[
        NAME,
        ("Capacity", "string", 0, "Size"),
        ("Access Modes", "string", 0, "How the volume may be mounted"),
        ("Reclaim Policy", "string", 0, "What becomes of it when its claim is gone"),
        ("Status", "string", 0, "Available, Bound, Released or Failed"),
        ("Claim", "string", 0, "The bound claim"),
        ("StorageClass", "string", 0, "Class of storage"),
        ("VolumeAttributesClass", "string", 0, "Class of attributes"),
        ("Reason", "string", 0, "Why it is in this state"),
        AGE,
        ("VolumeMode", "string", 1, "Filesystem or Block"),
    ],
    cells: volume_cells,
};

fn volume_cells(volume: &Value, now: Time) -> Vec<Value> {
    let status =
        if object::is_deleting(volume) { "Terminating".into() } else { text_at(volume, "status.phase") };
    let claim = match (text_at(volume, "spec.claimRef.namespace"), text_at(volume, "spec.claimRef.name")) {
        (_, name) if name.is_empty() => String::new(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    let attributes = text_at(volume, "spec.volumeAttributesClassName");
    vec![
        name(volume),
        text_at(volume, "spec.capacity.storage").into(),
        access_modes(volume.pointer("/spec/accessModes")).into(),
        text_at(volume, "spec.persistentVolumeReclaimPolicy").into(),
        status.into(),
        claim.into(),
        text_at(volume, "spec.storageClassName").into(),
        if attributes.is_empty() { "<unset>".into() } else { attributes.into() },
        text_at(volume, "status.reason").into(),
        created(volume, now),
        text_at(volume, "spec.volumeMode").into(),
    ]
}

/// A row of something that keeps pods of a template at a number.
fn replicated(object: &Value, now: Time, counts: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let [containers, images] = template(object.pointer("/spec/template/spec/containers"));
    let mut cells = vec![name(object)];
    cells.extend(counts);
    cells.push(created(object, now));
    cells.extend([containers, images, selector(object.pointer("/spec/selector"))].map(Value::from));
    cells
}

fn number(object: &Value, at: &str) -> i64 {
    object.pointer(at).and_then(Value::as_i64).unwrap_or(0)
}

/// `pods: 1/5`, apart for limits and for everything else.
fn used_of_hard(quota: &Value) -> [String; 2] {
    let hard = quota.pointer("/status/hard").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in hard {
        let used = quota.pointer("/status/used").and_then(|used| used.get(resource)).and_then(Value::as_str);
        let shown = format!("{resource}: {}/{}", used.unwrap_or("0"), hard.as_str().unwrap_or_default());
        if resource.starts_with("limits.") { limits.push(shown) } else { requests.push(shown) }
    }
    [requests.join(", "), limits.join(", ")]
}

/// The first of a list, and how many more there are.
fn some_of(all: Vec<String>) -> String {
    let more = all.len().saturating_sub(SHOWN_MAX);
    let shown = all.into_iter().take(SHOWN_MAX).collect::<Vec<_>>().join(",");
    match (shown.is_empty(), more) {
        (true, _) => "<unset>".to_owned(),
        (false, 0) => shown,
        (false, more) => format!("{shown} + {more} more..."),
    }
}
