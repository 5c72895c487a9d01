//! Role-based access control: who may do what, pure.
//!
//! ```text
//!   roles, bindings ──> Policy      indexed by namespace and subject; follows single changes
//!                         |
//!   Attributes ───────> decide ──> Decision: allowed or not, and why
//!                       rules_for   everything a user may do
//!   escalation          what a role would grant beyond what its author may do
//!   aggregation         the rules of a role that is made of others
//!   bootstrap           what a new cluster has, and how an older one catches up
//! ```
//!
//! All rights add up: no rule takes a right away, so the order of rules decides nothing but the reason that is given.

pub mod aggregation;
pub mod bootstrap;
pub mod escalation;
mod policy;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use policy::Policy;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// The group whose members may do everything, whatever the roles say.
pub const MASTERS: &str = "system:masters";

/// The one who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The UID, which outlives the name; may be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Whether the user may do everything.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// A request, as far as rights are concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a User,
    /// The verb: `list`, `create`; of a path, the method.
    pub verb: &'a str,
    /// What the request is about.
    pub target: Target<'a>,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// Objects.
    Resource(ResourceTarget<'a>),
    /// A path that is no resource, like `/healthz`.
    Path(&'a str),
}

/// The objects that a request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceTarget<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural of the resource.
    pub resource: &'a str,
    /// The part of an object; empty for the whole.
    pub subresource: &'a str,
    /// Namespace; empty for all of them and for cluster-wide kinds.
    pub namespace: &'a str,
    /// Name of one object; empty for all of them.
    pub name: &'a str,
}

impl Attributes<'_> {
    /// The namespace whose bindings count; empty for none.
    fn namespace(&self) -> &str {
        match &self.target {
            Target::Resource(target) => target.namespace,
            Target::Path(_) => "",
        }
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Why; empty where there is nothing to say.
    pub reason: String,
}

impl Decision {
    /// Allowed, without a reason.
    pub fn allow() -> Decision {
        Decision { allowed: true, reason: String::new() }
    }
}

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// What may be done; `*` for everything.
    #[serde(default)]
    pub verbs: Vec<String>,
    /// API groups; `*` for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Resources, `RESOURCE/SUBRESOURCE`, `*/SUBRESOURCE`, `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names of objects; none for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths; one that ends in `*` stands for all that begin so.
    #[serde(default, rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// The rules of a role. What cannot be read grants nothing.
    pub fn of_role(role: &Value) -> Vec<Rule> {
        let rules = role.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().filter_map(|rule| Rule::deserialize(rule).ok()).collect()
    }

    /// Whether the rule allows a request.
    pub fn allows(&self, asked: &Attributes<'_>) -> bool {
        has_or_all(&self.verbs, asked.verb)
            && match &asked.target {
                Target::Resource(target) => {
                    has_or_all(&self.api_groups, target.group)
                        && self.resources.iter().any(|resource| names(resource, target))
                        && (self.resource_names.is_empty() || has(&self.resource_names, target.name))
                }
                Target::Path(path) => self.non_resource_urls.iter().any(|url| covers_path(url, path)),
            }
    }
}

/// Whether `RESOURCE/SUBRESOURCE`, `*/SUBRESOURCE` or `*` names what is asked for.
fn names(resource: &str, target: &ResourceTarget<'_>) -> bool {
    if resource == "*" {
        return true;
    }
    if target.subresource.is_empty() {
        return resource == target.resource;
    }
    let subresource = |of: &str| resource.strip_prefix(of).and_then(|rest| rest.strip_prefix('/'));
    [target.resource, "*"].into_iter().any(|of| subresource(of) == Some(target.subresource))
}

/// Whether a path of a rule stands for another one.
pub(crate) fn covers_path(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

fn has(list: &[String], item: &str) -> bool {
    list.iter().any(|candidate| candidate == item)
}

fn has_or_all(list: &[String], item: &str) -> bool {
    list.iter().any(|candidate| candidate == "*" || candidate == item)
}

/// The name of a service account as a user.
pub fn account_user(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

#[cfg(test)]
mod tests;
