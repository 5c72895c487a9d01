//! A pod fails and takes the pods of its partition with it; the other partition is left running.

use krafla_api::volcano::{Action, Event, PartitionPolicySpec, TaskSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "partition",
    shows: "a failed pod restarts its partition once, and the job runs to Completed",
    script: || {
        let policies = vec![on(Event::PodFailed, Action::RestartPartition)];
        let halves =
            PartitionPolicySpec { total_partitions: 2, partition_size: 2, ..PartitionPolicySpec::default() };
        let work = TaskSpec { partition_policy: Some(halves), policies, ..task("work", 4) };
        vec![create_job(When::Now, "partition", gang(vec![work]))]
    },
    // A pod of the first partition that was restarted would say so by failing.
    pod: |pod| match (pod.index, pod.retry) {
        (0 | 1, 0) => Life::succeeds_after(30),
        (0 | 1, _) => Life::fails_after(1, 1),
        (2, 0) => Life::fails_after(5, 3),
        (_, 0) => Life::RunsOn,
        _ => Life::succeeds_after(10),
    },
    end: "
        job partition Completed, retried 1, version 0: 4 succeeded
        pod partition-work-0 Succeeded
        pod partition-work-1 Succeeded
        pod partition-work-2 Succeeded
        pod partition-work-3 Succeeded
    ",
};
