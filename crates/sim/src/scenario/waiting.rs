//! A job that asks for more than the cluster has waits, without pods, and without a write.

use krafla_api::volcano::TaskSpec;

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "waiting",
    shows: "a job whose PodGroup is never admitted stays Pending and gets no pods",
    script: || {
        let mut huge: TaskSpec = task("main", 2);
        if let Some(cpu) = huge.template.pointer_mut("/spec/containers/0/resources/requests/cpu") {
            *cpu = "1000".into();
        }
        vec![create_job(When::Now, "waiting", gang(vec![huge]))]
    },
    pod: |_| Life::RunsOn,
    end: "
        job waiting Pending, retried 0, version 0: no pods
        podgroup waiting-<uid> Pending
    ",
};
