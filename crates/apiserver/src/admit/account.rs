//! The account that a pod runs as: its name, its pull secrets, and the files by which the pod can talk to the server.

use krafla_api::Key;
use krafla_schema::object;
use serde_json::{Map, Value, json};

use super::{Operation, Policy, Request};
use crate::status::Status;
use crate::tokens::POD_SECONDS;

/// The account of pods that name none.
const DEFAULT: &str = "default";
/// Where programs look for the files.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How the name of the volume begins.
const VOLUME: &str = "kube-api-access-";
/// What a pod says that stands for one which a node runs by itself.
const MIRROR: &str = "/metadata/annotations/kubernetes.io~1config.mirror";

/// Gives every new pod its account. For clusters whose pods can reach a server.
pub struct ServiceAccounts;

impl Policy for ServiceAccounts {
    fn mutate(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Status> {
        let is_new_pod =
            request.operation == Operation::Create && request.resource.storage.as_str() == "pods";
        if !is_new_pod || pod.pointer(MIRROR).is_some() {
            return Ok(());
        }
        let mut name = object::text_at(pod, "spec.serviceAccountName");
        if name.is_empty() {
            name = DEFAULT.to_owned();
        }
        let account = find(request, pod, &name)?;
        let spec = object::part(pod, "spec");
        spec.insert("serviceAccountName".into(), name.as_str().into());
        spec.insert("serviceAccount".into(), name.into());
        take_pull_secrets(spec, &account);
        let wishes = [spec.get(AUTOMOUNT), account.get(AUTOMOUNT)];
        if wishes.into_iter().flatten().find_map(Value::as_bool).unwrap_or(true) {
            mount_access(spec, &format!("{VOLUME}{}", request.api.env().suffix()));
        }
        Ok(())
    }
}

const AUTOMOUNT: &str = "automountServiceAccountToken";

/// The account of a pod. The one that every namespace has may not be there yet, which is no reason to refuse a pod that
/// comes with its namespace.
fn find(request: &Request<'_>, pod: &Value, name: &str) -> Result<Value, Status> {
    let namespace = object::namespace(pod);
    match request.api.store().get(&"serviceaccounts".into(), &Key::new(namespace, name)) {
        Some(entry) => serde_json::from_slice(&entry.bytes)
            .map_err(|error| Status::internal(&format!("service account {name} cannot be read: {error}"))),
        None if name == DEFAULT => Ok(Value::Null),
        None => {
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
            );
            Err(Status::forbidden(&request.resource.qualified(), object::name(pod), &why))
        }
    }
}

fn take_pull_secrets(spec: &mut Map<String, Value>, account: &Value) {
    let is_empty = |value: Option<&Value>| value.and_then(Value::as_array).is_none_or(Vec::is_empty);
    let of_account = account.get("imagePullSecrets");
    if let (true, Some(secrets)) =
        (is_empty(spec.get("imagePullSecrets")), of_account.filter(|of| !is_empty(Some(of))))
    {
        spec.insert("imagePullSecrets".into(), secrets.clone());
    }
}

/// Mounts the files into all containers that have nothing at their place.
fn mount_access(spec: &mut Map<String, Value>, volume: &str) {
    let mut is_mounted = false;
    for containers in ["containers", "initContainers"] {
        let containers = spec.get_mut(containers).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = object::fields(container).entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if mounts.iter().all(|mount| mount["mountPath"] != MOUNT_PATH) {
                mounts.push(json!({"name": volume, "mountPath": MOUNT_PATH, "readOnly": true}));
                is_mounted = true;
            }
        }
    }
    if !is_mounted {
        return;
    }
    if let Some(volumes) = spec.entry("volumes").or_insert_with(|| json!([])).as_array_mut() {
        volumes.push(access(volume));
    }
}

/// The token, the certificate of the server, and the pod's namespace.
fn access(name: &str) -> Value {
    let namespace =
        json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    let certificate = json!({"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]});
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": POD_SECONDS, "path": "token"}},
                {"configMap": certificate},
                {"downwardAPI": {"items": [namespace]}},
            ],
        },
    })
}
