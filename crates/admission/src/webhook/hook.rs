//! One webhook as it is configured, and whether a request concerns it.

use std::collections::BTreeMap;

use krafla_api::meta::{LabelSelector, LabelSelectorRequirement};
use serde::Deserialize;
use serde_json::Value;

/// One webhook. Its configuration was checked when it was stored, so what cannot be read here is as if it were not said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hook {
    /// The name by which messages call it.
    pub name: String,
    /// Whom to call.
    pub client_config: Client,
    /// Which requests it is about.
    pub rules: Vec<Rule>,
    /// In namespaces with which labels.
    pub namespace_selector: LabelSelector,
    /// For objects with which labels.
    pub object_selector: LabelSelector,
    /// What must hold for it to be asked.
    pub match_conditions: Vec<Condition>,
    failure_policy: String,
    match_policy: String,
    reinvocation_policy: String,
    /// How long it may take.
    pub timeout_seconds: u32,
}

/// Something that must hold, as an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// The name by which messages call it.
    pub name: String,
    /// The expression.
    pub expression: String,
}

/// Whom to call: either of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Client {
    /// An address.
    pub url: Option<String>,
    /// A service of the cluster.
    pub service: Option<Service>,
    /// Who vouches for the server: certificates as PEM in base64; the machine's own authorities if it is empty.
    pub ca_bundle: String,
}

/// A service of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The path to call.
    pub path: Option<String>,
    /// The service's port.
    pub port: Option<u16>,
}

/// Requests for some resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
}

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It is new.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
    /// A client connects to it.
    Connect,
}

impl Verb {
    /// As rules and questions name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "CREATE",
            Verb::Update => "UPDATE",
            Verb::Delete => "DELETE",
            Verb::Connect => "CONNECT",
        }
    }
}

/// What a request is about, as rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// API group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural of the resource.
    pub resource: &'a str,
    /// The part of the object that is written; empty for the object itself.
    pub subresource: &'a str,
    /// Whether the resource lives in namespaces.
    pub is_namespaced: bool,
    /// What is done.
    pub verb: Verb,
}

/// The webhooks of a configuration.
pub fn hooks(configuration: &Value) -> Vec<Hook> {
    let list = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|webhook| Hook::deserialize(webhook).ok()).collect()
}

impl Hook {
    /// Whether a request goes through when this webhook cannot be asked.
    pub fn may_be_missed(&self) -> bool {
        self.failure_policy == "Ignore"
    }

    /// Whether it is asked again when others changed the object after it.
    pub fn wants_another_look(&self) -> bool {
        self.reinvocation_policy == "IfNeeded"
    }

    /// Which of the `targets`, the versions in which one resource is served with the request's own first, the webhook is to
    /// be asked about; `None` if it is none of its business.
    pub fn concerned<'t>(&self, targets: &'t [Target<'t>]) -> Option<&'t Target<'t>> {
        let n_candidates = if self.match_policy == "Exact" { 1 } else { targets.len() };
        let mut candidates = targets.iter().take(n_candidates);
        candidates.find(|target| self.rules.iter().any(|rule| rule.covers(target)))
    }

    /// Whether the labels of the namespace, where there is one, and of the object are such that the webhook is asked. Either
    /// state of a changed object counts, so that nobody leaves a webhook's reach by taking a label away.
    pub fn selects(&self, namespace: Option<&Value>, objects: [Option<&Value>; 2]) -> bool {
        let in_reach = namespace.is_none_or(|namespace| selects(&self.namespace_selector, namespace));
        in_reach && objects.into_iter().flatten().any(|object| selects(&self.object_selector, object))
    }
}

impl Rule {
    fn covers(&self, target: &Target<'_>) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|item| item == "*" || item == word);
        let scope = if target.is_namespaced { "Namespaced" } else { "Cluster" };
        has(&self.operations, target.verb.as_str())
            && has(&self.api_groups, target.group)
            && has(&self.api_versions, target.version)
            && (self.scope.is_empty() || self.scope == "*" || self.scope == scope)
            && self.resources.iter().any(|pattern| names_resource(pattern, target))
    }
}

/// `pods`, `pods/status`, `pods/*`, `*/status`, `*` for all resources, `*/*` for their parts as well.
fn names_resource(pattern: &str, target: &Target<'_>) -> bool {
    let (resource, subresource) = match pattern.split_once('/') {
        Some((resource, subresource)) => (resource, subresource),
        None => (pattern, ""),
    };
    (resource == "*" || resource == target.resource)
        && (subresource == target.subresource || (subresource == "*" && pattern.contains('/')))
}

/// Whether an object's labels fulfil a selector.
pub(crate) fn selects(selector: &LabelSelector, object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let labels: BTreeMap<&str, &str> =
        labels.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect();
    let has_all =
        selector.match_labels.iter().all(|(name, value)| labels.get(name.as_str()) == Some(&value.as_str()));
    has_all
        && selector
            .match_expressions
            .iter()
            .all(|demand| holds(demand, labels.get(demand.key.as_str()).copied()))
}

fn holds(demand: &LabelSelectorRequirement, label: Option<&str>) -> bool {
    let is_listed = label.is_some_and(|label| demand.values.iter().any(|value| value == label));
    match demand.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hook(webhook: Value) -> Hook {
        hooks(&json!({"webhooks": [webhook]})).remove(0)
    }

    fn target<'a>(version: &'a str, resource: &'a str, subresource: &'a str, verb: Verb) -> Target<'a> {
        Target { group: "", version, resource, subresource, is_namespaced: true, verb }
    }

    /// Whether a rule for these resources covers a creation in `pods` or one of its parts.
    fn covers(resources: Value, subresource: &str) -> bool {
        let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["*"], "resources": resources});
        hook(json!({"rules": [rule]})).concerned(&[target("v1", "pods", subresource, Verb::Create)]).is_some()
    }

    #[test]
    fn a_resource_is_named_with_its_part_or_by_a_star() {
        assert!(covers(json!(["pods"]), ""));
        assert!(covers(json!(["*"]), ""));
        assert!(covers(json!(["pods/*"]), "status"));
        assert!(covers(json!(["*/status"]), "status"));
        assert!(covers(json!(["*/*"]), "") && covers(json!(["*/*"]), "status"));
        assert!(!covers(json!(["pods"]), "status"));
        assert!(!covers(json!(["*"]), "status"));
        assert!(!covers(json!(["jobs"]), ""));
    }

    #[test]
    fn another_version_of_the_same_resource_concerns_a_webhook_unless_it_says_exact() {
        let rule =
            json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        let targets = [target("v2", "pods", "", Verb::Update), target("v1", "pods", "", Verb::Update)];
        let equivalent = hook(json!({"rules": [rule], "matchPolicy": "Equivalent"}));
        assert_eq!(equivalent.concerned(&targets).map(|target| target.version), Some("v1"));
        assert_eq!(hook(json!({"rules": [rule], "matchPolicy": "Exact"})).concerned(&targets), None);
    }

    #[test]
    fn scope_and_operation_count() {
        let rule = |scope: &str, verb: &str| json!({"operations": [verb], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": scope});
        let asked = [target("v1", "pods", "", Verb::Delete)];
        let concerned = |rule: Value| hook(json!({"rules": [rule]})).concerned(&asked).is_some();
        assert!(concerned(rule("Namespaced", "DELETE")) && concerned(rule("*", "*")));
        assert!(!concerned(rule("Cluster", "DELETE")) && !concerned(rule("*", "CREATE")));
    }

    #[test]
    fn labels_of_either_state_and_of_the_namespace_select() {
        let hook = hook(json!({
            "namespaceSelector": {"matchLabels": {"a": "b"}},
            "objectSelector": {"matchExpressions": [{"key": "x", "operator": "In", "values": ["1", "2"]}]},
        }));
        let labelled = |name: &str, value: &str| json!({"metadata": {"labels": {name: value}}});
        let (inside, outside) = (labelled("a", "b"), labelled("a", "c"));
        let (with, without) = (labelled("x", "2"), labelled("x", "3"));
        assert!(hook.selects(Some(&inside), [Some(&with), None]));
        assert!(hook.selects(Some(&inside), [Some(&without), Some(&with)]));
        assert!(!hook.selects(Some(&outside), [Some(&with), None]));
        assert!(!hook.selects(Some(&inside), [Some(&without), None]));
        assert!(hook.selects(None, [Some(&with), None]), "cluster-wide objects are in no namespace");
    }

    #[test]
    fn every_operator_of_a_selector_is_known() {
        let demand = |operator: &str| LabelSelectorRequirement {
            key: "x".into(),
            operator: operator.into(),
            values: vec!["1".into()],
        };
        assert!(holds(&demand("NotIn"), None) && !holds(&demand("NotIn"), Some("1")));
        assert!(holds(&demand("Exists"), Some("")) && !holds(&demand("Exists"), None));
        assert!(holds(&demand("DoesNotExist"), None) && !holds(&demand("DoesNotExist"), Some("1")));
        assert!(!holds(&demand("Odd"), Some("1")));
    }
}
