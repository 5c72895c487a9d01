//! A job names a claim that comes later.

use std::time::Duration;

use krafla_api::Kind;
use krafla_api::volcano::{JobSpec, VolumeSpec};
use serde_json::json;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, NAMESPACE, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "unclaimed",
    shows: "a job waits for the claim that it names, and then runs to Completed",
    script: || {
        let volume = VolumeSpec {
            mount_path: "/data".to_owned(),
            volume_claim_name: "later".to_owned(),
            ..VolumeSpec::default()
        };
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": "later", "namespace": NAMESPACE },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
        });
        let later = When::At(Duration::from_secs(120));
        vec![
            create_job(
                When::Now,
                "unclaimed",
                JobSpec { volumes: vec![volume], ..gang(vec![task("main", 1)]) },
            ),
            Act { when: later, deed: Deed::Create(Kind::PersistentVolumeClaim, claim) },
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job unclaimed Completed, retried 0, version 0: 1 succeeded
        persistentvolumeclaim later
        pod unclaimed-main-0 Succeeded
    ",
};
