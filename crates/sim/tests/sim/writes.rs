//! How much the Job controller writes: the API server is what everybody shares.

use std::time::Duration;

use krafla_api::Kind;

use crate::followed::Followed;

fn assert_completed(world: &Followed, n_jobs: usize) {
    assert_eq!(phases(world).iter().filter(|phase| *phase == "Completed").count(), n_jobs);
}

fn phases(world: &Followed) -> Vec<String> {
    let jobs = world.list(Kind::VcJob);
    jobs.iter().map(|job| job.as_vcjob().unwrap().status.state.phase.as_str().to_owned()).collect()
}

/// A job of so many pods, all of which run.
fn running(n_pods: usize) -> Followed {
    let mut world = Followed::new();
    world.create_vcjob("a", n_pods);
    start(&mut world, n_pods);
    world
}

/// The scheduler and the node do their part for a job that waits for its pods, until they run.
fn start(world: &mut Followed, n_pods: usize) {
    world.settle();
    world.admit_all();
    world.look();
    world.bind_all();
    world.settle();
    world.report_all("Running");
    world.settle();
    assert_eq!(world.list(Kind::Pod).len(), n_pods);
    assert_eq!(phases(world), ["Running"]);
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

#[test]
fn volcano_b25_an_abort_of_m_pods_costs_two_requests_for_each_and_four_for_all() {
    const M: usize = 100;
    let mut world = running(M);
    let n_before = world.n_requests();
    world.command("a", "AbortJob");
    world.settle();
    world.confirm_all();
    world.settle();
    assert_eq!(phases(&world), ["Aborted"]);
    assert_eq!(world.list(Kind::Pod), []);

    // Each pod is marked as ours to remove, and removed. Besides: the Command, the PodGroup, and what status says.
    let n_requests = world.n_requests() - n_before;
    assert!(n_requests <= 2 * M + 4, "{n_requests} requests for an abort of {M} pods");
    world.rest();
    assert_eq!(world.n_requests() - n_before, n_requests, "nothing is asked at rest");
}

#[test]
fn volcano_b25_a_restart_of_m_pods_costs_three_requests_for_each_and_seven_for_all() {
    const M: usize = 100;
    let mut world = running(M);
    let n_before = world.n_requests();
    world.command("a", "RestartJob");
    world.settle();
    world.confirm_all();
    start(&mut world, M);

    // Each pod is marked, removed and made anew. Besides: the Command, two PodGroups, and what status says.
    let n_requests = world.n_requests() - n_before;
    assert!(n_requests <= 3 * M + 7, "{n_requests} requests for a restart of {M} pods");
    world.rest();
    assert_eq!(world.n_requests() - n_before, n_requests, "nothing is asked at rest");
}

#[test]
fn volcano_b25_a_job_of_a_thousand_pods_has_its_status_written_a_few_times() {
    const M: usize = 1_000;
    let mut world = Followed::new();
    // The queues are looked after first, which is not the job's doing.
    world.settle();
    let n_before = world.n_status_patches();
    world.create_vcjob("a", M);
    world.settle();
    world.admit_all();
    world.settle();
    let n_created = world.n_status_patches() - n_before;
    assert!(n_created <= 2, "{n_created} status writes until {M} pods are created");

    // A few pods at a time, ten seconds for all to start and ten for all to end.
    for phase in ["Running", "Succeeded"] {
        for pods in world.list(Kind::Pod).chunks(10) {
            pods.iter().for_each(|pod| world.report(pod, phase));
            world.now = world.now.after(Duration::from_millis(100));
            world.see();
            while world.act_once() {}
        }
    }
    world.settle();
    assert_completed(&world, 1);
    let n_patches = world.n_status_patches() - n_before;
    assert!(n_patches <= 16, "{n_patches} status writes for {M} pods");
}
