//! The columns of what controllers keep at a number, and of what belongs to the cluster.

use krafla_api::Time;
use krafla_schema::object::{self, text_at};
use serde_json::{Map, Value};

use super::Builtin;
use super::builtin::{AGE, NAME, access_modes, created, labels, name, selector, template};

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

/// StatefulSets.
pub const STATEFUL_SET: Builtin = Builtin {
    columns: &[
        NAME,
        ("Ready", "string", 0, "Pods that are ready, of those wanted"),
        AGE,
        ("Containers", "string", 1, "Containers of the template"),
        ("Images", "string", 1, "Images of the template"),
    ],
    cells: |set, now| {
        let ready = format!("{}/{}", number(set, "/status/readyReplicas"), number(set, "/spec/replicas"));
        let [containers, images] = template(set.pointer("/spec/template/spec/containers"));
        vec![name(set), ready.into(), created(set, now), containers.into(), images.into()]
    },
};

/// DaemonSets.
pub const DAEMON_SET: Builtin = Builtin {
    columns: &[
        NAME,
        ("Desired", "integer", 0, "Nodes that should have a pod"),
        ("Current", "integer", 0, "Nodes that have a pod"),
        ("Ready", "integer", 0, "Pods that are ready"),
        ("Up-to-date", "integer", 0, "Pods of the present template"),
        ("Available", "integer", 0, "Pods that have been ready for long enough"),
        ("Node Selector", "string", 0, "Labels of the nodes"),
        AGE,
        ("Containers", "string", 1, "Containers of the template"),
        ("Images", "string", 1, "Images of the template"),
        ("Selector", "string", 1, "Labels of the pods"),
    ],
    cells: |set, now| {
        let counts = [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ];
        let counts = counts.map(|count| number(set, &format!("/status/{count}")).into());
        let nodes = labels(set.pointer("/spec/template/spec/nodeSelector"));
        replicated(set, now, counts.into_iter().chain([nodes.into()]))
    },
};

/// ReplicationControllers.
pub const REPLICATION_CONTROLLER: Builtin = Builtin {
    columns: REPLICA_SET.columns,
    cells: |controller, now| {
        let counts = ["/spec/replicas", "/status/replicas", "/status/readyReplicas"];
        let mut cells = replicated(controller, now, counts.map(|at| number(controller, at).into()));
        // It selects by labels alone.
        if let Some(last) = cells.last_mut() {
            *last = labels(controller.pointer("/spec/selector")).into();
        }
        cells
    },
};

/// Endpoints.
pub const ENDPOINTS: Builtin = Builtin {
    columns: &[NAME, ("Endpoints", "string", 0, "Addresses and ports"), AGE],
    cells: |endpoints, now| {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut all = Vec::new();
        for subset in list(&endpoints["subsets"]) {
            let (ports, addresses) =
                (list(object::at(&subset, "/ports")), list(object::at(&subset, "/addresses")));
            let ips: Vec<&str> = addresses.iter().filter_map(|address| address["ip"].as_str()).collect();
            if ports.is_empty() {
                all.extend(ips.iter().map(|ip| (*ip).to_owned()));
            }
            for port in &ports {
                let port = port["port"].as_i64().unwrap_or(0);
                all.extend(ips.iter().map(|ip| {
                    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
                }));
            }
        }
        let shown = if all.is_empty() && endpoints["subsets"].as_array().is_none_or(Vec::is_empty) {
            "<none>".to_owned()
        } else if all.is_empty() {
            String::new()
        } else {
            some_of(all)
        };
        vec![name(endpoints), shown.into(), created(endpoints, now)]
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
        let ports = ports.map(|port| match port["port"].as_i64() {
            Some(number) => number.to_string(),
            None => text_at(port, "name"),
        });
        let ports = some_of(ports.collect());
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        let addresses = endpoints.flat_map(|endpoint| object::strings(endpoint.get("addresses")));
        vec![
            name(slice),
            text_at(slice, "addressType").into(),
            if ports.is_empty() { "<unset>".into() } else { ports.into() },
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cells(builtin: &Builtin, object: Value) -> Vec<Value> {
        let cells = (builtin.cells)(&object, Time::from_seconds(0));
        assert_eq!(cells.len(), builtin.columns.len());
        cells
    }

    #[test]
    fn sets_show_how_many_of_their_pods_are_ready() {
        let template =
            json!({"spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"a": "b"}}});
        let spec = json!({"replicas": 3, "selector": {"of": "it"}, "template": template});
        let status = json!({"readyReplicas": 2, "replicas": 3, "desiredNumberScheduled": 5});
        let set = json!({"metadata": {"name": "s"}, "spec": spec, "status": status});
        assert_eq!(cells(&STATEFUL_SET, set.clone())[1], "2/3");
        let daemon = cells(&DAEMON_SET, set.clone());
        assert_eq!((&daemon[1], &daemon[6]), (&json!(5), &json!("a=b")));
        assert_eq!(cells(&REPLICATION_CONTROLLER, set)[7], "of=it");
    }

    #[test]
    fn endpoints_show_their_first_addresses() {
        let shown = |subsets: Value| {
            cells(&ENDPOINTS, json!({"metadata": {"name": "e"}, "subsets": subsets}))[1].clone()
        };
        let addresses: Vec<Value> = (1..=5).map(|last| json!({"ip": format!("10.0.0.{last}")})).collect();
        assert_eq!(
            shown(json!([{"addresses": addresses, "ports": [{"port": 80}]}])),
            "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more..."
        );
        assert_eq!(shown(json!([{"addresses": [{"ip": "10.0.0.1"}]}])), "10.0.0.1");
        assert_eq!(shown(json!([])), "<none>");
    }
}
