//! Autoscalers: what they scale, by which metrics, and how fast.

use serde_json::Value;

use super::findings;
use crate::json::At;
use crate::pod::check;
use crate::pod::container_resource;
use crate::{Finding, Verdict, names};

/// The sources of metrics, in the order in which they are looked at: as `type` names them, and their fields.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
/// The longest time over which recommendations are compared.
const WINDOW_SECONDS_MAX: i64 = 3600;
/// The longest time that a scaling policy can be about.
const PERIOD_SECONDS_MAX: i64 = 1800;

/// Says what is wrong with an autoscaler. A reference that stays is not asked for its version again.
pub fn validate(autoscaler: &Value, old: &Value) -> Vec<Finding> {
    let kept = |object: &Value| {
        ["apiVersion", "kind"].map(|field| object.pointer(&format!("/spec/scaleTargetRef/{field}")).cloned())
    };
    let is_version_kept = !old.is_null() && kept(old) == kept(autoscaler);
    findings(autoscaler, |autoscaler, verdict| {
        let spec = autoscaler.get("spec");
        validate_bounds(&spec, verdict);
        let target = spec.get("scaleTargetRef");
        validate_reference(&target, verdict);
        let version = target.get("apiVersion");
        // All other kinds that can be scaled are in groups.
        let may_lack_group = target.str("kind") == "ReplicationController";
        if let (Some(why), false) = (version_fault(version.text(), may_lack_group), is_version_kept) {
            verdict.invalid(version.path(), version.text(), why);
        }
        let percentage = spec.get("targetCPUUtilizationPercentage");
        if let Some(number) = percentage.int().filter(|number| *number < 1) {
            verdict.invalid(percentage.path(), number, "must be greater than 0");
        }
        for metric in spec.items("metrics") {
            validate_metric(&metric, verdict);
        }
        for direction in ["scaleUp", "scaleDown"] {
            validate_rules(&spec.get("behavior").get(direction), verdict);
        }
    })
}

/// Says what is wrong with the status of an autoscaler.
pub fn validate_status(autoscaler: &Value) -> Vec<Finding> {
    findings(autoscaler, |autoscaler, verdict| {
        for field in ["currentReplicas", "desiredReplicas"] {
            check::not_negative(&autoscaler.get("status").get(field), verdict);
        }
    })
}

fn validate_bounds(spec: &At<'_>, verdict: &mut Verdict) {
    let (min, max) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    if let Some(number) = min.int().filter(|number| *number < 1) {
        verdict.invalid(min.path(), number, "must be greater than or equal to 1");
    }
    let most = max.int().unwrap_or(0);
    if most == 0 {
        verdict.required(max.path(), "must be set and greater than 0");
    } else if most < 0 {
        verdict.invalid(max.path(), most, "must be greater than or equal to 1");
    }
    if min.int().is_some_and(|least| most < least) {
        verdict.invalid(max.path(), most, "must be greater than or equal to `minReplicas`");
    }
}

fn validate_reference(reference: &At<'_>, verdict: &mut Verdict) {
    for field in ["kind", "name"] {
        check::required_name(&reference.get(field), names::path_segment, verdict);
    }
}

/// What is wrong with the version of what is referred to.
fn version_fault(version: &str, may_lack_group: bool) -> Option<String> {
    match version.matches('/').count() {
        0 => (!may_lack_group).then(|| "apiVersion must specify API group".to_owned()),
        1 => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn validate_metric(metric: &At<'_>, verdict: &mut Verdict) {
    let kind = metric.get("type");
    if kind.is_empty() {
        verdict.required(kind.path(), "must specify a metric source type");
    }
    let wanted = SOURCES.iter().find(|(name, _)| *name == kind.text()).map(|(_, field)| *field);
    if wanted.is_none() {
        verdict.unsupported(kind.path(), kind.text(), &TYPES);
    }
    let mut given: Vec<&str> = SOURCES.iter().map(|(_, field)| *field).collect();
    given.retain(|field| metric.get(field).is_set());
    // Only the first is looked at: there must be no other.
    if let Some(first) = given.first() {
        validate_source(first, &metric.get(first), verdict);
    }
    match wanted {
        Some(field) if !metric.get(field).is_set() => {
            let why = "must populate information for the given metric source";
            verdict.required(metric.get(field).path(), why);
        }
        Some(_) => {}
        None => verdict.unsupported(kind.path(), kind.text(), &TYPES),
    }
    if given.len() != 1 {
        for field in given.iter().filter(|field| Some(**field) != wanted) {
            verdict.forbidden(metric.get(field).path(), "must populate the given metric source only");
        }
    }
}

fn validate_source(kind: &str, source: &At<'_>, verdict: &mut Verdict) {
    let target = source.get("target");
    let (value, average, share) =
        (target.get("value"), target.get("averageValue"), target.get("averageUtilization"));
    match kind {
        "object" => {
            let described = source.get("describedObject");
            validate_reference(&described, verdict);
            let version = described.get("apiVersion");
            if let Some(why) = version_fault(version.text(), true) {
                verdict.invalid(version.path(), version.text(), why);
            }
        }
        "resource" => require(&source.get("name"), "must specify a resource name", verdict),
        "containerResource" => {
            let (name, container) = (source.get("name"), source.get("container"));
            require(&name, "must specify a resource name", verdict);
            if !name.is_empty() {
                container_resource(name.text(), name.path(), verdict);
            }
            require(&container, "must specify a container", verdict);
            check::name(&container, names::dns_label, verdict);
        }
        _ => {}
    }
    if matches!(kind, "object" | "external" | "pods") {
        let name = source.get("metric").get("name");
        require(&name, "must specify a metric name", verdict);
        check::name(&name, names::path_segment, verdict);
    }
    validate_target(&target, verdict);
    match kind {
        "object" if !value.is_set() && !average.is_set() => {
            verdict.required(average.path(), "must set either a target value or averageValue");
        }
        "external" if !value.is_set() && !average.is_set() => {
            verdict.required(average.path(), "must set either a target value for metric or a per-pod target");
        }
        "external" if value.is_set() && average.is_set() => {
            let why = "may not set both a target value for metric and a per-pod target";
            verdict.forbidden(value.path(), why);
        }
        "pods" if !average.is_set() => {
            verdict.required(average.path(), "must specify a positive target averageValue");
        }
        "resource" | "containerResource" if !share.is_set() && !average.is_set() => {
            verdict.required(share.path(), "must set either a target raw value or a target utilization");
        }
        "resource" | "containerResource" if share.is_set() && average.is_set() => {
            let why = "may not set both a target raw value and a target utilization";
            verdict.forbidden(average.path(), why);
        }
        _ => {}
    }
}

fn require(at: &At<'_>, why: &str, verdict: &mut Verdict) {
    if at.is_empty() {
        verdict.required(at.path(), why);
    }
}

fn validate_target(target: &At<'_>, verdict: &mut Verdict) {
    let kind = target.get("type");
    require(&kind, "must specify a metric target type", verdict);
    if !["Utilization", "Value", "AverageValue"].contains(&kind.text()) {
        verdict.invalid(kind.path(), kind.text(), "must be either Utilization, Value, or AverageValue");
    }
    for amount in ["value", "averageValue"].map(|field| target.get(field)) {
        if amount.quantity().is_some_and(|quantity| quantity <= krafla_api::Quantity::default()) {
            verdict.invalid(amount.path(), amount.text(), "must be positive");
        }
    }
    let share = target.get("averageUtilization");
    if let Some(number) = share.int().filter(|number| *number < 1) {
        verdict.invalid(share.path(), number, "must be greater than 0");
    }
}

fn validate_rules(rules: &At<'_>, verdict: &mut Verdict) {
    if !rules.is_set() {
        return;
    }
    let window = rules.get("stabilizationWindowSeconds");
    match window.int() {
        Some(seconds @ ..0) => {
            verdict.invalid(window.path(), seconds, "must be greater than or equal to zero");
        }
        Some(seconds) if seconds > WINDOW_SECONDS_MAX => {
            let why = format!("must be less than or equal to {WINDOW_SECONDS_MAX}");
            verdict.invalid(window.path(), seconds, why);
        }
        _ => {}
    }
    check::word(&rules.get("selectPolicy"), &["Disabled", "Max", "Min"], verdict);
    let policies = rules.get("policies");
    if policies.is_empty() {
        verdict.required(policies.path(), "must specify at least one Policy");
    }
    for policy in policies.list() {
        let kind = policy.get("type");
        if !["Percent", "Pods"].contains(&kind.text()) {
            verdict.unsupported(kind.path(), kind.text(), &["Percent", "Pods"]);
        }
        for field in ["value", "periodSeconds"].map(|field| policy.get(field)) {
            if let number @ ..1 = field.int().unwrap_or(0) {
                verdict.invalid(field.path(), number, "must be greater than zero");
            }
        }
        let period = policy.get("periodSeconds");
        if let Some(seconds) = period.int().filter(|seconds| *seconds > PERIOD_SECONDS_MAX) {
            let why = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
            verdict.invalid(period.path(), seconds, why);
        }
    }
    let tolerance = rules.get("tolerance");
    if tolerance.quantity().is_some_and(|quantity| quantity < krafla_api::Quantity::default()) {
        verdict.invalid(tolerance.path(), tolerance.text(), "must be greater than or equal to 0");
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(spec: Value, expected: Expect) {
        let found: Vec<String> =
            validate(&json!({ "spec": spec }), &Value::Null).iter().map(ToString::to_string).collect();
        expected.assert_eq(&found.join("\n"));
    }

    #[test]
    fn a_metric_has_one_source_and_that_is_the_one_it_names() {
        let target = json!({"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"});
        let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}});
        let with = |metric: Value| json!({"scaleTargetRef": target, "maxReplicas": 2, "metrics": [metric]});
        check(with(json!({"type": "Resource", "resource": cpu})), expect![""]);
        check(
            with(json!({"type": "Pods", "resource": cpu})),
            expect![
                "spec.metrics[0].pods: Required value: must populate information for the given metric source"
            ],
        );
        check(
            with(json!({"type": "Resource", "resource": {"name": "", "target": {"type": "x"}}, "pods": {}})),
            expect![[r#"
                spec.metrics[0].pods.metric.name: Required value: must specify a metric name
                spec.metrics[0].pods.target.type: Required value: must specify a metric target type
                spec.metrics[0].pods.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue
                spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue
                spec.metrics[0].pods: Forbidden: must populate the given metric source only"#]],
        );
    }
}
