//! Rights that depend on what is written, not only on where: nobody grants more than they hold.

use krafla_admission::rbac::{self, Attributes, Decision, ResourceTarget, Rule, Target, User, escalation};
use krafla_api::Key;
use krafla_schema::json::go_quote;
use krafla_schema::object;
use serde_json::Value;

use super::{Api, WriteOptions};
use crate::authorizer::{AuthorizationMode, Authorizer, forbidden};
use crate::registry::Resource;
use crate::status::Status;

impl Api {
    /// The same server with another way to authorise requests. To be called before it is cloned.
    pub fn authorizing(mut self, mode: AuthorizationMode) -> Api {
        if let Some(inner) = std::sync::Arc::get_mut(&mut self.inner) {
            inner.authorizer = Authorizer::new(mode);
        }
        self
    }

    pub(crate) fn authorizer(&self) -> &Authorizer {
        &self.inner.authorizer
    }

    /// Whether a request is allowed.
    pub(crate) fn authorize(&self, asked: &Attributes<'_>) -> Decision {
        self.authorizer().decide(self, asked)
    }

    /// An update or an apply that makes an object needs the right to create it, too.
    pub(super) fn authorize_creation(
        &self,
        resource: &Resource,
        key: &Key,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        let Some(user) = &options.user else { return Ok(()) };
        let names = &resource.names;
        let target = ResourceTarget {
            group: &names.group,
            version: &names.version,
            resource: &names.plural,
            subresource: "",
            namespace: &key.namespace,
            name: &key.name,
        };
        let asked = Attributes { user, verb: "create", target: Target::Resource(target) };
        let decision = self.authorize(&asked);
        if decision.allowed { Ok(()) } else { Err(forbidden(&asked, &decision.reason)) }
    }

    /// Refuses a role or a binding that would grant more than its author may do.
    pub(super) fn confirm_grant(
        &self,
        resource: &Resource,
        (new, old): (&Value, Option<&Value>),
        options: &WriteOptions,
    ) -> Result<(), Status> {
        let Some(user) = options.user.as_deref().filter(|_| &*resource.names.group == rbac::GROUP) else {
            return Ok(());
        };
        if user.is_master() || old.is_some_and(|old| differs_only_in_owners(new, old)) {
            return Ok(());
        }
        let refused = match &*resource.names.plural {
            "roles" | "clusterroles" => self.confirm_role(user, resource, new, old),
            "rolebindings" | "clusterrolebindings" => self.confirm_binding(user, resource, new)?,
            _ => return Ok(()),
        };
        refused.map_err(|why| Status::forbidden(&resource.qualified(), object::name(new), &why))
    }

    fn confirm_role(
        &self,
        user: &User,
        resource: &Resource,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), String> {
        let namespace = object::namespace(new);
        // The name of an object that is to be created is not part of its path.
        let name = old.map_or("", object::name);
        if self.may(user, "escalate", &resource.names.plural, namespace, name) {
            return Ok(());
        }
        let (held, unresolved) = self.authorizer().rules_for(self, user, namespace);
        let held: Vec<&Rule> = held.iter().collect();
        escalation::confirm(user, &held, &Rule::of_role(new), unresolved.as_deref())?;
        let aggregates = |role: &Value| rbac::aggregation::has_selectors(role);
        let holds_all = || escalation::uncovered(&held, &escalation::full_authority()).is_empty();
        if (aggregates(new) || old.is_some_and(aggregates)) && !holds_all() {
            return Err("must have cluster-admin privileges to use the aggregationRule".to_owned());
        }
        Ok(())
    }

    fn confirm_binding(
        &self,
        user: &User,
        resource: &Resource,
        binding: &Value,
    ) -> Result<Result<(), String>, Status> {
        let namespace = object::namespace(binding);
        let (kind, name) =
            (object::text_at(binding, "roleRef.kind"), object::text_at(binding, "roleRef.name"));
        let (plural, role) = match kind.as_str() {
            "Role" => ("roles", Key::new(namespace, &name)),
            "ClusterRole" => ("clusterroles", Key::new("", &name)),
            other => {
                let why = format!("unsupported role reference kind: {}", go_quote(other));
                return Err(Status::plain(why));
            }
        };
        if self.may(user, "bind", plural, namespace, &name) {
            return Ok(Ok(()));
        }
        // A kube-apiserver names the resource of the request here, not that of the role.
        let missing = || Status::not_found(&resource.qualified(), &name);
        let wanted = self.authorizer().role(self, &role).ok_or_else(missing)?;
        let (held, unresolved) = self.authorizer().rules_for(self, user, namespace);
        let held: Vec<&Rule> = held.iter().collect();
        Ok(escalation::confirm(user, &held, &wanted, unresolved.as_deref()))
    }

    fn may(&self, user: &User, verb: &str, plural: &str, namespace: &str, name: &str) -> bool {
        let target = ResourceTarget {
            group: rbac::GROUP,
            version: "*",
            resource: plural,
            subresource: "",
            namespace,
            name,
        };
        self.authorize(&Attributes { user, verb, target: Target::Resource(target) }).allowed
    }
}

/// Whether a change is one that lets an object go: of its finalizers and owners only.
fn differs_only_in_owners(new: &Value, old: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        let metadata = object::metadata(&mut object);
        for field in ["finalizers", "ownerReferences", "managedFields", "resourceVersion"] {
            metadata.remove(field);
        }
        object
    };
    without(new) == without(old)
}
