//! What a plan that is rooted in a queue may do: the scheduler's, and that of the queues themselves. Both touch what they do
//! not own, so what they may touch is said here.

use krafla_api::Kind;
use krafla_cluster::Step;
use krafla_plan::Snapshot;
use krafla_plan::object::PodPhase;

use crate::{Property, Violation, names_what_is_there};

/// Whether a step may be taken.
pub(crate) fn check(snapshot: &Snapshot<'_>, step: &Step) -> Result<(), Violation> {
    names_what_is_there(snapshot, step)?;
    match step {
        Step::Bind { .. } => may_be_bound(snapshot, step),
        // To take back room, and to take a Command away that has been carried out.
        Step::Delete { kind: Kind::Pod | Kind::Command, .. } => Ok(()),
        Step::Create { kind: Kind::Queue, .. } | Step::Patch { .. } => Ok(()),
        Step::Create { .. } | Step::CreateGenerated { .. } | Step::Delete { .. } => {
            Err(Violation::new(Property::P6, format!("{step}: no business of a queue's")))
        }
    }
}

/// P1: a pod gets one node, once, and none after its end.
fn may_be_bound(snapshot: &Snapshot<'_>, step: &Step) -> Result<(), Violation> {
    let Step::Bind { pod: key, .. } = step else { return Ok(()) };
    let object = snapshot.objects.get(Kind::Pod, key);
    let waits = object.is_some_and(|object| {
        let is_free = |pod: &krafla_plan::object::Pod| {
            pod.spec.node_name.is_empty() && pod.status.phase == PodPhase::Pending
        };
        !object.meta.is_deleting() && object.as_pod().is_some_and(is_free)
    });
    if waits {
        Ok(())
    } else {
        Err(Violation::new(Property::P1, format!("{step}: the pod does not wait for a node")))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use krafla_api::{Key, Time};
    use krafla_cluster::Propagation;
    use krafla_plan::{Object, Objects};
    use serde_json::json;

    use super::*;

    fn verdict(node: &str, step: &Step) -> String {
        let pod = json!({
            "metadata": { "namespace": "n", "name": "p", "uid": "u" },
            "spec": { "nodeName": node }, "status": { "phase": "Pending" },
        });
        let mut objects = Objects::default();
        objects.insert(Object::decode(Kind::Pod, pod.to_string().as_bytes()).into());
        let root = Key::new("", "default");
        let snapshot = Snapshot::new(Kind::Queue, &root, Time::from_seconds(0), &objects);
        check(&snapshot, step).map_or_else(|violation| violation.to_string(), |()| "may be done".to_owned())
    }

    fn bind(uid: &str) -> Step {
        Step::Bind { pod: Key::new("n", "p"), uid: uid.into(), node: "node-1".to_owned() }
    }

    fn delete(kind: Kind) -> Step {
        let (key, propagation) = (Key::new("n", "p"), Propagation::Background);
        Step::Delete { kind, key, uid: "u".into(), revision: None, propagation, grace_seconds: None }
    }

    #[test]
    fn a_queue_may_bind_waiting_pods_and_take_room_back_and_nothing_else() {
        let verdicts = [
            verdict("", &bind("u")),
            verdict("", &bind("another")),
            verdict("node-2", &bind("u")),
            verdict("node-2", &delete(Kind::Pod)),
            verdict("", &delete(Kind::PodGroup)),
            verdict("", &Step::Create { kind: Kind::Pod, object: json!({}) }),
        ];
        expect![[r#"
            may be done
            P6: bind pod p to node-1: that object has not been observed
            P1: bind pod p to node-1: the pod does not wait for a node
            may be done
            P6: delete podgroup p: that object has not been observed
            P6: create pod ?: no business of a queue's"#]]
        .assert_eq(&verdicts.join("\n"));
    }
}
