//! The cases by which Volcano tests its JobFlow controller, as tables: which phase follows from which, which flows a change
//! concerns, and whose job is whose.

use std::fmt::Write;

use expect_test::expect;
use krafla_api::{Key, Kind};
use krafla_cluster::Step;

use super::fixture;
use crate::jobflow::JobFlowController;
use crate::{Controller, Plan};

/// The phase that a plan writes; `-` if it leaves the phase as it is.
fn phase_written(plan: &Plan) -> String {
    let written = match &plan.status {
        Some(Step::Patch { patch, .. }) => patch["status"]["state"]["phase"].as_str(),
        _ => None,
    };
    written.unwrap_or("-").to_owned()
}

/// Every phase of a job that decides something about its flow.
const PHASES: [&str; 8] =
    ["Pending", "Running", "Restarting", "Aborted", "Completing", "Completed", "Failed", "Terminated"];

/// The phase that is written for a flow whose only step is in this phase, and for one that has completed another step too.
fn followed(before: &str, phase: &str) -> (String, String) {
    let flow = if before == "New" { "flow".to_owned() } else { format!("flow phase={before}") };
    let of = |steps: &str| phase_written(&fixture::plan(&format!("{flow}\n {steps}")));
    let alone = of(&format!("step x\n job f-x {phase}"));
    (alone, of(&format!("step x\n step y\n job f-x {phase}\n job f-y Completed")))
}

#[test]
fn the_phase_of_a_flow_follows_from_its_jobs() {
    let mut table = String::new();
    for before in ["New", "Pending", "Running"] {
        for phase in PHASES {
            let (alone, beside) = followed(before, phase);
            writeln!(table, "{before}, {phase}: {alone}, beside a completed one: {beside}").unwrap();
        }
    }
    expect![[r#"
        New, Pending: Pending, beside a completed one: Running
        New, Running: Running, beside a completed one: Running
        New, Restarting: Pending, beside a completed one: Running
        New, Aborted: Pending, beside a completed one: Running
        New, Completing: Pending, beside a completed one: Running
        New, Completed: Succeed, beside a completed one: Succeed
        New, Failed: Failed, beside a completed one: Failed
        New, Terminated: Failed, beside a completed one: Failed
        Pending, Pending: -, beside a completed one: Running
        Pending, Running: Running, beside a completed one: Running
        Pending, Restarting: -, beside a completed one: Running
        Pending, Aborted: -, beside a completed one: Running
        Pending, Completing: -, beside a completed one: Running
        Pending, Completed: Succeed, beside a completed one: Succeed
        Pending, Failed: Failed, beside a completed one: Failed
        Pending, Terminated: Failed, beside a completed one: Failed
        Running, Pending: -, beside a completed one: -
        Running, Running: -, beside a completed one: -
        Running, Restarting: -, beside a completed one: -
        Running, Aborted: -, beside a completed one: -
        Running, Completing: -, beside a completed one: -
        Running, Completed: Succeed, beside a completed one: Succeed
        Running, Failed: Failed, beside a completed one: Failed
        Running, Terminated: Failed, beside a completed one: Failed
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_flow_that_has_ended_stays_as_it_ended() {
    for before in ["Succeed", "Failed", "Terminating"] {
        for phase in PHASES {
            assert_eq!(followed(before, phase), ("-".to_owned(), "-".to_owned()), "{before}, {phase}");
        }
    }
}

#[test]
fn a_phase_of_a_later_version_is_said_and_left_alone() {
    expect![[r#"
        note Warning SyncJobFlow: the flow's phase Paused is not known to this version
    "#]]
    .assert_eq(&fixture::plan("flow phase=Paused\n step x").to_string());
}

#[test]
fn two_flows_that_share_a_template_see_only_their_own_jobs() {
    let plan = fixture::plan("flow phase=Pending\n step x\n foreign g-x Completed");
    expect![[r#"
        create job f-x
        note Normal Created: job f-x is made from JobTemplate x
    "#]]
    .assert_eq(&plan.to_string());
}

#[test]
fn a_template_concerns_the_unfinished_flows_that_name_it() {
    let concerned = |text: &str| {
        let (objects, _) = fixture::parse(text);
        let template = objects.get(Kind::JobTemplate, &Key::new("ns", "x")).unwrap();
        JobFlowController.keys(template, &objects)
    };
    assert_eq!(concerned("flow phase=Pending\n step x"), [Key::new("ns", "f")]);
    for finished in ["Succeed", "Failed"] {
        assert_eq!(concerned(&format!("flow phase={finished}\n step x")), [], "{finished}");
    }
}

#[test]
fn a_job_concerns_the_flow_that_owns_it_and_the_flow_that_wants_its_name() {
    let concerned = |text: &str, job: &str| {
        let (objects, _) = fixture::parse(text);
        JobFlowController.keys(objects.get(Kind::VcJob, &Key::new("ns", job)).unwrap(), &objects)
    };
    let mut keys = concerned("flow\n step x\n job f-x Running", "f-x");
    keys.dedup();
    assert_eq!(keys, [Key::new("ns", "f")]);
    let (objects, _) = fixture::parse("flow\n step x");
    let flow = objects.get(Kind::JobFlow, &Key::new("ns", "f")).unwrap();
    assert_eq!(JobFlowController.keys(flow, &objects), [Key::new("ns", "f")], "and a flow concerns itself");
    // Its owner is told too, whoever that is.
    assert!(concerned("flow\n step x\n foreign f-x Running", "f-x").contains(&Key::new("ns", "f")));
    assert!(!concerned("flow\n step x\n foreign g-x Running", "g-x").contains(&Key::new("ns", "f")));
}
