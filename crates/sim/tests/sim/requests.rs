//! What Kubernetes' Jobs cost the API server, and how the cost grows: counted are requests and decisions, never seconds.

use std::time::Duration;

use krafla_api::Kind;
use krafla_api::batch::JOB_TRACKING;
use krafla_cluster::Step;
use krafla_plan::Object;
use serde_json::{Value, json};

use crate::followed::Followed;

/// Runs these Jobs to their end, all pods side by side.
fn run(world: &mut Followed, jobs: &[Value]) {
    for job in jobs {
        world.write(&Step::Create { kind: Kind::Job, object: job.clone() });
    }
    world.settle();
    for phase in ["Running", "Succeeded"] {
        world.report_all(phase);
        world.settle();
    }
    for job in world.list(Kind::Job) {
        let status = &job.as_job().unwrap().status;
        assert!(status.condition("Complete").is_some(), "{}: {status:?}", job.meta.key);
    }
}

fn job(name: &str, mode: &str, pods: usize) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "completionMode": mode, "completions": pods, "parallelism": pods,
            "template": { "spec": {
                "restartPolicy": "Never", "containers": [{ "name": "main", "image": "any" }],
            } },
        },
    })
}

#[test]
fn a_job_of_m_pods_costs_at_most_2_m_plus_4_requests_and_nothing_at_rest() {
    const M: usize = 120;
    for mode in ["NonIndexed", "Indexed"] {
        let mut world = Followed::new();
        run(&mut world, &[job("a", mode, M)]);
        let n_requests = world.engine.counts().writes;
        assert!(n_requests <= 2 * M as u64 + 4, "{mode}: {n_requests} requests for {M} pods");
        world.rest();
        assert_eq!(world.engine.counts().writes, n_requests, "{mode}: nothing is written at rest");
    }
}

#[test]
fn a_job_of_more_pods_than_a_plan_makes_costs_no_more_where_indexes_have_tries_of_their_own() {
    const M: usize = 600;
    let mut world = Followed::new();
    let mut job = job("a", "Indexed", M);
    job["spec"]["backoffLimitPerIndex"] = json!(1);
    run(&mut world, &[job]);
    let n_requests = world.engine.counts().writes;
    assert!(n_requests <= 2 * M as u64 + 4, "{n_requests} requests for {M} pods");
}

#[test]
fn a_job_in_waves_costs_two_requests_for_each_pod_and_four_for_each_wave() {
    const M: usize = 100;
    const AT_ONCE: usize = 10;
    for mode in ["NonIndexed", "Indexed"] {
        let mut world = Followed::new();
        let mut job = job("a", mode, M);
        job["spec"]["parallelism"] = json!(AT_ONCE);
        world.write(&Step::Create { kind: Kind::Job, object: job });
        world.settle();
        for _ in 0..M / AT_ONCE {
            for phase in ["Running", "Succeeded"] {
                let pods = world.list(Kind::Pod);
                let unended =
                    pods.iter().filter(|pod| pod.as_pod().unwrap().status.phase.as_str() != "Succeeded");
                unended.for_each(|pod| world.report(pod, phase));
                world.settle();
            }
        }
        let jobs = world.list(Kind::Job);
        let status = &jobs.first().unwrap().as_job().unwrap().status;
        assert!(status.condition("Complete").is_some(), "{mode}: {status:?}");
        let (n_requests, allowed) = (world.engine.counts().writes, 2 * M + 4 * (M / AT_ONCE));
        assert!(
            n_requests <= allowed as u64,
            "{mode}: {n_requests} requests for {M} pods, {AT_ONCE} at once"
        );
    }
}

#[test]
fn many_jobs_at_once_cost_no_more_each() {
    const JOBS: usize = 20;
    const M: usize = 10;
    let jobs: Vec<Value> = (0..JOBS).map(|n| job(&format!("job-{n}"), "NonIndexed", M)).collect();
    let mut world = Followed::new();
    run(&mut world, &jobs);
    let n_requests = world.engine.counts().writes;
    let allowed = (JOBS * (2 * M + 4)) as u64;
    assert!(n_requests <= allowed, "{n_requests} requests for {JOBS} Jobs of {M} pods");
}

/// A Job of so many pods that have all ended, which its controller has heard of and done nothing about yet.
fn ended(mode: &str, pods: usize) -> Followed {
    let mut world = Followed::new();
    world.write(&Step::Create { kind: Kind::Job, object: job("a", mode, pods) });
    world.settle();
    world.report_all("Running");
    world.settle();
    world.report_all("Succeeded");
    world.see();
    world.now = world.now.after(Duration::from_secs(60));
    world
}

/// Somebody writes something to an object that concerns nobody.
fn touch(world: &Followed, object: &Object) {
    let (key, uid) = (object.meta.key.clone(), object.meta.uid.clone());
    let patch = json!({ "metadata": { "annotations": { "example.com/touched": "yes" } } });
    world.write(&Step::Patch { kind: object.kind, key, uid, revision: None, of_status: false, patch });
}

fn n_tracked(world: &Followed) -> usize {
    let pods = world.list(Kind::Pod);
    pods.iter().filter(|pod| pod.meta.finalizers.iter().any(|name| name == JOB_TRACKING)).count()
}

#[test]
fn a_status_that_is_not_stored_lets_no_pod_go() {
    const M: usize = 10;
    let mut world = ended("NonIndexed", M);
    let before = world.engine.counts().writes;
    touch(&world, &world.list(Kind::Job)[0]);
    assert!(world.act_once());
    assert_eq!((world.engine.counts().writes - before, n_tracked(&world)), (1, M));
}

#[test]
fn a_pod_that_changes_while_it_is_let_go_holds_up_no_other_and_costs_a_request_and_a_report() {
    const M: usize = 50;
    for mode in ["NonIndexed", "Indexed"] {
        let mut world = ended(mode, M);
        touch(&world, &world.list(Kind::Pod)[0]);
        assert!(world.act_once());
        assert_eq!(n_tracked(&world), 1, "{mode}: all others are let go at once");
        world.settle();
        assert_eq!(n_tracked(&world), 0, "{mode}");
        let n_requests = world.engine.counts().writes;
        assert!(n_requests <= 2 * M as u64 + 4 + 2, "{mode}: {n_requests} requests for {M} pods");
    }
}

#[test]
fn pods_that_fail_and_are_tried_again_cost_two_requests_each_and_four_for_each_round() {
    const M: usize = 40;
    for (mode, per_index) in [("NonIndexed", None), ("Indexed", None), ("Indexed", Some(1))] {
        let mut world = Followed::new();
        let mut job = job("a", mode, M);
        job["spec"]["backoffLimit"] = json!(M);
        job["spec"]["backoffLimitPerIndex"] = json!(per_index);
        world.write(&Step::Create { kind: Kind::Job, object: job });
        for phase in ["Failed", "Succeeded"] {
            world.settle();
            for phase in ["Running", phase] {
                for pod in world.list(Kind::Pod) {
                    if !pod.as_pod().unwrap().status.phase.is_finished() {
                        world.report(&pod, phase);
                    }
                }
                world.settle();
            }
            // So many failures together are waited for as long as it goes.
            world.now = world.now.after(Duration::from_secs(600));
        }
        let jobs = world.list(Kind::Job);
        let status = &jobs.first().unwrap().as_job().unwrap().status;
        assert!(status.condition("Complete").is_some(), "{mode}: {status:?}");
        assert_eq!((status.succeeded, status.failed), (M as i32, M as i32), "{mode}");
        let (n_requests, n_pods) = (world.engine.counts().writes, 2 * M as u64);
        assert!(n_requests <= 2 * n_pods + 2 * 4, "{mode}, {per_index:?}: {n_requests} for {n_pods} pods");
    }
}

/// How many decisions a Job of so many pods takes.
fn decisions(mode: &str, pods: usize) -> u64 {
    let mut world = Followed::new();
    run(&mut world, &[job("large", mode, pods)]);
    let counts = world.engine.counts();
    assert!(counts.writes <= 2 * pods as u64 + 4, "{mode}: {} requests for {pods} pods", counts.writes);
    counts.plans
}

#[test]
fn the_decisions_about_a_large_job_do_not_grow_with_its_pods() {
    // Each decision reads all pods: were there one for each event, a Job's cost would grow with the square of its pods.
    for mode in ["NonIndexed", "Indexed"] {
        let [small, large] = [60, 700].map(|pods| decisions(mode, pods));
        assert!(large <= small + small / 2, "{mode}: {small} decisions for 60 pods, {large} for 700");
    }
}
