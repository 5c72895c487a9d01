//! The job's volumes: claims that exist, claims that are made for the job, and their mounts in every pod.

use krafla_api::volcano::VolumeSpec;
use krafla_api::{Key, Kind};
use krafla_cluster::Step;
use serde_json::{Map, Value, json};

use super::Job;
use super::hold::Hold;
use crate::plugin::volume_name;
use crate::{Plan, Snapshot};

/// A claim as pods use it.
pub(super) struct Claim {
    pub(super) name: String,
    /// The volume's name within a pod.
    volume: String,
    mount_path: String,
}

/// Makes sure that every claim of the job exists, or says which one is missing. A name that the job does not give is derived
/// from its UID and the volume's position, so that however often this is begun, there is one claim; it is stored in the
/// job's spec before the claim is made.
pub(super) fn ensure(job: &Job<'_>, snapshot: &Snapshot<'_>, plan: &mut Plan) -> Result<Vec<Claim>, Hold> {
    let volumes = &job.spec.volumes;
    let names: Vec<String> =
        volumes.iter().enumerate().map(|(index, volume)| claim_name(job, volume, index)).collect();
    if volumes.iter().any(|volume| volume.volume_claim_name.is_empty()) {
        plan.steps.push(store_names(job, &names));
    }
    for (name, volume) in names.iter().zip(volumes) {
        let key = Key::new(job.namespace(), name);
        if snapshot.objects.get(Kind::PersistentVolumeClaim, &key).is_some() {
            continue;
        }
        match &volume.volume_claim {
            Some(spec) => plan.steps.push(create(job, name, spec)),
            None => {
                let message =
                    format!("the claim {name} of volume {} does not exist; create it", volume.mount_path);
                return Err(Hold { reason: Hold::PVC_ERROR, message });
            }
        }
    }
    let claim = |(name, volume): (String, &VolumeSpec)| Claim {
        volume: volume_name(job.name(), &token(&name)),
        mount_path: volume.mount_path.clone(),
        name,
    };
    Ok(names.into_iter().zip(volumes).map(claim).collect())
}

fn claim_name(job: &Job<'_>, volume: &VolumeSpec, index: usize) -> String {
    if volume.volume_claim_name.is_empty() {
        format!("{}-pvc-{}", job.name(), token(&format!("{}/{index}", job.meta.uid)))
    } else {
        volume.volume_claim_name.clone()
    }
}

fn store_names(job: &Job<'_>, names: &[String]) -> Step {
    let named = job
        .spec
        .volumes
        .iter()
        .zip(names)
        .map(|(volume, name)| json!(VolumeSpec { volume_claim_name: name.clone(), ..volume.clone() }));
    Step::Patch {
        kind: Kind::VcJob,
        key: job.meta.key.clone(),
        uid: job.meta.uid.clone(),
        revision: None,
        of_status: false,
        patch: json!({ "spec": { "volumes": named.collect::<Vec<Value>>() } }),
    }
}

fn create(job: &Job<'_>, name: &str, spec: &Value) -> Step {
    let object = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": job.namespace(),
            "ownerReferences": [job.owner_reference()],
        },
        "spec": spec,
    });
    Step::Create { kind: Kind::PersistentVolumeClaim, object }
}

/// Adds the claims to a pod's spec: each once as a volume, and at every one of its paths in every container. Volcano leaves
/// init containers without them, and so do we.
pub(super) fn mount(spec: &mut Map<String, Value>, claims: &[Claim]) {
    let mut volumes: Vec<Value> = Vec::new();
    for claim in claims {
        let volume = json!({ "name": claim.volume, "persistentVolumeClaim": { "claimName": claim.name } });
        if !volumes.contains(&volume) {
            volumes.push(volume);
        }
    }
    append(spec, "volumes", &volumes);
    let mounts: Vec<Value> =
        claims.iter().map(|claim| json!({ "mountPath": claim.mount_path, "name": claim.volume })).collect();
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        append(container, "volumeMounts", &mounts);
    }
}

fn append(object: &mut Map<String, Value>, field: &str, more: &[Value]) {
    if more.is_empty() {
        return;
    }
    let list = object.entry(field).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.extend_from_slice(more);
    }
}

/// Twelve letters and digits that stand for a text.
fn token(text: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    // FNV-1a, 64 bits: the same in every version of this program, on every machine.
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut token = String::with_capacity(12);
    for _ in 0..12 {
        let digit = usize::try_from(hash % 36).ok().and_then(|index| DIGITS.get(index));
        token.push(digit.copied().unwrap_or(b'0').into());
        hash /= 36;
    }
    token
}
