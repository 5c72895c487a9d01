//! The Node object: what this machine has, as a kubelet would report it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use krafla_api::quantity::Notation;
use krafla_api::{Key, Kind, Quantity, Time, Uid};
use krafla_cluster::{Client, ClientError, Propagation, Step};
use krafla_plan::Object;
use rustix::fs::statvfs;
use serde_json::{Map, Value, json};

use super::addresses::HOST;

/// What the server is told of a node.
pub(crate) struct Presence<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// What it has.
    pub(crate) capacity: &'a BTreeMap<String, Quantity>,
    /// Why it is ready, for people.
    pub(crate) ready_because: &'a str,
}

/// What this machine has: processors, memory, the disk on which `root` is or will be, and room for so many pods.
pub fn capacity(pods_max: u32, root: &Path) -> BTreeMap<String, Quantity> {
    let n_cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory_kib =
        fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_total_kib(&text)).unwrap_or(0);
    let memory = Quantity::from_units(memory_kib).times(1024).in_notation(Notation::Binary);
    let disk = disk_bytes(root).map(|bytes| Quantity::from_units(bytes).in_notation(Notation::Binary));
    let mut capacity: BTreeMap<_, _> = [
        ("cpu".to_owned(), Quantity::from_units(i64::try_from(n_cpus).unwrap_or(i64::MAX))),
        ("memory".to_owned(), memory),
        ("pods".to_owned(), Quantity::from_units(pods_max.into())),
    ]
    .into();
    capacity.extend(disk.map(|disk| ("ephemeral-storage".to_owned(), disk)));
    capacity
}

/// How large the file system of a directory is, or of the nearest one above it that exists.
fn disk_bytes(root: &Path) -> Option<i64> {
    let disk = root.ancestors().find_map(|place| statvfs(place).ok())?;
    i64::try_from(disk.f_blocks.saturating_mul(disk.f_frsize)).ok().filter(|bytes| *bytes > 0)
}

fn memory_total_kib(meminfo: &str) -> Option<i64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Removes Nodes that nobody looks after any more, and the pods that were there: nobody else will say that they are gone.
pub async fn forget(client: &dyn Client, is_forgotten: impl Fn(&str) -> bool) -> Result<(), ClientError> {
    let nodes = client.list(Kind::Node).await?.items;
    let nodes: Vec<Object> = nodes.iter().map(|json| Object::decode(Kind::Node, json)).collect();
    let gone: Vec<&Object> = nodes.iter().filter(|node| is_forgotten(&node.meta.key.name)).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let pods = client.list(Kind::Pod).await?.items;
    let pods: Vec<Object> = pods.iter().map(|json| Object::decode(Kind::Pod, json)).collect();
    let was_there = |pod: &&Object| {
        let node = pod.as_pod().map(|pod| &*pod.spec.node_name).unwrap_or_default();
        gone.iter().any(|gone| *gone.meta.key.name == *node)
    };
    for object in pods.iter().filter(was_there).chain(gone.iter().copied()) {
        let step = Step::Delete {
            kind: object.kind,
            key: object.meta.key.clone(),
            uid: object.meta.uid.clone(),
            revision: None,
            propagation: Propagation::Background,
            grace_seconds: Some(0),
        };
        client.write(&step).await?;
    }
    Ok(())
}

/// Makes the server's Node say what the node is. Writes nothing if it does already.
pub(crate) async fn register(client: &dyn Client, node: &Presence<'_>, now: Time) -> Result<(), ClientError> {
    let key = Key::new("", node.name);
    let found = match client.get(Kind::Node, &key).await {
        Err(ClientError::NotFound(_)) => {
            let object = json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": node.name, "labels": labels(node)},
                "spec": {},
            });
            client.write(&Step::Create { kind: Kind::Node, object }).await?;
            client.get(Kind::Node, &key).await?
        }
        outcome => outcome?,
    };
    let found: Value =
        serde_json::from_slice(&found).map_err(|error| ClientError::Unknown(error.to_string()))?;
    let uid = Uid::from(found.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default());
    let patch_of = |of_status, patch| Step::Patch {
        kind: Kind::Node,
        key: key.clone(),
        uid: uid.clone(),
        revision: None,
        of_status,
        patch,
    };
    let labels = labels(node);
    if !contains(found.pointer("/metadata/labels"), &labels) {
        client.write(&patch_of(false, json!({"metadata": {"labels": labels}}))).await?;
    }
    let status = status(node, found.get("status").unwrap_or(&Value::Null), now);
    if !contains(found.get("status"), &status) {
        client.write(&patch_of(true, json!({ "status": status }))).await?;
    }
    // A new node is tainted by the server until somebody sees that it is ready. There is nobody else to see
    // it here.
    if let Some(taints) = without_not_ready(&found) {
        client.write(&patch_of(false, json!({ "spec": { "taints": taints } }))).await?;
    }
    Ok(())
}

/// The node's taints without the one that says it is not ready; nothing if it does not have that.
fn without_not_ready(node: &Value) -> Option<Vec<Value>> {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let taints = node.pointer("/spec/taints")?.as_array()?;
    let others: Vec<Value> =
        taints.iter().filter(|taint| taint.get("key") != Some(&NOT_READY.into())).cloned().collect();
    (others.len() < taints.len()).then_some(others)
}

fn labels(node: &Presence<'_>) -> Value {
    json!({
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": std::env::consts::OS,
        "kubernetes.io/arch": go_arch(),
    })
}

/// Kubernetes has Go's names for processors.
fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn status(node: &Presence<'_>, before: &Value, now: Time) -> Value {
    let version = concat!("v", env!("CARGO_PKG_VERSION"), "-krafla");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let capacity = replacing(before.get("capacity"), node.capacity);
    json!({
        "capacity": capacity,
        "allocatable": capacity,
        "addresses": [
            {"type": "InternalIP", "address": HOST.to_string()},
            {"type": "Hostname", "address": node.name},
        ],
        "conditions": conditions(node.ready_because, before, now),
        "nodeInfo": {
            "architecture": go_arch(),
            "bootID": "",
            "containerRuntimeVersion": concat!("krafla://", env!("CARGO_PKG_VERSION")),
            "kernelVersion": kernel.trim(),
            "kubeProxyVersion": version,
            "kubeletVersion": version,
            "machineID": "",
            "operatingSystem": std::env::consts::OS,
            "osImage": os_name(),
            "systemUUID": "",
        },
    })
}

fn os_name() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "Linux".to_owned(), |name| name.trim_matches('"').to_owned())
}

/// A kubelet's four conditions. They hold for as long as krafla runs, so there is no heartbeat and no write
/// at rest.
fn conditions(ready_because: &str, before: &Value, now: Time) -> Value {
    let rows = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", ready_because),
    ];
    let conditions = rows.map(|(condition_type, status, reason, message)| {
        let since = time_of(before, condition_type, status).unwrap_or_else(|| now.to_string());
        json!({
            "type": condition_type, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": since, "lastTransitionTime": since,
        })
    });
    Value::from(conditions.to_vec())
}

fn time_of(before: &Value, condition_type: &str, status: &str) -> Option<String> {
    let conditions = before.get("conditions")?.as_array()?;
    let is_same = |condition: &&Value| condition["type"] == condition_type && condition["status"] == status;
    Some(conditions.iter().find(is_same)?.get("lastTransitionTime")?.as_str()?.to_owned())
}

/// What the node has, and null for what it had and has no more.
fn replacing(before: Option<&Value>, capacity: &BTreeMap<String, Quantity>) -> Map<String, Value> {
    let had = before.and_then(Value::as_object).into_iter().flatten();
    let mut all: Map<_, _> = had.map(|(name, _)| (name.clone(), Value::Null)).collect();
    all.extend(capacity.iter().map(|(name, amount)| (name.clone(), Value::from(amount.to_string()))));
    all
}

/// Whether all fields of `wanted` are in `found` with the same values.
fn contains(found: Option<&Value>, wanted: &Value) -> bool {
    let empty = Map::new();
    let found = found.and_then(Value::as_object).unwrap_or(&empty);
    wanted.as_object().is_some_and(|wanted| wanted.iter().all(|(name, value)| found.get(name) == Some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_the_kernel_says() {
        assert_eq!(memory_total_kib("MemTotal:       24658944 kB\nMemFree: 1 kB\n"), Some(24_658_944));
        assert_eq!(memory_total_kib("nonsense"), None);
    }

    #[test]
    fn the_disk_is_that_of_the_root_directory_though_it_is_not_there_yet() {
        let directory = tempfile::tempdir().unwrap();
        let capacity = capacity(1, &directory.path().join("not/there"));
        assert!(capacity["ephemeral-storage"].value() > 0);
        assert_eq!(Some(capacity["ephemeral-storage"].value()), disk_bytes(directory.path()));
    }

    #[test]
    fn what_a_node_has_no_more_is_taken_back() {
        let before = json!({"cpu": "2", "nvidia.com/gpu": "1"});
        let capacity = [("cpu".to_owned(), Quantity::from_units(4))].into();
        let replaced = Value::Object(replacing(Some(&before), &capacity));
        assert_eq!(replaced, json!({"cpu": "4", "nvidia.com/gpu": null}));
    }

    #[test]
    fn a_condition_that_still_holds_keeps_its_time() {
        let at = |seconds| Time::from_seconds(seconds);
        let first = conditions("it is", &Value::Null, at(1));
        assert_eq!(conditions("it is", &json!({"conditions": first}), at(100)), first);
    }
}
