//! A job that asks for far too much holds nobody up.

use krafla_api::Kind;

use crate::followed::Followed;

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
