//! Every record of Volcano's plugins (`tests/golden/plugins`): the objects and pods that its controller made for a job
//! are the ones that these plugins make, except where a difference is meant.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafla_api::volcano::{JobSpec, TaskSpec};
use krafla_api::{Kind, Uid};
use krafla_cluster::SshKeyPair;
use serde_json::{Map, Value, json};

use crate::plugin::{JobView, Plugins};

/// Where the record shows a fault of Volcano's that is not kept, and what stands there instead.
const DEVIATIONS: [(&str, &str, &str, &str); 3] = [
    // Several masters: ranks are unique.
    ("pytorch-two-masters", "a-master-1", "RANK", "1"),
    ("pytorch-two-masters", "a-worker-0", "RANK", "2"),
    // Somebody else's Service of that name is not taken for the job's.
    ("svc-foreign-service", "services/a", "", ""),
];

const RECORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/plugins");

#[test]
fn volcano_s_records_are_reproduced() {
    let files = std::fs::read_dir(RECORDS).unwrap().map(|entry| entry.unwrap().path());
    let records: BTreeSet<_> = files.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    assert_eq!(records.len(), 66);
    for path in records {
        let record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        Record::new(&record).check();
    }
}

#[test]
fn hosts_that_somebody_else_changed_are_repaired_as_recorded() {
    let record = std::fs::read(format!("{RECORDS}/svc-configmap-changed.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let mut states = vec![json!({})];
    for entry in record["trace"].as_array().unwrap() {
        let mut state = states.last().unwrap().clone();
        merge(&mut state, entry.get("delta").unwrap_or(&json!({})));
        states.push(state);
    }
    let hosts = |state: &Value| state["configmaps"]["a-svc"].clone();
    let [.., changed, repaired, _] = states.as_slice() else { panic!("no steps") };
    let (mut observed, recorded) = (hosts(changed), hosts(repaired));
    assert_ne!(observed, recorded);

    let uid = Uid::from("{uid:Job/a}");
    let spec = Record::new(&record).spec;
    let plugins = Plugins::of(JobView { name: "a", namespace: "{ns}", uid: &uid, spec: &spec });
    let desired = plugins.desired().into_iter().find(|desired| desired.name == "a-svc").unwrap();
    let repair = desired.repair(&observed).unwrap();
    merge(&mut observed, &repair);
    assert_eq!(observed, recorded);
}

/// One record, and the job it is about.
struct Record<'a> {
    name: &'a str,
    spec: JobSpec,
    /// The state when the job had been created, and when its pods had been.
    states: Vec<Value>,
}

impl<'a> Record<'a> {
    fn new(record: &'a Value) -> Record<'a> {
        let objects = record["objects"].as_array().unwrap();
        let job = objects.iter().find(|object| object["kind"] == "Job").unwrap();
        assert_eq!(job["metadata"]["name"], "a");
        let mut states = Vec::new();
        let mut state = json!({});
        for entry in record["trace"].as_array().unwrap() {
            if !["initial", "admit"].contains(&entry["do"]["op"].as_str().unwrap()) {
                break;
            }
            merge(&mut state, entry.get("delta").unwrap_or(&json!({})));
            states.push(state.clone());
        }
        let spec = serde_json::from_value(job["spec"].clone()).unwrap();
        Record { name: record["name"].as_str().unwrap(), spec, states }
    }

    fn check(&self) {
        let uid = Uid::from("{uid:Job/a}");
        let plugins = Plugins::of(JobView { name: "a", namespace: "{ns}", uid: &uid, spec: &self.spec });
        for (section, kind) in [
            ("configmaps", Kind::ConfigMap),
            ("secrets", Kind::Secret),
            ("services", Kind::Service),
            ("networkpolicies", Kind::NetworkPolicy),
        ] {
            let recorded = self.recorded_objects(section);
            let desired = plugins.desired().into_iter().filter(|desired| desired.kind == kind);
            let desired: BTreeMap<String, Value> = desired
                .filter(|desired| !self.deviates(&format!("{section}/{}", desired.name)))
                .map(|mut desired| {
                    if let Some(recipe) = &desired.generate {
                        recipe.fill(&mut desired.object, &drawn_keys());
                    }
                    (desired.name, as_recorded(desired.object))
                })
                .collect();
            assert_eq!(json!(desired), json!(recorded), "{section} of {}", self.name);
        }
        if let Some(state) = self.states.get(1) {
            self.check_pods(&plugins, &state["pods"]);
            let recorded = &state["jobs"]["a"]["status"]["controlledResources"];
            let recorded = if recorded.is_null() { &json!({}) } else { recorded };
            assert_eq!(&json!(plugins.controlled_resources()), recorded, "{}", self.name);
        }
    }

    fn deviates(&self, place: &str) -> bool {
        DEVIATIONS.iter().any(|(record, what, ..)| *record == self.name && *what == place)
    }

    /// The objects of the first state, as far as plugins are responsible for them.
    fn recorded_objects(&self, section: &str) -> BTreeMap<String, Value> {
        let objects = self.states[0][section].as_object().into_iter().flatten();
        let objects = objects.filter(|(name, _)| !self.deviates(&format!("{section}/{name}")));
        objects.map(|(name, object)| (name.clone(), without_server_s_fields(object.clone()))).collect()
    }

    fn check_pods(&self, plugins: &Plugins<'_>, recorded: &Value) {
        let sorted = self.spec.plugins.len() > 1;
        let n_pods: i32 = self.spec.tasks.iter().map(|task| task.replicas).sum();
        assert_eq!(recorded.as_object().unwrap().len(), usize::try_from(n_pods).unwrap(), "{}", self.name);
        for task in &self.spec.tasks {
            for index in 0..task.replicas {
                let name = format!("a-{}-{index}", task.name);
                let mut recorded = recorded[&name].clone();
                self.mend(&name, &mut recorded);
                let rank = recorded["annotations"]["hccl/rankIndex"].clone();
                let recorded = json!({ "rank": rank, "spec": normalised(recorded["spec"].take(), sorted) });
                assert_eq!(self.pod(plugins, task, index, sorted), recorded, "{name} of {}", self.name);
            }
        }
    }

    /// Puts what is meant in the place of what is recorded.
    fn mend(&self, pod: &str, recorded: &mut Value) {
        let deviations = DEVIATIONS.iter().filter(|(record, name, ..)| *record == self.name && *name == pod);
        for (.., variable, value) in deviations {
            for container in recorded["spec"]["containers"].as_array_mut().unwrap() {
                let variables = container["env"].as_array_mut().unwrap();
                let variable = variables.iter_mut().find(|entry| entry["name"] == *variable).unwrap();
                assert_ne!(variable["value"], *value, "{} does not deviate", self.name);
                variable["value"] = (*value).into();
            }
        }
    }

    fn pod(&self, plugins: &Plugins<'_>, task: &TaskSpec, index: i32, sorted: bool) -> Value {
        let mut pod = task.template.clone();
        pod["spec"]["schedulerName"] = self.spec.scheduler_name.as_str().into();
        if pod["metadata"].is_null() {
            pod["metadata"] = json!({});
        }
        plugins.decorate(task, index, &mut pod);
        let rank = pod["metadata"]["annotations"]["hccl/rankIndex"].clone();
        json!({ "rank": rank, "spec": normalised(pod["spec"].take(), sorted) })
    }
}

/// The records do not say in which order several plugins were taken, and leave the script out.
fn normalised(mut spec: Value, sorted: bool) -> Value {
    let sort = |object: &mut Value, field: &str| {
        if let Some(list) = object[field].as_array_mut().filter(|_| sorted) {
            list.sort_by_key(|item| item["name"].as_str().unwrap_or_default().to_owned());
        }
    };
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            for field in ["env", "ports", "volumeMounts"] {
                sort(container, field);
            }
            if container["name"] == "wait-for-master" && !container["command"].is_null() {
                container["command"][2] = "<script>".into();
            }
        }
    }
    sort(&mut spec, "volumes");
    without_nulls(spec)
}

/// A manifest as records show objects: what the server adds is not in them, and Secrets can be read.
fn as_recorded(mut object: Value) -> Value {
    if object["kind"] == "Secret" {
        for value in object["data"].as_object_mut().unwrap().values_mut() {
            *value = String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap().into();
        }
        if object["data"]["authorized_keys"] == drawn_keys().public_key.as_str() {
            object["data"]["authorized_keys"] =
                "<ssh-rsa public key, same as id_rsa.pub, ends in newline>".into();
        }
    }
    without_server_s_fields(object)
}

fn drawn_keys() -> SshKeyPair {
    SshKeyPair {
        private_key: "<pem BEGIN RSA PRIVATE KEY, about 1700 bytes>".to_owned(),
        public_key: "<ssh-rsa public key, ends in newline>".to_owned(),
    }
}

fn without_server_s_fields(mut object: Value) -> Value {
    let fields = object.as_object_mut().unwrap();
    for field in ["apiVersion", "kind", "metadata", "ownerReferences", "uid"] {
        fields.remove(field);
    }
    let spec = fields.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec.filter(|spec| spec.get("clusterIP") == Some(&json!("<ip>"))) {
        spec.remove("clusterIP");
    }
    object
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name, without_nulls(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}
