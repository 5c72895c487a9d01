//! P2 as it reads for a plan of a JobFlow.

use krafla_api::volcano::JobFlowPhase;
use krafla_plan::{Plan, Snapshot, Step};
use serde_json::Value;

use crate::{Property, Violation};

/// A flow that has succeeded or failed stays so, and makes no more jobs.
pub(crate) fn check(snapshot: &Snapshot<'_>, plan: &Plan) -> Result<(), Violation> {
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

fn is_final(phase: &JobFlowPhase) -> bool {
    matches!(phase, JobFlowPhase::Succeed | JobFlowPhase::Failed)
}
