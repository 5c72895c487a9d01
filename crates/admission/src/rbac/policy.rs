//! All roles and bindings, indexed by the subjects of the bindings.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use krafla_api::Key;
use serde_json::Value;

use super::{Attributes, Decision, Rule, User, account_user};

/// All roles and bindings of a cluster. A change of one object costs as much as that object has subjects, and a decision
/// as much as its user has bindings, however many others there are.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Roles by namespace and name; ClusterRoles have no namespace.
    roles: HashMap<Key, Arc<[Rule]>>,
    bindings: HashMap<Key, Binding>,
    /// The bindings of each namespace, and under "" those of the cluster, by subject.
    by_namespace: HashMap<Arc<str>, Subjects>,
}

#[derive(Clone, Debug)]
struct Binding {
    role_kind: String,
    /// The role. A binding in a namespace may name a ClusterRole, too.
    role: Key,
    subjects: Vec<Subject>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Subject {
    /// The user that the subject is, unless it is a group. An account without a namespace is one of the binding's.
    fn user_name(&self, binding_namespace: &str) -> Option<String> {
        let namespace = if self.namespace.is_empty() { binding_namespace } else { &self.namespace };
        match self.kind.as_str() {
            "User" => Some(self.name.clone()),
            "ServiceAccount" if !namespace.is_empty() => Some(account_user(namespace, &self.name)),
            _ => None,
        }
    }
}

/// Which bindings name a user or a group, and as which of their subjects.
#[derive(Clone, Debug, Default)]
struct Subjects {
    users: HashMap<String, BTreeMap<Arc<str>, usize>>,
    groups: HashMap<String, BTreeMap<Arc<str>, usize>>,
}

impl Policy {
    /// Takes in a role that is new or has changed.
    pub fn put_role(&mut self, key: &Key, role: &Value) {
        self.roles.insert(key.clone(), Rule::of_role(role).into());
    }

    /// Forgets a role.
    pub fn remove_role(&mut self, key: &Key) {
        self.roles.remove(key);
    }

    /// Takes in a binding that is new or has changed.
    pub fn put_binding(&mut self, key: &Key, binding: &Value) {
        self.remove_binding(key);
        let binding = Binding::read(key, binding);
        let subjects = self.by_namespace.entry(key.namespace.clone()).or_default();
        for (index, subject) in binding.subjects.iter().enumerate() {
            subjects.add(subject, index, key);
        }
        self.bindings.insert(key.clone(), binding);
    }

    /// Forgets a binding.
    pub fn remove_binding(&mut self, key: &Key) {
        let Some(binding) = self.bindings.remove(key) else { return };
        let Some(subjects) = self.by_namespace.get_mut(&key.namespace) else { return };
        for subject in &binding.subjects {
            subjects.forget(subject, key);
        }
        if subjects.users.is_empty() && subjects.groups.is_empty() {
            self.by_namespace.remove(&key.namespace);
        }
    }

    /// The rules of a role, if it exists.
    pub fn role(&self, key: &Key) -> Option<&[Rule]> {
        self.roles.get(key).map(|rules| &**rules)
    }

    /// Whether a request is allowed.
    pub fn decide(&self, asked: &Attributes<'_>) -> Decision {
        let mut missing = Vec::new();
        for grant in self.grants(asked.user, asked.namespace()) {
            match grant.rules {
                Some(rules) if rules.iter().any(|rule| rule.allows(asked)) => {
                    let reason = format!("RBAC: allowed by {}", grant.source());
                    return Decision { allowed: true, reason };
                }
                Some(_) => {}
                None => missing.push(grant.binding.missing_role()),
            }
        }
        let reason = if missing.is_empty() { String::new() } else { format!("RBAC: {}", joined(missing)) };
        Decision { allowed: false, reason }
    }

    /// Everything that a user may do in a namespace, and which roles are missing that would say more.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<&Rule>, Option<String>) {
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        for grant in self.grants(user, namespace) {
            match grant.rules {
                Some(granted) => rules.extend(granted),
                None => missing.push(grant.binding.missing_role()),
            }
        }
        (rules, if missing.is_empty() { None } else { Some(joined(missing)) })
    }

    /// The bindings of a user: of the cluster first, each in the order of their names.
    fn grants<'a, 'u>(
        &'a self,
        user: &'u User,
        namespace: &'u str,
    ) -> impl Iterator<Item = Grant<'a>> + use<'a, 'u> {
        let scopes = ["", namespace].into_iter().take(if namespace.is_empty() { 1 } else { 2 });
        scopes.filter_map(|scope| self.by_namespace.get_key_value(scope)).flat_map(
            move |(scope, subjects)| {
                subjects.bindings_of(user).into_iter().filter_map(move |(name, index)| {
                    let key = Key { namespace: scope.clone(), name: name.clone() };
                    let (key, binding) = self.bindings.get_key_value(&key)?;
                    let subject = binding.subjects.get(index)?;
                    Some(Grant { key, binding, subject, rules: self.role(&binding.role) })
                })
            },
        )
    }
}

/// A binding that concerns a user.
struct Grant<'a> {
    key: &'a Key,
    binding: &'a Binding,
    subject: &'a Subject,
    /// What its role allows, if the role exists.
    rules: Option<&'a [Rule]>,
}

impl Grant<'_> {
    fn source(&self) -> String {
        let Key { namespace, name } = self.key;
        let Subject { kind, name: subject, namespace: of_subject } = self.subject;
        let (binding, shown) = match &**namespace {
            "" => ("ClusterRoleBinding", name.to_string()),
            namespace => ("RoleBinding", format!("{name}/{namespace}")),
        };
        let subject = match (kind.as_str(), of_subject.as_str()) {
            ("ServiceAccount", "") => format!("{subject}/{namespace}"),
            ("ServiceAccount", namespace) => format!("{subject}/{namespace}"),
            _ => subject.clone(),
        };
        let (role, role_name) = (&self.binding.role_kind, &self.binding.role.name);
        format!("{binding} {shown:?} of {role} {role_name:?} to {kind} {subject:?}")
    }
}

impl Binding {
    fn read(key: &Key, binding: &Value) -> Binding {
        let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        let role = &binding["roleRef"];
        let role_kind = text(role, "kind");
        let namespace = if role_kind == "Role" { &*key.namespace } else { "" };
        let subjects = binding["subjects"].as_array().into_iter().flatten();
        let subjects = subjects.map(|subject| Subject {
            kind: text(subject, "kind"),
            name: text(subject, "name"),
            namespace: text(subject, "namespace"),
        });
        let role = Key::new(namespace, &text(role, "name"));
        Binding { role_kind, role, subjects: subjects.collect() }
    }

    fn missing_role(&self) -> String {
        let Binding { role_kind, role, .. } = self;
        match role_kind.as_str() {
            "Role" | "ClusterRole" => {
                format!("{}.{} {:?} not found", role_kind.to_lowercase(), super::GROUP, role.name)
            }
            other => format!("unsupported role reference kind: {other:?}"),
        }
    }
}

impl Subjects {
    fn add(&mut self, subject: &Subject, index: usize, binding: &Key) {
        let (names, name) = match subject.user_name(&binding.namespace) {
            Some(user) => (&mut self.users, user),
            None if subject.kind == "Group" => (&mut self.groups, subject.name.clone()),
            None => return,
        };
        // The first subject that fits is the one that reasons name.
        names.entry(name).or_default().entry(binding.name.clone()).or_insert(index);
    }

    fn forget(&mut self, subject: &Subject, binding: &Key) {
        let (names, name) = match subject.user_name(&binding.namespace) {
            Some(user) => (&mut self.users, user),
            None => (&mut self.groups, subject.name.clone()),
        };
        let Some(named) = names.get_mut(&name) else { return };
        named.remove(&binding.name);
        if named.is_empty() {
            names.remove(&name);
        }
    }

    /// The bindings of a user, each once, as the first of its subjects that fits.
    fn bindings_of(&self, user: &User) -> BTreeMap<&Arc<str>, usize> {
        let mut found = BTreeMap::new();
        let groups = user.groups.iter().filter_map(|group| self.groups.get(group));
        for (name, index) in self.users.get(&user.name).into_iter().chain(groups).flatten() {
            let first = found.entry(name).or_insert(*index);
            *first = (*first).min(*index);
        }
        found
    }
}

/// Several complaints as one, each of them once.
fn joined(mut complaints: Vec<String>) -> String {
    let mut seen = std::collections::HashSet::new();
    complaints.retain(|complaint| seen.insert(complaint.clone()));
    match complaints.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
