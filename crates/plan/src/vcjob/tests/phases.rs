//! The state machine as tables: every phase with every action, and where a job goes by itself.

use std::fmt::Write;

use expect_test::expect;
use krafla_api::Kind;
use serde_json::Value;

use super::fixture;
use crate::Step;

const PHASES: [&str; 10] = [
    "Pending",
    "Running",
    "Restarting",
    "Aborting",
    "Aborted",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
];

const ACTIONS: [&str; 9] = [
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "AbortJob",
    "CompleteJob",
    "TerminateJob",
    "ResumeJob",
    "NoSuchAction",
];

/// Where a plan leads: the new phase and what it costs, and what goes.
fn outcome(world: &str) -> String {
    let plan = fixture::plan(world);
    let status = match &plan.status {
        Some(Step::Patch { patch, .. }) => patch["status"].clone(),
        _ => Value::Null,
    };
    let mut outcome = status.pointer("/state/phase").and_then(Value::as_str).unwrap_or("stays").to_owned();
    for (field, word) in [("retryCount", "retry"), ("version", "version")] {
        if let Some(number) = status.get(field) {
            write!(outcome, ", {word} {number}").unwrap();
        }
    }
    let goes = |wanted| {
        let names = plan.steps.iter().filter_map(move |step| match step {
            Step::Delete { kind, key, .. } if *kind == wanted => Some(key.name.to_string()),
            _ => None,
        });
        names.collect::<Vec<String>>()
    };
    for name in goes(Kind::PodGroup).iter().chain(&goes(Kind::Pod)) {
        write!(outcome, ", without {name}").unwrap();
    }
    outcome
}

/// Where each phase leads with a Command that asks for nothing, and which Commands lead elsewhere.
#[test]
fn every_action_in_every_phase() {
    let mut table = String::new();
    for phase in PHASES {
        // A restart is under way: the pods of the version before it are yet to go.
        let stands = if phase == "Restarting" { "version=1 retry=1 reason=RestartJob" } else { "" };
        let with = |action: &str| {
            outcome(&format!(
                "job phase={phase} min=1 {stands}
                 task work replicas=2
                 group Running
                 pod work-0 Running
                 pod work-1 Succeeded
                 command {action}"
            ))
        };
        let unmoved = with("SyncJob");
        writeln!(table, "{phase}: {unmoved}").unwrap();
        for (action, outcome) in ACTIONS.map(|action| (action, with(action))) {
            if outcome != unmoved {
                writeln!(table, "{phase} + {action}: {outcome}").unwrap();
            }
        }
    }
    expect![[r#"
        Pending: stays
        Pending + RestartJob: Restarting, retry 1, version 1, without a-u1, without a-work-0, without a-work-1
        Pending + RestartTask: Restarting, retry 1
        Pending + RestartPod: Restarting, retry 1
        Pending + RestartPartition: Restarting, retry 1
        Pending + AbortJob: Aborting, version 1, without a-u1, without a-work-0
        Pending + CompleteJob: Completing, version 1, without a-u1, without a-work-0
        Pending + TerminateJob: Terminating, version 1, without a-u1, without a-work-0
        Running: stays
        Running + RestartJob: Restarting, retry 1, version 1, without a-u1, without a-work-0, without a-work-1
        Running + RestartTask: Restarting, retry 1
        Running + RestartPod: Restarting, retry 1
        Running + RestartPartition: Restarting, retry 1
        Running + AbortJob: Aborting, version 1, without a-u1, without a-work-0
        Running + CompleteJob: Completing, version 1, without a-u1, without a-work-0
        Running + TerminateJob: Terminating, version 1, without a-u1, without a-work-0
        Restarting: stays, without a-u1, without a-work-0, without a-work-1
        Restarting + AbortJob: Aborting, version 2, without a-u1, without a-work-0
        Restarting + CompleteJob: Completing, version 2, without a-u1, without a-work-0
        Restarting + TerminateJob: Terminating, version 2, without a-u1, without a-work-0
        Aborting: stays, without a-u1, without a-work-0
        Aborting + ResumeJob: Restarting, version 1, without a-u1, without a-work-0
        Aborted: stays, without a-u1, without a-work-0
        Aborted + ResumeJob: Restarting, version 1, without a-u1, without a-work-0
        Completing: stays, without a-u1, without a-work-0
        Completed: stays, without a-u1, without a-work-0
        Terminating: stays, without a-u1, without a-work-0
        Terminated: stays, without a-u1, without a-work-0
        Failed: stays, without a-u1, without a-work-0
    "#]]
    .assert_eq(&table);
}

/// A job with these words, and pods in these phases of its one task.
fn by_itself(job: &str, task: &str, pods: &[&str]) -> String {
    let pods: String = pods.iter().enumerate().fold(String::new(), |mut text, (index, phase)| {
        writeln!(text, "pod work-{index} {phase}").unwrap();
        text
    });
    outcome(&format!("job {job}\n task work {task}\n group Running\n {pods}"))
}

#[test]
fn a_pending_job_runs_once_its_minimum_has_started_however_that_went() {
    let rows: [(&str, &[&str], &str); 5] = [
        ("phase=Pending min=2", &["Running", "Pending"], "stays"),
        ("phase=Pending min=2", &["Running", "Running"], "Running"),
        ("phase=Pending min=2", &["Succeeded", "Running"], "Running"),
        ("phase=Pending min=2", &["Failed", "Failed"], "Running"),
        // A minimum that is not said is all pods.
        ("phase=Pending min=0", &["Running"], "stays"),
    ];
    for (job, pods, expected) in rows {
        assert_eq!(by_itself(job, "replicas=2", pods), expected, "{job} {pods:?}");
    }
}

#[test]
fn a_running_job_ends_when_all_its_pods_have() {
    const GONE: &str = ", without a-u1";
    let rows: [(&str, &str, &[&str], &str); 13] = [
        // Scaled to nothing, it stays.
        ("min=0", "replicas=0", &[], "stays"),
        // minSuccess goes before everything else, and takes the rest with it.
        ("min=2 min-success=1", "replicas=2", &["Succeeded", "Failed"], "Completed"),
        ("min=2 min-success=2", "replicas=2", &["Succeeded", "Running"], "stays"),
        ("min=2 min-success=2", "replicas=2", &["Succeeded", "Failed"], "Failed"),
        // All have finished: enough succeeded, or not.
        ("min=2", "replicas=2", &["Succeeded", "Succeeded"], "Completed"),
        ("min=1", "replicas=2 min=1", &["Succeeded", "Failed"], "Completed"),
        ("min=2", "replicas=2", &["Succeeded", "Failed"], "Failed"),
        ("min=1", "replicas=2 min=1", &["Failed", "Failed"], "Failed"),
        // A task's own minimum counts only if the job's covers all of them.
        ("min=2", "replicas=3 min=2", &["Succeeded", "Failed", "Failed"], "Failed"),
        ("min=1", "replicas=3 min=2", &["Succeeded", "Failed", "Failed"], "Completed"),
        // Not all have finished: too many wait again, or it goes on.
        ("min=2", "replicas=2", &["Running", "Pending"], "Pending"),
        ("min=1", "replicas=2 min=1", &["Running", "Pending"], "stays"),
        ("min=1", "replicas=2 min=1", &["Running", "Failed"], "stays"),
    ];
    for (job, task, pods, expected) in rows {
        let expected = match expected {
            "Completed" | "Failed" => format!("{expected}{GONE}"),
            other => other.to_owned(),
        };
        assert_eq!(by_itself(&format!("phase=Running {job}"), task, pods), expected, "{job} {task} {pods:?}");
    }
}

#[test]
fn a_restarting_job_waits_again_once_enough_names_are_free() {
    let rows: [(&str, &[&str], &str); 4] = [
        ("retry=1 min=2", &[], "Pending"),
        ("retry=1 min=2", &["Running going", "Running going"], "stays"),
        ("retry=1 min=1", &["Running going"], "Pending"),
        // The budget is spent: what is there no longer matters.
        ("retry=3 min=2 max-retry=3", &["Running going", "Running going"], "Failed, without a-u1"),
    ];
    for (job, pods, expected) in rows {
        let job = format!("phase=Restarting version=1 {job}");
        assert_eq!(by_itself(&job, "replicas=2", pods), expected, "{job} {pods:?}");
    }
}

#[test]
fn a_job_that_is_ended_has_ended_when_nothing_of_it_is_left_but_pods_of_lost_nodes() {
    for (from, to) in [("Aborting", "Aborted"), ("Completing", "Completed"), ("Terminating", "Terminated")] {
        let job = format!("phase={from} version=1 min=1");
        let rows: [(&[&str], &str); 4] = [
            (&["Running going"], "stays, without a-u1"),
            (&["Running"], "stays, without a-u1, without a-work-0"),
            (&["Unknown going"], "stays, without a-u1"),
            (&["Succeeded", "Failed"], &format!("{to}, without a-u1")),
        ];
        for (pods, expected) in rows {
            assert_eq!(by_itself(&job, "replicas=2", pods), expected, "{from} {pods:?}");
        }
    }
}
