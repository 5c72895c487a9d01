//! Counts the jobs of each namespace, as an annotation of the namespace.

use krafla_api::{Key, Kind};
use krafla_cluster::Step;
use krafla_plan::{Controller, Object, Objects, Plan, Snapshot};
use serde_json::json;

const JOB_COUNT: &str = "krafla.dev/job-count";

/// The controller that counts jobs.
pub(crate) struct JobCount;

impl Controller for JobCount {
    fn name(&self) -> &'static str {
        "job-count-controller"
    }

    fn root(&self) -> Kind {
        Kind::Namespace
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::VcJob]
    }

    fn keys(&self, changed: &Object, _objects: &Objects) -> Vec<Key> {
        let key = &changed.meta.key;
        let namespace = if changed.kind == Kind::Namespace { &key.name } else { &key.namespace };
        vec![Key::new("", namespace)]
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let Some(namespace) = snapshot.root() else { return Plan::nothing() };
        let jobs = snapshot.objects.all(Kind::VcJob);
        let count = jobs.filter(|job| job.meta.key.namespace == snapshot.key.name).count().to_string();
        if namespace.meta.annotations.get(JOB_COUNT) == Some(&count) {
            return Plan::nothing();
        }
        let patch = Step::Patch {
            kind: Kind::Namespace,
            key: snapshot.key.clone(),
            uid: namespace.meta.uid.clone(),
            revision: None,
            of_status: false,
            patch: json!({ "metadata": { "annotations": { JOB_COUNT: count } } }),
        };
        Plan { steps: vec![patch], ..Plan::nothing() }
    }
}
