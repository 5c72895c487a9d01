//! Every property has a check, and a mutant that it finds.
//!
//! ```text
//!   P1   mutants::two_pods_for_one_index_are_found
//!   P2   mutants::a_pod_for_a_finished_job_is_found, by the guard
//!   P3   mutants::a_restart_that_is_not_charged_is_found and the two after it
//!   P4   volcano_b4_own_kills_that_look_like_evictions_are_found, also by the guard
//!   P5   mutants::volcano_b5_a_counter_that_is_not_kept_is_found; a_pod_that_is_counted_twice_is_found, by the guard
//!        upstream::volcano_b13_a_pod_that_ends_well_because_it_is_asked_to_go_and_counts_as_done_is_found
//!   P6   a_client_that_writes_by_name_is_found
//!   P7   a_pod_before_its_podgroup_is_found and the three after it, by the guard
//!   P8   mutants::volcano_b15_a_clock_that_is_forgotten_is_found
//!   P9   mutants::a_process_that_does_not_wait_for_its_own_writes_is_found
//!   P10  mutants::a_write_at_rest_is_found
//!   P11  a_job_that_never_says_that_it_runs_is_found
//!   P12  a_second_podgroup_is_found
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use krafla_api::{Kind, labels};
use krafla_cluster::{Client, ClientError, Step, Written};
use krafla_plan::{Controller, Object, Plan};
use krafla_sim::driver::cases_of;
use krafla_sim::{Case, Order, Program, play, scenario};
use serde_json::{Value, json};

use crate::hooked::{Hooked, program_with};
use crate::mutants::{first_finding_in, status, tampered, without};

/// The rules that a scenario breaks when no fault strikes.
fn rules_broken_in_calm(scenario: &str, controllers: fn() -> Vec<Box<dyn Controller>>) -> BTreeSet<String> {
    let case = Case::calm(scenario::named(scenario).unwrap());
    let outcome = play(&case, &Program::with_controllers(controllers), false);
    outcome.findings.into_iter().map(|finding| finding.rule).collect()
}

/// Whether a write marks a pod that is about to be removed.
fn is_mark(step: &Step) -> bool {
    let mark = format!("/metadata/annotations/{}", labels::OUT_OF_SYNC.replace('/', "~1"));
    matches!(step, Step::Patch { kind: Kind::Pod, patch, .. } if patch.pointer(&mark).is_some())
}

#[test]
fn volcano_b4_own_kills_that_look_like_evictions_are_found() {
    // A client that keeps the marks to itself, which no guard sees.
    let program = program_with(|inner| Arc::new(Hooked { inner, write: without_marks }));
    let cases = cases_of(scenario::named("partial").unwrap(), &program);
    assert_eq!(first_finding_in(&cases, &program).map(|finding| finding.rule).as_deref(), Some("P4"));
    let controllers = || tampered(|_, plan| without(is_mark, plan));
    assert!(rules_broken_in_calm("partial", controllers).contains("guard"));
}

/// Marks no pod, and says that it has.
fn without_marks<'a>(client: &'a dyn Client, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
    async move {
        let Step::Patch { kind, key, uid, .. } = step else { return client.write(step).await };
        if !is_mark(step) {
            return client.write(step).await;
        }
        let revision = Object::decode(*kind, &client.get(*kind, key).await?).meta.revision;
        Ok(Written { key: key.clone(), uid: uid.clone(), revision })
    }
    .boxed()
}

/// Writes to whoever has the name now.
fn by_name<'a>(client: &'a dyn Client, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
    async move {
        let mut step = step.clone();
        if let Step::Patch { kind, key, uid, .. } | Step::Delete { kind, key, uid, .. } = &mut step
            && let Ok(object) = client.get(*kind, key).await
        {
            *uid = Object::decode(*kind, &object).meta.uid;
        }
        client.write(&step).await
    }
    .boxed()
}

#[test]
fn a_client_that_writes_by_name_is_found() {
    let program = program_with(|inner| Arc::new(Hooked { inner, write: by_name }));
    // In some order of events, a job is made again under its old name while a plan for the old one is carried out.
    let again = scenario::named("again").unwrap();
    let in_order = |seed| Case { order: Order::Shuffled(seed), ..Case::calm(again) };
    let cases: Vec<Case> = (0..300).map(in_order).collect();
    assert_eq!(first_finding_in(&cases, &program).map(|finding| finding.rule).as_deref(), Some("P6"));
}

#[test]
fn a_pod_before_its_podgroup_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let group = plan.steps.iter().position(|step| step.kind() == Kind::PodGroup);
            if let (Some(_), Some(root)) = (group, snapshot.root()) {
                let owner = json!({
                    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": root.meta.key.name,
                    "uid": root.meta.uid, "controller": true,
                });
                let metadata = json!({ "name": "early", "namespace": "default", "ownerReferences": [owner] });
                plan.steps.push(Step::Create { kind: Kind::Pod, object: json!({ "metadata": metadata }) });
            }
            plan
        })
    };
    assert!(rules_broken_in_calm("straight", controllers).contains("guard"));
}

#[test]
fn a_pod_before_what_its_task_depends_on_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            // What is made for the server is made for a worker.
            for step in &mut plan.steps {
                if let Step::Create { kind: Kind::Pod, object } = step {
                    object["metadata"]["annotations"][labels::TASK_SPEC] = "worker".into();
                }
            }
            plan
        })
    };
    assert!(rules_broken_in_calm("depends", controllers).contains("guard"));
}

#[test]
fn a_podgroup_with_another_minimum_than_its_job_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            for step in &mut plan.steps {
                if let Step::Create { kind: Kind::PodGroup, object } = step {
                    object["spec"]["minMember"] = 1.into();
                }
            }
            plan
        })
    };
    assert!(rules_broken_in_calm("straight", controllers).contains("guard"));
}

#[test]
fn a_podgroup_with_another_minimum_than_a_task_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            for step in &mut plan.steps {
                if let Step::Create { kind: Kind::PodGroup, object } = step
                    && let Some(Value::Object(minimums)) = object.pointer_mut("/spec/minTaskMember")
                {
                    minimums.values_mut().for_each(|minimum| *minimum = 0.into());
                }
            }
            plan
        })
    };
    assert!(rules_broken_in_calm("straight", controllers).contains("guard"));
}

#[test]
fn a_pod_that_is_counted_twice_is_found() {
    let running = rules_broken_in_calm("straight", || tampered(|_, plan| with_one_more("running", plan)));
    let succeeded = rules_broken_in_calm("straight", || tampered(|_, plan| with_one_more("succeeded", plan)));
    let failed = rules_broken_in_calm("failed", || tampered(|_, plan| with_one_more("failed", plan)));
    for broken in [running, succeeded, failed] {
        assert!(broken.contains("guard"), "{broken:?}");
    }
}

/// One more than there are, wherever any are counted.
fn with_one_more(counter: &str, mut plan: Plan) -> Plan {
    if let Some(count) = status(&mut plan).and_then(|status| status.get_mut(counter))
        && let Some(n) = count.as_i64()
    {
        *count = (n + 1).into();
    }
    plan
}

#[test]
fn a_job_that_never_says_that_it_runs_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if let Some(Value::Object(status)) = status(&mut plan)
                && status.get("state").is_some_and(|state| state["phase"] == "Running")
            {
                status.remove("state");
            }
            plan
        })
    };
    assert!(rules_broken_in_calm("replaced", controllers).contains("P11"));
}

#[test]
fn a_second_podgroup_is_found() {
    fn with_spare(mut plan: Plan) -> Plan {
        let is_new = |step: &&Step| matches!(step, Step::Create { kind: Kind::PodGroup, .. });
        if let Some(Step::Create { kind, object }) = plan.steps.iter().find(is_new).cloned() {
            let mut object = object;
            object["metadata"]["name"] = "spare".into();
            plan.steps.push(Step::Create { kind, object });
        }
        plan
    }
    let controllers = || tampered(|_, plan| with_spare(plan));
    assert!(rules_broken_in_calm("waiting", controllers).contains("P12"));
}
