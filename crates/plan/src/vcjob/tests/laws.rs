//! What holds of every decision, whatever the job and its pods look like.

use std::fmt::Write;

use krafla_api::Kind;
use krafla_cluster::Step;
use proptest::prelude::*;
use serde_json::Value;

use super::fixture;
use crate::Plan;

/// A few words of a job that need not go together.
fn job() -> impl Strategy<Value = String> {
    let phase = prop::sample::select(vec![
        "Pending",
        "Running",
        "Running",
        "Restarting",
        "Aborting",
        "Aborted",
        "Completing",
        "Completed",
        "Failed",
    ]);
    let reason = prop::sample::select(vec![
        "",
        "reason=RestartJob",
        "reason=RestartPod",
        "reason=RestartTask about=task+work",
        "reason=ResumeJob",
        "reason=QueueNotFound",
    ]);
    let policy = prop::sample::select(vec![
        "",
        "policy=PodFailed:RestartJob",
        "policy=PodFailed:RestartPod",
        "policy=PodEvicted:RestartTask",
        "policy=TaskCompleted:CompleteJob",
    ]);
    let record = (
        0..4i32,
        0..4i32,
        prop::sample::select(vec!["", "completed=work:0", "completed=work:1-9", "completed=lead:0"]),
    );
    (phase, reason, policy, record, (0..5i32, 0..2i32, 0..4i32)).prop_map(
        |(phase, reason, policy, (succeeded, running, completed), (min, version, retry))| {
            format!(
                "job phase={phase} min={min} version={version} retry={retry} max-retry=3 {reason} {policy} \
                 counted=work:Succeeded*{succeeded} counted=work:Running*{running} {completed}"
            )
        },
    )
}

/// A pod of some index, there or gone.
fn pod() -> impl Strategy<Value = (&'static str, usize, String)> {
    let task = prop::sample::select(vec!["work", "work", "lead"]);
    let phase =
        prop::sample::select(vec!["Pending", "Running", "Succeeded", "Succeeded", "Failed", "Unknown"]);
    let more = prop::sample::select(vec!["", "", "", "going", "going=95", "going marked", "marked"]);
    let is_gone = prop::bool::weighted(0.2);
    (task, 0..5usize, phase, more, is_gone, 0..2i32, 0..3i32).prop_map(
        |(task, index, phase, more, is_gone, version, retry)| {
            let word = if is_gone { "gone" } else { "pod" };
            (task, index, format!("{word} {task}-{index} {phase} {more} version={version} retry={retry}"))
        },
    )
}

/// A world in lines: the job and its tasks first, and then its pods, one of each name.
fn world() -> impl Strategy<Value = (String, Vec<String>)> {
    let first_look = prop::sample::select(vec!["", "first-look"]);
    let group = prop::sample::select(vec!["", "group Pending", "group Inqueue", "group Running"]);
    (job(), 0..4i32, 0..2i32, group, first_look, prop::collection::vec(pod(), 0..8)).prop_map(
        |(job, work, lead, group, first_look, pods)| {
            let mut text = String::new();
            writeln!(
                text,
                "{job}\ntask work replicas={work}\ntask lead replicas={lead}\n{group}\n{first_look}"
            )
            .unwrap();
            let mut names = std::collections::BTreeSet::new();
            let pods = pods.into_iter().filter(|(task, index, _)| names.insert((*task, *index)));
            (text, pods.map(|(_, _, line)| line).collect())
        },
    )
}

fn killed(plan: &Plan) -> Vec<&str> {
    let killed = plan.steps.iter().filter_map(|step| match step {
        Step::Delete { kind: Kind::Pod, key, .. } => Some(key.name.as_ref()),
        _ => None,
    });
    killed.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_order_of_pods_does_not_matter_and_the_status_comes_to_rest((head, pods) in world()) {
        // In which order pods went away is another matter: the first is what the status names.
        let (gone, there): (Vec<&String>, Vec<&String>) = pods.iter().partition(|pod| pod.starts_with("gone"));
        let text = |there: Vec<&String>| {
            there.into_iter().chain(gone.iter().copied()).fold(head.clone(), |text, pod| format!("{text}{pod}\n"))
        };
        let forwards = fixture::plan(&text(there.clone()));
        let backwards = fixture::plan(&text(there.iter().rev().copied().collect()));
        prop_assert_eq!((&forwards.status, &forwards.steps), (&backwards.status, &backwards.steps));

        let mut world = fixture::parse(&text(there));
        let n_stored = (0..10).take_while(|_| world.store_status()).count();
        prop_assert!(n_stored < 10, "the status is written for ever: {}", world.plan());
    }

    #[test]
    fn a_job_that_completes_because_all_has_finished_stops_nothing_that_runs((head, pods) in world()) {
        let text = pods.iter().fold(head, |text, pod| format!("{text}{pod}\n"));
        let plan = fixture::plan(&text);
        let phase = match &plan.status {
            Some(Step::Patch { patch, .. }) => patch["status"].pointer("/state/phase").and_then(Value::as_str),
            _ => None,
        };
        if phase == Some("Completed") && text.starts_with("job phase=Running") {
            let world = fixture::parse(&text);
            let (objects, _) = world.observed();
            for name in killed(&plan) {
                let (_, index) = name.rsplit_once('-').unwrap();
                let task = objects.all(Kind::VcJob).next().unwrap().as_vcjob().unwrap().spec.tasks.iter()
                    .find(|task| name.starts_with(&format!("a-{}", task.name))).unwrap().replicas;
                prop_assert!(index.parse::<i32>().unwrap() >= task, "{} is stopped:\n{}", name, text);
            }
        }
    }
}
