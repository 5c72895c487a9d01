//! P2 and P6 as they read for a plan of a JobFlow.

use std::collections::BTreeSet;

use krafla_api::volcano::JobFlowPhase;
use krafla_api::{Kind, Uid};
use krafla_cluster::Step;
use krafla_plan::{Plan, Snapshot};
use serde_json::Value;

use crate::{Property, Violation};

/// A flow that has succeeded or failed stays so, and makes no more jobs. It asks nobody but pods of its own jobs.
pub(crate) fn check(snapshot: &Snapshot<'_>, plan: &Plan) -> Result<(), Violation> {
    asks_only_its_own(snapshot, plan)?;
    let Some(flow) = snapshot.root().and_then(|root| root.as_jobflow()) else { return Ok(()) };
    let before = &flow.status.state.phase;
    let patch = match &plan.status {
        Some(Step::Patch { patch, .. }) => patch.pointer("/status/state/phase").and_then(Value::as_str),
        _ => None,
    };
    let after = patch.map_or_else(|| before.clone(), JobFlowPhase::from);
    if is_final(before) && after != *before {
        return Err(Violation::new(Property::P2, format!("{before} would become {after}")));
    }
    match plan.steps.iter().find(|step| matches!(step, Step::Create { .. })) {
        Some(step) if is_final(&after) => {
            Err(Violation::new(Property::P2, format!("{step} for a flow that is {after}")))
        }
        _ => Ok(()),
    }
}

/// P6: whoever writes a flow must not be able to make this program dial what is not the flow's.
fn asks_only_its_own(snapshot: &Snapshot<'_>, plan: &Plan) -> Result<(), Violation> {
    if plan.probes.is_empty() {
        return Ok(());
    }
    let jobs = snapshot.children(Kind::VcJob);
    let pods = jobs.flat_map(|job| snapshot.objects.children(&job.meta.uid, Kind::Pod));
    let pods: BTreeSet<&Uid> = pods.map(|pod| &pod.meta.uid).collect();
    match plan.probes.iter().find(|probe| !pods.contains(&probe.pod)) {
        Some(probe) => {
            Err(Violation::new(Property::P6, format!("a foreign pod {} would be probed", probe.pod)))
        }
        None => Ok(()),
    }
}

fn is_final(phase: &JobFlowPhase) -> bool {
    matches!(phase, JobFlowPhase::Succeed | JobFlowPhase::Failed)
}
