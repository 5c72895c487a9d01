//! Faults of Volcano's other controllers planted in ours: flows, templates, queues and CronJobs. Each must be found.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use krafla_api::volcano::{ConcurrencyPolicy, JobPhase};
use krafla_api::{Key, Kind};
use krafla_cluster::{Client, ClientError, Step, Written};
use krafla_plan::{Body, Controller, Object, Objects, Plan, Snapshot};
use krafla_sim::{Case, Fault, Injection, Program, play, scenario};
use serde_json::Value;

use crate::hooked::{Hooked, program_with};
use crate::mutants::{
    first_finding_in, forward_controller, is_deletion, rule_broken_by, status, tampered, without,
};

/// What is decided for a root that is not what it is.
fn decided_for(snapshot: &Snapshot<'_>, change: fn(&mut Body)) -> Plan {
    let Some(root) = snapshot.root() else { return Plan::nothing() };
    let mut objects = snapshot.objects.clone();
    let mut changed = Object::clone(root);
    change(&mut changed.body);
    objects.insert(changed.into());
    let misled = Snapshot { objects: &objects, ..*snapshot };
    match snapshot.kind {
        Kind::JobFlow => krafla_plan::jobflow::plan(&misled),
        Kind::VcCronJob => krafla_plan::cronjob::plan(&misled),
        kind => panic!("nobody is misled about a {kind}"),
    }
}

/// Plans in which the phase of a flow or the state of a queue never becomes this one.
fn without_phase(kind: Kind, field: &str, phase: &str, snapshot: &Snapshot<'_>, mut plan: Plan) -> Plan {
    let says = |status: &&mut Value| status.pointer(field).is_some_and(|said| said == phase);
    if snapshot.kind == kind && status(&mut plan).as_ref().is_some_and(says) {
        plan.status = None;
    }
    plan
}

#[test]
fn volcano_1_a_step_that_runs_again_because_its_job_is_gone_is_found() {
    fn forgetting(body: &mut Body) {
        if let Body::JobFlow(flow) = body {
            flow.status.job_status_list.clear();
        }
    }
    let controllers = || {
        tampered(|snapshot, plan| match snapshot.kind {
            Kind::JobFlow => decided_for(snapshot, forgetting),
            _ => plan,
        })
    };
    assert_ne!(rule_broken_by("flow-kept", controllers), "nothing");
}

#[test]
fn volcano_2_a_flow_that_stays_running_is_found() {
    let controllers =
        || tampered(|snapshot, plan| without_phase(Kind::JobFlow, "/state/phase", "Succeed", snapshot, plan));
    assert_eq!(rule_broken_by("flow-failed", controllers), "nothing", "nothing succeeds there");
    assert_ne!(rule_broken_by("flow", controllers), "nothing");
}

/// A controller of flows that hears nothing of templates.
struct Deaf(Box<dyn Controller>);

impl Controller for Deaf {
    forward_controller!(0);

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        let is_heard = self.root() != Kind::JobFlow || changed.kind != Kind::JobTemplate;
        if is_heard { self.0.keys(changed, objects) } else { Vec::new() }
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        self.0.plan(snapshot)
    }
}

#[test]
fn volcano_3_a_flow_that_does_not_see_a_late_template_is_found() {
    let controllers = || {
        krafla_plan::controllers()
            .into_iter()
            .map(|sane| Box::new(Deaf(sane)) as Box<dyn Controller>)
            .collect()
    };
    assert_ne!(rule_broken_by("flow-late", controllers), "nothing");
}

#[test]
fn volcano_9_a_job_of_somebody_else_that_is_taken_for_a_step_is_found() {
    let controllers = || {
        tampered(|snapshot, plan| {
            let Some(flow) = snapshot.root().filter(|_| snapshot.kind == Kind::JobFlow) else { return plan };
            let mut objects = snapshot.objects.clone();
            let jobs = snapshot.objects.all(Kind::VcJob).filter(|job| job.meta.controller_uid().is_none());
            for job in jobs {
                let mut taken = Object::clone(job);
                taken.meta.owners = vec![flow.meta.as_controller(Kind::JobFlow)];
                objects.insert(taken.into());
            }
            krafla_plan::jobflow::plan(&Snapshot { objects: &objects, ..*snapshot })
        })
    };
    assert_ne!(rule_broken_by("flow-foreign", controllers), "nothing");
}

#[test]
fn volcano_11_a_job_that_is_in_no_list_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            if let (Kind::JobFlow, Some(Value::Object(status))) = (snapshot.kind, status(&mut plan)) {
                status.remove("completedJobs");
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("flow", controllers), "P8");
}

#[test]
fn volcano_16_a_template_that_still_lists_a_job_that_is_gone_is_found() {
    let controllers = || {
        tampered(|snapshot, plan| {
            let is_listed = snapshot
                .root()
                .and_then(|root| root.as_jobtemplate())
                .is_some_and(|template| !template.status.job_depends_on_list.is_empty());
            if is_listed { Plan::nothing() } else { plan }
        })
    };
    assert_eq!(rule_broken_by("flow", controllers), "P8");
}

#[test]
fn volcano_19_a_command_that_is_removed_before_it_works_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let obeys = plan.steps.iter().any(|step| is_deletion(step, Kind::Command));
            if snapshot.kind == Kind::Queue && obeys {
                let late = plan.status.take();
                plan.steps.extend(late);
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("queue-closed", controllers), "nothing");
}

#[test]
fn volcano_21_a_queue_that_never_finishes_closing_is_found() {
    let controllers = || {
        tampered(|snapshot, plan| {
            let is_closing = snapshot
                .root()
                .and_then(|root| root.as_queue())
                .is_some_and(|queue| queue.status.state == krafla_api::volcano::QueueState::Closing);
            if is_closing { without_phase(Kind::Queue, "/state", "Closed", snapshot, plan) } else { plan }
        })
    };
    assert_eq!(rule_broken_by("queue-closed", controllers), "P8");
}

/// Says that the status of a CronJob is written, whether it is or not.
fn careless<'a>(client: &'a dyn Client, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
    async move {
        let answer = client.write(step).await;
        let (Err(_), Step::Patch { kind: kind @ Kind::VcCronJob, key, uid, of_status: true, .. }) =
            (&answer, step)
        else {
            return answer;
        };
        let revision = Object::decode(*kind, &client.get(*kind, key).await?).meta.revision;
        Ok(Written { key: key.clone(), uid: uid.clone(), revision })
    }
    .boxed()
}

#[test]
fn volcano_34_a_status_whose_failure_is_swallowed_is_found() {
    let program: Program = program_with(|inner| Arc::new(Hooked { inner, write: careless }));
    let calm = Case::calm(scenario::named("cron-forbid").unwrap());
    let n_writes = play(&calm, &program, false).n_writes;
    let busy = |write| calm.with([Injection { write, fault: Fault::Busy }]);
    let cases: Vec<Case> = (1..=n_writes).map(busy).collect();
    assert_eq!(first_finding_in(&cases, &program).map(|finding| finding.rule).as_deref(), Some("P8"));
}

#[test]
fn volcano_35_a_run_that_is_not_replaced_is_found() {
    let controllers = || {
        tampered(|snapshot, plan| match snapshot.kind {
            Kind::VcCronJob => without(|step| is_deletion(step, Kind::VcJob), plan),
            _ => plan,
        })
    };
    assert_eq!(rule_broken_by("cron-replace", controllers), "P8");
}

#[test]
fn volcano_38_a_failed_run_that_is_never_removed_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let has_failed = |step: &Step| {
                let job = snapshot.objects.get(Kind::VcJob, &step.key()).and_then(|job| job.as_vcjob());
                job.is_some_and(|job| job.status.state.phase != JobPhase::Completed)
            };
            plan.aside.retain(|step| !has_failed(step));
            plan
        })
    };
    assert_eq!(rule_broken_by("cron-history", controllers), "P8");
}

#[test]
fn volcano_51_a_run_that_forbid_does_not_see_is_found() {
    fn blind(body: &mut Body) {
        if let Body::VcCronJob(cron_job) = body {
            cron_job.spec.concurrency_policy = ConcurrencyPolicy::Allow;
        }
    }
    let controllers = || {
        tampered(|snapshot, plan| match snapshot.kind {
            Kind::VcCronJob => decided_for(snapshot, blind),
            _ => plan,
        })
    };
    assert_eq!(rule_broken_by("cron-forbid", controllers), "P8");
}
