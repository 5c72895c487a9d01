//! What Kubernetes' Jobs cost the API server, and how the cost grows: counted are requests and decisions, never seconds.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use krafla_api::{Kind, Time};
use krafla_apiserver::admit::Admission;
use krafla_apiserver::store::{EventType as Stored, ResourceId, Store, Watcher};
use krafla_apiserver::{Api, LocalClient, SystemEnv};
use krafla_plan::{Object, Step};
use krafla_runtime::apply::apply;
use krafla_runtime::{Client, Engine, Event, EventType, Outcome};
use serde_json::{Value, json};

/// The controllers on a server of their own. They follow it by watches, one event at a time, and look for work after each.
struct Followed {
    client: LocalClient,
    engine: Engine,
    watchers: Vec<(Kind, Watcher)>,
    now: Time,
}

impl Followed {
    fn new() -> Followed {
        let store = Store::in_memory();
        let api = Api::new(store.clone(), Arc::new(SystemEnv), Admission::default());
        api.bootstrap().now_or_never().unwrap().unwrap();
        let (client, mut engine) = (LocalClient::new(api), Engine::new(krafla_plan::controllers()));
        let now = Time::from_seconds(1_800_000_000);
        let mut watchers = Vec::new();
        for kind in engine.kinds().collect::<Vec<_>>() {
            let listed = client.list(kind).now_or_never().unwrap().unwrap();
            engine.listed(kind, &listed, now).unwrap();
            let resource = ResourceId::from(kind.info().qualified_plural().as_str());
            watchers.push((kind, store.watch(&resource, listed.revision).unwrap()));
        }
        Followed { client, engine, watchers, now }
    }

    fn write(&self, step: &Step) {
        self.client.write(step).now_or_never().unwrap().unwrap();
    }

    fn list(&self, kind: Kind) -> Vec<Object> {
        let listed = self.client.list(kind).now_or_never().unwrap().unwrap();
        listed.items.iter().map(|item| Object::decode(kind, item)).collect()
    }

    /// The node reports the same of all pods that are not there yet.
    fn report_all(&self, phase: &str) {
        for pod in self.list(Kind::Pod) {
            if pod.as_pod().unwrap().status.phase.as_str() != phase {
                self.report(&pod, phase);
            }
        }
    }

    fn report(&self, pod: &Object, phase: &str) {
        let (key, uid) = (pod.meta.key.clone(), pod.meta.uid.clone());
        let (ready, state) = match phase {
            "Running" => ("True", json!({ "running": { "startedAt": self.now } })),
            _ => ("False", json!({ "terminated": { "exitCode": 0, "finishedAt": self.now } })),
        };
        let container = json!({ "name": "main", "image": "any", "imageID": "", "ready": true, "restartCount": 0, "state": state });
        let patch = json!({ "status": {
            "phase": phase, "conditions": [{ "type": "Ready", "status": ready }], "containerStatuses": [container],
        } });
        self.write(&Step::Patch { kind: Kind::Pod, key, uid, revision: None, of_status: true, patch });
    }

    /// Shows the controllers what happened, and lets them act after each event and until nothing is left to do for a while.
    fn settle(&mut self) {
        loop {
            while let Some((kind, event)) = self.next_event() {
                self.now = self.now.after(Duration::from_micros(100));
                self.engine.observed(kind, &event, self.now);
                self.act();
            }
            self.act();
            let soon = self.now.after(Duration::from_secs(2));
            match self.engine.next_wake().filter(|at| *at <= soon) {
                Some(at) => self.now = self.now.max(at),
                None if self.engine.has_work(self.now) => {}
                None => return,
            }
        }
    }

    fn next_event(&mut self) -> Option<(Kind, Event)> {
        self.watchers.iter_mut().find_map(|(kind, watcher)| {
            let stored = watcher.try_next()?.unwrap();
            let event_type = match stored.event_type {
                Stored::Added => EventType::Added,
                Stored::Modified => EventType::Modified,
                Stored::Deleted => EventType::Deleted,
            };
            let object = stored.entry.bytes.clone();
            Some((*kind, Event { event_type, revision: stored.revision, object }))
        })
    }

    fn act(&mut self) {
        while let Some(work) = self.engine.next(self.now) {
            let applied = apply(&self.client, &work.plan).now_or_never().unwrap();
            assert!(applied.failure.is_none(), "{:?}", applied.failure);
            self.engine.finished(work, Outcome::Applied(applied), self.now);
        }
    }

    /// Runs these Jobs to their end, all pods side by side.
    fn run(&mut self, jobs: &[Value]) {
        for job in jobs {
            self.write(&Step::Create { kind: Kind::Job, object: job.clone() });
        }
        self.settle();
        for phase in ["Running", "Succeeded"] {
            self.report_all(phase);
            self.settle();
        }
        for job in self.list(Kind::Job) {
            let status = &job.as_job().unwrap().status;
            assert!(status.condition("Complete").is_some(), "{}: {status:?}", job.meta.key);
        }
    }
}

fn job(name: &str, mode: &str, pods: usize) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "completionMode": mode, "completions": pods, "parallelism": pods,
            "template": { "spec": {
                "restartPolicy": "Never", "containers": [{ "name": "main", "image": "any" }],
            } },
        },
    })
}

#[test]
fn a_job_of_m_pods_costs_at_most_2_m_plus_4_requests_and_nothing_at_rest() {
    const M: usize = 120;
    for mode in ["NonIndexed", "Indexed"] {
        let mut world = Followed::new();
        world.run(&[job("a", mode, M)]);
        let n_requests = world.engine.counts().writes;
        assert!(n_requests <= 2 * M as u64 + 4, "{mode}: {n_requests} requests for {M} pods");
        for _ in 0..10 {
            world.now = world.now.after(Duration::from_secs(3600));
            world.settle();
        }
        assert_eq!(world.engine.counts().writes, n_requests, "{mode}: nothing is written at rest");
    }
}

#[test]
fn many_jobs_at_once_cost_no_more_each() {
    const JOBS: usize = 20;
    const M: usize = 10;
    let jobs: Vec<Value> = (0..JOBS).map(|n| job(&format!("job-{n}"), "NonIndexed", M)).collect();
    let mut world = Followed::new();
    world.run(&jobs);
    let n_requests = world.engine.counts().writes;
    let allowed = (JOBS * (2 * M + 4)) as u64;
    assert!(n_requests <= allowed, "{n_requests} requests for {JOBS} Jobs of {M} pods");
}

/// How many decisions a Job of so many indexes takes.
fn decisions(pods: usize) -> u64 {
    let mut world = Followed::new();
    world.run(&[job("large", "Indexed", pods)]);
    let counts = world.engine.counts();
    assert!(counts.writes <= 2 * pods as u64 + 4, "{} requests for {pods} pods", counts.writes);
    counts.plans
}

#[test]
fn the_decisions_about_a_large_job_do_not_grow_with_its_pods() {
    // Each decision reads all pods: were there one for each event, a Job's cost would grow with the square of its pods.
    let [small, large] = [60, 600].map(decisions);
    assert!(large <= small + small / 2, "{small} decisions for 60 pods, {large} for 600");
}
