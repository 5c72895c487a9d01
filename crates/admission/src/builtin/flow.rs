//! Priority levels and flow schemas: how a server that has too much to do orders its requests.

use serde_json::{Map, Value, json};

use super::{default_to, findings};
use crate::internal::quoted;
use crate::json::At;
use crate::pod::check;
use crate::{Finding, Reason, Verdict, names};

const PRECEDENCE: i64 = 1_000;
const PRECEDENCE_MAX: i64 = 10_000;
const SHARES: i64 = 30;
const QUEUES_MAX: i64 = 10_000_000;
/// Bits of the hash by which requests get their queues.
const HASH_BITS: f64 = 60.0;
const ANY: &str = "*";
const EXEMPT: &str = "exempt";
const CATCH_ALL: &str = "catch-all";
/// Verbs that rules may name, in the order of messages.
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
/// An annotation of older versions of the API.
const SHARES_ANNOTATION: &str = "flowcontrol.k8s.io/concurrency-shares-defaults-to-zero";

/// Fills in a FlowSchema.
pub fn default_schema(schema: &mut Value) {
    if let Some(spec) = fields(schema, "/spec") {
        default_number(spec, "matchingPrecedence", PRECEDENCE);
    }
}

/// Fills in a PriorityLevelConfiguration.
pub fn default_level(level: &mut Value) {
    if let Some(exempt) = fields(level, "/spec/exempt") {
        default_to(exempt, "nominalConcurrencyShares", 0);
        default_to(exempt, "lendablePercent", 0);
    }
    if let Some(limited) = fields(level, "/spec/limited") {
        default_to(limited, "nominalConcurrencyShares", SHARES);
        default_to(limited, "lendablePercent", 0);
    }
    if let Some(queuing) = fields(level, "/spec/limited/limitResponse/queuing") {
        default_number(queuing, "handSize", 8);
        default_number(queuing, "queues", 64);
        default_number(queuing, "queueLengthLimit", 50);
    }
}

fn fields<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    object.pointer_mut(pointer)?.as_object_mut()
}

/// Sets a number unless it is there; zero is the same as none.
fn default_number(fields: &mut Map<String, Value>, name: &str, number: i64) {
    if fields.get(name).and_then(Value::as_i64).unwrap_or(0) == 0 {
        fields.insert(name.to_owned(), number.into());
    }
}

/// Says what is wrong with a FlowSchema.
pub fn validate_schema(schema: &Value) -> Vec<Finding> {
    findings(schema, |schema, verdict| {
        let (name, spec) = (schema.get("metadata").str("name"), schema.get("spec"));
        validate_schema_spec(name, &spec, verdict);
        let fixed = [EXEMPT, CATCH_ALL].contains(&name).then(|| schema_spec(name)).flatten();
        if fixed.is_some_and(|fixed| fixed != *spec.value()) {
            let detail = format!("spec of '{name}' must equal the fixed value");
            verdict.invalid_object(spec.path(), "flowcontrol.FlowSchemaSpec", spec.value(), &detail);
        }
        validate_conditions(&schema.get("status"), verdict);
    })
}

/// Says what is wrong with the status of a FlowSchema or a PriorityLevelConfiguration.
pub fn validate_status(object: &Value) -> Vec<Finding> {
    findings(object, |object, verdict| validate_conditions(&object.get("status"), verdict))
}

fn validate_conditions(status: &At<'_>, verdict: &mut Verdict) {
    let mut seen = Vec::new();
    for condition in status.items("conditions") {
        let kind = condition.get("type");
        if seen.contains(&kind.text()) {
            verdict.duplicate(kind.path(), kind.text());
        }
        seen.push(kind.text());
        check::text(&kind, verdict);
    }
}

fn validate_schema_spec(name: &str, spec: &At<'_>, verdict: &mut Verdict) {
    let at = spec.get("matchingPrecedence");
    let precedence = at.int().unwrap_or(0);
    if precedence <= 0 {
        verdict.invalid(at.path(), precedence, "must be a positive value");
    }
    if precedence > PRECEDENCE_MAX {
        verdict.invalid(at.path(), precedence, format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if precedence == 1 && name != EXEMPT {
        verdict.invalid(
            at.path(),
            precedence,
            "only the schema named 'exempt' may have matchingPrecedence 1",
        );
    }
    let method = spec.get("distinguisherMethod");
    let kind = method.get("type");
    if method.is_set() && !["ByNamespace", "ByUser"].contains(&kind.text()) {
        let shown = quoted("flowcontrol.FlowDistinguisherMethod", method.value());
        let message = format!("Unsupported value: {shown}: supported values: \"ByNamespace\", \"ByUser\"");
        verdict.refuse(kind.path(), Reason::NotSupported, message);
    }
    let level = spec.get("priorityLevelConfiguration").get("name");
    if level.is_empty() {
        verdict.required(level.path(), "must reference a priority level");
    } else {
        verdict.invalid_each(level.path(), level.text(), names::dns_subdomain(level.text()));
    }
    for rule in spec.items("rules") {
        validate_rule(&rule, verdict);
    }
}

fn validate_rule(rule: &At<'_>, verdict: &mut Verdict) {
    let subjects = rule.get("subjects");
    if subjects.is_empty() {
        verdict.required(subjects.path(), "subjects must contain at least one value");
    }
    subjects.list().iter().for_each(|subject| validate_subject(subject, verdict));
    if rule.get("resourceRules").is_empty() && rule.get("nonResourceRules").is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        verdict.required(rule.path(), detail);
    }
    rule.items("resourceRules").iter().for_each(|rule| validate_resource_rule(rule, verdict));
    for rule in rule.items("nonResourceRules") {
        validate_verbs(&rule.get("verbs"), verdict);
        let urls = rule.get("nonResourceURLs");
        required(&urls, "nonResourceURLs must contain at least one value", verdict);
        if has_any(&urls) {
            validate_alone(&urls, "non-resource URLs", verdict);
        } else {
            urls.list().iter().for_each(|url| validate_url(url, verdict));
        }
    }
}

/// A subject has the one part that its kind names.
fn validate_subject(subject: &At<'_>, verdict: &mut Verdict) {
    const KINDS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = subject.get("kind");
    let Some((kind, own)) = KINDS.into_iter().find(|(name, _)| *name == kind.text()) else {
        verdict.unsupported(kind.path(), kind.text(), &["Group", "ServiceAccount", "User"]);
        return;
    };
    let part = subject.get(own);
    if !part.is_set() {
        verdict.required(part.path(), &format!("{own} is required when subject kind is '{kind}'"));
    } else if own == "serviceAccount" {
        validate_account(&part, verdict);
    } else {
        check::text(&part.get("name"), verdict);
    }
    for (other_kind, other) in KINDS {
        let part = subject.get(other);
        if other != own && part.is_set() {
            let detail = format!("{other} is forbidden when subject kind is not '{other_kind}'");
            verdict.forbidden(part.path(), &detail);
        }
    }
}

fn validate_account(account: &At<'_>, verdict: &mut Verdict) {
    let name = account.get("name");
    if check::text(&name, verdict) && name.text() != ANY {
        verdict.invalid_each(name.path(), name.text(), names::dns_subdomain(name.text()));
    }
    let namespace = account.get("namespace");
    if namespace.is_empty() {
        verdict.required(namespace.path(), "must specify namespace for service account");
    } else {
        verdict.invalid_each(namespace.path(), namespace.text(), names::dns_label(namespace.text()));
    }
}

fn validate_resource_rule(rule: &At<'_>, verdict: &mut Verdict) {
    validate_verbs(&rule.get("verbs"), verdict);
    let lists = [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")];
    for (field, one, many) in lists {
        let list = rule.get(field);
        required(&list, &format!("resource rules must supply at least one {one}"), verdict);
        validate_alone(&list, many, verdict);
    }
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && !rule.get("clusterScope").is_true() {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        verdict.required(namespaces.path(), detail);
    } else if has_any(&namespaces) {
        validate_alone(&namespaces, "namespaces", verdict);
    } else {
        for namespace in namespaces.list() {
            for detail in names::dns_label(namespace.text()) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {detail}");
                verdict.invalid(namespace.path(), namespace.text(), detail);
            }
        }
    }
}

fn validate_verbs(verbs: &At<'_>, verdict: &mut Verdict) {
    required(verbs, "verbs must contain at least one value", verdict);
    if has_any(verbs) {
        validate_alone(verbs, "verbs", verdict);
    } else if verbs.list().iter().any(|verb| !VERBS.contains(&verb.text())) {
        verdict.unsupported_value(verbs.path(), verbs.value(), &VERBS);
    }
}

fn required(list: &At<'_>, detail: &str, verdict: &mut Verdict) {
    if list.is_empty() {
        verdict.required(list.path(), detail);
    }
}

fn has_any(list: &At<'_>) -> bool {
    list.list().iter().any(|item| item.text() == ANY)
}

/// The sign for everything stands alone.
fn validate_alone(list: &At<'_>, what: &str, verdict: &mut Verdict) {
    if has_any(list) && list.list().len() > 1 {
        let detail = format!("if '*' is present, must not specify other {what}");
        verdict.invalid(list.path(), list.value(), detail);
    }
}

fn validate_url(url: &At<'_>, verdict: &mut Verdict) {
    let path = url.text();
    let detail = if path.is_empty() {
        "must not be empty"
    } else if path == "/" {
        return;
    } else if !path.starts_with('/') {
        "must start with slash"
    } else if path.contains(' ') {
        "must not contain white-space"
    } else if path.contains("//") {
        "must not contain double slash"
    } else if path.contains(ANY) && path.strip_suffix("/*").is_none_or(|rest| rest.contains(ANY)) {
        "wildcard can only do suffix matching"
    } else {
        return;
    };
    verdict.invalid(url.path(), path, detail);
}

/// Says what is wrong with a PriorityLevelConfiguration.
pub fn validate_level(level: &Value) -> Vec<Finding> {
    findings(level, |level, verdict| {
        let metadata = level.get("metadata");
        let annotations = metadata.get("annotations");
        if annotations.get(SHARES_ANNOTATION).is_set() {
            let detail = format!("annotation '{SHARES_ANNOTATION}' is forbidden");
            verdict.forbidden(annotations.path(), &detail);
        }
        let (name, spec) = (metadata.str("name"), level.get("spec"));
        validate_level_spec(name, &spec, verdict);
        validate_fixed_level(name, &spec, verdict);
        validate_conditions(&level.get("status"), verdict);
    })
}

/// The levels that a server cannot do without stay as they are, but for what the exempt one lends.
fn validate_fixed_level(name: &str, spec: &At<'_>, verdict: &mut Verdict) {
    if ![EXEMPT, CATCH_ALL].contains(&name) {
        return;
    }
    let Some(mut fixed) = level_spec(name) else { return };
    let mut given = spec.value().clone();
    let mut except = "";
    if name == EXEMPT {
        except = " except the 'spec.exempt' field";
        for spec in [&mut fixed, &mut given] {
            spec.as_object_mut().map(|fields| fields.remove("exempt"));
        }
    }
    if fixed != given {
        let detail = format!("spec of '{name}'{except} must equal the fixed value");
        let kind = "flowcontrol.PriorityLevelConfigurationSpec";
        verdict.invalid_object(spec.path(), kind, spec.value(), &detail);
    }
}

fn validate_level_spec(name: &str, spec: &At<'_>, verdict: &mut Verdict) {
    let (kind, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    if (name == EXEMPT) != (kind.text() == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        verdict.invalid(kind.path(), kind.text(), detail);
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                verdict.forbidden(limited.path(), "must be nil if the type is not Limited");
            }
            validate_shares(&exempt, verdict);
            validate_lendable(&exempt, verdict);
        }
        "Limited" => {
            if exempt.is_set() {
                verdict.forbidden(exempt.path(), "must be nil if the type is Limited");
            }
            if limited.is_set() {
                validate_limited(&limited, verdict);
            } else {
                verdict.required(limited.path(), "must not be empty when type is Limited");
            }
        }
        other => verdict.unsupported(kind.path(), other, &["Exempt", "Limited"]),
    }
}

fn validate_shares(part: &At<'_>, verdict: &mut Verdict) {
    let at = part.get("nominalConcurrencyShares");
    if let Some(shares) = at.int().filter(|shares| *shares < 0) {
        verdict.invalid(at.path(), shares, "must be a non-negative integer");
    }
}

fn validate_lendable(part: &At<'_>, verdict: &mut Verdict) {
    let at = part.get("lendablePercent");
    if let Some(percent) = at.int().filter(|percent| !(0..=100).contains(percent)) {
        verdict.invalid(at.path(), percent, "must be between 0 and 100, inclusive");
    }
}

fn validate_limited(limited: &At<'_>, verdict: &mut Verdict) {
    validate_shares(limited, verdict);
    let response = limited.get("limitResponse");
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match (kind.text(), queuing.is_set()) {
        ("Reject", false) => {}
        ("Reject", true) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            verdict.forbidden(queuing.path(), detail);
        }
        ("Queue", true) => validate_queuing(&queuing, verdict),
        ("Queue", false) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            verdict.required(queuing.path(), detail);
        }
        (other, _) => verdict.unsupported(kind.path(), other, &["Queue", "Reject"]),
    }
    validate_lendable(limited, verdict);
    let borrowed = limited.get("borrowingLimitPercent");
    if let Some(percent) = borrowed.int().filter(|percent| *percent < 0) {
        verdict.invalid(borrowed.path(), percent, "if specified, must be a non-negative integer");
    }
}

fn validate_queuing(queuing: &At<'_>, verdict: &mut Verdict) {
    let number = |name: &str| (queuing.get(name), queuing.get(name).int().unwrap_or(0));
    let (at, length) = number("queueLengthLimit");
    if length <= 0 {
        verdict.invalid(at.path(), length, "must be positive");
    }
    let (at, queues) = number("queues");
    if queues <= 0 {
        verdict.invalid(at.path(), queues, "must be positive");
    } else if queues > QUEUES_MAX {
        verdict.invalid(at.path(), queues, format!("must not be greater than {QUEUES_MAX}"));
    }
    let (at, hand) = number("handSize");
    if hand <= 0 {
        verdict.invalid(at.path(), hand, "must be positive");
    } else if hand > queues {
        verdict.invalid(at.path(), hand, format!("should not be greater than queues ({queues})"));
    } else if entropy_bits(queues, hand) > HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        );
        verdict.invalid(at.path(), hand, detail);
    }
}

/// Bits of a hash that it takes to choose a hand of queues.
#[allow(clippy::cast_precision_loss, reason = "both are 32-bit numbers of the API")]
fn entropy_bits(queues: i64, hand: i64) -> f64 {
    ((queues as f64).log2() * hand as f64).ceil()
}

/// The priority levels that a cluster has from its first moment.
pub fn levels() -> Vec<Value> {
    let names = [
        CATCH_ALL,
        EXEMPT,
        "global-default",
        "leader-election",
        "node-high",
        "system",
        "workload-high",
        "workload-low",
    ];
    names.into_iter().filter_map(|name| Some(bootstrap(name, level_spec(name)?))).collect()
}

/// The flow schemas that a cluster has from its first moment.
pub fn schemas() -> Vec<Value> {
    let names = [
        CATCH_ALL,
        EXEMPT,
        "global-default",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-system-service-accounts",
        "probes",
        "service-accounts",
        "system-leader-election",
        "system-node-high",
        "system-nodes",
    ];
    names.into_iter().filter_map(|name| Some(bootstrap(name, schema_spec(name)?))).collect()
}

fn bootstrap(name: &str, spec: Value) -> Value {
    let annotations = json!({"apf.kubernetes.io/autoupdate-spec": "true"});
    json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec})
}

fn level_spec(name: &str) -> Option<Value> {
    let queue = |shares: i64, lendable: i64, queues: i64, hand: i64| {
        let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": 50});
        json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": shares, "lendablePercent": lendable,
            "limitResponse": {"type": "Queue", "queuing": queuing},
        }})
    };
    Some(match name {
        EXEMPT => {
            json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}})
        }
        CATCH_ALL => json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"},
        }}),
        "global-default" => queue(20, 50, 128, 6),
        "leader-election" => queue(10, 0, 16, 4),
        "node-high" => queue(40, 25, 64, 6),
        "system" => queue(30, 33, 64, 6),
        "workload-high" => queue(40, 50, 128, 6),
        "workload-low" => queue(100, 90, 128, 6),
        _ => return None,
    })
}

fn schema_spec(name: &str) -> Option<Value> {
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    let user = |name: &str| json!({"kind": "User", "user": {"name": name}});
    let system_accounts =
        json!({"kind": "ServiceAccount", "serviceAccount": {"name": ANY, "namespace": "kube-system"}});
    let everybody = || vec![group("system:unauthenticated"), group("system:authenticated")];
    let resources = |verbs: &[&str], api_group: &str, resources: &[&str], is_cluster: bool| {
        let mut rule = json!({
            "verbs": verbs, "apiGroups": [api_group], "resources": resources, "namespaces": [ANY],
        });
        if is_cluster && let Some(rule) = rule.as_object_mut() {
            rule.insert("clusterScope".to_owned(), true.into());
        }
        rule
    };
    let everything = |subjects: Vec<Value>| {
        json!({
            "subjects": subjects,
            "resourceRules": [resources(&[ANY], ANY, &[ANY], true)],
            "nonResourceRules": [{"verbs": [ANY], "nonResourceURLs": [ANY]}],
        })
    };
    let leases = |verbs: &[&str]| resources(verbs, "coordination.k8s.io", &["leases"], false);
    let (level, precedence, method, rule) = match name {
        EXEMPT => (EXEMPT, 1, None, everything(vec![group("system:masters")])),
        "probes" => {
            let urls = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]});
            (EXEMPT, 2, None, json!({"subjects": everybody(), "nonResourceRules": [urls]}))
        }
        "system-leader-election" => {
            let (manager, scheduler) =
                (user("system:kube-controller-manager"), user("system:kube-scheduler"));
            let rules = [leases(&["get", "create", "update"])];
            let rule = json!({"subjects": [manager, scheduler, system_accounts], "resourceRules": rules});
            ("leader-election", 100, Some("ByUser"), rule)
        }
        "system-node-high" => {
            let nodes = resources(&[ANY], "", &["nodes", "nodes/status"], true);
            let rules = [nodes, leases(&[ANY])];
            let rule = json!({"subjects": [group("system:nodes")], "resourceRules": rules});
            ("node-high", 400, Some("ByUser"), rule)
        }
        "system-nodes" => ("system", 500, Some("ByUser"), everything(vec![group("system:nodes")])),
        "kube-controller-manager" | "kube-scheduler" => {
            let rule = everything(vec![user(&format!("system:{name}"))]);
            ("workload-high", 800, Some("ByNamespace"), rule)
        }
        "kube-system-service-accounts" => {
            ("workload-high", 900, Some("ByNamespace"), everything(vec![system_accounts]))
        }
        "service-accounts" => {
            ("workload-low", 9_000, Some("ByUser"), everything(vec![group("system:serviceaccounts")]))
        }
        "global-default" => ("global-default", 9_900, Some("ByUser"), everything(everybody())),
        CATCH_ALL => (CATCH_ALL, 10_000, Some("ByUser"), everything(everybody())),
        _ => return None,
    };
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": [rule],
    });
    if let (Some(method), Some(spec)) = (method, spec.as_object_mut()) {
        spec.insert("distinguisherMethod".to_owned(), json!({"type": method}));
    }
    Some(spec)
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    #[test]
    fn what_a_cluster_begins_with_is_valid_and_complete() {
        for (object, validate, default) in schemas()
            .into_iter()
            .map(|schema| {
                (schema, validate_schema as fn(&Value) -> Vec<Finding>, default_schema as fn(&mut Value))
            })
            .chain(levels().into_iter().map(|level| (level, validate_level as _, default_level as _)))
        {
            let mut defaulted = object.clone();
            default(&mut defaulted);
            assert_eq!(defaulted, object);
            assert_eq!(said(&validate(&object)), "", "{object}");
        }
    }

    #[test]
    fn fixed_objects_stay() {
        let mut level = levels().into_iter().find(|level| level["metadata"]["name"] == EXEMPT).unwrap();
        level["spec"]["exempt"]["lendablePercent"] = 50.into();
        assert_eq!(said(&validate_level(&level)), "");
        let mut schema =
            schemas().into_iter().find(|schema| schema["metadata"]["name"] == CATCH_ALL).unwrap();
        schema["spec"]["matchingPrecedence"] = 9.into();
        assert!(
            said(&validate_schema(&schema)).ends_with("spec of 'catch-all' must equal the fixed value"),
            "{}",
            said(&validate_schema(&schema))
        );
    }

    #[test]
    fn a_hand_of_queues_is_small_enough_for_the_hash() {
        let level = |queues: i64, hand: i64| {
            let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": 1});
            said(&validate_level(&json!({
                "metadata": {"name": "x"},
                "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": queuing}}},
            })))
        };
        assert_eq!(level(64, 10), "");
        assert_eq!(
            level(64, 11),
            "spec.limited.limitResponse.queuing.handSize: Invalid value: 11: required entropy bits of deckSize 64 \
             and handSize 11 should not be greater than 60"
        );
        assert!(level(4, 5).ends_with("should not be greater than queues (4)"));
    }

    #[test]
    fn rules_name_what_they_match() {
        let schema = |rule: Value| {
            said(&validate_schema(&json!({
                "metadata": {"name": "x"},
                "spec": {
                    "matchingPrecedence": 9, "priorityLevelConfiguration": {"name": "a"}, "rules": [rule],
                },
            })))
        };
        let subject = json!([{"kind": "User", "user": {"name": "a"}}]);
        let urls = |urls: &[&str]| {
            schema(json!({
                "subjects": subject,
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": urls}],
            }))
        };
        assert_eq!(urls(&["/", "/a", "/a/*"]), "");
        assert!(urls(&["/a*"]).ends_with("wildcard can only do suffix matching"));
        assert!(urls(&["*", "/a"]).ends_with("if '*' is present, must not specify other non-resource URLs"));
        assert_eq!(
            schema(json!({"subjects": [{"kind": "User", "group": {"name": "a"}}]})),
            "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'\n\
             spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'\n\
             spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty"
        );
    }
}
