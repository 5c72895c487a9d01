//! Volcano's own faults, planted by the tags of DEVIATIONS.md: the simulator must find each within a minute. Those in
//! `mutants` and `properties` that have a tag in their names are of the same sort.

use std::sync::Arc;

use krafla_api::volcano::{JobPhase, PodGroupPhase};
use krafla_api::{Key, Kind, Time, labels};
use krafla_cluster::Step;
use krafla_plan::object::{EndOrder, PodPhase};
use krafla_plan::{Body, Controller, Departed, Object, Objects, Plan, Snapshot};
use krafla_sim::{Case, Program, TERMINATIONS, scenario};
use serde_json::{Value, json};

use crate::mutants::{
    first_finding_in, forward_controller, is_deletion, rule_broken_by, status, tampered, without,
};

/// The reason for its new state that a plan writes down.
fn reason(plan: &mut Plan) -> Option<String> {
    Some(status(plan)?.pointer("/state/reason")?.as_str()?.to_owned())
}

/// The Volcano Job that a plan is about.
fn job<'a>(snapshot: &Snapshot<'a>) -> Option<&'a Object> {
    snapshot.root().map(AsRef::as_ref).filter(|root: &&Object| root.kind == Kind::VcJob)
}

#[test]
fn volcano_b8_counters_that_go_stale_while_no_podgroup_is_admitted_are_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let is_waiting = |group: &Object| {
                let phase = &group.as_podgroup().unwrap().status.phase;
                matches!(phase, PodGroupPhase::Unset | PodGroupPhase::Pending)
            };
            let is_admitted = snapshot.children(Kind::PodGroup).any(|group| !is_waiting(group));
            if let Some(Value::Object(status)) = status(&mut plan).filter(|_| !is_admitted) {
                for counter in ["pending", "running", "terminating"] {
                    status.remove(counter);
                }
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("stopped", controllers), "P5");
}

#[test]
fn volcano_b11_a_job_that_is_ended_for_a_missing_claim_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            let is_waiting = plan.notes.iter().any(|note| note.reason == "PVCError");
            if let Some(status) = status(&mut plan).filter(|_| is_waiting) {
                status["state"]["phase"] = "Terminating".into();
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("unclaimed", controllers), "nothing");
}

#[test]
fn volcano_b14_a_claim_that_gets_a_new_name_at_every_try_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let revision = snapshot.root().map_or(0, |root| root.meta.revision);
            for step in &mut plan.steps {
                if let Step::Create { kind: Kind::PersistentVolumeClaim, object } = step {
                    object["metadata"]["name"] = format!("claimed-pvc-{revision}").into();
                }
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("claimed", controllers), "nothing");
}

#[test]
fn volcano_b18_a_time_out_that_kills_and_does_not_say_so_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if reason(&mut plan).as_deref() == Some("AbortJob") {
                plan.status = None;
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("patient", controllers), "nothing");
}

#[test]
fn volcano_b23_a_retry_that_is_charged_for_resuming_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            let is_resumed = reason(&mut plan).as_deref() == Some("ResumeJob");
            if let Some(status) = status(&mut plan).filter(|_| is_resumed) {
                status["retryCount"] = 1.into();
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("suspended", controllers), "nothing");
}

#[test]
fn volcano_b28_a_command_that_is_taken_away_before_it_works_is_found() {
    let controllers = || {
        tampered(|_, plan| {
            let takes_command = plan.steps.iter().any(|step| is_deletion(step, Kind::Command));
            if !takes_command {
                return plan;
            }
            Plan { status: None, ..without(|step| !is_deletion(step, Kind::Command), plan) }
        })
    };
    assert_ne!(rule_broken_by("suspended", controllers), "nothing");
}

#[test]
fn volcano_b34_a_service_of_somebody_else_that_is_taken_over_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let Some(job) = job(snapshot) else { return plan };
            let service = snapshot.objects.get(Kind::Service, &job.meta.key);
            if let Some(service) = service.filter(|it| it.meta.controller_uid() != Some(&job.meta.uid)) {
                plan.steps.push(Step::Patch {
                    kind: Kind::Service,
                    key: service.meta.key.clone(),
                    uid: service.meta.uid.clone(),
                    revision: None,
                    of_status: false,
                    patch: json!({ "spec": { "clusterIP": "None" } }),
                });
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("taken", controllers), "nothing");
}

#[test]
fn volcano_b38_a_service_that_is_not_made_again_is_found() {
    let controllers = || {
        tampered(|snapshot, plan| {
            let is_new = job(snapshot).and_then(|job| job.as_vcjob()).is_some_and(|job| {
                let phase = &job.status.state.phase;
                phase.is_unset() || phase.as_str() == "Pending"
            });
            if is_new { plan } else { without(|step| step.kind() == Kind::Service, plan) }
        })
    };
    assert_ne!(rule_broken_by("repaired", controllers), "nothing");
}

#[test]
fn volcano_b41_a_failed_pod_of_the_last_try_that_is_removed_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            if reason(&mut plan).as_deref() == Some("RetriesExhausted") {
                let failed = snapshot
                    .children(Kind::Pod)
                    .filter(|pod| pod.as_pod().unwrap().status.phase.is_finished());
                plan.steps.extend(failed.map(|pod| pod.deletion()));
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("spent", controllers), "nothing");
}

#[test]
fn volcano_b46_a_finished_job_that_is_written_again_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let Some((root, body)) = job(snapshot).and_then(|root| Some((root, root.as_vcjob()?))) else {
                return plan;
            };
            if body.status.state.phase.is_finished() && plan.is_quiet() {
                let version = json!({ "version": body.status.version + 1 });
                plan.status = Some(root.meta.status_patch(root.kind, &version));
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("straight", controllers), "nothing");
}

#[test]
fn volcano_b47_a_job_that_is_not_synced_while_a_policy_waits_is_found() {
    let controllers = || {
        tampered(|_, plan| {
            let is_waiting = plan.wake_at.is_some();
            if is_waiting { without(|step| step.kind() == Kind::Pod, plan) } else { plan }
        })
    };
    assert_ne!(rule_broken_by("forgiven", controllers), "nothing");
}

#[test]
fn volcano_b48_a_restart_of_a_partition_that_is_swallowed_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if reason(&mut plan).as_deref() == Some("RestartPartition") { Plan::nothing() } else { plan }
        })
    };
    assert_ne!(rule_broken_by("partition", controllers), "nothing");
}

#[test]
fn volcano_b3_b16_a_pod_that_runs_and_still_is_taken_for_pending_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let Some(job) = job(snapshot) else { return plan };
            let timeout = job.as_vcjob().unwrap().spec.policies.iter().find_map(|policy| policy.timeout);
            let is_due = |pod: &Object| {
                let created_at =
                    pod.meta.created_at.filter(|_| pod.as_pod().unwrap().status.phase == PodPhase::Running);
                created_at
                    .zip(timeout)
                    .is_some_and(|(at, timeout)| at.after(timeout.to_std()) <= snapshot.now)
            };
            if snapshot.children(Kind::Pod).any(|pod| is_due(pod)) {
                let state = json!({ "state": { "phase": "Aborting" } });
                plan.status = Some(job.meta.status_patch(job.kind, &state));
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("prompt", controllers), "nothing");
}

#[test]
fn volcano_b7_plugins_objects_that_go_with_a_part_of_the_job_are_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let is_partial = |reason: &str| reason.starts_with("Restart") && reason != "RestartJob";
            if reason(&mut plan).is_some_and(|reason| is_partial(&reason)) {
                let made = [Kind::Service, Kind::ConfigMap, Kind::Secret].into_iter();
                plan.steps
                    .extend(made.flat_map(|kind| snapshot.children(kind)).map(|object| object.deletion()));
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("keyed", controllers), "nothing");
}

#[test]
fn volcano_b13_a_completed_index_that_is_forgotten_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            if let Some(Value::Object(status)) = status(&mut plan) {
                status.remove("controlledResources");
                status.remove("taskStatusCount");
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("collected", controllers), "nothing");
}

/// A controller that goes by the seconds alone: what ended in the second in which it was asked to go had ended before that.
struct Hasty(Box<dyn Controller>);

impl Controller for Hasty {
    forward_controller!(0);

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        self.0.keys(changed, objects)
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let judged = |departed: &Departed| {
            let mut object = departed.object.as_ref().clone();
            let asked_at = object.meta.deletion_asked_at();
            if let Body::Pod(pod) = &mut object.body {
                let mut ends =
                    pod.status.container_statuses.iter().filter_map(|it| it.state.terminated.as_ref());
                if ends.any(|end| end.finished_at.map(Time::whole_seconds) == asked_at) {
                    pod.end_order = EndOrder::EndedFirst;
                }
            }
            Departed { object: Arc::new(object), at: departed.at }
        };
        let departed: Vec<Departed> = snapshot.departed.iter().map(judged).collect();
        self.0.plan(&Snapshot { departed: &departed, ..*snapshot })
    }
}

#[test]
fn volcano_b13_a_pod_that_ends_well_because_it_is_asked_to_go_and_counts_as_done_is_found() {
    let controllers = || {
        let sane = krafla_plan::controllers().into_iter();
        sane.map(|sane| Box::new(Hasty(sane)) as Box<dyn Controller>).collect()
    };
    // What the pods do when they are asked to go shows it, without any fault.
    for name in ["evicted", "replaced", "overdue"] {
        let scenario = scenario::named(name).unwrap();
        let calm = TERMINATIONS.map(|termination| Case { termination, ..Case::calm(scenario) });
        let found = first_finding_in(&calm, &Program::with_controllers(controllers));
        assert_eq!(found.map(|finding| finding.rule).as_deref(), Some("P5"), "{name}");
    }
}

#[test]
fn volcano_b22_a_command_that_is_lost_while_the_job_restarts_is_found() {
    let controllers = || {
        tampered(|snapshot, plan| {
            let phase = job(snapshot).and_then(|job| Some(&job.as_vcjob()?.status.state.phase));
            let takes_command = plan.steps.iter().any(|step| is_deletion(step, Kind::Command));
            if phase == Some(&JobPhase::Restarting) && takes_command {
                return Plan { status: None, ..without(|step| !is_deletion(step, Kind::Command), plan) };
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("interrupted", controllers), "nothing");
}

#[test]
fn volcano_b39_a_job_that_waits_for_what_has_failed_for_good_is_found() {
    let controllers = || {
        tampered(|_, plan| {
            let mut seen = plan.clone();
            if reason(&mut seen).as_deref() == Some("DependencyFailed") { Plan::nothing() } else { plan }
        })
    };
    assert_ne!(rule_broken_by("hopeless", controllers), "nothing");
}

#[test]
fn volcano_b49_a_replacement_that_is_killed_for_the_eviction_that_it_answers_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let Some(job) = job(snapshot).and_then(|job| job.as_vcjob()) else { return plan };
            let is_replacement = |pod: &&Arc<Object>| {
                job.status.retry_count > 0
                    && pod.meta.annotations.get(labels::JOB_RETRY_COUNT)
                        == Some(&*job.status.retry_count.to_string())
                    && !pod.meta.is_deleting()
            };
            plan.steps.extend(snapshot.children(Kind::Pod).filter(is_replacement).map(|pod| pod.deletion()));
            plan
        })
    };
    assert_ne!(rule_broken_by("vacated", controllers), "nothing");
}
