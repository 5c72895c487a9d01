//! Faults planted in the program, each of which the simulator must find: what it does not find, it does not promise.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use futures_util::future::{BoxFuture, FutureExt};
use krafla_api::{Key, Kind};
use krafla_cluster::{Client, ClientError, Step, Written};
use krafla_plan::{Controller, Object, Objects, Plan, Snapshot};
use krafla_sim::driver::{cases_of, exhaustive};
use krafla_sim::{Case, Finding, Program, play, scenario};
use serde_json::{Value, json};

use crate::hooked::{Hooked, program_with};

/// How much processor time the simulator may take to find a mutant.
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything of a controller that a mutant leaves alone: all but its keys and its plan.
macro_rules! forward_controller {
    ($sane:tt) => {
        fn name(&self) -> &'static str {
            self.$sane.name()
        }

        fn queue(&self) -> &'static str {
            self.$sane.queue()
        }

        fn event_source(&self) -> &'static str {
            self.$sane.event_source()
        }

        fn refusal(&self, reason: &str, why: &str) -> String {
            self.$sane.refusal(reason, why)
        }

        fn root(&self) -> krafla_api::Kind {
            self.$sane.root()
        }

        fn watches(&self) -> &'static [krafla_api::Kind] {
            self.$sane.watches()
        }

        fn recorded(&self) -> &'static [krafla_api::Kind] {
            self.$sane.recorded()
        }

        fn n_read(&self, root: &krafla_api::Key, objects: &krafla_plan::Objects) -> usize {
            self.$sane.n_read(root, objects)
        }

        fn measure(&self, stored: &krafla_plan::Stored<'_>) -> Vec<krafla_plan::Measure> {
            self.$sane.measure(stored)
        }

        fn measure_attempt(&self, attempt: &krafla_plan::Attempt<'_>) -> Vec<krafla_plan::Measure> {
            self.$sane.measure_attempt(attempt)
        }
    };
}
pub(crate) use forward_controller;

/// A controller whose plans have been tampered with.
struct Mutant {
    sane: Box<dyn Controller>,
    tamper: fn(&Snapshot<'_>, Plan) -> Plan,
}

impl Controller for Mutant {
    forward_controller!(sane);

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        self.sane.keys(changed, objects)
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        (self.tamper)(snapshot, self.sane.plan(snapshot))
    }
}

#[test]
fn a_mutant_differs_from_its_controller_in_its_plans_alone() {
    for (sane, mutant) in krafla_plan::controllers().iter().zip(tampered(|_, plan| plan)) {
        assert_eq!((mutant.name(), mutant.queue()), (sane.name(), sane.queue()));
        assert_eq!((mutant.root(), mutant.watches()), (sane.root(), sane.watches()));
        assert_eq!(mutant.recorded(), sane.recorded(), "{}", sane.name());
        assert_eq!(mutant.event_source(), sane.event_source());
        assert_eq!(mutant.refusal("FailedCreate", "why"), sane.refusal("FailedCreate", "why"));
    }
}

pub(crate) fn tampered(tamper: fn(&Snapshot<'_>, Plan) -> Plan) -> Vec<Box<dyn Controller>> {
    let controllers = krafla_plan::controllers().into_iter();
    controllers.map(|sane| Box::new(Mutant { sane, tamper }) as Box<dyn Controller>).collect()
}

/// The first finding in the cases of a scenario, in the order in which they are played.
fn first_finding(scenario: &str, program: &Program) -> Option<Finding> {
    let cases = cases_of(scenario::named(scenario).unwrap(), program);
    first_finding_in(&cases, program)
}

/// The first finding in these cases. It must come soon, counted in the time that this thread was given: how much else the
/// machine has to do is not the simulator's fault.
pub(crate) fn first_finding_in(cases: &[Case], program: &Program) -> Option<Finding> {
    let before = processor_time();
    let found = cases.iter().find_map(|case| {
        let finding = play(case, program, false).findings.into_iter().next()?;
        Some((case, finding))
    });
    let took = processor_time() - before;
    let (case, finding) = found?;
    println!("{} found in {:.1} s by {case}", finding.rule, took.as_secs_f64());
    assert!(took < PATIENCE, "{finding} was found in {case}, but only after {took:?}");
    Some(finding)
}

/// For how long this thread has been running.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

pub(crate) fn rule_broken_by(scenario: &str, controllers: fn() -> Vec<Box<dyn Controller>>) -> String {
    let finding = first_finding(scenario, &Program::with_controllers(controllers));
    finding.map_or_else(|| "nothing".to_owned(), |finding| finding.rule)
}

/// The new status in a plan.
pub(crate) fn status(plan: &mut Plan) -> Option<&mut Value> {
    match plan.status.as_mut()? {
        Step::Patch { patch, .. } => patch.get_mut("status"),
        _ => None,
    }
}

fn is_pod_deletion(step: &Step) -> bool {
    is_deletion(step, Kind::Pod)
}

pub(crate) fn is_deletion(step: &Step, kind: Kind) -> bool {
    matches!(step, Step::Delete { .. }) && step.kind() == kind
}

#[test]
fn a_restart_that_is_not_charged_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if let Some(Value::Object(status)) = status(&mut plan) {
                status.remove("retryCount");
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("restart", controllers), "P3");
}

#[test]
fn pods_that_go_without_being_counted_are_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if let Some(Value::Object(status)) = status(&mut plan) {
                status.remove("terminating");
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("restart", controllers), "P5");
}

#[test]
fn a_restart_that_is_charged_twice_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if let Some(count) = status(&mut plan).and_then(|status| status.get_mut("retryCount")) {
                *count = json!(count.as_i64().unwrap_or(0) + 1);
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("restart", controllers), "P3");
}

#[test]
fn volcano_b1_a_kill_before_the_charge_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if plan.steps.iter().any(is_pod_deletion) {
                plan.status = None;
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("restart", controllers), "guard");
}

#[test]
fn a_pod_for_a_finished_job_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let is_finished = snapshot
                .root()
                .and_then(|root| root.as_vcjob())
                .is_some_and(|job| job.status.state.phase.is_finished());
            if is_finished && plan.is_quiet() {
                let object = json!({ "metadata": { "name": "late", "namespace": "default", "ownerReferences": [{
                    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "straight",
                    "uid": snapshot.root().unwrap().meta.uid, "controller": true,
                }] } });
                plan.steps.push(Step::Create { kind: Kind::Pod, object });
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("straight", controllers), "guard");
}

#[test]
fn a_trigger_that_is_never_used_up_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if let Some(Value::Object(status)) = status(&mut plan) {
                status.remove("version");
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("restart", controllers), "nothing");
}

#[test]
fn a_write_at_rest_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            if let Some(root) = snapshot.root().filter(|_| plan.is_quiet()) {
                plan.steps.push(Step::Patch {
                    kind: root.kind,
                    key: root.meta.key.clone(),
                    uid: root.meta.uid.clone(),
                    revision: None,
                    of_status: false,
                    patch: json!({ "metadata": { "annotations": { "seen": root.meta.revision.to_string() } } }),
                });
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("waiting", controllers), "P10");
}

#[test]
fn a_decision_that_panics_is_found() {
    let controllers = || {
        tampered(|_, plan| {
            assert!(!plan.steps.iter().any(is_pod_deletion), "this panic is planted");
            plan
        })
    };
    assert_eq!(rule_broken_by("restart", controllers), "panic");
}

/// Plans without the writes that `is_left_out` names.
pub(crate) fn without(is_left_out: fn(&Step) -> bool, mut plan: Plan) -> Plan {
    plan.steps.retain(|step| !is_left_out(step));
    plan
}

#[test]
fn volcano_b5_a_counter_that_is_not_kept_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if let Some(Value::Object(status)) = status(&mut plan) {
                status.remove("failed");
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("failed", controllers), "P5");
}

#[test]
fn volcano_b15_a_clock_that_is_forgotten_is_found() {
    let controllers = || tampered(|_, plan| Plan { wake_at: None, ..plan });
    assert_eq!(rule_broken_by("patient", controllers), "P8");
}

#[test]
fn volcano_b24_what_plugins_leave_behind_is_found() {
    let controllers = || tampered(|_, plan| without(|step| is_deletion(step, Kind::Service), plan));
    assert_ne!(rule_broken_by("queued", controllers), "nothing");
}

#[test]
fn volcano_b28_a_command_that_is_never_taken_away_is_found() {
    let controllers = || tampered(|_, plan| without(|step| is_deletion(step, Kind::Command), plan));
    assert_ne!(rule_broken_by("suspended", controllers), "nothing");
}

#[test]
fn volcano_b38_a_podgroup_that_outlives_its_try_is_found() {
    let controllers = || tampered(|_, plan| without(|step| is_deletion(step, Kind::PodGroup), plan));
    assert_ne!(rule_broken_by("straight", controllers), "nothing");
}

/// Plans in which every new pod has been changed.
pub(crate) fn with_new_pods(mut plan: Plan, change: fn(&mut Value)) -> Plan {
    for step in &mut plan.steps {
        if let Step::Create { kind: Kind::Pod, object } = step {
            change(object);
        }
    }
    plan
}

#[test]
fn volcano_b40_a_pod_that_nobody_owns_is_found() {
    let controllers = || {
        tampered(|_, plan| {
            with_new_pods(plan, |pod| {
                drop(pod["metadata"].as_object_mut().unwrap().remove("ownerReferences"))
            })
        })
    };
    assert_eq!(rule_broken_by("straight", controllers), "guard");
}

#[test]
fn volcano_b50_a_pod_of_the_last_version_is_found() {
    let controllers = || {
        tampered(|_, plan| {
            with_new_pods(plan, |pod| {
                pod["metadata"]["annotations"]["volcano.sh/job-version"] = "0".into();
            })
        })
    };
    assert_ne!(rule_broken_by("restart", controllers), "nothing");
}

#[test]
fn two_pods_for_one_index_are_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            let twins: Vec<Step> = plan
                .steps
                .iter()
                .filter(|step| matches!(step, Step::Create { kind: Kind::Pod, .. }))
                .cloned()
                .collect();
            let twins = with_new_pods(Plan { steps: twins, ..Plan::nothing() }, |pod| {
                let name = format!("{}-twin", pod["metadata"]["name"].as_str().unwrap());
                pod["metadata"]["name"] = name.into();
            });
            plan.steps.extend(twins.steps);
            plan
        })
    };
    assert_eq!(rule_broken_by("straight", controllers), "P1");
}

/// Does not say at which revision it wrote, so that nobody can wait for it.
fn forgetful<'a>(client: &'a dyn Client, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
    async move { Ok(Written { revision: 0, ..client.write(step).await? }) }.boxed()
}

#[test]
fn a_process_that_does_not_wait_for_its_own_writes_is_found() {
    let program = program_with(|inner| Arc::new(Hooked { inner, write: forgetful }));
    assert_eq!(first_finding("restart", &program).map(|finding| finding.rule).as_deref(), Some("P9"));
}

#[test]
fn what_ships_breaks_nothing_where_the_mutants_do() {
    assert_eq!(first_finding("waiting", &Program::as_shipped()), None);
}

#[test]
fn a_failure_is_told_with_the_command_that_replays_it() {
    let controllers = || {
        tampered(|_, mut plan| {
            plan.steps.retain(|step| step.kind() != Kind::PodGroup);
            plan
        })
    };
    let scenarios = [scenario::named("waiting").unwrap()];
    let summary = exhaustive(&scenarios, &Program::with_controllers(controllers), &|_, _| {});
    let told: Vec<String> = summary.failures.iter().take(1).map(ToString::to_string).collect();
    expect![[r#"
        violation in waiting
          P8 after 0.000 s: the end is not the one without faults
              missing: podgroup waiting-<uid> Pending
          krafla-sim replay waiting"#]]
    .assert_eq(&told.join("\n"));
}
