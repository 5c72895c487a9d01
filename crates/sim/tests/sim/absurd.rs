//! A job that asks for far too much, or can never run, holds nobody up.

use krafla_api::Kind;
use serde_json::{Value, json};

use crate::followed::{Followed, vcjob_task};

/// The most pods that one plan makes.
const PODS_PER_PLAN_MAX: usize = 500;

#[test]
fn a_job_of_ten_thousand_pods_holds_up_nobody() {
    let mut world = Followed::new();
    world.create_vcjob("endless", 10_000);
    world.create_vcjob("sane", 1);
    world.look();
    world.admit_all();
    world.see();
    let is_sane = |name: &str| name.starts_with("sane-");
    let n_pods = loop {
        assert!(world.act_once(), "the sane job never got its pod");
        let pods = world.list(Kind::Pod);
        if pods.iter().any(|pod| is_sane(&pod.meta.key.name)) {
            break pods.len();
        }
    };
    // One plan of the large job may go first, and no more than one.
    assert!(n_pods <= PODS_PER_PLAN_MAX + 1, "{n_pods} pods were made before the one of the sane job");
}

#[test]
fn jobs_that_make_no_sense_say_why_and_hold_up_nobody() {
    let mut world = Followed::new();
    let (longest, too_long) = ("n".repeat(56), "n".repeat(64));
    let of_one = |more: Value| {
        let mut spec = json!({ "minAvailable": 1, "queue": "default", "tasks": [vcjob_task(1)] });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    world.create_vcjob_of(
        "dry",
        of_one(json!({ "volumes": [{ "mountPath": "/in", "volumeClaimName": "in" }] })),
    );
    world.create_vcjob_of("lost", of_one(json!({ "queue": "nowhere" })));
    world.create_vcjob_of("mistyped", of_one(json!({ "plugins": { "env": ["--no-such-flag"] } })));
    world.create_vcjob(&longest, 1);
    world.create_vcjob(&too_long, 1);
    world.create_vcjob("sane", 1);
    world.look();
    world.admit_all();
    world.look();
    let pods: Vec<String> = world.list(Kind::Pod).iter().map(|pod| pod.meta.key.name.to_string()).collect();
    assert_eq!(pods, ["mistyped-work-0", &format!("{longest}-work-0"), "sane-work-0"]);
    let said = world
        .list(Kind::VcJob)
        .iter()
        .map(|job| (job.meta.key.name.to_string(), job.as_vcjob().unwrap().status.state.reason.clone()))
        .collect::<Vec<_>>();
    let expected = [
        ("dry", "PVCError"),
        ("lost", "QueueNotFound"),
        ("mistyped", "PluginError"),
        (&*longest, ""),
        (&*too_long, "InvalidName"),
        ("sane", ""),
    ];
    assert_eq!(said, expected.map(|(name, reason)| (name.to_owned(), reason.to_owned())));
}

#[test]
fn a_job_without_tasks_is_not_even_stored() {
    let refusal = Followed::new().try_create_vcjob("empty", json!({ "queue": "default", "tasks": [] }));
    let refusal = refusal.expect_err("it is refused").to_string();
    assert!(refusal.contains("spec.tasks"), "{refusal}");
}
