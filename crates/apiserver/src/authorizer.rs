//! Who may do what: roles and bindings as they are stored, indexed and kept up to date.
//!
//! Every decision first compares what is stored with what is indexed, which is a comparison of four pointers, and takes
//! in single objects where they differ. So a role counts from the moment when its writer is told that it is stored.

use std::sync::{Arc, LazyLock};

use krafla_admission::rbac::{Attributes, Decision, GROUP, Policy, Rule, Target, User};
use krafla_api::Key;
use krafla_schema::json::go_quote;
use parking_lot::RwLock;
use serde_json::Value;

use crate::ops::Api;
use crate::status::{Qualified, Status};
use crate::store::{Entries, Entry, ResourceId};

static RESOURCES: LazyLock<[ResourceId; 4]> = LazyLock::new(|| {
    ["roles", "clusterroles", "rolebindings", "clusterrolebindings"]
        .map(|plural| format!("{plural}.{GROUP}").as_str().into())
});

/// How requests are authorised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// By roles and bindings.
    #[default]
    Rbac,
    /// Every authenticated user may do everything.
    AlwaysAllow,
}

/// Decides about requests.
#[derive(Default)]
pub(crate) struct Authorizer {
    mode: AuthorizationMode,
    indexed: RwLock<Indexed>,
}

/// The stored objects that the policy was made of, and the policy.
#[derive(Default)]
struct Indexed {
    stored: Stored,
    policy: Policy,
}

#[derive(Clone, Default)]
struct Stored {
    roles: Entries,
    cluster_roles: Entries,
    bindings: Entries,
    cluster_bindings: Entries,
}

impl Authorizer {
    pub(crate) fn new(mode: AuthorizationMode) -> Authorizer {
        Authorizer { mode, ..Authorizer::default() }
    }

    pub(crate) fn mode(&self) -> AuthorizationMode {
        self.mode
    }

    /// Whether a request is allowed.
    pub(crate) fn decide(&self, api: &Api, asked: &Attributes<'_>) -> Decision {
        if self.mode == AuthorizationMode::AlwaysAllow || asked.user.is_master() {
            return Decision::allow();
        }
        self.with_policy(api, |policy| policy.decide(asked))
    }

    /// Everything that a user may do in a namespace, and what is unknown about it.
    pub(crate) fn rules_for(&self, api: &Api, user: &User, namespace: &str) -> (Vec<Rule>, Option<String>) {
        if self.mode == AuthorizationMode::AlwaysAllow {
            return (krafla_admission::rbac::escalation::full_authority().to_vec(), None);
        }
        self.with_policy(api, |policy| {
            let (rules, unresolved) = policy.rules_for(user, namespace);
            (rules.into_iter().cloned().collect(), unresolved)
        })
    }

    /// The rules of a role, if it exists.
    pub(crate) fn role(&self, api: &Api, key: &Key) -> Option<Vec<Rule>> {
        self.with_policy(api, |policy| policy.role(key).map(<[Rule]>::to_vec))
    }

    fn with_policy<R>(&self, api: &Api, ask: impl FnOnce(&Policy) -> R) -> R {
        let stored = Stored::of(api);
        {
            let indexed = self.indexed.read();
            if indexed.stored.is_same(&stored) {
                return ask(&indexed.policy);
            }
        }
        let mut indexed = self.indexed.write();
        indexed.follow(stored);
        ask(&indexed.policy)
    }
}

impl Stored {
    fn of(api: &Api) -> Stored {
        let [roles, cluster_roles, bindings, cluster_bindings] = &*RESOURCES;
        let entries = |resource: &ResourceId| api.store().snapshot(resource).entries;
        Stored {
            roles: entries(roles),
            cluster_roles: entries(cluster_roles),
            bindings: entries(bindings),
            cluster_bindings: entries(cluster_bindings),
        }
    }

    fn is_same(&self, other: &Stored) -> bool {
        let is_same = |a: &Entries, b: &Entries| a.ptr_eq(b) || a.is_empty() && b.is_empty();
        is_same(&self.roles, &other.roles)
            && is_same(&self.cluster_roles, &other.cluster_roles)
            && is_same(&self.bindings, &other.bindings)
            && is_same(&self.cluster_bindings, &other.cluster_bindings)
    }
}

impl Indexed {
    /// Takes in what has changed.
    fn follow(&mut self, stored: Stored) {
        let Indexed { stored: before, policy } = self;
        for (old, new) in [(&before.roles, &stored.roles), (&before.cluster_roles, &stored.cluster_roles)] {
            for_each_change(old, new, |key, role| match role {
                Some(role) => policy.put_role(key, &role),
                None => policy.remove_role(key),
            });
        }
        for (old, new) in
            [(&before.bindings, &stored.bindings), (&before.cluster_bindings, &stored.cluster_bindings)]
        {
            for_each_change(old, new, |key, binding| match binding {
                Some(binding) => policy.put_binding(key, &binding),
                None => policy.remove_binding(key),
            });
        }
        *before = stored;
    }
}

/// Calls `take` with every object that is new or changed, and with the keys of those that are gone.
fn for_each_change(old: &Entries, new: &Entries, mut take: impl FnMut(&Key, Option<Value>)) {
    // What cannot be read grants nothing.
    let read = |entry: &Entry| serde_json::from_slice(&entry.bytes).unwrap_or_default();
    let mut before = old.iter().peekable();
    for (key, entry) in new {
        while let Some((gone, _)) = before.next_if(|(other, _)| *other < key) {
            take(gone, None);
        }
        let same = before.next_if(|(other, _)| *other == key);
        if same.is_none_or(|(_, other)| !Arc::ptr_eq(other, entry)) {
            take(key, Some(read(entry)));
        }
    }
    before.for_each(|(gone, _)| take(gone, None));
}

/// Why a request is refused, in the words of a kube-apiserver.
pub(crate) fn forbidden(asked: &Attributes<'_>, reason: &str) -> Status {
    let (user, verb) = (go_quote(&asked.user.name), asked.verb);
    let sanitized = |text: String| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let with_reason = |why: String| {
        let why = sanitized(why);
        if reason.is_empty() { why } else { format!("{why}: {reason}") }
    };
    match asked.target {
        Target::Path(path) => {
            Status::forbidden_path(&with_reason(format!("User {user} cannot {verb} path {}", go_quote(path))))
        }
        Target::Resource(target) => {
            let slash = if target.subresource.is_empty() { "" } else { "/" };
            let what = go_quote(&format!("{}{slash}{}", target.resource, target.subresource));
            let group = go_quote(target.group);
            let place = match target.namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", go_quote(namespace)),
            };
            let why = with_reason(format!(
                "User {user} cannot {verb} resource {what} in API group {group} {place}"
            ));
            Status::forbidden(&Qualified { group: target.group, what: target.resource }, target.name, &why)
        }
    }
}
