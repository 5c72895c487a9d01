//! What makes an autoscaler one that cannot be followed.

use serde_json::Value;

use crate::field::FieldError;
use crate::object::{self, text_at};

/// What an autoscaler can go by, and the field that says how.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// What is wrong with an autoscaler of either version.
pub(super) fn check(autoscaler: &Value) -> Vec<FieldError> {
    let mut errors = check_bounds(autoscaler);
    for field in ["kind", "name"] {
        if text_at(autoscaler, &format!("spec.scaleTargetRef.{field}")).is_empty() {
            errors.push(FieldError::required(format!("spec.scaleTargetRef.{field}"), ""));
        }
    }
    if let Some(percentage) = object::at(autoscaler, "/spec/targetCPUUtilizationPercentage").as_i64()
        && percentage < 1
    {
        let field = "spec.targetCPUUtilizationPercentage";
        errors.push(FieldError::invalid(field, percentage, "must be greater than 0"));
    }
    let metrics = object::at(autoscaler, "/spec/metrics").as_array().into_iter().flatten().enumerate();
    errors.extend(
        metrics.filter_map(|(index, metric)| check_metric(&format!("spec.metrics[{index}]"), metric)),
    );
    errors
}

fn check_bounds(autoscaler: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let min = object::at(autoscaler, "/spec/minReplicas").as_i64().unwrap_or(1);
    let max = object::at(autoscaler, "/spec/maxReplicas").as_i64().unwrap_or(0);
    if min < 1 {
        errors.push(FieldError::invalid("spec.minReplicas", min, "must be greater than or equal to 1"));
    }
    if max < 1 {
        errors.push(FieldError::invalid("spec.maxReplicas", max, "must be greater than 0"));
    }
    if max < min {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", max, why));
    }
    errors
}

fn check_metric(at: &str, metric: &Value) -> Option<FieldError> {
    let kind = text_at(metric, "type");
    let Some((_, source)) = SOURCES.iter().find(|(name, _)| *name == kind) else {
        let names = SOURCES.map(|(name, _)| name);
        return Some(FieldError::not_supported(format!("{at}.type"), kind, &names));
    };
    let why = "must populate information for the given metric source";
    metric[source].is_null().then(|| FieldError::required(format!("{at}.{source}"), why))
}
