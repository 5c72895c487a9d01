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
