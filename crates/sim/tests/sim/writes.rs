//! How much the Job controller writes: the API server is what everybody shares.

use std::time::Duration;

use krafla_api::Kind;

use crate::followed::Followed;

fn assert_completed(world: &Followed, n_jobs: usize) {
    let jobs = world.list(Kind::VcJob);
    let phases = jobs.iter().map(|job| job.as_vcjob().unwrap().status.state.phase.as_str());
    assert_eq!(phases.filter(|phase| *phase == "Completed").count(), n_jobs);
}

#[test]
fn volcano_b25_a_job_of_m_pods_costs_at_most_m_plus_5_writes_and_nothing_at_rest() {
    const M: usize = 100;
    let mut world = Followed::new();
    world.create_vcjob("a", M);
    world.settle();
    world.admit_all();
    world.look();
    assert_eq!(world.list(Kind::Pod).len(), M);
    for phase in ["Running", "Succeeded"] {
        world.report_all(phase);
        world.settle();
    }
    assert_completed(&world, 1);

    let n_writes = world.engine.counts().writes;
    assert!(n_writes <= M as u64 + 5, "{n_writes} writes for {M} pods");
    world.rest();
    assert_eq!(world.engine.counts().writes, n_writes, "nothing is written at rest");
}

#[test]
fn many_jobs_at_once_cost_no_more_each_than_one_alone() {
    const JOBS: usize = 50;
    const M: usize = 5;
    let mut world = Followed::new();
    // The queues are looked after first, which is not the jobs' doing.
    world.settle();
    let n_before = world.engine.counts().writes;
    for n in 0..JOBS {
        world.create_vcjob(&format!("job-{n}"), M);
    }
    world.look();
    world.admit_all();
    world.look();
    assert_eq!(world.list(Kind::Pod).len(), JOBS * M);
    // All are waited for: each job's pods move on one by one, and all jobs' counters with them, for seconds.
    for (phase, index) in ["Running", "Succeeded"].iter().flat_map(|phase| (0..M).map(move |n| (phase, n))) {
        let pods = world.list(Kind::Pod);
        let suffix = format!("-{index}");
        for pod in pods.iter().filter(|pod| pod.meta.key.name.ends_with(&suffix)) {
            world.report(pod, phase);
        }
        world.now = world.now.after(Duration::from_millis(300));
        world.look();
    }
    world.settle();
    assert_completed(&world, JOBS);

    let n_writes = world.engine.counts().writes - n_before;
    let allowed = (JOBS * (M + 5)) as u64;
    assert!(n_writes <= allowed, "{n_writes} writes for {JOBS} jobs of {M} pods, {allowed} are allowed");
    world.rest();
    assert_eq!(world.engine.counts().writes - n_before, n_writes, "nothing is written at rest");
}
