//! Controllers that hear of one kind later than of another.

use std::time::Duration;

use krafla_api::{Kind, Uid};
use krafla_cluster::Step;
use serde_json::json;

use crate::followed::Followed;

#[test]
fn what_went_with_a_job_is_not_made_again_while_the_news_of_its_end_are_late() {
    let mut world = Followed::new();
    world.create_vcjob("a", 2);
    world.settle();
    for kind in [Kind::VcJob, Kind::PodGroup] {
        for object in world.list(kind) {
            world.write(&object.deletion());
        }
    }
    world.see_only(Kind::PodGroup);
    while world.act_once() {}
    assert!(world.list(Kind::PodGroup).is_empty(), "made for a job that is no more");
    world.settle();
    assert!(world.list(Kind::PodGroup).is_empty());
}

#[test]
fn volcano_b21_a_job_made_again_under_its_old_name_leaves_nothing_to_clean_up() {
    let mut world = Followed::new();
    world.create_vcjob("a", 1);
    world.settle();
    world.admit_all();
    world.settle();
    for job in world.list(Kind::VcJob) {
        world.write(&job.deletion());
    }
    world.create_vcjob("a", 1);
    world.settle();
    // The garbage collector comes late.
    let [job] = &world.list(Kind::VcJob)[..] else { panic!("one job") };
    for kind in [Kind::Pod, Kind::PodGroup] {
        let left = world.list(kind).into_iter().filter(|it| it.meta.controller_uid() != Some(&job.meta.uid));
        left.for_each(|it| world.write(&it.deletion()));
    }
    world.settle();
    world.admit_all();
    world.settle();
    assert_eq!(world.list(Kind::Pod).len(), 1);
    world.rest();
    let n_plans = world.engine.counts().plans;
    world.rest();
    assert_eq!(world.engine.counts().plans, n_plans, "what is settled is looked at again");
}

#[test]
fn what_somebody_removed_from_a_living_job_is_made_again() {
    let mut world = Followed::new();
    world.create_vcjob("a", 2);
    world.settle();
    for group in world.list(Kind::PodGroup) {
        world.write(&group.deletion());
    }
    world.settle();
    assert_eq!(world.list(Kind::PodGroup).len(), 1);
}

#[test]
fn a_suspended_cron_job_keeps_the_run_that_it_has_while_the_news_of_that_are_late() {
    let pod =
        json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "any" }] } });
    let volcano = json!({ "queue": "default", "minAvailable": 1, "tasks": [{ "name": "work", "replicas": 1, "template": pod }] });
    let cases = [
        (Kind::CronJob, Kind::Job, "batch/v1", json!({ "template": pod })),
        (Kind::VcCronJob, Kind::VcJob, "batch.volcano.sh/v1alpha1", volcano),
    ];
    for (kind, run, api_version, job) in cases {
        let mut world = Followed::new();
        let object = json!({
            "apiVersion": api_version, "kind": "CronJob",
            "metadata": { "name": "tick", "namespace": "default" },
            "spec": { "schedule": "* * * * *", "concurrencyPolicy": "Replace", "jobTemplate": { "spec": job } },
        });
        world.write(&Step::Create { kind, object });
        world.settle();
        let runs =
            |world: &Followed| world.list(run).into_iter().map(|run| run.meta.uid).collect::<Vec<Uid>>();
        let running = runs(&world);
        assert_eq!(running.len(), 1);

        let [cron_job] = &world.list(kind)[..] else { panic!("one CronJob") };
        world.write(&Step::Patch {
            kind,
            key: cron_job.meta.key.clone(),
            uid: cron_job.meta.uid.clone(),
            revision: None,
            of_status: false,
            patch: json!({ "spec": { "suspend": true } }),
        });
        world.now = world.now.after(Duration::from_secs(60));
        while world.act_once() {}
        assert_eq!(runs(&world), running, "{kind:?}: the run was ended for one that may not be made");
        world.settle();
        assert_eq!(runs(&world), running);
    }
}
