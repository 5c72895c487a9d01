//! Which flow a request belongs to: the first flow schema that matches it, and the priority level that the schema names.
//!
//! The server does not queue requests by priority level: on one machine they share one limit. Responses name the schema and
//! the level, as kube-apiserver's do.

use serde::Deserialize;
use serde_json::Value;

const ANY: &str = "*";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// A flow schema whose priority level exists.
#[derive(Debug)]
pub struct Flow {
    /// Identity of the schema.
    pub schema_uid: String,
    /// Identity of the priority level.
    pub level_uid: String,
    order: (i64, String),
    rules: Vec<Rule>,
}

/// A request as flow schemas see it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Name of the user.
    pub user: &'a str,
    /// Groups of the user.
    pub groups: &'a [String],
    /// What is done, in lower case.
    pub verb: &'a str,
    /// What it is done to.
    pub what: What<'a>,
}

/// What a request is about.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// A resource, with its subresource after a slash.
    Resource {
        /// API group.
        group: &'a str,
        /// `pods` or `pods/log`.
        resource: &'a str,
        /// Namespace; empty outside of namespaces.
        namespace: &'a str,
    },
    /// Any other path.
    Path(&'a str),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rule {
    subjects: Vec<Subject>,
    resource_rules: Vec<ResourceRule>,
    non_resource_rules: Vec<PathRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Subject {
    user: Option<Named>,
    group: Option<Named>,
    service_account: Option<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    namespace: String,
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    cluster_scope: bool,
    namespaces: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PathRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    urls: Vec<String>,
}

impl Flow {
    /// Reads a flow schema. `level_uid` is the identity of its priority level.
    pub fn new(schema: &Value, level_uid: &str) -> Option<Flow> {
        let precedence = schema.pointer("/spec/matchingPrecedence").and_then(Value::as_i64).unwrap_or(0);
        let rules = schema.pointer("/spec/rules").map_or(Ok(Vec::new()), Vec::deserialize);
        Some(Flow {
            schema_uid: krafla_schema::object::uid(schema).to_owned(),
            level_uid: level_uid.to_owned(),
            order: (precedence, krafla_schema::object::name(schema).to_owned()),
            rules: rules.ok()?,
        })
    }

    fn matches(&self, asked: &Asked<'_>) -> bool {
        self.rules.iter().any(|rule| {
            rule.subjects.iter().any(|subject| subject.matches(asked))
                && match asked.what {
                    What::Resource { group, resource, namespace } => rule.resource_rules.iter().any(|rule| {
                        has(&rule.verbs, asked.verb)
                            && has(&rule.api_groups, group)
                            && has(&rule.resources, resource)
                            && if namespace.is_empty() {
                                rule.cluster_scope
                            } else {
                                has(&rule.namespaces, namespace)
                            }
                    }),
                    What::Path(path) => rule
                        .non_resource_rules
                        .iter()
                        .any(|rule| has(&rule.verbs, asked.verb) && rule.has_path(path)),
                }
        })
    }
}

impl Subject {
    fn matches(&self, asked: &Asked<'_>) -> bool {
        let is_user = |named: &Named| has_name(named, asked.user);
        let is_group = |named: &Named| asked.groups.iter().any(|group| has_name(named, group));
        let is_account = |named: &Named| {
            let account = asked.user.strip_prefix(ACCOUNT_PREFIX).and_then(|rest| rest.split_once(':'));
            account.is_some_and(|(namespace, name)| named.namespace == namespace && has_name(named, name))
        };
        self.user.as_ref().is_some_and(is_user)
            || self.group.as_ref().is_some_and(is_group)
            || self.service_account.as_ref().is_some_and(is_account)
    }
}

impl PathRule {
    fn has_path(&self, path: &str) -> bool {
        self.urls.iter().any(|url| match url.strip_suffix(ANY) {
            Some(prefix) => path.starts_with(prefix),
            None => path == url,
        })
    }
}

fn has_name(named: &Named, name: &str) -> bool {
    named.name == ANY || named.name == name
}

fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|item| item == ANY || item == word)
}

/// Puts flows into the order in which they are tried: by precedence, then by name.
pub fn sort(flows: &mut [Flow]) {
    flows.sort_by(|a, b| a.order.cmp(&b.order));
}

/// The first flow that a request matches.
pub fn classify<'a>(flows: &'a [Flow], asked: &Asked<'_>) -> Option<&'a Flow> {
    flows.iter().find(|flow| flow.matches(asked))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The flows of a new cluster, and one more.
    fn flows() -> Vec<Flow> {
        let rule = json!({
            "subjects": [{"kind": "User", "user": {"name": "noxu"}}],
            "resourceRules": [{
                "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["a"],
            }],
        });
        let own = json!({
            "metadata": {"name": "own"},
            "spec": {"matchingPrecedence": 1000, "rules": [rule]},
        });
        let schemas = krafla_admission::builtin::flow::schemas().into_iter().chain([own]);
        let mut flows: Vec<Flow> = schemas.filter_map(|schema| Flow::new(&schema, "level")).collect();
        sort(&mut flows);
        flows
    }

    fn name<'a>(flows: &'a [Flow], user: &str, group: &str, verb: &str, what: What<'_>) -> &'a str {
        let groups = [group.to_owned(), "system:authenticated".to_owned()];
        let asked = Asked { user, groups: &groups, verb, what };
        classify(flows, &asked).map_or("", |flow| flow.order.1.as_str())
    }

    #[test]
    fn the_first_schema_that_matches_counts() {
        let flows = flows();
        let pods = |namespace| What::Resource { group: "", resource: "pods", namespace };
        let lease =
            What::Resource { group: "coordination.k8s.io", resource: "leases", namespace: "kube-system" };
        let account = "system:serviceaccount:kube-system:x";
        assert_eq!(name(&flows, "admin", "system:masters", "get", pods("a")), "exempt");
        assert_eq!(name(&flows, "noxu", "", "get", pods("a")), "own");
        assert_eq!(name(&flows, "noxu", "", "get", pods("b")), "global-default");
        assert_eq!(name(&flows, "noxu", "", "list", pods("")), "global-default");
        assert_eq!(name(&flows, account, "system:serviceaccounts", "get", lease), "system-leader-election");
        assert_eq!(
            name(&flows, account, "system:serviceaccounts", "list", lease),
            "kube-system-service-accounts"
        );
        assert_eq!(
            name(&flows, "system:serviceaccount:b:x", "system:serviceaccounts", "list", pods("b")),
            "service-accounts"
        );
        assert_eq!(name(&flows, "foo", "", "get", What::Path("/readyz")), "probes");
        assert_eq!(name(&flows, "foo", "", "get", What::Path("/version")), "global-default");
    }
}
