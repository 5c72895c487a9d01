//! Whose news are news for which job.

use krafla_api::{Key, Kind};
use serde_json::{Value, json};

use super::fixture;
use crate::vcjob::JobController;
use crate::{Controller, Object};

/// The jobs of a world that a change of an object concerns.
fn concerned(world: &str, kind: Kind, object: &Value) -> Vec<String> {
    let object = Object::decode(kind, object.to_string().as_bytes());
    let keys = JobController.keys(&object, &fixture::objects(world));
    keys.iter().map(Key::to_string).collect()
}

const WAITING: &str = "job phase=Pending queue=q\n task work\n volume /in claim=in";
const RUNNING: &str = "job phase=Running queue=q\n task work\n volume /in claim=in";

#[test]
fn what_a_job_owns_concerns_it_always() {
    let owned_by = |api_version: &str| {
        let owner =
            json!({ "apiVersion": api_version, "kind": "Job", "name": "a", "uid": "u1", "controller": true });
        json!({ "metadata": { "namespace": "ns", "name": "x", "uid": "x", "ownerReferences": [owner] } })
    };
    for kind in [Kind::Pod, Kind::PodGroup, Kind::Service, Kind::ConfigMap, Kind::Secret, Kind::NetworkPolicy]
    {
        for world in [WAITING, RUNNING] {
            assert_eq!(concerned(world, kind, &owned_by("batch.volcano.sh/v1alpha1")), ["ns/a"], "{kind:?}");
            assert_eq!(concerned(world, kind, &owned_by("batch/v1")), [""; 0], "{kind:?} of Kubernetes' Job");
        }
    }
}

#[test]
fn what_a_job_waits_for_concerns_it_while_it_waits() {
    let named = |namespace: &str, name: &str| json!({ "metadata": { "namespace": namespace, "name": name, "uid": "x" } });
    for (kind, object, is_waited_for) in [
        (Kind::Queue, named("", "q"), true),
        (Kind::Queue, named("", "other"), false),
        (Kind::PersistentVolumeClaim, named("ns", "in"), true),
        (Kind::PersistentVolumeClaim, named("elsewhere", "in"), false),
        (Kind::PriorityClass, json!({ "metadata": { "name": "high", "uid": "x" }, "value": 5 }), true),
    ] {
        let expected: &[&str] = if is_waited_for { &["ns/a"] } else { &[] };
        assert_eq!(concerned(WAITING, kind, &object), expected, "{object}");
        assert_eq!(concerned(RUNNING, kind, &object), [""; 0], "{object}");
    }
}

#[test]
fn volcano_b38_a_running_job_that_lacks_its_queue_or_claim_is_woken_when_it_comes() {
    let named = |namespace: &str, name: &str| json!({ "metadata": { "namespace": namespace, "name": name, "uid": "x" } });
    for (reason, kind, object) in [
        ("QueueNotFound", Kind::Queue, named("", "q")),
        ("PVCError", Kind::PersistentVolumeClaim, named("ns", "in")),
    ] {
        let held = RUNNING.replace("queue=q", &format!("queue=q reason={reason}"));
        assert_eq!(concerned(&held, kind, &object), ["ns/a"], "{reason}");
    }
}

#[test]
fn a_command_concerns_the_job_that_it_names_and_works_on_nothing_of_another_kind() {
    let command = json!({
        "metadata": { "namespace": "ns", "name": "do-it", "uid": "x" }, "action": "AbortJob",
        "target": { "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": "u1" },
    });
    assert_eq!(concerned(RUNNING, Kind::Command, &command), ["ns/a"]);
    let aimless =
        json!({ "metadata": { "namespace": "ns", "name": "do-it", "uid": "x" }, "action": "AbortJob" });
    assert_eq!(concerned(RUNNING, Kind::Command, &aimless), [""; 0]);
    let plan = fixture::plan("job phase=Running\n task work\n group Running\n command AbortJob kind=Queue");
    assert!(plan.notes.is_empty(), "{plan}");
}

#[test]
fn a_stranger_that_has_a_name_of_the_job_s_concerns_the_job() {
    let named = |name: &str| json!({ "metadata": { "namespace": "ns", "name": name, "uid": "stranger" } });
    for (name, is_concerned) in [("a", true), ("a-work-0", true), ("ab-work-0", false)] {
        let expected: &[&str] = if is_concerned { &["ns/a"] } else { &[] };
        assert_eq!(concerned(RUNNING, Kind::Service, &named(name)), expected, "{name}");
    }
}
