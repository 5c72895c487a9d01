//! What Volcano's webhooks are known to get wrong, by the number under which it is known (DEVIATIONS.md).

use krafla_admission::{Operation, Request, Settings, default, validate};
use krafla_api::Kind;
use serde_json::{Value, json};

use crate::records::Environment;

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
