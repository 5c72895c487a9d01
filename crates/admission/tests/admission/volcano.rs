//! What Volcano's webhooks are known to get wrong, by the number under which it is known (DEVIATIONS.md).

use krafla_admission::{Operation, Request, Settings, default, patch, validate};
use krafla_api::Kind;
use serde_json::{Value, json};

use crate::records::Environment;

/// A cluster with these queues, by name and parent.
fn queues(queues: &[(&str, &str)]) -> Environment {
    let objects: Vec<Value> = queues.iter().map(|(name, parent)| queue(name, parent)).collect();
    Environment::of(
        &json!({ "environments": { "e": { "objects": objects } } }),
        &json!({ "environment": "e" }),
    )
}

fn queue(name: &str, parent: &str) -> Value {
    let spec = json!({ "weight": 1, "parent": parent, "reclaimable": true });
    json!({ "kind": "Queue", "metadata": { "name": name }, "spec": spec, "status": { "state": "Open" } })
}

/// Why a queue may not change so, if it may not.
fn refusal(old: &Value, object: &Value, cluster: &Environment) -> Option<String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let request = Request { kind: Kind::Queue, operation: Operation::Update, name, object, old };
    let verdict = validate(request, &Settings::default(), cluster);
    (!verdict.is_allowed()).then(|| verdict.message())
}

fn environment() -> Environment {
    Environment::of(&Value::Null, &Value::Null)
}

#[test]
fn volcano_25_a_queue_that_is_closing_can_be_changed() {
    for state in ["Closing", "Unknown"] {
        let queue = |weight: i32| {
            let spec = json!({ "weight": weight, "reclaimable": true });
            json!({ "metadata": { "name": "q" }, "spec": spec, "status": { "state": state } })
        };
        let (object, old) = (queue(2), queue(1));
        let operation = Operation::Update;
        let request = Request { kind: Kind::Queue, operation, name: "q", object: &object, old: &old };
        let verdict = validate(request, &Settings::default(), &environment());
        assert!(verdict.is_allowed(), "{state}: {}", verdict.message());
    }
}

#[test]
fn volcano_45_a_pod_can_be_gated_without_resource_groups() {
    let gate = "scheduling.volcano.sh/queue-allocation-gate";
    let mut pod = json!({
        "metadata": { "name": "p", "namespace": "ns", "annotations": { gate: "true" } },
        "spec": { "schedulerName": "volcano", "containers": [] },
    });
    let settings = Settings { gates_pods: true, ..Settings::default() };
    default(Kind::Pod, &mut pod, &settings, &environment());
    assert_eq!(pod["spec"]["schedulingGates"], json!([{ "name": gate }]));
}

#[test]
fn volcano_b32_a_task_that_is_divided_is_scaled_by_whole_partitions() {
    let job = |replicas: i32, total: i32, size: i32| {
        json!({ "metadata": { "name": "j", "namespace": "ns" }, "spec": { "minAvailable": 2, "tasks": [{
            "name": "work", "replicas": replicas, "template": {},
            "partitionPolicy": { "totalPartitions": total, "partitionSize": size, "minPartitions": 1 },
        }] } })
    };
    let refusal = |object: Value| {
        let old = job(4, 2, 2);
        let request = Request {
            kind: Kind::VcJob,
            operation: Operation::Update,
            name: "j",
            object: &object,
            old: &old,
        };
        let verdict = validate(request, &Settings::default(), &environment());
        (!verdict.is_allowed()).then(|| verdict.message())
    };
    assert_eq!(refusal(job(6, 3, 2)), None);
    assert_eq!(refusal(job(2, 1, 2)), None);
    for (object, why) in [
        (job(5, 2, 2), "'Replicas' are not equal to TotalPartitions*PartitionSize"),
        (job(6, 2, 3), "job updates may not change fields other than"),
    ] {
        let said = refusal(object).unwrap_or_default();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn volcano_46_what_lacks_nothing_gets_no_patch() {
    for (kind, object) in [
        (Kind::Queue, queue("q", "root")),
        (Kind::PodGroup, json!({ "metadata": { "namespace": "ns" }, "spec": { "queue": "chosen" } })),
        (Kind::Pod, json!({ "metadata": { "namespace": "ns" }, "spec": { "containers": [] } })),
    ] {
        let mut completed = object.clone();
        default(kind, &mut completed, &Settings::default(), &environment());
        assert_eq!(patch::diff(&object, &completed), Vec::<Value>::new(), "{kind:?}");
    }
}

#[test]
fn volcano_47_no_queue_goes_below_itself_and_none_takes_its_own_too_deep() {
    let chain = [("root", ""), ("a", "root"), ("b", "a"), ("c", "b"), ("d", "c"), ("alone", "root")];
    let cluster = queues(&chain);
    for (name, parent, why) in [
        ("a", "a", "queue a cannot use itself as parent"),
        ("a", "b", "it cannot go below queue b, which is below it"),
        ("a", "d", "it cannot go below queue d, which is below it"),
        ("root", "a", "root queue cannot have a parent"),
        ("alone", "nobody", "failed to get parent queue nobody of queue alone"),
    ] {
        let said = refusal(&queue(name, ""), &queue(name, parent), &cluster).unwrap_or_default();
        assert!(said.contains(why), "{name} below {parent}: {said}");
    }
    // Five levels are allowed: four below another are not, three are.
    let said = refusal(&queue("a", "root"), &queue("a", "alone"), &cluster);
    assert_eq!(said, None);
    let deeper = queues(&[chain.as_slice(), &[("e", "d")]].concat());
    let said = refusal(&queue("a", "root"), &queue("a", "alone"), &deeper).unwrap_or_default();
    assert!(said.contains("exceeds the maximum allowed depth of 5, with the queues below it"), "{said}");
}

#[test]
fn volcano_47_a_ring_that_an_older_program_left_behind_can_be_looked_at_and_left() {
    let cluster = queues(&[("root", ""), ("a", "c"), ("b", "a"), ("c", "b"), ("below", "a")]);
    let with_capability = |name: &str, parent: &str| {
        let mut queue = queue(name, parent);
        queue["spec"]["capability"] = json!({ "cpu": "1" });
        queue
    };
    for (name, parent) in [("a", "c"), ("below", "a")] {
        assert_eq!(refusal(&queue(name, parent), &with_capability(name, parent), &cluster), None, "{name}");
    }
    let said = refusal(&queue("a", "c"), &with_capability("a", "root"), &cluster);
    assert_eq!(said, None, "it leaves the ring");
}
