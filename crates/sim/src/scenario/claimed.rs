//! A job that asks for storage of its own.

use krafla_api::volcano::{Action, Event, JobSpec, VolumeSpec};
use serde_json::json;

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "claimed",
    shows: "a job gets one claim, whatever goes wrong, and keeps it through a restart",
    script: || {
        let volume_claim = Some(json!({
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        }));
        let volume = VolumeSpec { mount_path: "/data".to_owned(), volume_claim, ..VolumeSpec::default() };
        let policies = vec![on(Event::PodFailed, Action::RestartJob)];
        let job = JobSpec { volumes: vec![volume], policies, ..gang(vec![task("main", 1)]) };
        vec![create_job(When::Now, "claimed", job)]
    },
    pod: |pod| if pod.retry == 0 { Life::fails_after(5, 1) } else { Life::succeeds_after(10) },
    end: "
        job claimed Completed, retried 1, version 1: 1 succeeded
        persistentvolumeclaim claimed-pvc-<drawn>
        pod claimed-main-0 Succeeded
    ",
};
