//! Controllers that hear of one kind later than of another.

use krafla_api::Kind;
use krafla_plan::Step;

use crate::followed::Followed;

#[test]
fn what_went_with_a_job_is_not_made_again_while_the_news_of_its_end_are_late() {
    let mut world = Followed::new();
    world.create_vcjob("a", 2);
    world.settle();
    for kind in [Kind::VcJob, Kind::PodGroup] {
        for object in world.list(kind) {
            world.write(&Step::delete(&object));
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
        world.write(&Step::delete(&job));
    }
    world.create_vcjob("a", 1);
    world.settle();
    // The garbage collector comes late.
    let [job] = &world.list(Kind::VcJob)[..] else { panic!("one job") };
    for kind in [Kind::Pod, Kind::PodGroup] {
        let left = world.list(kind).into_iter().filter(|it| it.meta.controller_uid() != Some(&job.meta.uid));
        left.for_each(|it| world.write(&Step::delete(&it)));
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
        world.write(&Step::delete(&group));
    }
    world.settle();
    assert_eq!(world.list(Kind::PodGroup).len(), 1);
}
