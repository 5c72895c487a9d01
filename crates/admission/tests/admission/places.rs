//! What rules find does not depend on how places are called: the first look at an object, which goes without names, finds
//! something exactly where the second one, with names, does.
//!
//! Every look of a debug build compares the two. Here the rules of all kinds look at objects that were sent to a
//! kube-apiserver and at what it made of them, as they are and with every field spoilt in turn.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use krafla_admission::builtin::{disruption, limits, network, quota, rbac, storage, workload};
use krafla_admission::{Finding, batch, pod};
use serde_json::{Value, json};

#[test]
fn rules_find_the_same_with_and_without_names() {
    let (mut spoilt_places, mut n_right, mut n_wrong) = (BTreeSet::new(), 0, 0);
    for object in recorded_objects() {
        let kind = object["kind"].as_str().unwrap_or_default();
        for place in places(&object) {
            // One object with a field there is as good as another.
            if !spoilt_places.insert(format!("{kind} {}", without_indexes(&place))) {
                continue;
            }
            for wrong in [json!(null), json!("No Such!"), json!(-7), json!([{}]), json!({"": {}})] {
                let mut spoilt = object.clone();
                *spoilt.pointer_mut(&place).expect("a place of the object") = wrong;
                for found in [look(kind, &spoilt, &object), look(kind, &object, &spoilt)] {
                    *(if found.is_empty() { &mut n_right } else { &mut n_wrong }) += 1;
                }
            }
        }
    }
    assert!(n_right > 1_000 && n_wrong > 1_000, "{n_right} objects were right and {n_wrong} wrong");
}

/// What all rules of a kind find, taking the object as new and as a change of another one.
fn look(kind: &str, new: &Value, old: &Value) -> Vec<Finding> {
    let has_zone = |name: &str| name == "UTC";
    let of_set = |set| [workload::validate(set, new), workload::validate_update(set, new, old)].concat();
    match kind {
        "Pod" => [
            pod::validate_new(new),
            pod::validate_update(new, old),
            pod::validate_status(new, old),
            pod::validate_ephemeral(new, old),
            pod::validate_resize(new, old, ["Burstable", "Guaranteed"]),
        ]
        .concat(),
        "Job" => [
            batch::validate_job(new),
            batch::validate_job_update(new, old),
            batch::validate_job_status(new, old),
        ]
        .concat(),
        "CronJob" => {
            [batch::validate_cron_job(new, &has_zone), batch::validate_cron_job_update(new, old, &has_zone)]
                .concat()
        }
        "PersistentVolumeClaim" => pod::validate_claim(new),
        "PersistentVolume" => storage::validate_volume(new),
        "NetworkPolicy" => network::validate_policy(new),
        "EndpointSlice" => network::validate_slice(new),
        "ResourceQuota" => quota::validate(new),
        "LimitRange" => limits::validate(new),
        "PodDisruptionBudget" => disruption::validate_budget(new),
        "Role" | "ClusterRole" => rbac::validate_role(new, kind == "Role"),
        "RoleBinding" | "ClusterRoleBinding" => rbac::validate_binding(new, kind == "RoleBinding"),
        "Deployment" => of_set(workload::Set::Deployment),
        "ReplicaSet" => of_set(workload::Set::ReplicaSet),
        "StatefulSet" => of_set(workload::Set::StatefulSet),
        "DaemonSet" => of_set(workload::Set::DaemonSet),
        _ => Vec::new(),
    }
}

/// The objects of all recorded requests and answers.
fn recorded_objects() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/apiserver");
    let mut objects = Vec::new();
    for file in ["02-pods.json", "03-jobs.json", "14-admission.json"] {
        let text = fs::read_to_string(folder.join(file)).expect("a recorded file");
        let recorded: Value = serde_json::from_str(&text).expect("JSON");
        for case in recorded["cases"].as_array().expect("cases") {
            for step in case["steps"].as_array().into_iter().flatten() {
                objects.extend([step["body"].clone(), step["expect"]["body"].clone()]);
            }
        }
    }
    objects.retain(|object| object["metadata"].is_object());
    objects
}

/// All places of a document below its top, as pointers.
fn places(document: &Value) -> Vec<String> {
    let steps: Vec<(String, &Value)> = match document {
        Value::Object(fields) => {
            let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
            fields.iter().map(|(name, value)| (escaped(name), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    let below = |(step, value): (String, &Value)| {
        let deeper: Vec<String> = places(value).iter().map(|place| format!("/{step}{place}")).collect();
        std::iter::once(format!("/{step}")).chain(deeper)
    };
    steps.into_iter().flat_map(below).collect()
}

fn without_indexes(place: &str) -> String {
    place.split('/').filter(|step| step.parse::<usize>().is_err()).collect::<Vec<_>>().join("/")
}
