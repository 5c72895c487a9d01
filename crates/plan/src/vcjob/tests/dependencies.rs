//! Tasks that wait for others: when they start, and when they never will.

use krafla_api::Kind;
use krafla_cluster::Step;

use super::fixture;

/// The pods that a plan makes.
fn made(world: &str) -> Vec<String> {
    let plan = fixture::plan(world);
    let created = plan.steps.iter().filter_map(|step| match step {
        Step::Create { kind: Kind::Pod, object } => object["metadata"]["name"].as_str().map(str::to_owned),
        _ => None,
    });
    created.collect()
}

#[test]
fn a_task_starts_when_the_one_before_it_has_its_minimum_of_ready_pods() {
    let rows: [(&str, &str, &[&str], bool); 9] = [
        ("", "min=2", &["Succeeded", "Succeeded"], true),
        ("", "min=2", &["Running", "Running"], true),
        ("", "min=2", &["Running", "Running unready"], false),
        ("", "min=2", &["Running", "Pending"], false),
        ("", "min=2", &["Succeeded", "Failed"], false),
        ("", "min=2", &["Running", "Running going"], false),
        ("", "min=1", &["Running", "Pending"], true),
        // A resumed job keeps what had succeeded before it was suspended.
        ("version=2", "min=2", &["Succeeded version=0", "Succeeded version=0"], true),
        ("version=2", "min=2", &["Succeeded version=0", "Running unready version=2"], false),
    ];
    for (job, lead, pods, is_started) in rows {
        let world = format!(
            "job phase=Running min=1 {job}
             task lead replicas=2 {lead}
             task work replicas=1 after=lead
             group Running
             pod lead-0 {}
             pod lead-1 {}",
            pods[0], pods[1]
        );
        assert_eq!(made(&world) == ["a-work-0"], is_started, "{world}");
    }
}

#[test]
fn a_task_that_succeeded_is_ready_though_somebody_removed_its_pods() {
    let world = "job phase=Running min=1 counted=lead:Succeeded*1
                 task lead replicas=1
                 task work replicas=1 after=lead
                 group Running";
    assert_eq!(made(world), ["a-work-0"]);
}

#[test]
fn what_is_waited_for_is_made_while_the_others_wait() {
    let world = "job phase=Pending min=3
                 task work replicas=2 after=lead
                 task lead replicas=1
                 group Inqueue";
    assert_eq!(made(world), ["a-lead-0"]);
}

#[test]
fn one_of_several_is_enough_only_for_a_task_that_says_any() {
    let rows = [
        ("after=lead after=side", false),
        ("after=lead after=side iteration=all", false),
        ("after=lead after=side iteration=some", false),
        ("after=lead after=side iteration=any", true),
        ("after=side iteration=any", false),
        ("after=lead iteration=any", true),
    ];
    for (after, is_started) in rows {
        let world = format!(
            "job phase=Running min=1
             task lead replicas=1
             task side replicas=1
             task work replicas=1 {after}
             group Running
             pod lead-0 Running
             pod side-0 Pending"
        );
        assert_eq!(made(&world) == ["a-work-0"], is_started, "{after}");
    }
}

#[test]
fn a_job_fails_once_its_waiting_tasks_can_never_start() {
    let phase = |job: &str, pods: &str| {
        let plan = fixture::plan(&format!(
            "job phase=Running min=1 {job}
             task lead replicas=2 min=1
             task work replicas=1 after=lead
             group Running
             {pods}"
        ));
        match &plan.status {
            Some(Step::Patch { patch, .. }) => {
                patch.pointer("/status/state/phase").and_then(|phase| phase.as_str()).map(str::to_owned)
            }
            _ => None,
        }
    };
    assert_eq!(phase("", "pod lead-0 Failed\n pod lead-1 Running unready"), None);
    assert_eq!(phase("", "pod lead-0 Failed\n pod lead-1 Failed").as_deref(), Some("Failed"));
    // They failed before the job was suspended and resumed, and were kept.
    let kept = "pod lead-0 Failed version=0\n pod lead-1 Failed version=0";
    assert_eq!(phase("version=2", kept).as_deref(), Some("Failed"));
}
