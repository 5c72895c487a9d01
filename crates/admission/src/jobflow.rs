//! JobFlows: jobs that wait for each other must all be able to start one day.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::volcano::JobFlow;

use crate::{Operation, Path, Reason, Request, Verdict, graph, read};

/// Everything that is wrong with a new or changed flow.
pub fn validate(request: Request<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    if request.operation == Operation::Delete {
        return verdict;
    }
    let Some(flow) = read::<JobFlow>(request.object, &mut verdict) else { return verdict };
    let path = Path::new("spec.flows");
    let (mut waits_for, mut names) = (BTreeMap::new(), BTreeSet::new());
    for (index, job) in flow.spec.flows.iter().enumerate() {
        if !names.insert(job.name.as_str()) {
            verdict.duplicate(&path.index(index).field("name"), job.name.as_str());
        }
        let targets = job.depends_on.iter().flat_map(|depends_on| &depends_on.targets);
        waits_for.insert(job.name.as_str(), targets.map(String::as_str).collect::<Vec<_>>());
    }
    for (index, job) in flow.spec.flows.iter().enumerate() {
        let targets = job.depends_on.iter().flat_map(|depends_on| &depends_on.targets);
        for target in targets.filter(|target| !names.contains(target.as_str())) {
            let message = format!("jobflow Flow is not DAG: vertex is not defined: {target}");
            verdict.refuse(&path.index(index).field("dependsOn.targets"), Reason::NotFound, message);
        }
    }
    let ring = graph::ring(&waits_for);
    if !ring.is_empty() {
        let message = format!(
            "jobflow Flow is not DAG: flows wait for each other in a ring: {}; take one of these dependencies out",
            graph::describe(&ring)
        );
        verdict.refuse(&path, Reason::Invalid, message);
    }
    verdict
}
