//! Limit ranges: what pods of a namespace get when they say nothing, and how much they may ask for.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{amounts, findings};
use crate::json::At;
use crate::{Finding, Path, Verdict, names, pod};

/// Where it is written down what was filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// One of the limits of a range.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limit {
    #[serde(rename = "type")]
    of: String,
    max: BTreeMap<String, Quantity>,
    min: BTreeMap<String, Quantity>,
    default: BTreeMap<String, Quantity>,
    default_request: BTreeMap<String, Quantity>,
    max_limit_request_ratio: BTreeMap<String, Quantity>,
}

fn limits(range: &Value) -> Vec<Limit> {
    let list = range.pointer("/spec/limits").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|limit| Limit::deserialize(limit).ok()).collect()
}

/// Fills in what the containers of a new pod leave out, and notes in an annotation what that was.
pub fn fill_in(range: &Value, pod: &mut Value) {
    let (mut requests, mut most) = (BTreeMap::new(), BTreeMap::new());
    for limit in limits(range).into_iter().filter(|limit| limit.of == "Container") {
        requests.extend(limit.default_request);
        most.extend(limit.default);
    }
    let mut notes = Vec::new();
    for (list, called) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let set_limits = merge(container, "limits", &most);
            for (set, what) in [(merge(container, "requests", &requests), "request"), (set_limits, "limit")] {
                if !set.is_empty() {
                    notes.push(format!("{} {what} for {called} {name}", set.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        let annotations = pod.get_mut("metadata").and_then(Value::as_object_mut);
        let annotations =
            annotations.map(|metadata| metadata.entry("annotations").or_insert_with(|| json!({})));
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.insert(ANNOTATION.to_owned(), note.into());
        }
    }
}

/// Adds what is missing to a list of a container's amounts, and says what that was.
fn merge(container: &mut Map<String, Value>, list: &str, from: &BTreeMap<String, Quantity>) -> Vec<String> {
    let mut set = Vec::new();
    if from.is_empty() {
        return set;
    }
    let resources = container.entry("resources").or_insert_with(|| json!({}));
    let amounts =
        resources.as_object_mut().map(|resources| resources.entry(list).or_insert_with(|| json!({})));
    let Some(amounts) = amounts.and_then(Value::as_object_mut) else { return set };
    for (resource, amount) in from {
        if !amounts.contains_key(resource) {
            amounts.insert(resource.clone(), amount.to_string().into());
            set.push(resource.clone());
        }
    }
    set
}

/// Says which limits of a range a pod breaks.
pub fn broken_by_pod(range: &Value, pod: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    for limit in limits(range) {
        match limit.of.as_str() {
            "Container" => {
                for list in ["containers", "initContainers"] {
                    let containers = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
                    for container in containers.into_iter().flatten() {
                        let of = |list: &str| amounts(container.pointer(&format!("/resources/{list}")));
                        limit.check(&of("requests"), &of("limits"), &mut broken);
                    }
                }
            }
            "Pod" => limit.check(
                &super::pod_amounts(pod, "requests"),
                &super::pod_amounts(pod, "limits"),
                &mut broken,
            ),
            _ => {}
        }
    }
    broken
}

/// Says which limits of a range a claim breaks.
pub fn broken_by_claim(range: &Value, claim: &Value) -> Vec<String> {
    let requests = amounts(claim.pointer("/spec/resources/requests"));
    let mut broken = Vec::new();
    for limit in limits(range).into_iter().filter(|limit| limit.of == "PersistentVolumeClaim") {
        // A claim has no limit of its own: it gets what it requests.
        limit.check(&requests, &requests, &mut broken);
    }
    broken
}

type Amounts = BTreeMap<String, Quantity>;

impl Limit {
    fn check(&self, requests: &Amounts, limits: &Amounts, broken: &mut Vec<String>) {
        for (resource, least) in &self.min {
            let rule = format!("minimum {resource} usage per {} is {least}", self.of);
            match (requests.get(resource), limits.get(resource)) {
                (None, _) => broken.push(format!("{rule}.  No request is specified")),
                (Some(request), _) if request < least => {
                    broken.push(format!("{rule}, but request is {request}"))
                }
                (_, Some(limit)) if limit < least => broken.push(format!("{rule}, but limit is {limit}")),
                _ => {}
            }
        }
        for (resource, most) in &self.max {
            let rule = format!("maximum {resource} usage per {} is {most}", self.of);
            match (requests.get(resource), limits.get(resource)) {
                (_, None) => broken.push(format!("{rule}.  No limit is specified")),
                (_, Some(limit)) if limit > most => broken.push(format!("{rule}, but limit is {limit}")),
                (Some(request), _) if request > most => {
                    broken.push(format!("{rule}, but request is {request}"))
                }
                _ => {}
            }
        }
        for (resource, most) in &self.max_limit_request_ratio {
            let rule = format!("{resource} max limit to request ratio per {} is {most}", self.of);
            let milli = |of: &Amounts| of.get(resource).map_or(0, |amount| amount.milli_value());
            match (milli(requests), milli(limits)) {
                (0, _) => broken.push(format!("{rule}, but no request is specified or request is 0")),
                (_, 0) => broken.push(format!("{rule}, but no limit is specified or limit is 0")),
                (request, limit) => {
                    #[expect(clippy::cast_precision_loss, reason = "the ratio is for people to read")]
                    let ratio = limit as f64 / request as f64;
                    if i128::from(limit) * 1000 > i128::from(request) * i128::from(most.milli_value()) {
                        broken.push(format!("{rule}, but provided ratio is {ratio:.6}"));
                    }
                }
            }
        }
    }
}

/// Says what is wrong with a limit range.
pub fn validate(range: &Value) -> Vec<Finding> {
    findings(range, |range, verdict| {
        let mut seen = BTreeSet::new();
        for limit in range.get("spec").items("limits") {
            let of = limit.get("type");
            let wrong = names::qualified_name(of.text());
            let is_known = matches!(of.text(), "Container" | "Pod" | "PersistentVolumeClaim");
            if wrong.is_empty() && !is_known && !of.text().contains('/') {
                verdict.invalid(of.path(), of.text(), "must be a standard limit type or fully qualified");
            }
            verdict.invalid_each(of.path(), of.text(), wrong);
            if !seen.insert(of.text()) {
                verdict.duplicate(of.path(), of.text());
            }
            validate_names(&limit, &["max", "min"], verdict);
            if of.text() == "Pod" {
                for field in ["default", "defaultRequest"].map(|field| limit.get(field)) {
                    if !field.is_empty() {
                        verdict.forbidden(field.path(), "may not be specified when `type` is 'Pod'");
                    }
                }
            } else {
                validate_names(&limit, &["default", "defaultRequest"], verdict);
            }
            let has_storage = |list: &str| limit.get(list).get("storage").is_set();
            if of.text() == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
                let rule = "either minimum or maximum storage value is required, but neither was provided";
                verdict.required(limit.get("limits").path(), rule);
            }
            validate_names(&limit, &["maxLimitRequestRatio"], verdict);
            validate_order(&limit, verdict);
        }
    })
}

/// Pods and containers are limited in what they can ask for, others in any resource.
fn validate_names(limit: &At<'_>, lists: &[&str], verdict: &mut Verdict) {
    let is_of_pods = matches!(limit.str("type"), "Pod" | "Container");
    for (name, at) in lists.iter().flat_map(|list| limit.get(list).entries()) {
        if is_of_pods {
            pod::container_resource(name, at.path(), verdict);
        } else {
            pod::resource(name, at.path(), verdict);
        }
    }
}

/// The least is not more than the most, and what is filled in is between them.
fn validate_order(limit: &At<'_>, verdict: &mut Verdict) {
    const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
    let keys: BTreeSet<&str> =
        LISTS.iter().flat_map(|list| limit.get(list).entries()).map(|(key, _)| key).collect();
    for key in keys {
        let path = |list: &str| limit.get(list).path().key(key);
        let [max, min, most, request, ratio] = LISTS.map(|list| limit.get(list).get(key).quantity());
        let mut check = |list: &str, shown: Option<Quantity>, [low, high]: [(&str, Option<Quantity>); 2]| {
            if let ((lower, Some(a)), (upper, Some(b)), Some(shown)) = (low, high, shown)
                && a > b
            {
                let why = format!("{lower} value {a} is greater than {upper} value {b}");
                verdict.invalid(&path(list), shown.to_string().as_str(), why);
            }
        };
        check("min", min, [("min", min), ("max", max)]);
        check("defaultRequest", request, [("min", min), ("default request", request)]);
        check("defaultRequest", request, [("default request", request), ("max", max)]);
        check("defaultRequest", request, [("default request", request), ("default limit", most)]);
        check("default", min, [("min", min), ("default", most)]);
        check("default", max, [("default", most), ("max", max)]);
        if let Some(ratio) = ratio.filter(|ratio| *ratio < Quantity::from_units(1)) {
            let shown = ratio.to_string();
            let why = format!("ratio {shown} is less than 1");
            verdict.invalid(&path("maxLimitRequestRatio"), shown.as_str(), why);
        }
        if let (Some(ratio), Some(min), Some(max)) = (ratio, min, max) {
            validate_ratio(&path("maxLimitRequestRatio"), ratio, [min, max], verdict);
        }
        let may_exceed = pod::is_native(key) && !pod::is_huge_page(key);
        if let (false, Some(most), Some(request)) = (may_exceed, most, request)
            && most != request
        {
            let why = format!("default value {most} must equal to defaultRequest value {request} in {key}");
            verdict.invalid(&path("defaultRequest"), request.to_string().as_str(), why);
        }
    }
}

/// Limits cannot be further from requests than the most is from the least.
fn validate_ratio(path: &Path, ratio: Quantity, [min, max]: [Quantity; 2], verdict: &mut Verdict) {
    /// What can be said in thousandths.
    const MILLI_MAX: i64 = i64::MAX / 1000;
    let fits = [ratio, min, max].iter().all(|amount| amount.value() < MILLI_MAX);
    #[expect(
        clippy::cast_precision_loss,
        reason = "upstream compares them so, and shows the result to people"
    )]
    let (wanted, most) = if fits {
        (ratio.milli_value() as f64 / 1000.0, max.milli_value() as f64 / min.milli_value() as f64)
    } else {
        (ratio.value() as f64, max.value() as f64 / min.value() as f64)
    };
    if wanted > most {
        let most = if most.is_infinite() { "-Inf".to_owned() } else { format!("{most:.6}") };
        let why = format!("ratio {ratio} is greater than max/min = {most}");
        verdict.invalid(path, ratio.to_string().as_str(), why);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn range(limit: Value) -> Value {
        json!({"spec": {"limits": [limit]}})
    }

    fn pod(resources: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": resources}]}})
    }

    #[test]
    fn what_a_container_leaves_out_is_filled_in_and_noted() {
        let range = range(json!({
            "type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"},
        }));
        let mut pod = pod(json!({"limits": {"cpu": "4"}}));
        fill_in(&range, &mut pod);
        expect![[r#"{"metadata":{"annotations":{"kubernetes.io/limit-ranger":"LimitRanger plugin set: cpu request for container c; memory limit for container c"},"name":"p"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"4","memory":"1Gi"},"requests":{"cpu":"1"}}}]}}"#]]
            .assert_eq(&pod.to_string());
        let noted = pod.clone();
        fill_in(&range, &mut pod);
        assert_eq!(pod, noted, "there is nothing left to fill in");
    }

    #[test]
    fn too_little_too_much_and_too_far_apart_are_refused() {
        let limits = json!({
            "type": "Container", "min": {"cpu": "500m", "memory": "1Mi"}, "max": {"cpu": "1"},
            "maxLimitRequestRatio": {"cpu": "2"},
        });
        let resources = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "2"}});
        expect![[r#"
            minimum cpu usage per Container is 500m, but request is 100m
            minimum memory usage per Container is 1Mi.  No request is specified
            maximum cpu usage per Container is 1, but limit is 2
            cpu max limit to request ratio per Container is 2, but provided ratio is 20.000000"#]]
        .assert_eq(&broken_by_pod(&range(limits), &pod(resources)).join("\n"));
    }

    #[test]
    fn a_pod_is_measured_as_a_whole() {
        let container = json!({"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}});
        let pod = json!({"spec": {"containers": [container, container, container]}});
        let limit = range(json!({"type": "Pod", "max": {"cpu": "2"}}));
        assert_eq!(broken_by_pod(&limit, &pod), ["maximum cpu usage per Pod is 2, but limit is 3"]);
    }

    #[test]
    fn a_claim_is_measured_by_what_it_requests() {
        let limit = range(json!({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}));
        let claim = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        let rule = "maximum storage usage per PersistentVolumeClaim is 1Gi, but limit is 2Gi";
        assert_eq!(broken_by_claim(&limit, &claim), [rule]);
    }
}
