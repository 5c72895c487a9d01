//! Flows, queues and CronJobs that nobody has checked: their statuses have no field for what is wrong with them, so Events say it, all of
//! it, and once for as long as it holds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::time::Duration;

use expect_test::{Expect, expect};
use krafla_api::{Kind, Time};
use krafla_cluster::{Event, EventType, Listed};
use krafla_plan::Controller;
use krafla_plan::cronjob::CronJobController;
use krafla_plan::jobflow::JobFlowController;
use krafla_plan::queue::QueueController;
use krafla_runtime::apply::Applied;
use krafla_runtime::{Engine, Outcome};
use serde_json::{Value, json};

/// An engine and the one root that it looks after, as it is stored.
struct Watched {
    engine: Engine,
    kind: Kind,
    root: Value,
    revision: u64,
    now: Time,
}

impl Watched {
    fn new(controller: Box<dyn Controller>, spec: Value, status: Value) -> Watched {
        let (kind, now) = (controller.root(), Time::from_seconds(1_800_000_000));
        let kinds: Vec<Kind> = controller.watches().iter().copied().chain([kind]).collect();
        let metadata = json!({ "namespace": "n", "name": "a", "uid": "a1", "creationTimestamp": now });
        let root = json!({ "metadata": metadata, "spec": spec, "status": status });
        let mut engine = Engine::new(vec![controller]);
        for kind in kinds {
            engine.listed(kind, &Listed { revision: 1, items: Vec::new() }, now).unwrap();
        }
        Watched { engine, kind, root, revision: 1, now }
    }

    /// The root is seen with another revision, as after every touch; all that is decided then is carried out. What was said.
    fn look(&mut self) -> Vec<String> {
        self.revision += 1;
        self.root["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let (event_type, revision) = (EventType::Modified, self.revision);
        let object = self.root.to_string().into();
        self.engine.observed(self.kind, &Event::new(event_type, revision, object), self.now);
        while let Some(work) = self.engine.next(self.now) {
            let applied = Applied { writes: 1, ..Applied::default() };
            self.engine.finished(work, Outcome::Applied(applied), self.now);
        }
        let remarks = self.engine.take_remarks();
        remarks.iter().map(|remark| format!("{}: {}", remark.note.reason, remark.note.message)).collect()
    }
}

/// What is said at the first look; whatever happens to the root after it, nothing of that is said again.
fn check(controller: Box<dyn Controller>, spec: Value, status: Value, expected: Expect) {
    let mut watched = Watched::new(controller, spec, status);
    let said: String = watched.look().iter().map(|line| format!("{line}\n")).collect();
    expected.assert_eq(&said);
    for _ in 0..100 {
        watched.now = watched.now.after(Duration::from_secs(3600));
        assert_eq!(watched.look(), Vec::<String>::new());
    }
}

#[test]
fn all_that_keeps_a_flow_from_going_on_is_said_once() {
    let flows = json!([
        { "name": "a", "dependsOn": { "targets": ["b"] } },
        { "name": "b", "dependsOn": { "targets": ["a"] } },
        { "name": "c", "dependsOn": { "targets": ["nobody"] } },
        { "name": "d" },
        { "name": "d" },
    ]);
    let pending = json!({ "state": { "phase": "Pending" } });
    check(
        Box::new(JobFlowController),
        json!({ "flows": flows }),
        pending,
        expect![[r#"
        SyncJobFlow: JobTemplate d does not exist in namespace n; job a-d is made as soon as it does
        SyncJobFlow: flow d is named twice in spec.flows; only the first counts
        SyncJobFlow: flow c waits for nobody, which is no flow; correct dependsOn.targets
        SyncJobFlow: flows wait for each other in a ring: a -> b -> a; take one of these dependencies out
    "#]],
    );
}

#[test]
fn a_flow_that_can_not_be_read_is_said_once() {
    check(
        Box::new(JobFlowController),
        json!({ "flows": "all" }),
        json!({}),
        expect![[r#"
            SyncJobFlow: cannot read the flow: spec.flows: invalid type: string "all", expected a sequence
        "#]],
    );
}

#[test]
fn a_queue_that_can_not_be_read_is_said_once() {
    check(
        Box::new(QueueController),
        json!({ "weight": "heavy" }),
        json!({}),
        expect![[r#"
            SyncQueue: cannot read the queue: spec.weight: invalid type: string "heavy", expected i32
        "#]],
    );
}

#[test]
fn a_schedule_a_zone_or_a_policy_that_makes_no_sense_is_said_once() {
    let cron = |fields: Value| {
        let mut spec = json!({ "schedule": "0 0 * * *", "jobTemplate": { "spec": {} } });
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        spec
    };
    let controller = || Box::new(CronJobController);
    check(
        controller(),
        cron(json!({ "schedule": "often" })),
        json!({}),
        expect![[r#"
        UnParseableCronJobSchedule: spec.schedule: expected exactly 5 fields, found 1: [often]
    "#]],
    );
    check(
        controller(),
        cron(json!({ "timeZone": "Mars/Olympus" })),
        json!({}),
        expect![[r#"
        InvalidTimeZone: spec.timeZone: there is no time zone "Mars/Olympus"
    "#]],
    );
    check(
        controller(),
        cron(json!({ "schedule": "0 0 31 2 *" })),
        json!({}),
        expect![[r#"
        InvalidSchedule: "0 0 31 2 *" is never due
    "#]],
    );
    check(
        controller(),
        json!({ "schedule": 5 }),
        json!({}),
        expect![[r#"
            InvalidSchedule: cannot read the CronJob: spec.schedule: invalid type: integer `5`, expected a string
        "#]],
    );
}

/// A remark that holds on is not repeated with the news of every run.
#[test]
fn a_zone_within_the_schedule_is_advised_against_once_and_not_at_every_run() {
    let spec = json!({ "schedule": "TZ=UTC * * * * *", "jobTemplate": { "spec": {} } });
    let mut watched = Watched::new(Box::new(CronJobController), spec, json!({}));
    let mut said = watched.look();
    for _ in 0..3 {
        watched.now = watched.now.after(Duration::from_secs(60));
        said.extend(watched.look());
        watched.root["status"] = json!({ "lastScheduleTime": watched.now });
        said.extend(watched.look());
    }
    let reasons: Vec<&str> = said.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(
        reasons,
        ["UnsupportedSchedule", "SuccessfulCreate", "SuccessfulCreate", "SuccessfulCreate"],
        "{said:?}"
    );
}
