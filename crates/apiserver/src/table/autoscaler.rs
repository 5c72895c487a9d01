//! The columns of autoscalers.

use krafla_schema::object::{self, text_at};
use serde_json::Value;

use super::Builtin;
use super::builtin::{AGE, NAME, created, name};
use crate::kinds;

/// How many targets are shown.
const SHOWN_MAX: usize = 2;

/// Autoscalers.
pub const AUTOSCALER: Builtin = Builtin {
    columns: &[
        NAME,
        ("Reference", "string", 0, "What is scaled"),
        ("Targets", "string", 0, "What is measured, and what it should be"),
        ("MinPods", "string", 0, "The fewest pods"),
        ("MaxPods", "string", 0, "The most pods"),
        ("Replicas", "string", 0, "Pods that there were last"),
        AGE,
    ],
    cells: |autoscaler, now| {
        // Autoscalers of both versions look the same.
        let mut autoscaler = autoscaler.clone();
        kinds::autoscaler::to_stored(object::fields(&mut autoscaler));
        let autoscaler = &autoscaler;
        let target = |field: &str| text_at(autoscaler, &format!("spec.scaleTargetRef.{field}"));
        let number = |pointer: &str| object::at(autoscaler, pointer).as_i64();
        let min = number("/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), |n| n.to_string());
        vec![
            name(autoscaler),
            format!("{}/{}", target("kind"), target("name")).into(),
            targets(autoscaler).into(),
            min.into(),
            number("/spec/maxReplicas").unwrap_or(0).into(),
            number("/status/currentReplicas").unwrap_or(0).into(),
            created(autoscaler, now),
        ]
    },
};

/// What is measured, of what it should be: `cpu: 5%/80%`.
fn targets(autoscaler: &Value) -> String {
    let metrics = object::at(autoscaler, "/spec/metrics").as_array().map_or(&[][..], Vec::as_slice);
    let current = object::at(autoscaler, "/status/currentMetrics").as_array().map_or(&[][..], Vec::as_slice);
    let mut shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(place, metric)| target(metric, current.get(place).unwrap_or(&Value::Null)))
        .collect();
    match shown.len() {
        0 => "<none>".to_owned(),
        n_targets if n_targets > SHOWN_MAX => {
            shown.truncate(SHOWN_MAX);
            format!("{} + {} more...", shown.join(", "), n_targets - SHOWN_MAX)
        }
        _ => shown.join(", "),
    }
}

/// One target. What nobody has measured is unknown.
fn target(metric: &Value, current: &Value) -> String {
    let (kind, source) = match metric["type"].as_str().unwrap_or_default() {
        "Resource" => ("resource", "/resource/name"),
        "ContainerResource" => ("containerResource", "/containerResource/name"),
        "Pods" => ("pods", ""),
        "Object" => ("object", ""),
        "External" => ("external", ""),
        _ => return "<unknown type>".to_owned(),
    };
    let measured = |field: &str| object::at(current, &format!("/{kind}/current/{field}"));
    let wanted = |field: &str| object::at(metric, &format!("/{kind}/target/{field}"));
    let text = |amount: &Value| match amount {
        Value::String(amount) => amount.clone(),
        Value::Number(percentage) => format!("{percentage}%"),
        _ => "<unknown>".to_owned(),
    };
    let field = ["averageUtilization", "averageValue", "value"]
        .into_iter()
        .find(|field| !wanted(field).is_null())
        .unwrap_or("averageUtilization");
    let target = match wanted(field) {
        Value::Null if !source.is_empty() => "<auto>".to_owned(),
        wanted => text(wanted),
    };
    let amounts = format!("{}/{target}", text(measured(field)));
    match metric.pointer(source).and_then(Value::as_str) {
        Some(name) if !source.is_empty() => format!("{name}: {amounts}"),
        _ if field == "averageValue" && kind != "pods" => format!("{amounts} (avg)"),
        _ => amounts,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_target_is_shown_with_what_was_measured() {
        let cpu =
            json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}});
        let measured =
            json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 5}}});
        let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "100"}}});
        let shown = |metrics: Value, current: Value| {
            targets(&json!({"spec": {"metrics": metrics}, "status": {"currentMetrics": current}}))
        };
        assert_eq!(shown(json!([]), json!([])), "<none>");
        assert_eq!(shown(json!([cpu]), json!([])), "cpu: <unknown>/80%");
        assert_eq!(shown(json!([cpu, pods]), json!([measured])), "cpu: 5%/80%, <unknown>/100");
        assert_eq!(
            shown(json!([cpu, pods, cpu]), json!([])),
            "cpu: <unknown>/80%, <unknown>/100 + 1 more..."
        );
    }
}
