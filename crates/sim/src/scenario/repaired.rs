//! Somebody deletes what a plugin made while the job runs.

use std::collections::BTreeMap;

use krafla_api::Kind;
use krafla_api::volcano::{JobPhase, JobSpec};

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "repaired",
    shows: "a deleted Service and ConfigMap are created again",
    script: || {
        let plugins = BTreeMap::from([("svc".to_owned(), vec!["--disable-network-policy=true".to_owned()])]);
        let running = || When::JobHasBeen("repaired", JobPhase::Running);
        vec![
            create_job(When::Now, "repaired", JobSpec { plugins, ..gang(vec![task("main", 1)]) }),
            Act { when: running(), deed: Deed::Delete(Kind::Service, "repaired") },
            Act { when: running(), deed: Deed::Delete(Kind::ConfigMap, "repaired-svc") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job repaired Running, retried 0, version 0: 1 running
        podgroup repaired-<uid> Running
        pod repaired-main-0 Running
        service repaired
        configmap repaired-svc
    ",
};
