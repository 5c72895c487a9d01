//! What is said of pods and PodGroups, in conditions and in Events.

use expect_test::expect;
use krafla_cluster::Step;
use krafla_plan::Objects;
use serde_json::json;
use std::sync::Arc;

use super::fixture::{check, check_told, decode, manifests, objects, plan};
use super::laws::World;

const MIXED: &str = "node one cpu=2
     podgroup fits min=1 phase=Inqueue
     pod fits-0 of=fits
     podgroup waits min=1 phase=Inqueue
     pod waits-0 of=waits cpu=4
     pod alone cpu=4";

#[test]
fn events_say_where_pods_go_and_why_others_wait() {
    check_told(
        MIXED,
        &expect![[r#"
            pod fits-0: Scheduled Successfully assigned default/fits-0 to one
            podgroup waits: Unschedulable 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu
            pod waits-0: FailedScheduling 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu
            pod alone: FailedScheduling 0/1 nodes are available: 1 Insufficient cpu
        "#]],
    );
}

#[test]
fn what_was_said_is_not_said_again() {
    check_told(
        "node one cpu=2
         pod alone cpu=4 unschedulable=0/7_nodes_are_available:_7_Insufficient_cpu",
        &expect![""],
    );
}

/// A report that is refused, by an admission policy for instance, must not keep others from getting their nodes.
#[test]
fn pods_get_their_nodes_before_anything_is_said_of_others() {
    let plan = plan(&objects(MIXED));
    let shown = |steps: &[Step]| steps.iter().map(|step| format!("{:?}\n", step.write())).collect::<String>();
    expect![[r#"
        Write { verb: Bind, kind: Pod, key: Key { namespace: "default", name: "fits-0" } }
        Write { verb: Change, kind: PodGroup, key: Key { namespace: "default", name: "fits" } }
    "#]]
    .assert_eq(&shown(&plan.steps));
    expect![[r#"
        Write { verb: Change, kind: PodGroup, key: Key { namespace: "default", name: "waits" } }
        Write { verb: Report, kind: Pod, key: Key { namespace: "default", name: "waits-0" } }
        Write { verb: Report, kind: Pod, key: Key { namespace: "default", name: "alone" } }
        Write { verb: Report, kind: Queue, key: Key { namespace: "", name: "default" } }
    "#]]
    .assert_eq(&shown(&plan.aside));
}

#[test]
fn a_pod_that_waited_for_its_podgroup_says_what_it_waits_for_now() {
    check(
        "node one cpu=1
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g unschedulable=podgroup_\"g\"_not_found
         pod g-1 of=g",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn what_others_have_said_of_a_pod_stays() {
    let mut pod = manifests("pod p cpu=8").pop().unwrap();
    let gate = json!({ "type": "example.com/ok", "status": "True", "reason": "Checked", "lastTransitionTime": "2027-01-15T07:00:00Z" });
    pod["status"]["conditions"] = json!([gate]);
    let mut objects = Objects::default();
    for manifest in manifests("node one").iter().chain([&pod]) {
        objects.insert(Arc::new(decode(manifest)));
    }
    let plan = plan(&objects);
    let [Step::Patch { patch, revision: Some(_), .. }, ..] = plan.aside.as_slice() else {
        panic!("one that is refused if the pod has changed: {plan}")
    };
    let conditions = &patch["status"]["conditions"];
    assert_eq!(conditions[0], gate);
    assert_eq!(conditions[1]["type"], "PodScheduled");
}

/// One write for each pod that waits, and none when nothing but numbers changes: with thousands of pods, anything more would
/// keep the server busy with what is known.
#[test]
fn a_gang_of_thousands_says_why_it_waits_in_one_write_for_each_pod() {
    const N_PODS: usize = 1_200;
    let mut cluster =
        String::from("node one cpu=2 pods=5000\n podgroup g min=1 phase=Running scheduled running=2\n");
    for pod in 0..N_PODS {
        let place = if pod < 2 { "on=one phase=Running" } else { "" };
        cluster += &format!("pod g-{pod} of=g {place}\n");
    }
    let mut world = World::new(&cluster);
    let n_reports = |world: &mut World| {
        let mut n_of_rounds = Vec::new();
        loop {
            let plan = plan(&world.objects());
            let n_reports = plan.writes().filter(|step| is_report(step)).count();
            if n_reports == 0 {
                return n_of_rounds;
            }
            n_of_rounds.push(n_reports);
            world.apply(&plan);
        }
    };
    assert_eq!(n_reports(&mut world), [500, 500, 198]);
    // One ends and another one gets its place: nobody else has anything to say.
    world.find_mut("Pod", "g-0")["status"]["phase"] = json!("Succeeded");
    let plan = plan(&world.objects());
    let binds = plan.steps.iter().filter(|step| matches!(step, Step::Bind { .. })).count();
    assert_eq!(binds, 1, "{plan}");
    world.apply(&plan);
    assert!(n_reports(&mut world).is_empty());
}

fn is_report(step: &Step) -> bool {
    matches!(step, Step::Patch { kind: krafla_api::Kind::Pod, .. })
}
