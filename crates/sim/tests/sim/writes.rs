//! How much a controller writes: the API server is what everybody shares.

use std::sync::Arc;

use futures_util::FutureExt;
use krafla_api::{Key, Kind, Time};
use krafla_apiserver::admit::Admission;
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, LocalClient, SystemEnv};
use krafla_plan::{Object, Step};
use krafla_runtime::apply::apply;
use krafla_runtime::{Client, Engine, Outcome};
use serde_json::{Value, json};

/// The controllers on a server of their own, with nobody else around.
struct Alone {
    client: LocalClient,
    engine: Engine,
    now: Time,
}

impl Alone {
    fn new() -> Alone {
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default());
        api.bootstrap().now_or_never().unwrap().unwrap();
        let now = Time::from_seconds(1_800_000_000);
        Alone { client: LocalClient::new(api), engine: Engine::new(krafla_plan::controllers()), now }
    }

    fn write(&self, step: &Step) {
        self.client.write(step).now_or_never().unwrap().unwrap();
    }

    fn list(&self, kind: Kind) -> Vec<Object> {
        let listed = self.client.list(kind).now_or_never().unwrap().unwrap();
        listed.items.iter().map(|item| Object::decode(kind, item)).collect()
    }

    /// Changes all objects of a kind, as scheduler or node would.
    fn patch_all(&self, kind: Kind, of_status: bool, patch: &Value) {
        for object in self.list(kind) {
            let (key, uid) = (object.meta.key, object.meta.uid);
            self.write(&Step::Patch { kind, key, uid, revision: None, of_status, patch: patch.clone() });
        }
    }

    /// Lets the controllers do whatever they want to do.
    fn settle(&mut self) {
        loop {
            for kind in self.engine.kinds().collect::<Vec<_>>() {
                let listed = self.client.list(kind).now_or_never().unwrap().unwrap();
                self.engine.listed(kind, &listed, self.now).unwrap();
            }
            // A root with many children rests for a moment between decisions.
            self.now = self.now.after(std::time::Duration::from_millis(1));
            let Some(work) = self.engine.next(self.now) else { return };
            let applied = apply(&self.client, &work.plan).now_or_never().unwrap();
            assert!(applied.failure.is_none(), "{:?}", applied.failure);
            self.engine.finished(work, Outcome::Applied(applied), self.now);
        }
    }
}

fn job(replicas: usize) -> Step {
    let object = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": "a", "namespace": "default" },
        "spec": { "minAvailable": replicas, "queue": "default", "tasks": [{
            "name": "work", "replicas": replicas,
            "template": { "spec": { "containers": [{ "name": "main", "image": "any" }] } },
        }] },
    });
    Step::Create { kind: Kind::VcJob, object }
}

#[test]
fn a_job_of_m_pods_costs_at_most_m_plus_5_writes_and_nothing_at_rest() {
    const M: usize = 100;
    let mut alone = Alone::new();
    alone.write(&job(M));
    alone.settle();
    alone.patch_all(Kind::PodGroup, false, &json!({ "status": { "phase": "Inqueue" } }));
    alone.settle();
    assert_eq!(alone.list(Kind::Pod).len(), M);
    for phase in ["Running", "Succeeded"] {
        alone.patch_all(Kind::Pod, true, &json!({ "status": { "phase": phase } }));
        alone.settle();
    }
    let key = Key::new("default", "a");
    let job = alone.list(Kind::VcJob).into_iter().find(|job| job.meta.key == key).unwrap();
    assert_eq!(job.as_vcjob().unwrap().status.state.phase.as_str(), "Completed");

    let n_writes = alone.engine.counts().writes;
    assert!(n_writes <= M as u64 + 5, "{n_writes} writes for {M} pods");
    for _ in 0..10 {
        alone.now = alone.now.after(std::time::Duration::from_secs(3600));
        alone.settle();
    }
    assert_eq!(alone.engine.counts().writes, n_writes, "nothing is written at rest");
}
