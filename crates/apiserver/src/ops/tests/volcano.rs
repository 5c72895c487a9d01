//! What became of requests to a kube-apiserver with Volcano's definitions and webhooks (`tests/golden/admission/end-to-end.json`),
//! asked again here, where both are one: defaults of the schema, Volcano's defaults, the schema's rules, Volcano's rules.
//!
//! What was stored must be equal. What was refused must be refused for the same findings; the words around them differ, since
//! there is no webhook that denies anything. Where the two part on purpose, the table at the end says how.
//!
//! The same with Volcano's optional policies instead of its webhooks (`policies.json`). They know less, so more is refused and
//! filled in here; of what they refuse, four cases are taken here, as the rules of the webhooks take them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use krafla_api::Quantity;
use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Recorded {
    environments: BTreeMap<String, Environment>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Environment {
    objects: Vec<Value>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    environment: String,
    operation: String,
    /// What was created first, through the same rules.
    #[serde(default)]
    before: Vec<Value>,
    object: Value,
    response: Value,
}

/// Asks what was asked. What was stored, or nothing if the object is gone.
fn ask(cluster: &Cluster, case: &Case) -> Result<Value, Status> {
    for object in &case.before {
        create(cluster, object).expect("what was there before");
        set_status(cluster, object);
    }
    // A patch names neither kind nor name: it is about what was made first.
    let named = case.before.first().unwrap_or(&case.object);
    let (kind, key) = (kind_of(named), key_of(named));
    let (resource, options) = (cluster.resource(kind), WriteOptions::default());
    let part = if case.operation == "status" { Part::Status } else { Part::Main };
    let answer = match case.operation.as_str() {
        "create" => return create(cluster, &case.object),
        "delete" => {
            let options = DeleteOptions::default();
            let deleted = cluster.0.delete(&resource, &key, &options);
            return deleted.now_or_never().expect("ready at once").map(|_| Value::Null);
        }
        "patch" => {
            let patch = Patch::Merge(case.object.clone());
            cluster.0.patch(&resource, &key, part, &patch, &options).now_or_never()
        }
        "update" | "status" => {
            let mut object = case.object.clone();
            let stored = cluster.0.get(&resource, &key).expect("it was made before");
            object["metadata"]["resourceVersion"] = stored.revision.to_string().into();
            cluster.0.update(&resource, &key, part, object, &options).now_or_never()
        }
        other => panic!("{other}"),
    };
    answer.expect("ready at once").map(|answer| serde_json::from_slice(&answer.bytes).expect("JSON"))
}

fn create(cluster: &Cluster, object: &Value) -> Result<Value, Status> {
    let (resource, options) = (cluster.resource(kind_of(object)), WriteOptions::default());
    let object = crate::codec::normalise(&resource, object).map_err(Status::bad_request)?;
    let namespace = key_of(&object).namespace;
    let created = cluster.0.create(&resource, &namespace, object, &options).now_or_never();
    created.expect("ready at once").map(|answer| serde_json::from_slice(&answer.bytes).expect("JSON"))
}

fn kind_of(object: &Value) -> Kind {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    Kind::of_manifest(text("apiVersion"), text("kind")).expect("a known kind")
}

fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Key::new(text("namespace"), text("name"))
}

/// A cluster with the recorded namespaces and queues.
fn cluster_with(environment: &Environment) -> Cluster {
    let cluster = Cluster::new();
    for object in &environment.objects {
        match create(&cluster, object) {
            Ok(_) => {}
            Err(status) => assert_eq!(status.reason, "AlreadyExists", "{object}: {}", status.message),
        }
        set_status(&cluster, object);
    }
    cluster
}

/// Gives what was just made the status with which it was recorded.
fn set_status(cluster: &Cluster, object: &Value) {
    if object.get("status").is_some() {
        let status = json!({ "status": object["status"] });
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        cluster.patch(kind_of(object), name, Part::Status, status).expect("a status");
    }
}

/// Removes what a case has made, children first.
fn clear(cluster: &Cluster, case: &Case) {
    let made = case.before.iter().chain([&case.object]).filter(|object| object.get("kind").is_some());
    for object in made.collect::<Vec<_>>().into_iter().rev() {
        let (resource, options) = (cluster.resource(kind_of(object)), DeleteOptions::default());
        // Most cases have made only one of them, or none.
        let _ = cluster.0.delete(&resource, &key_of(object), &options).now_or_never().expect("ready at once");
    }
}

/// What differs from the record.
fn difference(case: &Case, answer: Result<Value, Status>) -> Option<String> {
    let recorded = &case.response;
    match (answer, recorded["error"]["message"].as_str()) {
        (Ok(_), Some(message)) => Some(format!("allowed, was: {message}")),
        (Err(status), None) => Some(format!("refused: {}", status.message)),
        (Ok(stored), None) => {
            let mut places = Vec::new();
            differing(
                String::new(),
                &comparable(stored),
                &comparable(recorded["object"].clone()),
                &mut places,
            );
            (!places.is_empty()).then(|| format!("stored otherwise: {}", places.join(", ")))
        }
        (Err(status), Some(message)) => {
            assert_eq!((status.code, status.reason.as_ref()), (422, "Invalid"), "{}", case.name);
            let message = message.replace("spec.task[", "spec.tasks[");
            // Where findings are listed as such they are in an order of their own.
            let causes = recorded["error"]["causes"].as_array();
            let listed = causes.map(|causes| causes.iter().filter_map(|it| it["message"].as_str()).collect());
            let mut missing = listed.unwrap_or_else(|| findings(&message));
            missing.retain(|finding| !status.message.contains(finding));
            (!missing.is_empty())
                .then(|| format!("unsaid: {}; said: {}", missing.join(" | "), status.message))
        }
    }
}

/// The places at which two objects differ.
fn differing(place: String, one: &Value, other: &Value, places: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                differing(format!("{place}.{name}"), &one[name.as_str()], &other[name.as_str()], places);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differing(format!("{place}[{index}]"), a, b, places);
            }
        }
        (a, b) if a == b => {}
        _ => places.push(place),
    }
}

/// What a message finds wrong, without the words around it.
fn findings(message: &str) -> Vec<&str> {
    // What a policy says is its own: there are no policies here.
    if message.contains(" with binding ") {
        return Vec::new();
    }
    let (_, said) = message.split_once(" denied the request: ").unwrap_or(("", message));
    let (_, said) = said.split_once(" is invalid: ").unwrap_or(("", said));
    let findings = said.trim_start_matches('[').trim_end_matches(']').split(';');
    let findings = findings.map(|finding| finding.trim().trim_start_matches("requestBody."));
    findings.map(|finding| finding.trim_end_matches('.')).filter(|finding| !finding.is_empty()).collect()
}

/// The object without what differs from run to run.
fn comparable(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| {
            !["uid", "resourceVersion", "creationTimestamp", "managedFields"].contains(&field.as_str())
        });
    }
    even("", &object)
}

/// The value without empty parts, and with amounts in one notation: Volcano's webhook sends whole tasks back as its types print
/// them.
fn even(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) if ["requests", "limits"].contains(&name) => {
            let amount =
                |value: &Value| Quantity::deserialize(value).map_or(Value::Null, |amount| json!(amount));
            fields.iter().map(|(key, value)| (key.clone(), amount(value))).collect()
        }
        Value::Object(fields) => {
            let parts = fields.iter().map(|(key, value)| (key.clone(), even(key, value)));
            parts.filter(|(_, value)| *value != json!({})).collect()
        }
        Value::Array(items) => items.iter().map(|item| even(name, item)).collect(),
        other => other.clone(),
    }
}

/// What differs from the record of so many cases, one line each.
fn report(file: &str, n_cases: usize) -> String {
    let path = format!("{}/../../tests/golden/admission/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the record");
    let recorded: Recorded = serde_json::from_str(&text).expect("JSON");
    assert_eq!(recorded.cases.len(), n_cases);
    let mut report = String::new();
    let clusters: BTreeMap<&String, Cluster> =
        recorded.environments.iter().map(|(name, environment)| (name, cluster_with(environment))).collect();
    for case in &recorded.cases {
        let cluster = &clusters[&case.environment];
        if let Some(difference) = difference(case, ask(cluster, case)) {
            writeln!(report, "{}: {difference}", case.name).expect("text");
        }
        clear(cluster, case);
    }
    report.lines().map(|line| line.chars().take(150).collect::<String>() + "\n").collect()
}

/// What Volcano's definitions alone make of changes (`tests/golden/crd`; what they make of new objects, `crates/api/tests/crd.rs`
/// shows).
#[test]
fn changes_end_as_they_did_with_volcano_s_definitions_alone() {
    #[derive(Deserialize)]
    struct OfOneKind {
        cases: Vec<Case>,
    }
    let mut n_changes = 0;
    for kind in Kind::VOLCANO {
        let plural = kind.info().plural;
        let path = format!("{}/../../tests/golden/crd/{plural}.json", env!("CARGO_MANIFEST_DIR"));
        // Not every kind has a record.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let recorded: OfOneKind = serde_json::from_str(&text).expect("JSON");
        // The schema of HyperNodes has rules in CEL, which no other test evaluates.
        let is_change =
            |case: &&Case| kind == Kind::HyperNode || ["update", "patch"].contains(&case.operation.as_str());
        for case in recorded.cases.iter().filter(is_change) {
            let api = Api::new(Store::in_memory(), Arc::new(Still::default()), Admission::default());
            api.bootstrap().now_or_never().expect("ready at once").expect("a new cluster");
            let cluster = Cluster(api);
            assert_eq!(difference(case, ask(&cluster, case)), None, "{plural}: {}", case.name);
            n_changes += 1;
        }
    }
    assert_eq!(n_changes, 19);
}

#[test]
fn requests_end_as_they_did_with_volcano_s_webhooks() {
    expect![[r#"
        job: unknown fields are pruned: stored otherwise: .spec.tasks[0].template.spec.containers[0].later, .spec.tasks[0].template.spec.newer
        job: name too long for its pods: unsaid: create pod with name jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj-default0-0 validate failed 
        job: update with the object as first sent is refused, the defaults are gone: allowed, was: admission webhook "validatejob.volcano.sh" denied the reque
        queue: no spec: allowed, was: Internal error occurred: add operation does not apply: doc is missing path: "/spec/reclaimable": missing value
        queue: parent set to own child: refused: Queue.scheduling.volcano.sh "e2e" is invalid: spec.parent: queue e2e exceeds the maximum allowed depth of 5: 
        cronjob: several findings: unsaid: schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field timeZone can't be Local, and
    "#]]
    .assert_eq(&report("end-to-end.json", 54));
}

#[test]
fn requests_end_as_they_did_with_volcano_s_policies_or_better() {
    expect![[r#"
        job: defaults on job level only: stored otherwise: .spec.tasks[0].maxRetry, .spec.tasks[0].minAvailable
        job: replicas missing: allowed, was: policy 'volcano-job-mutation-policy' with binding 'volcano-job-mutation-binding' denied request: expression <cel>
        job: hostNetwork gets no dnsPolicy: stored otherwise: .spec.tasks[0].maxRetry, .spec.tasks[0].minAvailable, .spec.tasks[0].template.spec.dnsPolicy
        job: mpi adds svc and ssh: stored otherwise: .spec.tasks[0].maxRetry, .spec.tasks[0].minAvailable
        job: ray adds nothing: stored otherwise: .spec.plugins.svc, .spec.tasks[0].maxRetry, .spec.tasks[0].minAvailable
        job: maxRetry zero: stored otherwise: .spec.tasks[0].maxRetry, .spec.tasks[0].minAvailable
        job: minAvailable from task minAvailable: stored otherwise: .spec.tasks[0].maxRetry, .spec.tasks[1].maxRetry, .spec.tasks[1].minAvailable
        job: policy RestartPartition: allowed, was: jobs.batch.volcano.sh "pol" is forbidden: ValidatingAdmissionPolicy 'job-validation-policy' with binding '
        job: policy RestartTask: stored otherwise: .spec.tasks[0].maxRetry, .spec.tasks[0].minAvailable
        job: policy inner event in a list: refused: Job.batch.volcano.sh "pol" is invalid: spec.policies[0].event: Invalid value: "OutOfSync": invalid policy 
        job: task policy is not checked: refused: Job.batch.volcano.sh "pol" is invalid: [spec.tasks[0].policies[0].event: Invalid value: "OutOfSync": invalid
        job: template is not checked: refused: Job.batch.volcano.sh "pol" is invalid: spec.tasks[0].template.spec.containers[0].image: Required value
        job: queue is not checked: refused: Job.batch.volcano.sh "pol" is invalid: spec.queue: unable to find job queue: queue.scheduling.volcano.sh "nope" no
        job: plugin is not checked: refused: Job.batch.volcano.sh "pol" is invalid: spec.plugins.bogus: unable to find job plugin: bogus
        job: volume with claim and name: refused: Job.batch.volcano.sh "pol" is invalid: spec.volumes[0]: conflict: If you want to use an existing PVC, just s
        job: name too long for its pods: refused: Job.batch.volcano.sh "jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj" is invalid: spec.tasks
        job: update replicas: stored otherwise: .spec.tasks[0].maxRetry, .spec.tasks[0].minAvailable
        job: update template: refused: Job.batch.volcano.sh "pol" is invalid: spec: job updates may not change fields other than `minAvailable`, `tasks[*].rep
        job: update schedulerName: refused: Job.batch.volcano.sh "pol" is invalid: spec: job updates may not change fields other than `minAvailable`, `tasks[*
        queue: negative capability: refused: Queue.scheduling.volcano.sh "pol" is invalid: spec.capability.cpu: Invalid value: "-1": must be greater than or e
        queue: missing parent is not checked: refused: Queue.scheduling.volcano.sh "pol" is invalid: spec.parent: failed to get parent queue ghost of queue po
        queue: parent itself is not checked: refused: Queue.scheduling.volcano.sh "pol" is invalid: spec.parent: queue pol cannot use itself as parent
        pod: min-available '+5': allowed, was: pods "pol" is forbidden: ValidatingAdmissionPolicy 'pod-validation-policy' with binding 'pod-validation-policy-
        pod: min-available '5%5%': allowed, was: pods "pol" is forbidden: ValidatingAdmissionPolicy 'pod-validation-policy' with binding 'pod-validation-polic
        jobflow: cycle of two is not found: refused: JobFlow.flow.volcano.sh "pol" is invalid: spec.flows: jobflow Flow is not DAG: flows wait for each other 
    "#]].assert_eq(&report("policies.json", 57));
}
