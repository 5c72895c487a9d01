//! What the server refuses is said to whoever looks at the root, once; what passes by itself is not.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use krafla_api::{Key, Kind, Time};
use krafla_cluster::{ClientError, Event, EventType, Listed, Step, Verb};
use krafla_plan::{Controller, Note, Object, Objects, Plan, Snapshot};
use krafla_runtime::apply::{Applied, Failure};
use krafla_runtime::{Engine, Outcome, Work};
use serde_json::{Value, json};

/// Wants two ConfigMaps.
struct Hopeful;

impl Controller for Hopeful {
    fn name(&self) -> &'static str {
        "hopeful"
    }

    fn root(&self) -> Kind {
        Kind::Namespace
    }

    fn watches(&self) -> &'static [Kind] {
        &[]
    }

    fn keys(&self, _: &Object, _: &Objects) -> Vec<Key> {
        vec![Key::new("", "home")]
    }

    fn plan(&self, _: &Snapshot<'_>) -> Plan {
        let create = |name: &str| {
            let object = json!({ "metadata": { "namespace": "home", "name": name } });
            Step::Create { kind: Kind::ConfigMap, object }
        };
        let notes = vec![created("one"), created("two"), missing()];
        Plan { steps: vec![create("one"), create("two")], notes, ..Plan::nothing() }
    }
}

fn created(name: &str) -> Note {
    Note::normal("Created", name.to_owned()).of(Verb::Create, Kind::ConfigMap, &Key::new("home", name))
}

/// What else keeps the root from going on.
fn missing() -> Note {
    Note::warning("Missing", String::new())
}

fn refused() -> ClientError {
    ClientError::forbidden("exceeded quota")
}

/// An object of a decision can not be created.
fn fail(engine: &mut Engine, work: Work, error: ClientError, now: Time) {
    let failure = Failure { step: String::new(), refusal_reason: "FailedCreate", error };
    let unwritten = work.plan.writes().map(Step::write).collect();
    let applied = Applied { writes: 1, unwritten, failure: Some(failure), ..Applied::default() };
    engine.finished(work, Outcome::Applied(applied), now);
}

#[test]
fn a_refusal_is_said_once_and_an_outage_is_not() {
    let start = Time::from_seconds(0);
    let mut engine = Engine::new(vec![Box::new(Hopeful)]);
    let home = json!({ "metadata": { "name": "home", "uid": "home", "resourceVersion": "1" } });
    let listed = Listed { revision: 1, items: vec![home.to_string().into()] };
    engine.listed(Kind::Namespace, &listed, start).unwrap();

    let answers = [ClientError::Unknown("no answer".to_owned()), refused(), refused()];
    let mut said = Vec::new();
    for (minutes, error) in (0..).zip(answers) {
        let now = start.after(Duration::from_secs(60 * minutes));
        let work = engine.next(now).expect("it is tried again");
        fail(&mut engine, work, error, now);
        said.push(engine.take_remarks().iter().map(|remark| remark.note.clone()).collect::<Vec<Note>>());
    }
    let refusal = Note::warning("FailedCreate", "exceeded quota".to_owned());
    assert_eq!(said, [vec![], vec![missing(), refusal], vec![]]);
}

/// How many active pods a decision puts into the status of a Job, if it changes that.
fn active(work: &Work) -> Option<Value> {
    let Some(Step::Patch { patch, .. }) = &work.plan.status else { return None };
    patch.pointer("/status/active").cloned()
}

#[test]
fn pods_that_the_server_refuses_are_not_active() {
    let start = Time::from_seconds(0);
    let controller = krafla_plan::k8sjob::JobController::default();
    let mut engine = Engine::new(vec![Box::new(controller)]);
    let mut job = json!({
        "metadata": { "namespace": "n", "name": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "parallelism": 3, "completions": 3, "template": {} },
    });
    engine.listed(Kind::Job, &Listed { revision: 1, items: vec![job.to_string().into()] }, start).unwrap();
    engine.listed(Kind::Pod, &Listed { revision: 1, items: Vec::new() }, start).unwrap();

    let work = engine.next(start).expect("three pods are to be created");
    assert_eq!((active(&work), work.plan.steps.len()), (Some(json!(3)), 3));
    // What the Job says is stored, and then its pods are refused.
    job["status"] = json!({ "active": 3, "startTime": start, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {} });
    job["metadata"]["resourceVersion"] = json!("2");
    let event = Event::new(EventType::Modified, 2, job.to_string().into());
    engine.observed(Kind::Job, &event, start);
    fail(&mut engine, work, refused(), start);

    let mut now = start;
    let said = (0..20).find_map(|_| {
        now = now.after(Duration::from_millis(50));
        let work = engine.next(now)?;
        assert_eq!(work.plan.steps.len(), 3, "they are tried again");
        let said = active(&work);
        fail(&mut engine, work, refused(), now);
        said
    });
    assert_eq!(said, Some(Value::Null), "within a second the status has taken its word back");
}

/// What a decision puts into the state of a Volcano job, if it changes that.
fn reason(work: &Work) -> Option<Value> {
    let Some(Step::Patch { patch, .. }) = &work.plan.status else { return None };
    patch.pointer("/status/state/reason").cloned()
}

#[test]
fn what_the_server_refuses_a_volcano_job_is_in_its_status_once_it_lasts() {
    let start = Time::from_seconds(0);
    let mut engine = Engine::new(vec![Box::new(krafla_plan::vcjob::JobController)]);
    let pod = json!({ "spec": { "containers": [{ "name": "main", "image": "any" }] } });
    let job = json!({
        "metadata": { "namespace": "n", "name": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "minAvailable": 1, "queue": "default", "tasks": [{ "name": "work", "replicas": 1, "template": pod }] },
        "status": { "state": { "phase": "Pending" }, "minAvailable": 1 },
    });
    let queue = json!({ "metadata": { "name": "default", "uid": "q", "resourceVersion": "1" } });
    for kind in engine.kinds().collect::<Vec<Kind>>() {
        let items = match kind {
            Kind::VcJob => vec![job.to_string().into()],
            Kind::Queue => vec![queue.to_string().into()],
            _ => Vec::new(),
        };
        engine.listed(kind, &Listed { revision: 1, items }, start).unwrap();
    }
    let (mut now, mut said) = (start, Vec::new());
    while now < start.after(Duration::from_secs(3)) {
        if let Some(work) = engine.next(now) {
            said.extend(reason(&work).map(|reason| (now, reason)));
            fail(&mut engine, work, refused(), now);
        }
        now = now.after(Duration::from_millis(5));
    }
    let (first, reason) = said.first().expect("it is said");
    assert_eq!(*reason, "FailedCreate");
    assert!(*first >= start.after(Duration::from_millis(500)), "what passes in a moment costs no write");
}

#[test]
fn the_refusal_of_a_root_is_said_of_the_pod_that_it_was_for() {
    let start = Time::from_seconds(0);
    let mut engine = Engine::new(vec![Box::<krafla_plan::podgroup::PodGroupController>::default()]);
    let pod = json!({
        "metadata": { "namespace": "n", "name": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "schedulerName": "volcano" },
    });
    for kind in engine.kinds().collect::<Vec<Kind>>() {
        let items = if kind == Kind::Pod { vec![pod.to_string().into()] } else { Vec::new() };
        engine.listed(kind, &Listed { revision: 1, items }, start).unwrap();
    }
    for (minutes, said_now) in [(0, &["FailedCreate of pod a: exceeded quota"][..]), (1, &[])] {
        let now = start.after(Duration::from_secs(60 * minutes));
        let work = engine.next(now).expect("it is tried again");
        fail(&mut engine, work, refused(), now);
        let said: Vec<String> = engine
            .take_remarks()
            .iter()
            .map(|remark| {
                let (about, note) = (&remark.about, &remark.note);
                let kind = about.kind.info().singular;
                format!("{} of {kind} {}: {}", note.reason, about.meta.key.name, note.message)
            })
            .collect();
        assert_eq!(said, said_now);
    }
}

/// What is said of a root that is to make something and is refused it so, at three looks within three minutes.
fn said_of(controller: Box<dyn Controller>, object: &Value, why: &str) -> Vec<String> {
    let start = Time::from_seconds(1_800_000_000);
    let kind = controller.root();
    let mut engine = Engine::new(vec![controller]);
    for watched in engine.kinds().collect::<Vec<Kind>>() {
        let items = if watched == kind { vec![object.to_string().into()] } else { Vec::new() };
        engine.listed(watched, &Listed { revision: 1, items }, start).unwrap();
    }
    let mut said = Vec::new();
    for minutes in 0..3 {
        let now = start.after(Duration::from_secs(60 * minutes));
        let work = engine.next(now).expect("it is tried again");
        assert!(work.plan.steps.iter().any(Step::creates), "{}", work.plan);
        fail(&mut engine, work, ClientError::forbidden(why), now);
        let notes = engine.take_remarks().into_iter().map(|remark| remark.note);
        said.extend(notes.map(|note| format!("{}: {}", note.reason, note.message)));
    }
    said
}

#[test]
fn a_pod_or_a_run_that_is_refused_is_tried_again_and_said_unless_the_namespace_goes() {
    let metadata = |name: &str| {
        json!({
            "namespace": "n", "name": name, "uid": name, "resourceVersion": "1",
            "creationTimestamp": "2027-01-14T08:00:00Z",
        })
    };
    let job = json!({ "metadata": metadata("a"), "spec": { "template": {} } });
    let cron_job = json!({ "metadata": metadata("c"), "spec": { "schedule": "0 0 * * *", "jobTemplate": { "spec": {} } } });
    let all_said = |why: &str| {
        let of_job = said_of(Box::<krafla_plan::k8sjob::JobController>::default(), &job, why);
        let of_run = said_of(Box::new(krafla_plan::k8scron::CronJobController), &cron_job, why);
        [of_job, of_run].concat()
    };
    let quota =
        ["FailedCreate: Error creating: exceeded quota", "FailedCreate: Error creating job: exceeded quota"];
    assert_eq!(all_said("exceeded quota"), quota);
    let goes = "unable to create new content in namespace n because it is being terminated";
    assert_eq!(all_said(goes), Vec::<String>::new());
}
