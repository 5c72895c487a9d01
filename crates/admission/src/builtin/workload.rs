//! Sets of pods that are kept at a number: what is wrong with them.

mod status;

use std::borrow::Cow;

use krafla_api::meta::LabelSelector;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{amount, findings, validate_not_negative};
use crate::json::At;
use crate::look::findings_of_change;
use crate::pod::check;
use crate::webhook::selects;
use crate::{Finding, Reason, Verdict, internal, names, pod};

pub use status::validate_status;

/// Which kind of set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// A Deployment.
    Deployment,
    /// A ReplicaSet.
    ReplicaSet,
    /// A ReplicationController.
    ReplicationController,
    /// A StatefulSet.
    StatefulSet,
    /// A DaemonSet.
    DaemonSet,
}

impl Set {
    /// The name of the kind in messages about its selector. A ReplicaSet is called a deployment there.
    fn selecting_name(self) -> &'static str {
        match self {
            Set::Deployment | Set::ReplicaSet | Set::ReplicationController => "deployment",
            Set::StatefulSet => "statefulset",
            Set::DaemonSet => "daemonset",
        }
    }

    /// The name of the kind in messages about its template. A Deployment is called a ReplicaSet there.
    fn template_name(self) -> &'static str {
        match self {
            Set::Deployment | Set::ReplicaSet => "ReplicaSet",
            Set::ReplicationController => "ReplicationController",
            Set::StatefulSet => "StatefulSet",
            Set::DaemonSet => "DaemonSet",
        }
    }
}

/// Says what is wrong with a new set.
pub fn validate(set: Set, object: &Value) -> Vec<Finding> {
    findings(object, |object, verdict| validate_spec(set, &object.get("spec"), true, verdict))
}

/// Says what is wrong with a changed set. Which pods belong to it never changes.
pub fn validate_update(set: Set, object: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(object, old, |object, old, verdict| {
        let (spec, old) = (object.get("spec"), old.get("spec"));
        if set == Set::DaemonSet {
            validate_same_selector(&spec, &old, verdict);
        }
        validate_spec(set, &spec, false, verdict);
        match set {
            Set::Deployment | Set::ReplicaSet => validate_same_selector(&spec, &old, verdict),
            Set::StatefulSet => validate_same_identity(&spec, &old, verdict),
            Set::DaemonSet | Set::ReplicationController => {}
        }
    })
}

/// What the author of a StatefulSet should know, though it is allowed.
pub fn warnings(set: Set, object: &Value) -> Vec<String> {
    let limit = object.pointer("/spec/revisionHistoryLimit").and_then(Value::as_i64);
    if set != Set::StatefulSet || limit.is_none_or(|limit| limit >= 0) {
        return Vec::new();
    }
    let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
    vec![format!("spec.revisionHistoryLimit: {why}")]
}

/// What to say about the name of a new set whose pods are named after it.
pub fn name_warning(set: Set, object: &Value) -> Option<String> {
    let is_named_after = matches!(set, Set::Deployment | Set::ReplicaSet | Set::ReplicationController);
    let name = object.pointer("/metadata/name").and_then(Value::as_str).filter(|_| is_named_after)?;
    let wrong = names::dns_label(name);
    let why = "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
               recommended";
    (!wrong.is_empty()).then(|| format!("metadata.name: {why}: [{}]", wrong.join(" ")))
}

fn validate_spec(set: Set, spec: &At<'_>, is_new: bool, verdict: &mut Verdict) {
    let count = |name: &str, verdict: &mut Verdict| validate_not_negative(&spec.get(name), verdict);
    match set {
        Set::Deployment => {
            count("replicas", verdict);
            if validate_selector(set, spec, verdict) {
                validate_template(set, &spec.get("template"), verdict);
            }
            validate_strategy(&spec.get("strategy"), verdict);
            count("minReadySeconds", verdict);
            count("revisionHistoryLimit", verdict);
            validate_deadline(spec, verdict);
        }
        Set::ReplicaSet => {
            count("replicas", verdict);
            count("minReadySeconds", verdict);
            if validate_selector(set, spec, verdict) {
                validate_template(set, &spec.get("template"), verdict);
            }
        }
        Set::ReplicationController => {
            count("minReadySeconds", verdict);
            validate_plain_selector(spec, verdict);
            count("replicas", verdict);
            validate_plain_template(spec, verdict);
        }
        Set::StatefulSet => validate_stateful(spec, is_new, verdict),
        Set::DaemonSet => {
            validate_selector(set, spec, verdict);
            validate_template(set, &spec.get("template"), verdict);
            count("minReadySeconds", verdict);
            validate_daemon_strategy(&spec.get("updateStrategy"), verdict);
            count("revisionHistoryLimit", verdict);
        }
    }
}

fn validate_stateful(spec: &At<'_>, is_new: bool, verdict: &mut Verdict) {
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "" => verdict.required(policy.path(), ""),
        "OrderedReady" | "Parallel" => {}
        other => verdict.invalid(policy.path(), other, "must be 'OrderedReady' or 'Parallel'"),
    }
    validate_stateful_strategy(&spec.get("updateStrategy"), verdict);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for when in ["whenDeleted", "whenScaled"].map(|name| retention.get(name)) {
        if retention.is_set() && !["Retain", "Delete"].contains(&when.text()) {
            verdict.unsupported(when.path(), when.text(), &["Retain", "Delete"]);
        }
    }
    if is_new {
        for claim in spec.items("volumeClaimTemplates") {
            pod::validate_claim_spec(&claim.get("spec"), verdict);
        }
    }
    validate_not_negative(&spec.get("replicas"), verdict);
    validate_not_negative(&spec.get("minReadySeconds"), verdict);
    validate_not_negative(&spec.get("ordinals").get("start"), verdict);
    let service = spec.get("serviceName");
    if is_new && !service.text().is_empty() {
        verdict.invalid_each(service.path(), service.text(), names::dns_label(service.text()));
    }
    if validate_selector(Set::StatefulSet, spec, verdict) {
        let template = spec.get("template");
        let filled = stateful_template(spec);
        validate_template(Set::StatefulSet, &At::new(&filled, template.path().clone()), verdict);
    }
}

/// The template as the pods of a StatefulSet have it: with names of their own, and with a volume for each claim.
fn stateful_template<'a>(spec: &At<'a>) -> Cow<'a, Value> {
    let (template, claims) = (spec.get("template").value(), spec.items("volumeClaimTemplates"));
    let has_names =
        ["hostname", "subdomain"].iter().any(|name| template.pointer(&format!("/spec/{name}")).is_some());
    if claims.is_empty() && !has_names {
        return Cow::Borrowed(template);
    }
    let mut filled = template.clone();
    let Some(pod) = filled.get_mut("spec").and_then(Value::as_object_mut) else {
        return Cow::Borrowed(template);
    };
    pod.remove("hostname");
    pod.remove("subdomain");
    let names: Vec<&str> = claims.iter().map(|claim| claim.get("metadata").str("name")).collect();
    let own = names.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let given = template.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    let is_other = |volume: &&Value| !volume["name"].as_str().is_some_and(|name| names.contains(&name));
    let volumes: Vec<Value> = own.chain(given.filter(is_other).cloned()).collect();
    pod.insert("volumes".to_owned(), volumes.into());
    Cow::Owned(filled)
}

/// The pods that a set makes must be pods that it finds again. Returns whether the selector can be used at all.
fn validate_selector(set: Set, spec: &At<'_>, verdict: &mut Verdict) -> bool {
    let selector = spec.get("selector");
    let parsed = LabelSelector::deserialize(selector.value()).unwrap_or_default();
    let is_empty = parsed.match_labels.is_empty() && parsed.match_expressions.is_empty();
    let n_before = verdict.refusals.len();
    check::label_selector(&selector, verdict);
    let is_usable = verdict.refusals.len() == n_before;
    let labels = spec.get("template").get("metadata").get("labels");
    let is_found = selector.is_set() && (is_empty || selects(&parsed, spec.get("template").value()));
    let mismatch = |verdict: &mut Verdict| {
        if is_usable && !is_found {
            verdict.invalid(labels.path(), labels.value(), "`selector` does not match template `labels`");
        }
    };
    // A DaemonSet without a selector is only told that it finds nothing, and that before anything else.
    if set == Set::DaemonSet {
        mismatch(verdict);
    } else if !selector.is_set() {
        verdict.required(selector.path(), "");
    }
    if selector.is_set() && is_empty {
        let why = format!("empty selector is invalid for {}", set.selecting_name());
        verdict.invalid(selector.path(), selector.value(), why);
    }
    if set != Set::DaemonSet {
        if !is_usable {
            let why = if set == Set::StatefulSet { "" } else { ": invalid label selector" };
            let shown = internal::quoted("*meta.v1.LabelSelector", selector.value());
            let message = format!("Invalid value: {shown}{why}");
            verdict.refuse(selector.path(), Reason::Invalid, message);
        }
        mismatch(verdict);
    }
    is_usable
}

/// A ReplicationController selects by labels alone.
fn validate_plain_selector(spec: &At<'_>, verdict: &mut Verdict) {
    let selector = spec.get("selector");
    if selector.is_empty() {
        verdict.required(selector.path(), "");
    }
}

fn validate_plain_template(spec: &At<'_>, verdict: &mut Verdict) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    if !template.is_set() {
        return verdict.required(template.path(), "");
    }
    let labels = template.get("metadata").get("labels");
    if selector.entries().iter().any(|(name, value)| labels.str(name) != value.text()) {
        verdict.invalid(labels.path(), labels.value(), "`selector` does not match template `labels`");
    }
    validate_template(Set::ReplicationController, &template, verdict);
}

fn validate_template(set: Set, template: &At<'_>, verdict: &mut Verdict) {
    verdict.refusals.extend(pod::validate_template(template.value(), template.path()));
    let policy = template.get("spec").get("restartPolicy");
    if policy.text() != "Always" {
        verdict.unsupported(policy.path(), policy.text(), &["Always"]);
    }
    let deadline = template.get("spec").get("activeDeadlineSeconds");
    if deadline.is_set() {
        let why = format!("activeDeadlineSeconds in {} is not Supported", set.template_name());
        verdict.forbidden(deadline.path(), &why);
    }
}

fn validate_deadline(spec: &At<'_>, verdict: &mut Verdict) {
    let deadline = spec.get("progressDeadlineSeconds");
    validate_not_negative(&deadline, verdict);
    let ready = spec.get("minReadySeconds").int().unwrap_or(0);
    if let Some(seconds) = deadline.int().filter(|seconds| *seconds <= ready) {
        verdict.invalid(deadline.path(), seconds, "must be greater than minReadySeconds");
    }
}

fn validate_strategy(strategy: &At<'_>, verdict: &mut Verdict) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.str("type") {
        "Recreate" if rolling.is_set() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            verdict.forbidden(rolling.path(), why);
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (missing, more) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            amount::validate(&missing, verdict);
            amount::validate(&more, verdict);
            if amount::is_zero(&missing) && amount::is_zero(&more) {
                verdict.invalid(missing.path(), missing.value(), "may not be 0 when `maxSurge` is 0");
            }
            amount::validate_at_most_all(&missing, verdict);
        }
        _ => refuse_strategy(strategy, &["Recreate", "RollingUpdate"], verdict),
    }
}

/// Refuses a strategy as a whole, which is shown with the names that its fields have inside of kube-apiserver.
fn refuse_strategy(strategy: &At<'_>, known: &[&str], verdict: &mut Verdict) {
    let known: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
    let (shown, known) = (shown_strategy(strategy), known.join(", "));
    let message = format!("Unsupported value: {shown}: supported values: {known}");
    verdict.refuse(strategy.path(), Reason::NotSupported, message);
}

fn shown_strategy(strategy: &At<'_>) -> String {
    let rolling = strategy.get("rollingUpdate");
    let amount = |name: &str| rolling.get(name).value().clone();
    let or_zero = |amount: Value| if amount.is_null() { Value::from(0) } else { amount };
    let [missing, more] = ["maxUnavailable", "maxSurge"].map(|name| or_zero(amount(name)));
    let rolling = if rolling.is_set() {
        format!("{{\"MaxUnavailable\":{missing},\"MaxSurge\":{more}}}")
    } else {
        "null".to_owned()
    };
    format!("{{\"Type\":{:?},\"RollingUpdate\":{rolling}}}", strategy.str("type"))
}

fn validate_stateful_strategy(strategy: &At<'_>, verdict: &mut Verdict) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.str("type") {
        "" => verdict.required(strategy.path(), ""),
        "OnDelete" if rolling.is_set() => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            let shown = format!("Invalid value: {}: {why}", shown_partition(&rolling));
            verdict.refuse(rolling.path(), Reason::Invalid, shown);
        }
        "OnDelete" => {}
        "RollingUpdate" => validate_not_negative(&rolling.get("partition"), verdict),
        other => {
            let rolling = if rolling.is_set() { shown_partition(&rolling) } else { "null".to_owned() };
            let shown = format!("{{\"Type\":{other:?},\"RollingUpdate\":{rolling}}}");
            let message = format!("Invalid value: {shown}: must be 'RollingUpdate' or 'OnDelete'");
            verdict.refuse(strategy.path(), Reason::Invalid, message);
        }
    }
}

fn shown_partition(rolling: &At<'_>) -> String {
    let partition = rolling.get("partition").int().unwrap_or(0);
    format!("{{\"Partition\":{partition},\"MaxUnavailable\":null}}")
}

fn validate_daemon_strategy(strategy: &At<'_>, verdict: &mut Verdict) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.str("type") {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => verdict.required(rolling.path(), ""),
        "RollingUpdate" => {
            let amounts = ["maxUnavailable", "maxSurge"].map(|name| rolling.get(name));
            amounts.iter().for_each(|at| amount::validate(at, verdict));
            amounts.iter().for_each(|at| amount::validate_at_most_all(at, verdict));
            let [missing, more] = &amounts;
            match (amount::is_zero(missing), amount::is_zero(more)) {
                (false, false) => {
                    verdict.invalid(
                        more.path(),
                        more.value(),
                        "may not be set when maxUnavailable is non-zero",
                    );
                }
                (true, true) => verdict.required(missing.path(), "cannot be 0 when maxSurge is 0"),
                (true, false) | (false, true) => {}
            }
        }
        _ => refuse_strategy(strategy, &["RollingUpdate", "OnDelete"], verdict),
    }
}

fn validate_same_selector(spec: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let selector = spec.get("selector");
    if selector.value() != old.get("selector").value() {
        let (path, value) = (selector.path(), selector.value());
        verdict.invalid_object(path, "*meta.v1.LabelSelector", value, "field is immutable");
    }
}

/// The fields of a StatefulSet that may change. All others make up the identity of its pods.
const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn validate_same_identity(spec: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let fields = |at: &At<'_>| -> Vec<(String, Value)> {
        let fields = at.fields().into_iter().flatten();
        let fields =
            fields.filter(|(name, value)| !CHANGEABLE.contains(&name.as_str()) && !is_nothing(value));
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    if fields(spec) != fields(old) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        verdict.forbidden(spec.path(), why);
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::super::said;
    use super::*;

    fn deployment(labels: Value, selector: Value) -> Value {
        let container = json!({"name": "c", "image": "i"});
        let template = json!({
            "metadata": {"labels": labels}, "spec": {"restartPolicy": "Always", "containers": [container]},
        });
        json!({"spec": {"selector": selector, "template": template, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}}})
    }

    #[test]
    fn a_set_finds_the_pods_that_it_makes() {
        let found =
            |labels: Value, selector: Value| said(&validate(Set::Deployment, &deployment(labels, selector)));
        expect![""].assert_eq(&found(json!({"a": "b", "c": "d"}), json!({"matchLabels": {"a": "b"}})));
        expect![[r#"
            spec.selector: Required value
            spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#]]
        .assert_eq(&found(json!({"a": "b"}), json!(null)));
        expect!["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]
            .assert_eq(&found(json!({"a": "b"}), json!({})));
    }

    fn stateful(change: Value) -> Value {
        let container =
            json!({"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]});
        let template = json!({
            "metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Always", "containers": [container]},
        });
        let claim = json!({"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }});
        let mut set = json!({"spec": {
            "selector": {"matchLabels": {"a": "b"}}, "template": template, "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate"}, "serviceName": "s", "volumeClaimTemplates": [claim],
        }});
        for (field, value) in change.as_object().unwrap() {
            set["spec"][field] = value.clone();
        }
        set
    }

    #[test]
    fn the_claims_of_a_stateful_set_are_volumes_of_its_pods() {
        let found = |change: Value| said(&validate(Set::StatefulSet, &stateful(change)));
        expect![""].assert_eq(&found(json!({})));
        expect![[r#"spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data""#]]
            .assert_eq(&found(json!({"volumeClaimTemplates": []})));
        expect![[r#"
            spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required
            spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"#]]
        .assert_eq(&found(json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]})));
    }

    #[test]
    fn a_stateful_set_is_checked_field_by_field() {
        let found = |change: Value| said(&validate(Set::StatefulSet, &stateful(change)));
        expect![[r#"spec.updateStrategy: Invalid value: {"Type":"Odd","RollingUpdate":null}: must be 'RollingUpdate' or 'OnDelete'"#]]
            .assert_eq(&found(json!({"updateStrategy": {"type": "Odd"}})));
        expect![[r#"spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":3,"MaxUnavailable":null}: only allowed for updateStrategy 'RollingUpdate'"#]]
            .assert_eq(&found(json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 3}}})));
        expect![[r#"
            spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Keep": supported values: "Retain", "Delete"
            spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"#]]
        .assert_eq(&found(json!({
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Keep"},
            "ordinals": {"start": -1},
        })));
        let old = stateful(json!({}));
        assert_eq!(validate_update(Set::StatefulSet, &stateful(json!({"replicas": 3})), &old), []);
        let found = said(&validate_update(Set::StatefulSet, &stateful(json!({"serviceName": "t"})), &old));
        assert!(
            found.starts_with("spec: Forbidden: updates to statefulset spec for fields other than"),
            "{found}"
        );
    }

    #[test]
    fn a_strategy_leaves_room_for_a_change() {
        let with = |strategy: Value| {
            let mut set = deployment(json!({"a": "b"}), json!({"matchLabels": {"a": "b"}}));
            set["spec"]["strategy"] = strategy.clone();
            set["spec"]["updateStrategy"] = strategy;
            set
        };
        let rolling = |missing: Value, more: Value| {
            with(
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": missing, "maxSurge": more}}),
            )
        };
        let of = |set: Set, object: &Value| said(&validate(set, object));
        expect![
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"
        ]
        .assert_eq(&of(Set::Deployment, &rolling(json!(0), json!("0%"))));
        expect![[r#"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%"#]]
            .assert_eq(&of(Set::Deployment, &rolling(json!("101%"), json!(1))));
        expect![[r#"spec.strategy: Unsupported value: {"Type":"Odd","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate""#]]
            .assert_eq(&of(Set::Deployment, &with(json!({"type": "Odd"}))));
        let odd = json!({"type": "Odd", "rollingUpdate": {"maxSurge": 1}});
        expect![[r#"spec.strategy: Unsupported value: {"Type":"Odd","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":1}}: supported values: "Recreate", "RollingUpdate""#]]
            .assert_eq(&of(Set::Deployment, &with(odd)));
        expect![
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"
        ]
        .assert_eq(&of(Set::DaemonSet, &rolling(json!(0), json!(0))));
        expect!["spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"]
            .assert_eq(&of(Set::DaemonSet, &rolling(json!(1), json!(1))));
    }

    #[test]
    fn a_replication_controller_selects_by_labels() {
        let with = |selector: Value| {
            let mut set = deployment(json!({"a": "b"}), selector);
            set["spec"]["template"]["spec"]["activeDeadlineSeconds"] = json!(1);
            said(&validate(Set::ReplicationController, &set))
        };
        expect!["spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not Supported"]
            .assert_eq(&with(json!({"a": "b"})));
        expect![[r#"
            spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`
            spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not Supported"#]]
            .assert_eq(&with(json!({"a": "c"})));
    }

    #[test]
    fn which_pods_belong_to_a_set_does_not_change() {
        let old = deployment(json!({"a": "b"}), json!({"matchLabels": {"a": "b"}}));
        let new = deployment(json!({"a": "c"}), json!({"matchLabels": {"a": "c"}}));
        expect![[r#"spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable"#]]
            .assert_eq(&said(&validate_update(Set::Deployment, &new, &old)));
    }
}
