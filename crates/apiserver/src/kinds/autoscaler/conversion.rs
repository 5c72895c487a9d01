//! Autoscalers as `autoscaling/v1` knows them: the load of the CPU has a field of its own, and what that version cannot
//! say is kept in annotations, so that a client of it writes back what it has read.

use krafla_schema::object;
use serde_json::{Map, Value, json};

use crate::registry::conversion::Conversion;

/// Where in the stored form something is that `v1` has no field for, and the annotation that keeps it.
const KEPT: [(&str, &str, &str); 4] = [
    ("spec", "behavior", "autoscaling.alpha.kubernetes.io/behavior"),
    ("spec", "metrics", "autoscaling.alpha.kubernetes.io/metrics"),
    ("status", "conditions", "autoscaling.alpha.kubernetes.io/conditions"),
    ("status", "currentMetrics", "autoscaling.alpha.kubernetes.io/current-metrics"),
];

/// Where the load of the CPU is, and the field that `v1` has for it.
const LOADS: [Load; 2] = [
    Load {
        part: "spec",
        list: "metrics",
        amount: "/resource/target/averageUtilization",
        field: "targetCPUUtilizationPercentage",
    },
    Load {
        part: "status",
        list: "currentMetrics",
        amount: "/resource/current/averageUtilization",
        field: "currentCPUUtilizationPercentage",
    },
];

/// Fields of `v1`, and the fields of `v2` that say the same.
pub const FIELDS: [(&str, &str); 2] = [
    ("spec.targetCPUUtilizationPercentage", "spec.metrics"),
    ("status.currentCPUUtilizationPercentage", "status.currentMetrics"),
];

struct Load {
    part: &'static str,
    list: &'static str,
    amount: &'static str,
    field: &'static str,
}

/// How autoscalers of `autoscaling/v1` are stored.
pub fn conversion() -> Conversion {
    Conversion {
        to_stored,
        from_stored,
        stored_type: krafla_schema::builtin().kind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        fields: &[],
    }
}

/// Keeps the load of the CPU at so many percent of what is requested.
pub(super) fn cpu_metric(percentage: i64) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percentage});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// An autoscaler as `v2` has it.
pub fn to_stored(autoscaler: &mut Map<String, Value>) {
    for (part, field, annotation) in KEPT {
        let kept = annotations(autoscaler).and_then(|annotations| annotations.remove(annotation));
        // What somebody has made unreadable by hand says nothing.
        let kept = kept.and_then(|kept| serde_json::from_str::<Value>(kept.as_str()?).ok());
        if let Some(kept) = kept.filter(|kept| kept.is_object() || kept.is_array()) {
            part_of(autoscaler, part).insert(field.to_owned(), kept);
        }
    }
    for load in LOADS {
        let Some(Value::Object(part)) = autoscaler.get_mut(load.part) else { continue };
        let Some(percentage) = part.remove(load.field).and_then(|percentage| percentage.as_i64()) else {
            continue;
        };
        let metric = match load.part {
            "spec" => cpu_metric(percentage),
            _ => {
                let current = json!({"averageUtilization": percentage});
                json!({"type": "Resource", "resource": {"name": "cpu", "current": current}})
            }
        };
        match part.entry(load.list).or_insert_with(|| json!([])) {
            Value::Array(metrics) => metrics.insert(0, metric),
            other => *other = json!([metric]),
        }
    }
}

fn from_stored(autoscaler: &mut Map<String, Value>) {
    for load in LOADS {
        let Some(Value::Object(part)) = autoscaler.get_mut(load.part) else { continue };
        let Some(Value::Array(metrics)) = part.get_mut(load.list) else { continue };
        let is_cpu = |metric: &Value| {
            metric["type"] == "Resource"
                && object::at(metric, "/resource/name") == "cpu"
                && metric.pointer(load.amount).is_some_and(Value::is_i64)
        };
        if let Some(place) = metrics.iter().position(is_cpu) {
            let percentage = metrics.remove(place).pointer(load.amount).cloned().unwrap_or_default();
            part.insert(load.field.to_owned(), percentage);
        }
    }
    for (part, field, annotation) in KEPT {
        let Some(Value::Object(part)) = autoscaler.get_mut(part) else { continue };
        let Some(kept) = part.remove(field) else { continue };
        if kept.as_array().is_some_and(Vec::is_empty) || kept.is_null() {
            continue;
        }
        let metadata = part_of(autoscaler, "metadata");
        let annotations = object::fields(metadata.entry("annotations").or_insert(Value::Null));
        annotations.insert(annotation.to_owned(), kept.to_string().into());
    }
}

fn annotations(autoscaler: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    autoscaler.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}

fn part_of<'a>(autoscaler: &'a mut Map<String, Value>, part: &str) -> &'a mut Map<String, Value> {
    object::fields(autoscaler.entry(part).or_insert(Value::Null))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn stored() -> Value {
        let memory =
            json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization"}}});
        json!({
            "metadata": {"name": "a", "annotations": {"mine": "x"}},
            "spec": {"maxReplicas": 3, "metrics": [cpu_metric(70), memory], "behavior": {"scaleUp": {}}},
            "status": {"currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 5}}},
            ]},
        })
    }

    #[test]
    fn v1_shows_the_load_of_the_cpu_and_keeps_the_rest() {
        let mut shown = stored();
        from_stored(object::fields(&mut shown));
        expect![[r#"{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/behavior":"{\"scaleUp\":{}}","autoscaling.alpha.kubernetes.io/metrics":"[{\"resource\":{\"name\":\"memory\",\"target\":{\"type\":\"Utilization\"}},\"type\":\"Resource\"}]","mine":"x"},"name":"a"},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":70},"status":{"currentCPUUtilizationPercentage":5}}"#]]
            .assert_eq(&shown.to_string());
        let mut again = shown.clone();
        from_stored(object::fields(&mut again));
        assert_eq!(again, shown);
    }

    #[test]
    fn what_was_read_as_v1_is_written_back_as_it_was() {
        let mut there_and_back = stored();
        from_stored(object::fields(&mut there_and_back));
        to_stored(object::fields(&mut there_and_back));
        assert_eq!(there_and_back, stored());
        to_stored(object::fields(&mut there_and_back));
        assert_eq!(there_and_back, stored());
    }

    #[test]
    fn an_annotation_that_cannot_be_read_says_nothing() {
        let broken = json!({"autoscaling.alpha.kubernetes.io/metrics": "["});
        let mut autoscaler = json!({"metadata": {"annotations": broken}, "spec": {}});
        to_stored(object::fields(&mut autoscaler));
        assert_eq!(autoscaler, json!({"metadata": {"annotations": {}}, "spec": {}}));
    }
}
