//! Jobs that make no sense, beside one that does.

use std::collections::BTreeMap;

use krafla_api::volcano::{JobSpec, VolumeSpec};

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "absurd",
    shows: "jobs that can never run report it and block no others",
    script: || {
        let volume = VolumeSpec {
            mount_path: "/data".to_owned(),
            volume_claim_name: "nowhere".to_owned(),
            ..VolumeSpec::default()
        };
        let plugins = BTreeMap::from([("svc".to_owned(), vec!["--no-such-flag".to_owned()])]);
        vec![
            create_job(When::Now, "endless", gang(vec![task("main", 10_000)])),
            create_job(When::Now, "dry", JobSpec { volumes: vec![volume], ..gang(vec![task("main", 1)]) }),
            create_job(When::Now, &"n".repeat(50), JobSpec { plugins, ..gang(vec![task("main", 1)]) }),
            create_job(When::Now, "sane", gang(vec![task("main", 1)])),
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job dry Pending, retried 0, version 0: no pods
        job endless Pending, retried 0, version 0: no pods
        podgroup endless-<uid> Pending
        job nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn Completed, retried 0, version 0: 1 succeeded
        pod nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn-main-0 Succeeded
        job sane Completed, retried 0, version 0: 1 succeeded
        pod sane-main-0 Succeeded
    ",
};
