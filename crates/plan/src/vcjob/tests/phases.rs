//! The state machine as tables: every phase with every action, and where a job goes by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use expect_test::expect;
use krafla_api::Kind;
use krafla_cluster::Step;
use serde_json::Value;

use super::fixture;

/// All phases. A job that nobody has looked at has none.
const PHASES: [&str; 11] = [
    "",
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

const ACTIONS: [&str; 10] = [
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "AbortJob",
    "CompleteJob",
    "TerminateJob",
    "ResumeJob",
    "EnqueueJob",
    "NoSuchAction",
];

/// The phase as a word of the fixture.
fn in_phase(phase: &str) -> String {
    if phase.is_empty() { String::new() } else { format!("phase={phase}") }
}

/// The phase as a word of a table.
fn told(phase: &str) -> &str {
    if phase.is_empty() { "New" } else { phase }
}

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

/// Where each phase leads when nothing is asked for, and which actions lead elsewhere, in the world that is given for both.
fn table(world: impl Fn(&str, &str) -> String) -> String {
    let mut table = String::new();
    for phase in PHASES {
        let with = |action: &str| outcome(&world(phase, action));
        let unmoved = with("SyncJob");
        writeln!(table, "{}: {unmoved}", told(phase)).unwrap();
        for (action, outcome) in ACTIONS.map(|action| (action, with(action))) {
            if outcome != unmoved {
                writeln!(table, "{} + {action}: {outcome}", told(phase)).unwrap();
            }
        }
    }
    table
}

/// Where each phase leads with a Command that asks for nothing, and which Commands lead elsewhere.
#[test]
fn every_action_in_every_phase() {
    let table = table(|phase, action| {
        // A restart is under way: the pods of the version before it are yet to go.
        let stands = if phase == "Restarting" { "version=1 retry=1 reason=RestartJob" } else { "" };
        format!(
            "job {} min=1 {stands}
             task work replicas=2
             group Running
             pod work-0 Running
             pod work-1 Succeeded
             command {action}",
            in_phase(phase)
        )
    });
    expect![[r#"
        New: Pending
        New + RestartJob: Restarting, retry 1, version 1, without a-u1, without a-work-0, without a-work-1
        New + RestartTask: Restarting, retry 1
        New + RestartPod: Restarting, retry 1
        New + RestartPartition: Restarting, retry 1
        New + AbortJob: Aborting, version 1, without a-u1, without a-work-0
        New + CompleteJob: Completing, version 1, without a-u1, without a-work-0
        New + TerminateJob: Terminating, version 1, without a-u1, without a-work-0
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

/// The same while a pod of the job is on its way out: what goes already is not sent away again, and holds up the end.
#[test]
fn every_action_in_every_phase_while_a_pod_goes() {
    let table = table(|phase, action| {
        let stands = if phase == "Restarting" { "version=1 retry=1 reason=RestartJob" } else { "" };
        format!(
            "job {} min=2 {stands}
             task work replicas=3
             group Running
             pod work-0 Running
             pod work-1 Running going
             pod work-2 Failed
             command {action}",
            in_phase(phase)
        )
    });
    expect![[r#"
        New: Pending
        New + RestartJob: Restarting, retry 1, version 1, without a-u1, without a-work-0, without a-work-2
        New + RestartTask: Restarting, retry 1
        New + RestartPod: Restarting, retry 1
        New + RestartPartition: Restarting, retry 1
        New + AbortJob: Aborting, version 1, without a-u1, without a-work-0
        New + CompleteJob: Completing, version 1, without a-u1, without a-work-0
        New + TerminateJob: Terminating, version 1, without a-u1, without a-work-0
        Pending: stays
        Pending + RestartJob: Restarting, retry 1, version 1, without a-u1, without a-work-0, without a-work-2
        Pending + RestartTask: Restarting, retry 1
        Pending + RestartPod: Restarting, retry 1
        Pending + RestartPartition: Restarting, retry 1
        Pending + AbortJob: Aborting, version 1, without a-u1, without a-work-0
        Pending + CompleteJob: Completing, version 1, without a-u1, without a-work-0
        Pending + TerminateJob: Terminating, version 1, without a-u1, without a-work-0
        Running: stays
        Running + RestartJob: Restarting, retry 1, version 1, without a-u1, without a-work-0, without a-work-2
        Running + RestartTask: Restarting, retry 1
        Running + RestartPod: Restarting, retry 1
        Running + RestartPartition: Restarting, retry 1
        Running + AbortJob: Aborting, version 1, without a-u1, without a-work-0
        Running + CompleteJob: Completing, version 1, without a-u1, without a-work-0
        Running + TerminateJob: Terminating, version 1, without a-u1, without a-work-0
        Restarting: stays, without a-u1, without a-work-0, without a-work-2
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

/// The same for what policies ask for when a pod fails. Only the part of the job that an action is about goes.
#[test]
fn every_action_of_a_policy_in_every_phase() {
    let table = table(|phase, action| {
        // A pod of another task is restarting: this one fails in the try that follows.
        let (stands, retry) = match phase {
            "Restarting" => ("retry=1 max-retry=5 reason=RestartPod", "retry=1"),
            _ => ("", ""),
        };
        format!(
            "job {} min=4 {stands} policy=PodFailed:{action}
             task lead replicas=1
             task work replicas=3
             group Running
             pod lead-0 Running {retry}
             pod work-0 Failed partition=0 {retry}
             pod work-1 Running partition=0
             pod work-2 Running partition=1",
            in_phase(phase)
        )
    });
    expect![[r#"
        New: Pending
        Pending: Running
        Pending + RestartJob: Restarting, retry 1, version 1, without a-u1, without a-lead-0, without a-work-0, without a-work-1, without a-work-2
        Pending + RestartTask: Restarting, retry 1, without a-work-0, without a-work-1, without a-work-2
        Pending + RestartPod: Restarting, retry 1, without a-work-0
        Pending + RestartPartition: Restarting, retry 1, without a-work-0, without a-work-1
        Pending + AbortJob: Aborting, version 1, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Pending + CompleteJob: Completing, version 1, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Pending + TerminateJob: Terminating, version 1, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Running: stays
        Running + RestartJob: Restarting, retry 1, version 1, without a-u1, without a-lead-0, without a-work-0, without a-work-1, without a-work-2
        Running + RestartTask: Restarting, retry 1, without a-work-0, without a-work-1, without a-work-2
        Running + RestartPod: Restarting, retry 1, without a-work-0
        Running + RestartPartition: Restarting, retry 1, without a-work-0, without a-work-1
        Running + AbortJob: Aborting, version 1, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Running + CompleteJob: Completing, version 1, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Running + TerminateJob: Terminating, version 1, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Restarting: Pending
        Restarting + RestartJob: stays, version 1, without a-u1, without a-lead-0, without a-work-0, without a-work-1, without a-work-2
        Restarting + RestartTask: stays, retry 2, without a-work-0, without a-work-1, without a-work-2
        Restarting + RestartPod: stays, retry 2, without a-work-0
        Restarting + RestartPartition: stays, retry 2, without a-work-0, without a-work-1
        Restarting + AbortJob: Aborting, version 1, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Restarting + CompleteJob: Completing, version 1, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Restarting + TerminateJob: Terminating, version 1, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Aborting: stays, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Aborted: stays, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Completing: stays, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Completed: stays, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Terminating: stays, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Terminated: stays, without a-u1, without a-lead-0, without a-work-1, without a-work-2
        Failed: stays, without a-u1, without a-lead-0, without a-work-1, without a-work-2
    "#]].assert_eq(&table);
}

/// Where each phase can lead at all: by itself, over many states of two pods, and by every action.
#[test]
fn the_phases_form_this_graph() {
    const PODS: [&str; 6] = ["", "Pending", "Running", "Succeeded", "Failed", "Running going"];
    let pod = |index: usize, phase: &str| match phase {
        "" => String::new(),
        phase => format!("pod work-{index} {phase}"),
    };
    let states = || {
        let pairs = PODS
            .iter()
            .enumerate()
            .flat_map(|(n, first)| PODS.iter().skip(n).map(move |second| (first, second)));
        pairs.map(|(first, second)| format!("{}\n{}", pod(0, first), pod(1, second)))
    };
    let commands = || ACTIONS.iter().map(|action| format!("pod work-0 Running\n command {action}"));
    let mut leads_to: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for phase in PHASES {
        for (rest, retry) in states().chain(commands()).flat_map(|rest| [(rest.clone(), 1), (rest, 3)]) {
            let next = outcome(&format!(
                "job {} min=2 retry={retry} max-retry=3
                 task work replicas=2
                 group Running
                 {rest}",
                in_phase(phase)
            ));
            let next = next.split(',').next().unwrap_or_default().to_owned();
            leads_to.entry(told(phase)).or_default().insert(next);
        }
    }
    let mut graph = String::new();
    for phase in PHASES.map(told) {
        let next: Vec<&str> =
            leads_to[phase].iter().map(String::as_str).filter(|next| *next != "stays").collect();
        writeln!(graph, "{phase} -> {}", next.join(", ")).unwrap();
    }
    expect![[r#"
        New -> Aborting, Completing, Pending, Restarting, Terminating
        Pending -> Aborting, Completing, Restarting, Running, Terminating
        Running -> Aborting, Completed, Completing, Failed, Pending, Restarting, Terminating
        Restarting -> Aborting, Completing, Failed, Pending, Terminating
        Aborting -> Aborted, Restarting
        Aborted -> Restarting
        Completing -> Completed
        Completed -> 
        Terminating -> Terminated
        Terminated -> 
        Failed -> 
    "#]]
    .assert_eq(&graph);
}

#[test]
fn a_phase_that_a_later_version_invented_is_left_alone() {
    let plan = fixture::plan("job phase=Dreaming min=1\n task work\n group Running\n pod work-0 Running");
    expect![[r#"
        note Warning UnknownPhase: the job's phase Dreaming is not known to this version
    "#]]
    .assert_eq(&plan.to_string());
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
    let rows: [(&str, &str, &[&str], &str); 6] = [
        ("min=2", "replicas=2", &["Running", "Pending"], "stays"),
        ("min=2", "replicas=2", &["Running", "Running"], "Running"),
        ("min=2", "replicas=2", &["Succeeded", "Running"], "Running"),
        ("min=2", "replicas=2", &["Failed", "Failed"], "Running"),
        // A minimum that is not said is all pods.
        ("min=0", "replicas=2", &["Running"], "stays"),
        ("min=0", "replicas=0", &[], "Running"),
    ];
    for (job, task, pods, expected) in rows {
        let job = format!("phase=Pending {job}");
        assert_eq!(by_itself(&job, task, pods), expected, "{job} {task} {pods:?}");
    }
}

#[test]
fn a_running_job_ends_when_all_its_pods_have() {
    const GONE: &str = ", without a-u1";
    let rows: [(&str, &str, &[&str], &str); 17] = [
        // Scaled to nothing, it stays, whatever it had done before.
        ("min=0", "replicas=0", &[], "stays"),
        ("min=0 min-success=1", "replicas=0", &["Succeeded"], "stays, without a-work-0"),
        // minSuccess goes before everything else, and takes the rest with it.
        ("min=2 min-success=1", "replicas=2", &["Succeeded", "Failed"], "Completed"),
        ("min=2 min-success=2", "replicas=2", &["Succeeded", "Running"], "stays"),
        ("min=2 min-success=2", "replicas=2", &["Succeeded", "Failed"], "Failed"),
        ("min=1 min-success=2", "replicas=2 min=1", &["Succeeded", "Failed"], "Failed"),
        // All have finished: enough succeeded, or not.
        ("min=2", "replicas=2", &["Succeeded", "Succeeded"], "Completed"),
        ("min=1", "replicas=2 min=1", &["Succeeded", "Failed"], "Completed"),
        ("min=2", "replicas=2", &["Succeeded", "Failed"], "Failed"),
        ("min=1", "replicas=2 min=1", &["Failed", "Failed"], "Failed"),
        // A task's own minimum counts only if the job's covers all of them.
        ("min=2", "replicas=3 min=2", &["Succeeded", "Failed", "Failed"], "Failed"),
        ("min=1", "replicas=3 min=2", &["Succeeded", "Failed", "Failed"], "Completed"),
        // Not all have finished: too many wait again, or it goes on.
        ("min=1", "replicas=2 min=1", &["Pending", "Pending"], "Pending"),
        ("min=2", "replicas=3 min=2", &["Running", "Pending", "Pending"], "Pending"),
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
fn a_task_s_own_minimum_decides_only_where_the_job_s_covers_all_of_them() {
    let rows = [
        // Task by task: who has pods and missed its minimum fails the job.
        (
            "min=3",
            "replicas=2 min=2",
            &["lead-0 Succeeded", "work-0 Succeeded", "work-1 Failed"][..],
            "Failed",
        ),
        (
            "min=2",
            "replicas=2 min=1",
            &["lead-0 Succeeded", "work-0 Succeeded", "work-1 Failed"],
            "Completed",
        ),
        ("min=2", "replicas=2 min=1", &["lead-0 Failed", "work-0 Succeeded", "work-1 Succeeded"], "Failed"),
        // A task without pods has missed nothing.
        ("min=1", "replicas=0", &["lead-0 Succeeded"], "Completed"),
        // minSuccess is enough only if no task missed its own.
        (
            "min=2 min-success=3",
            "replicas=2 min=1",
            &["lead-0 Succeeded", "work-0 Succeeded", "work-1 Failed"],
            "Failed",
        ),
        (
            "min=1 min-success=2",
            "replicas=2 min=1",
            &["lead-0 Failed", "work-0 Succeeded", "work-1 Succeeded"],
            "Completed",
        ),
    ];
    for (job, task, pods, expected) in rows {
        let pods: Vec<String> = pods.iter().map(|pod| format!("pod {pod}")).collect();
        let world = format!(
            "job phase=Running {job}\n task lead replicas=1\n task work {task}\n group Running\n {}",
            pods.join("\n")
        );
        assert_eq!(outcome(&world), format!("{expected}, without a-u1"), "{world}");
    }
}

#[test]
fn a_restarting_job_waits_again_once_enough_names_are_free() {
    let rows: [(&str, &[&str], &str); 8] = [
        ("retry=1 min=2", &[], "Pending"),
        ("retry=2 min=2 max-retry=3", &[], "Pending"),
        // The minimum is that of the try which ends, whatever the user wants by now.
        ("retry=1 min=2 status-min=1", &["Running going"], "Pending"),
        ("retry=1 min=1 status-min=2", &["Running going"], "stays"),
        ("retry=1 min=2", &["Running going", "Running going"], "stays"),
        ("retry=1 min=1", &["Running going"], "Pending"),
        // The budget is spent: what is there no longer matters.
        ("retry=3 min=2 max-retry=3", &["Running going", "Running going"], "Failed, without a-u1"),
        ("retry=4 min=2 max-retry=3", &[], "Failed, without a-u1"),
    ];
    for (job, pods, expected) in rows {
        let job = format!("phase=Restarting version=1 {job}");
        assert_eq!(by_itself(&job, "replicas=2", pods), expected, "{job} {pods:?}");
    }
}

#[test]
fn what_has_finished_is_kept_at_the_last_try_and_when_the_job_is_done() {
    let rows = [
        (
            "phase=Running retry=1 max-retry=2 min-success=2 policy=PodFailed:RestartJob",
            "pod lead-0 Failed",
            "Restarting, retry 2, version 1, without a-u1, without a-work-0",
        ),
        (
            "phase=Restarting retry=2 max-retry=2 min-success=2 version=1 reason=RestartJob",
            "pod lead-0 Failed",
            "Failed, without a-u1, without a-work-0",
        ),
        (
            "phase=Running max-retry=1 policy=TaskCompleted:CompleteJob",
            "pod lead-0 Succeeded",
            "Completing, version 1, without a-u1, without a-work-0",
        ),
    ];
    for (job, lead, expected) in rows {
        let world = format!(
            "job min=2 {job}
             task lead replicas=1
             task work replicas=1
             group Running
             {lead}
             pod work-0 Running"
        );
        assert_eq!(outcome(&world), expected, "{world}");
    }
}

#[test]
fn a_job_that_is_being_deleted_is_left_to_the_garbage_collector_in_every_phase() {
    for phase in PHASES {
        let plan = fixture::plan(&format!(
            "job {} min=2 going plugin=svc policy=PodFailed:RestartJob
             task work replicas=3
             group Running
             pod work-0 Running
             pod work-1 Failed
             child service a",
            in_phase(phase)
        ));
        assert_eq!(plan.to_string(), "", "{phase}");
    }
}

#[test]
fn a_kill_is_told_at_once_and_its_progress_when_convenient() {
    let may_wait = |phase: &str, told: &str| {
        let plan = fixture::plan(&format!(
            "job phase={phase} version=1 retry=1 min=2 {told}
             task work replicas=2
             pod work-0 Running going
             pod work-1 Running going"
        ));
        assert!(plan.status.is_some(), "{plan}");
        plan.status_may_wait
    };
    for phase in ["Restarting", "Aborting", "Completing", "Terminating"] {
        assert!(!may_wait(phase, ""), "{phase}");
        assert!(may_wait(phase, "terminating=1"), "{phase}");
    }
    // A job that runs on makes no such fuss about a pod that somebody removes.
    assert!(may_wait("Running", ""));
}

/// What a plan's status counts, in a job of which nothing was counted before.
fn counted(world: &str) -> String {
    let plan = fixture::plan(world);
    let Some(Step::Patch { patch, .. }) = &plan.status else { panic!("no status: {plan}") };
    let count = |field: &str| Some(format!("{field} {}", patch["status"].get(field)?));
    ["terminating", "pending", "running", "succeeded", "failed"]
        .into_iter()
        .filter_map(count)
        .collect::<Vec<String>>()
        .join(", ")
}

#[test]
fn pods_that_a_plan_deletes_are_terminating_in_the_status_that_it_writes() {
    let world = |job: &str, more: &str| {
        format!(
            "job {job} min=2
             task work replicas=4
             group Running
             pod work-0 Running
             pod work-1 Succeeded
             pod work-2 Pending
             pod work-3 Running going marked
             {more}"
        )
    };
    // What has finished stays where the job ends, and goes where it begins anew.
    for phase in ["Pending", "Running"] {
        let counted = |action: &str| counted(&world(&format!("phase={phase}"), &format!("command {action}")));
        for action in ["AbortJob", "CompleteJob", "TerminateJob"] {
            assert_eq!(counted(action), "terminating 3, succeeded 1", "{phase} {action}");
        }
        assert_eq!(counted("RestartJob"), "terminating 4", "{phase}");
    }
    // The plan after that finds some of them still there, and says the same.
    for phase in ["Aborting", "Completing", "Terminating"] {
        assert_eq!(counted(&world(&format!("phase={phase} version=1"), "")), "terminating 3, succeeded 1");
    }
    let restarting = world("phase=Restarting version=1 retry=1 reason=RestartJob", "");
    assert_eq!(counted(&restarting), "terminating 4");
    // A part of the job.
    let partial =
        world("phase=Running policy=PodFailed:RestartPod", "").replace("work-0 Running", "work-0 Failed");
    assert_eq!(counted(&partial), "terminating 2, pending 1, succeeded 1");
    let partial = partial.replace("RestartPod", "RestartTask");
    assert_eq!(counted(&partial), "terminating 4");
    // A job that ends by itself shows by which counts.
    let ended = world("phase=Running min-success=1", "");
    assert_eq!(counted(&ended), "terminating 1, pending 1, running 1, succeeded 1");
    // A smaller job.
    let smaller = world("phase=Running", "").replace("replicas=4", "replicas=2");
    assert_eq!(counted(&smaller), "terminating 2, running 1, succeeded 1");
}

#[test]
fn a_job_that_is_ended_has_ended_when_nothing_of_it_is_left_but_pods_of_lost_nodes() {
    for (from, to) in [("Aborting", "Aborted"), ("Completing", "Completed"), ("Terminating", "Terminated")] {
        let job = format!("phase={from} version=1 min=1");
        let rows: [(&[&str], &str); 6] = [
            (&["Running going"], "stays, without a-u1"),
            (&["Running"], "stays, without a-u1, without a-work-0"),
            (&["Unknown going"], "stays, without a-u1"),
            (&["Unknown"], &format!("{to}, without a-u1, without a-work-0")),
            (&["Unknown", "Running going"], "stays, without a-u1, without a-work-0"),
            (&["Succeeded", "Failed"], &format!("{to}, without a-u1")),
        ];
        for (pods, expected) in rows {
            assert_eq!(by_itself(&job, "replicas=2", pods), expected, "{from} {pods:?}");
        }
    }
}
