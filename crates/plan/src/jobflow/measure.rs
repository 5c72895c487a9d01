//! How flows end, at /metrics. Volcano: `pkg/controllers/metrics/jobflow.go`.

use krafla_api::volcano::JobFlowPhase;
use krafla_metrics::Metric;

use crate::measure::{Effect, Measure, Stored};

const OF_NAMESPACE: &[&str] = &["jobflow_namespace"];

static SUCCEEDED: Metric = Metric::counter(
    "volcano_jobflow_succeed_phase_count",
    "How many flows of the namespace have succeeded.",
    OF_NAMESPACE,
);

static FAILED: Metric = Metric::counter(
    "volcano_jobflow_failed_phase_count",
    "How many flows of the namespace have failed.",
    OF_NAMESPACE,
);

/// What a stored change of a flow does to the numbers.
pub(super) fn measure(stored: &Stored<'_>) -> Option<Measure> {
    let (_, phase) = stored.changed(|object| Some(&object.as_jobflow()?.status.state.phase))?;
    let metric = match phase {
        JobFlowPhase::Succeed => &SUCCEEDED,
        JobFlowPhase::Failed => &FAILED,
        _ => return None,
    };
    Some(Measure::new(metric, [&stored.after?.meta.key.namespace], Effect::Add(1.0)))
}

#[cfg(test)]
mod tests {
    use krafla_api::Kind;
    use serde_json::json;

    use super::*;
    use crate::{Object, Objects};

    fn flow(phase: &str) -> Object {
        let flow = json!({
            "metadata": { "namespace": "n", "name": "f", "uid": "f" }, "status": { "state": { "phase": phase } },
        });
        Object::decode(Kind::JobFlow, flow.to_string().as_bytes())
    }

    #[test]
    fn a_flow_is_counted_when_it_ends() {
        let counted = |before: &str, after: &str| {
            let (before, after, objects) = (flow(before), flow(after), Objects::default());
            let stored =
                Stored { before: Some(&before), after: Some(&after), objects: &objects, is_news: true };
            measure(&stored).map(|measure| measure.to_string())
        };
        let succeeded = r#"volcano_jobflow_succeed_phase_count["n"] Add(1.0)"#;
        assert_eq!(counted("Running", "Succeed").as_deref(), Some(succeeded));
        let failed = r#"volcano_jobflow_failed_phase_count["n"] Add(1.0)"#;
        assert_eq!(counted("Pending", "Failed").as_deref(), Some(failed));
        assert_eq!(counted("Pending", "Running"), None);
        assert_eq!(counted("Succeed", "Succeed"), None);
    }
}
