//! Queues that take back their share. That is a choice, and not what ships; so it is played here and not with the rest.

use krafla_api::Kind;
use krafla_api::volcano::JobPhase;
use krafla_plan::Controller;
use krafla_scheduler::Scheduler;
use krafla_sim::driver::exhaustive;
use krafla_sim::scenario::{Act, Deed, Life, Scenario, When};
use krafla_sim::{Case, Program, play};
use serde_json::{Value, json};

fn queue(name: &str) -> Act {
    let queue = json!({
        "apiVersion": Kind::Queue.info().api_version(), "kind": "Queue",
        "metadata": { "name": name }, "spec": { "weight": 1, "reclaimable": true },
    });
    Act { when: When::Now, deed: Deed::Create(Kind::Queue, queue) }
}

/// A job in the queue of the same name, each pod of which needs half of the only node.
fn job(when: When, name: &str, replicas: u32) -> Act {
    let resources = json!({ "requests": { "cpu": "8" } });
    let container = json!({ "name": "main", "image": "any", "command": ["work"], "resources": resources });
    let template = json!({ "spec": { "containers": [container], "restartPolicy": "Never" } });
    let task = json!({ "name": "main", "replicas": replicas, "minAvailable": 1, "template": template });
    let job = json!({
        "apiVersion": Kind::VcJob.info().api_version(), "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "queue": name, "minAvailable": 1, "schedulerName": "volcano", "maxRetry": 3, "tasks": [task] },
    });
    Act { when, deed: Deed::Create(Kind::VcJob, job) }
}

fn is_open(queue: &Value) -> bool {
    queue.pointer("/status/state").is_some_and(|state| state == "Open")
}

static RECLAIMED: Scenario = Scenario {
    name: "reclaimed",
    shows: "a job gets the share of its queue back from a job that never ends, which goes on with what it needs",
    script: || {
        vec![
            queue("lender"),
            queue("owner"),
            job(When::Shows(Kind::Queue, "lender", is_open), "lender", 2),
            job(When::JobHasBeen("lender", JobPhase::Running), "owner", 1),
        ]
    },
    pod: |pod| {
        let after = std::time::Duration::from_secs(10);
        if pod.job == "owner" { Life::Ends { after, exit_code: 0 } } else { Life::RunsOn }
    },
    end: "
        job lender Running, retried 0, version 0: 2 running
        pod lender-main-0 Running
        pod lender-main-1 Running
        podgroup lender-<uid> Running
        job owner Completed, retried 0, version 0: 1 succeeded
        pod owner-main-0 Succeeded
        queue lender Open
        queue owner Open
    ",
};

fn program() -> Program {
    let mut program = Program::as_shipped();
    let scheduler: fn() -> Vec<Box<dyn Controller>> =
        || vec![Box::new(Scheduler { reclaims: true, ..Scheduler::default() })];
    for part in program.parts.iter_mut().filter(|part| part.name == "scheduler") {
        part.controllers = scheduler;
    }
    program
}

#[test]
fn a_share_is_taken_back_whatever_goes_wrong() {
    let calm = play(&Case::calm(&RECLAIMED), &program(), false);
    assert_eq!(calm.findings, [], "{}", calm.end);
    let summary = exhaustive(&[&RECLAIMED], &program(), &|_, _| {});
    let told: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}
