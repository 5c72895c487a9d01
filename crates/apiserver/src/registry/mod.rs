//! Everything that is served, in one table: built-in kinds and CustomResourceDefinitions' kinds alike.
//!
//! ```text
//!   builtin.rs   one row per built-in resource ┐
//!   custom.rs    a CRD object, read as rows    ├─>  Registry: (group, version, plural) -> Arc<Resource>
//!                                              ┘       |
//!        request paths, discovery, OpenAPI, tables, defaulting, validation all read it here
//! ```
//!
//! The table is replaced as a whole when a CRD comes, changes or goes, so a request sees one consistent state of it.

mod builtin;
pub mod conversion;
pub mod custom;
pub mod scale;
pub mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use krafla_api::{Kind, Pairs, Scope, Served};
use krafla_schema::TypeId;
use krafla_schema::names::NameRule;
use krafla_schema::structural::Structural;
use serde_json::Value;
use tokio::sync::watch;

use crate::kinds::Rules;
use crate::status::Qualified;
use crate::store::ResourceId;
use crate::table::Columns;
use conversion::Conversion;
use scale::Scale;
use versions::Versions;

/// One served version of one resource.
pub struct Resource {
    /// What it is called.
    pub names: Names,
    /// Cluster-wide or namespaced.
    pub scope: Scope,
    /// Where its objects are stored; versions of one resource share it.
    pub storage: ResourceId,
    /// The `apiVersion` and `kind` that stored objects carry.
    pub stored_as: (Arc<str>, Arc<str>),
    /// What can be done with it.
    pub verbs: &'static [&'static str],
    /// What else can be asked of one of its objects.
    pub subresources: Vec<Subresource>,
    /// Which names its objects may have.
    pub name_rule: NameRule,
    /// Whether and how `metadata.generation` counts.
    pub generation: Generation,
    /// Whether a PUT may leave out `metadata.resourceVersion`.
    pub unconditional_update: bool,
    /// Whether a PUT of a missing object creates it.
    pub create_on_update: bool,
    /// Whether a deletion answers with the object rather than with a plain success.
    pub returns_deleted: bool,
    /// The fields besides name and namespace that field selectors know.
    pub selectable: Vec<String>,
    /// The columns of `kubectl get`.
    pub columns: Columns,
    /// Defaulting and validation.
    pub rules: Arc<dyn Rules>,
    /// The type of its objects, where that is built in.
    pub schema: Option<TypeId>,
    /// The schema that a CRD gives them.
    pub custom: Option<CustomSchema>,
    /// Whether a CRD defines it: some answers differ in form from those for built-in kinds.
    pub is_custom: bool,
    /// Where an object says how many replicas it wants, if it can be scaled.
    pub scale: Option<Scale>,
    /// How its objects are stored in another form than that of this version.
    pub conversion: Option<Conversion>,
    /// What everybody is told who uses this version.
    pub deprecation: Option<String>,
}

/// How a CRD describes the objects of one version.
#[derive(Clone)]
pub struct CustomSchema {
    /// As it stands in the CRD.
    pub document: Value,
    /// As it is used.
    pub compiled: Arc<Structural>,
    /// All versions of the CRD, and how objects move between them.
    pub versions: Arc<Versions>,
}

/// What a resource is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// API version.
    pub version: Arc<str>,
    /// The `kind` of one object.
    pub kind: Arc<str>,
    /// The `kind` of a list.
    pub list_kind: Arc<str>,
    /// The name in URLs.
    pub plural: Arc<str>,
    /// The name for one object.
    pub singular: Arc<str>,
    /// What else `kubectl` accepts.
    pub short_names: Vec<Arc<str>>,
    /// Groups of kinds that `kubectl get` knows, such as `all`.
    pub categories: Vec<Arc<str>>,
}

impl Names {
    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl From<&Resource> for Served {
    fn from(resource: &Resource) -> Served {
        let Names { group, version, kind, plural, singular, .. } = &resource.names;
        let [group, version, kind, plural, singular] =
            [group, version, kind, plural, singular].map(|name| name.to_string());
        Served { group, version, kind, plural, singular, scope: resource.scope }
    }
}

/// Something below an object's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// The last part of the path.
    pub name: &'static str,
    /// Group, version and kind of its body, where they are not the object's own.
    pub body: Option<[&'static str; 3]>,
    /// What can be done with it.
    pub verbs: &'static [&'static str],
}

/// Whether and how `metadata.generation` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The server does not touch it.
    Untouched,
    /// It is 1 from creation on.
    Fixed,
    /// It is 1 at creation, and one more after each change of anything but metadata and status.
    Counts,
    /// It is not there at creation, and counts from the first such change on.
    CountsChanges,
}

impl Resource {
    /// The resource as messages name it.
    pub fn qualified(&self) -> Qualified<'_> {
        // Events are known by the path that they were asked for at, though not as kinds.
        let is_event = &*self.names.group == "events.k8s.io";
        let group = if is_event { &self.names.group } else { self.spoken_group() };
        Qualified { group, what: &self.names.plural }
    }

    /// The kind as messages about invalid objects name it.
    pub fn qualified_kind(&self) -> Qualified<'_> {
        Qualified { group: self.spoken_group(), what: &self.names.kind }
    }

    /// The type that upstream's program has for the kind: `core.ConfigMap`.
    pub fn go_type(&self) -> String {
        let package = match self.spoken_group().split('.').next() {
            Some("") | None => "core",
            Some(group) => group,
        };
        format!("{package}.{}", self.names.kind)
    }

    /// Whether objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Whether its objects can be made and then asked for. Reviews, for instance, are only answered.
    pub fn is_kept(&self) -> bool {
        ["create", "get"].iter().all(|verb| self.verbs.contains(verb))
    }

    /// One of its subresources.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether status is written through `/status` only.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether the bytes of an entry are what a client of this version gets. Entries of custom kinds are brought into
    /// the version of a request before they are shown, since that may take a call to a webhook.
    pub fn is_shown_as_stored(&self) -> bool {
        let stored = &*self.stored_as.0;
        let (group, version) = stored.split_once('/').unwrap_or(("", stored));
        self.is_custom || (group, version) == (&*self.names.group, &*self.names.version)
    }

    /// The fields by which an object of this version can be selected.
    pub fn selected_fields(&self, object: &Value) -> Pairs {
        self.selectable.iter().map(|field| (field.as_str(), self.rules.selectable(object, field))).collect()
    }

    /// How stored objects of a custom kind are brought into this version; `None` if all of them are stored in it.
    pub fn versions_to_convert(&self) -> Option<&Arc<Versions>> {
        let versions = &self.custom.as_ref()?.versions;
        (!versions.are_all_stored_as(&self.names.api_version())).then_some(versions)
    }

    /// The key that kube-apiserver would use in etcd; it appears in messages about preconditions.
    pub fn storage_path(&self, namespace: &str, name: &str) -> String {
        let group = if self.is_custom { format!("{}/", self.names.group) } else { String::new() };
        let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        format!("/registry/{group}{}/{namespace}{name}", builtin::storage_prefix(self))
    }
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.names.api_version(), self.names.plural)
    }
}

/// All served resources.
pub struct Registry {
    table: ArcSwap<Table>,
    /// Tells that the table was replaced.
    changes: watch::Sender<()>,
}

/// One state of the registry.
#[derive(Clone, Default)]
pub struct Table {
    /// By group, then version (best first), then plural.
    groups: BTreeMap<Arc<str>, Vec<Version>>,
}

/// One version of a group.
#[derive(Clone)]
pub struct Version {
    /// Its name.
    pub name: Arc<str>,
    /// Its resources by plural.
    pub resources: BTreeMap<Arc<str>, Arc<Resource>>,
}

impl Registry {
    /// A registry of the built-in kinds. CRDs' kinds are added as the CRDs are found in the store.
    pub fn builtin() -> Registry {
        let mut table = Table::default();
        for resource in builtin::resources() {
            table.insert(Arc::new(resource));
        }
        Registry { table: ArcSwap::from_pointee(table), changes: watch::Sender::default() }
    }

    /// An independent registry that begins with everything that is served here.
    pub fn fork(&self) -> Registry {
        Registry { table: ArcSwap::new(self.table()), changes: watch::Sender::default() }
    }

    /// Tells of every change to what is served from now on.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The present state.
    pub fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    /// The resource behind a request path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.table.load().find(group, version, plural).cloned()
    }

    /// The resource of one of the kinds that the program itself works with.
    pub fn of_kind(&self, kind: Kind) -> Option<Arc<Resource>> {
        let info = kind.info();
        self.find(info.group, info.version, info.plural)
    }

    /// Replaces the served versions of `plural.group` by `versions`; none of them takes the resource away.
    pub fn replace(&self, group: &str, plural: &str, versions: Vec<Arc<Resource>>) {
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            table.remove(group, plural);
            versions.iter().cloned().for_each(|resource| table.insert(resource));
            table
        });
        self.changes.send_replace(());
    }
}

impl Table {
    /// The resource behind a request path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let versions = self.groups.get(group)?;
        versions.iter().find(|of| &*of.name == version)?.resources.get(plural)
    }

    /// All groups by name, each with its versions, best first.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &[Version])> {
        self.groups.iter().map(|(name, versions)| (&**name, versions.as_slice()))
    }

    /// The versions of one group, best first.
    pub fn versions(&self, group: &str) -> &[Version] {
        self.groups.get(group).map_or(&[], Vec::as_slice)
    }

    /// Whether a group has kinds that no CRD defines.
    pub fn has_builtin(&self, group: &str) -> bool {
        let mut resources = self.versions(group).iter().flat_map(|version| version.resources.values());
        resources.any(|resource| !resource.is_custom)
    }

    /// All resources.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.values().flatten().flat_map(|version| version.resources.values())
    }

    /// One served version of the resource with this storage: enough to delete its objects.
    pub fn of_storage(&self, storage: &ResourceId) -> Option<&Arc<Resource>> {
        self.resources().find(|resource| resource.storage == *storage)
    }

    /// The resource of a manifest.
    pub fn of_manifest(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let version = self.versions(group).iter().find(|of| &*of.name == version)?;
        version.resources.values().find(|resource| &*resource.names.kind == kind)
    }

    fn insert(&mut self, resource: Arc<Resource>) {
        let versions = self.groups.entry(resource.names.group.clone()).or_default();
        let place = versions.iter().position(|version| version.name == resource.names.version);
        let version = match place.and_then(|place| versions.get_mut(place)) {
            Some(version) => version,
            None => {
                let name = resource.names.version.clone();
                versions.push(Version { name, resources: BTreeMap::new() });
                versions.sort_by_cached_key(|version| std::cmp::Reverse(version_rank(&version.name)));
                // The version was pushed just now, so it is found.
                let Some(version) =
                    versions.iter_mut().find(|version| version.name == resource.names.version)
                else {
                    return;
                };
                version
            }
        };
        version.resources.insert(resource.names.plural.clone(), resource);
    }

    fn remove(&mut self, group: &str, plural: &str) {
        let Some(versions) = self.groups.get_mut(group) else { return };
        for version in versions.iter_mut() {
            version.resources.remove(plural);
        }
        versions.retain(|version| !version.resources.is_empty());
        if versions.is_empty() {
            self.groups.remove(group);
        }
    }
}

/// Orders API versions as Kubernetes does: stable before beta before alpha, then by number, other names last.
fn version_rank(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at_checked(end)?;
        let major = major.parse::<u32>().ok()?;
        let (stability, minor) = match rest {
            "" => (3, "0"),
            _ => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
                (Some(minor), _) => (2, minor),
                (_, Some(minor)) => (1, minor),
                _ => return None,
            },
        };
        Some((stability, major, minor.parse::<u32>().ok()?))
    };
    let (stability, major, minor) = parse().unwrap_or((0, 0, 0));
    (stability, major, minor, std::cmp::Reverse(version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_stability_then_number_then_name() {
        let mut versions = ["v1alpha1", "foo10", "v2beta1", "v1", "foo1", "v10", "v1beta2", "v2", "v1beta1"];
        versions.sort_by_cached_key(|version| std::cmp::Reverse(version_rank(version)));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "foo1", "foo10"]
        );
    }

    #[test]
    fn every_kind_that_is_not_volcanos_is_built_in() {
        let registry = Registry::builtin();
        for kind in Kind::ALL.into_iter().filter(|kind| !Kind::VOLCANO.contains(kind)) {
            let resource = registry.of_kind(kind).unwrap_or_else(|| panic!("{kind} is not served"));
            let info = kind.info();
            assert_eq!((&*resource.names.kind, resource.scope), (info.kind, info.scope), "{kind}");
            assert_eq!(resource.has_status(), info.has_status_subresource, "{kind}");
            let short: Vec<&str> = resource.names.short_names.iter().map(|name| &**name).collect();
            assert_eq!(short, info.short_names, "{kind}");
        }
    }
}
