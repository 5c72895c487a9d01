//! When a target that has not completed counts as ready because its pods answer.

use expect_test::expect;
use krafla_api::{Key, Kind};

use super::fixture;
use crate::jobflow::JobFlowController;
use crate::{Controller, Plan};

/// Two pods of the target run; the step asks both in two ways.
const ASKING: &str = "flow phase=Running
    step x
    step y after=x tcp=server:80 get=server:8080/healthz
    job f-x Running
    pod f-x server Running 10.0.0.1
    pod f-x server Running 10.0.0.2";

/// The plan without its status, which other tables show.
fn plan(text: &str) -> String {
    Plan { status: None, ..fixture::plan(text) }.to_string()
}

#[test]
fn all_pods_of_the_task_are_asked_once_all_of_them_run() {
    expect![[r#"
        hangs on 10.0.0.1:80
        hangs on 10.0.0.1:8080/healthz
        hangs on 10.0.0.2:80
        hangs on 10.0.0.2:8080/healthz
    "#]]
    .assert_eq(&plan(ASKING));
    for missing in ["pod f-x server Pending 10.0.0.2", "pod f-x other Running 10.0.0.2"] {
        let one_runs = ASKING.replace("pod f-x server Running 10.0.0.2", missing);
        assert_eq!(plan(&one_runs), "", "{missing}");
    }
}

#[test]
fn the_step_is_made_when_all_have_given_a_good_answer() {
    let one = "answered 10.0.0.1:80 good\n answered 10.0.0.1:8080/healthz good\n answered 10.0.0.2:80 good";
    expect![[r#"
        hangs on 10.0.0.1:80
        hangs on 10.0.0.1:8080/healthz
        hangs on 10.0.0.2:80
        hangs on 10.0.0.2:8080/healthz
    "#]]
    .assert_eq(&plan(&format!("{ASKING}\n {one}")));
    expect![[r#"
        create job f-y
        hangs on 10.0.0.1:80
        hangs on 10.0.0.1:8080/healthz
        hangs on 10.0.0.2:80
        hangs on 10.0.0.2:8080/healthz
        note Normal Created: job f-y is made from JobTemplate y
    "#]]
    .assert_eq(&plan(&format!("{ASKING}\n {one}\n answered 10.0.0.2:8080/healthz good")));
}

#[test]
fn a_pod_that_does_not_answer_is_named_and_asked_again() {
    expect![[r#"
        wake at 2027-01-15T08:01:41.5Z
        hangs on 10.0.0.1:80
        hangs on 10.0.0.1:8080/healthz
        hangs on 10.0.0.2:80
        hangs on 10.0.0.2:8080/healthz
        note Normal WaitingForProbe: flow y waits until job f-x answers: 10.0.0.2:80: refused
    "#]]
    .assert_eq(&plan(&format!("{ASKING}\n answered 10.0.0.2:80 refused")));
}

#[test]
fn what_is_asked_again_at_this_moment_is_not_a_reason_to_look_at_it_again() {
    let plan = fixture::plan(&format!("{ASKING}\n answered 10.0.0.2:80 old"));
    assert_eq!((plan.wake_at, plan.probes.len()), (None, 4));
}

#[test]
fn nobody_is_asked_before_the_phases_are_reached() {
    let reached = ASKING.replace("tcp=", "reached=server:Running tcp=");
    assert_eq!(plan(&reached), "");
    let reached = reached.replace("job f-x Running", "job f-x Running server:Running*2");
    assert!(plan(&reached).starts_with("hangs on 10.0.0.1:80\n"), "{}", plan(&reached));
}

#[test]
fn a_target_that_has_completed_is_asked_nothing() {
    let completed = ASKING.replace("job f-x Running", "job f-x Completed");
    expect![[r#"
        create job f-y
        note Normal Created: job f-y is made from JobTemplate y
    "#]]
    .assert_eq(&plan(&completed));
}

#[test]
fn each_of_several_targets_shows_the_signs_of_the_tasks_that_it_has() {
    let both = "flow phase=Running
        step w
        step x
        step y after=w,x tcp=worker:81 get=server:8080/ reached=worker:Running
        job f-w Running tasks=worker,idle worker:Running*2
        job f-x Running tasks=server
        pod f-w worker Running 10.0.0.3
        pod f-w worker Running 10.0.0.4
        pod f-x server Running 10.0.0.1
        pod f-x server Running 10.0.0.2";
    expect![[r#"
        hangs on 10.0.0.3:81
        hangs on 10.0.0.4:81
    "#]]
    .assert_eq(&plan(both));
    let answered = format!("{both}\n answered 10.0.0.3:81 good\n answered 10.0.0.4:81 good");
    expect![[r#"
        hangs on 10.0.0.1:8080/
        hangs on 10.0.0.2:8080/
        hangs on 10.0.0.3:81
        hangs on 10.0.0.4:81
    "#]]
    .assert_eq(&plan(&answered));
    let all =
        format!("{answered}\n answered 10.0.0.1:8080/ good\n answered 10.0.0.2:8080/ good\n no-template w");
    assert!(plan(&all).starts_with("create job f-y\n"), "{}", plan(&all));
    // One that has none of the tasks must complete.
    let without = all.replace("tasks=server", "tasks=other").replace("get=server:8080/", "");
    assert!(!plan(&without).contains("create"), "{}", plan(&without));
    let completed = without.replace("job f-x Running", "job f-x Completed");
    assert!(plan(&completed).starts_with("create job f-y\n"), "{}", plan(&completed));
    // As long as one is not there, nobody knows what tasks it will have.
    let early = both.replace("job f-x Running tasks=server", "no-template x");
    assert!(!plan(&early).contains("correct dependsOn.probe"), "{}", plan(&early));
}

#[test]
fn a_phase_of_no_named_task_must_be_reached_by_all() {
    let reached = |counts: &str| {
        let text = format!(
            "flow phase=Running\n step x\n step y after=x reached=:Running\n job f-x Running tasks=a,b {counts}"
        );
        plan(&text).contains("create job f-y")
    };
    assert!(!reached("a:Running*2"));
    assert!(!reached("a:Running*2 b:Running*1"));
    assert!(reached("a:Running*2 b:Running*2"));
}

#[test]
fn a_probe_that_can_never_be_answered_is_named() {
    for (probe, why) in [
        ("tcp=nobody:80", "none of them has a task \"nobody\""),
        ("reached=nobody:Running", "none of them has a task \"nobody\""),
        ("reached=server:Runing", "pods have no phase \"Runing\""),
        ("tcp=server:0", "nothing can listen at port 0"),
        ("get=server:65536/", "nothing can listen at port 65536"),
    ] {
        let flow = ASKING.replace("tcp=server:80 get=server:8080/healthz", probe);
        let said = format!(
            "note Warning SyncJobFlow: flow y waits for its targets to complete, because {why}; correct dependsOn.probe\n"
        );
        assert_eq!(plan(&flow), said);
    }
}

#[test]
fn what_one_flow_can_make_this_program_dial_is_bounded() {
    let pods: Vec<String> =
        (0..501).map(|n| format!("pod f-x server Running 10.0.{}.{}", n / 250, n % 250 + 3)).collect();
    let crowd = format!("{ASKING}\n{}", pods.join("\n"));
    expect![[r#"
        note Warning SyncJobFlow: flow y waits for job f-x to complete, because 1006 questions of one JobFlow are more than the 1000 that are asked at a time; ask fewer in dependsOn.probe
    "#]]
    .assert_eq(&plan(&crowd));
    // Steps ask together no more than one may.
    let two_steps = crowd
        .replace("get=server:8080/healthz", "")
        .replace("step x", "step x\n step z after=x tcp=server:81");
    let said = plan(&two_steps);
    assert_eq!(said.lines().filter(|line| line.starts_with("hangs on")).count(), 503);
    expect!["note Warning SyncJobFlow: flow y waits for job f-x to complete, because 1006 questions of one JobFlow are more than the 1000 that are asked at a time; ask fewer in dependsOn.probe"]
    .assert_eq(said.lines().last().unwrap());
}

#[test]
fn a_pod_concerns_the_flow_that_asks_it_and_no_other() {
    let concerned = |text: &str| {
        let (objects, _) = fixture::parse(text);
        let pod = objects.all(Kind::Pod).next().unwrap().clone();
        JobFlowController.keys(&pod, &objects)
    };
    assert_eq!(concerned(ASKING), [Key::new("ns", "f")]);
    assert_eq!(concerned(&ASKING.replace("tcp=server:80 get=server:8080/healthz", "")), []);
    assert_eq!(concerned(&ASKING.replace("phase=Running", "phase=Failed")), []);
}
