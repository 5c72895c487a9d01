//! Server-side apply, and the book-keeping of fields that every other write needs for it.
//!
//! ```text
//!   apply:   live object + applied object -> merged; minus what the same manager applied before and nobody else has
//!   update:  live object, new object      -> who changed a field owns it
//!   both:    -> metadata.managedFields
//! ```
//!
//! What an apply may not do is change a field that another manager owns, unless it is forced.

mod managed;
mod set;
mod shape;
mod walk;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use self::managed::{Managed, Manager, Owned};
use self::set::FieldSet;
use self::shape::At;
use self::walk::Comparison;
use super::complete;
use super::structural::Structural;
use super::table::TypeId;

/// Who applies with `kubectl apply --server-side`, unless it is told another name.
pub const KUBECTL: &str = "kubectl";

/// Where `kubectl apply` notes what it applied last, to find out at the next time what is no longer wanted.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How the objects of a kind merge.
#[derive(Clone, Copy)]
pub enum Merges<'s> {
    /// As the type table says.
    Builtin(TypeId),
    /// As the CRD's schema says.
    Custom(&'s Structural),
}

/// Who writes, and how.
#[derive(Clone, Debug)]
pub struct Writer<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// The subresource that is written through; empty for the object itself.
    pub subresource: &'a str,
    /// The `apiVersion` of the written kind.
    pub api_version: &'a str,
    /// The time, as objects carry it.
    pub now: &'a str,
    /// The fields that this way of writing cannot set, such as `status` of the object itself.
    pub ignored: &'a [&'a [&'a str]],
    /// The fields that the kind's other version calls otherwise: dotted paths of this version and of that one.
    pub renamed: &'a [(&'a str, &'a str)],
}

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The applied object is not shaped like its kind; kube-apiserver's words, without the object's name.
    NotTyped(String),
    /// Other managers own fields that would change.
    Conflicts(Vec<Conflict>),
}

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner, as messages name it: `"one"`, `"maker" using v1`.
    pub manager: String,
    /// The field: `.data.x`.
    pub field: String,
}

impl Conflict {
    /// The message about all conflicts of an apply.
    pub fn message(conflicts: &[Conflict]) -> String {
        if let [only] = conflicts {
            return format!("Apply failed with 1 conflict: conflict with {}: {}", only.manager, only.field);
        }
        let mut lines: Vec<String> = Vec::new();
        let mut manager = None;
        for conflict in conflicts {
            if manager != Some(&conflict.manager) {
                lines.push(format!("conflicts with {}:", conflict.manager));
                manager = Some(&conflict.manager);
            }
            lines.push(format!("- {}", conflict.field));
        }
        format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
    }
}

impl<'s> Merges<'s> {
    fn at(self) -> At<'s> {
        match self {
            Merges::Builtin(id) => At::Struct(id.get()),
            Merges::Custom(schema) => At::Object(schema),
        }
    }

    /// An object before it was created: what Go prints of an empty one.
    fn empty(self) -> Value {
        let mut object = json!({});
        if let Merges::Builtin(id) = self {
            complete(&mut object, id);
        }
        object
    }

    /// Applies `applied` to the live object, or creates it. The result still has to be decoded, defaulted and checked.
    pub fn apply(
        self,
        live: Option<&Value>,
        applied: &Value,
        writer: &Writer<'_>,
        is_forced: bool,
    ) -> Result<Value, Refused> {
        let mut faults = Vec::new();
        walk::check(applied, self.at(), "", &mut faults);
        if let Some(first) = faults.into_iter().next() {
            return Err(Refused::NotTyped(first));
        }
        let (live, mut managed) = self.live(live);
        if managed.is_empty() && !live_uid(&live).is_empty() {
            let first = Writer { manager: "before-first-apply", subresource: "", ..writer.clone() };
            self.track(&self.empty(), &live, &mut managed, &first);
        }
        let before = managed.clone();
        let merged = match self.merge_applied(&live, applied, &mut managed, writer, is_forced) {
            Err(Refused::Conflicts(conflicts)) if writer.manager == KUBECTL => {
                let left = self.without_own(conflicts, &live, writer);
                if !left.is_empty() {
                    return Err(Refused::Conflicts(left));
                }
                managed = before;
                self.merge_applied(&live, applied, &mut managed, writer, true)?
            }
            outcome => outcome?,
        };
        let manager = writer.as_applier();
        strip_metadata(&mut managed, &manager);
        let is_changed = merged != live;
        if let Some(owned) = managed.get_mut(&manager).filter(|_| is_changed) {
            owned.time = Some(writer.now.to_owned());
        }
        managed::cap(&mut managed);
        let mut object = if is_changed { merged } else { live };
        set_managed(&mut object, managed);
        Ok(object)
    }

    /// The conflicts about fields that `kubectl apply` did not set itself, on the client's side, according to its note of what
    /// it applied last: what is still as the note says is kubectl's own, whoever stands in the books for it.
    fn without_own(self, conflicts: Vec<Conflict>, live: &Value, writer: &Writer<'_>) -> Vec<Conflict> {
        let Some(own) = self.last_applied(live, writer) else { return conflicts };
        let own = own.shown_paths();
        conflicts.into_iter().filter(|conflict| !own.contains(&conflict.field)).collect()
    }

    /// The fields that `kubectl apply` set and that nobody has changed since; none without a note that can be read.
    fn last_applied(self, live: &Value, writer: &Writer<'_>) -> Option<FieldSet> {
        let note = live.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?.as_str()?;
        let note: Value = serde_json::from_str(note).ok()?;
        let mut faults = Vec::new();
        walk::check(&note, self.at(), "", &mut faults);
        if note.get("apiVersion")?.as_str()? != writer.api_version || !faults.is_empty() {
            return None;
        }
        let Comparison { removed, changed } = walk::compare(&note, live, self.at());
        let mut fields = walk::fields_of(&note, self.at());
        fields.subtract(&removed);
        fields.subtract(&changed);
        Some(fields)
    }

    /// Merges a part of an object into it, whoever manages its fields. What is one value to a merge may not be among it,
    /// since all of it that is not given would go.
    pub fn overlay(self, live: &Value, part: &Value) -> Result<Value, String> {
        let mut faults = Vec::new();
        walk::check(part, self.at(), "", &mut faults);
        if let Some(first) = faults.into_iter().next() {
            return Err(format!("failed to convert patch object to typed object: {first}"));
        }
        let mut whole = Vec::new();
        walk::find_whole(part, self.at(), "", &mut whole);
        if !whole.is_empty() {
            let fields = whole.join(", ");
            return Err(format!(
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {fields}"
            ));
        }
        Ok(walk::merge(Some(live), Some(part), self.at()).unwrap_or_default())
    }

    /// Keeps the books of any other write: the managers of `new`, which is the object as the client wants it, complete
    /// with its defaults.
    pub fn update(self, live: Option<&Value>, new: &Value, writer: &Writer<'_>) -> Vec<Value> {
        managed::encode(self.managed(live, new, writer))
    }

    /// The same for an object that is new, as text: it is only stored, and that text is as long as the rest of a pod. None
    /// if nobody manages anything.
    pub fn create(self, new: &Value, writer: &Writer<'_>) -> Option<String> {
        let managed = self.managed(None, new, writer);
        (!managed.is_empty()).then(|| managed::write(managed))
    }

    fn managed(self, live: Option<&Value>, new: &Value, writer: &Writer<'_>) -> Managed {
        let given = if writer.subresource.is_empty() { given_managers(new) } else { None };
        let mut managed = given.unwrap_or_else(|| live.and_then(managers).unwrap_or_default());
        match live {
            Some(live) if !managed.is_empty() => self.track(live, new, &mut managed, writer),
            // Whoever takes the books away does not want them kept.
            Some(_) => {}
            None => self.track(&self.empty(), new, &mut managed, writer),
        }
        managed::cap(&mut managed);
        managed
    }

    /// The live object without its managers, and those.
    fn live(self, live: Option<&Value>) -> (Value, Managed) {
        let Some(live) = live else { return (self.empty(), Managed::new()) };
        let mut live = live.clone();
        let managed = take_managed(&mut live).and_then(|entries| managed::decode(&entries));
        (live, managed.unwrap_or_default())
    }

    fn merge_applied(
        self,
        live: &Value,
        applied: &Value,
        managed: &mut Managed,
        writer: &Writer<'_>,
        is_forced: bool,
    ) -> Result<Value, Refused> {
        let at = self.at();
        let manager = writer.as_applier();
        let merged = walk::merge(Some(live), Some(applied), at).unwrap_or_default();
        let mut fields = walk::fields_of(applied, at);
        fields.subtract_all_below(&FieldSet::of_fields(writer.ignored));
        let last = managed.get(&manager).cloned();
        let time = last.as_ref().and_then(|owned| owned.time.clone());
        let owned = Owned { fields, api_version: writer.api_version.to_owned(), time };
        managed.insert(manager.clone(), owned);
        let merged = match last {
            Some(last) if !last.fields.is_empty() => prune(merged, managed, &last.fields, at),
            _ => merged,
        };
        take_over(live, &merged, managed, &manager, writer, at, is_forced)?;
        Ok(merged)
    }

    /// Gives the fields that an update changed to whoever made it.
    fn track(self, live: &Value, new: &Value, managed: &mut Managed, writer: &Writer<'_>) {
        let manager = Manager {
            applies: false,
            name: writer.manager.to_owned(),
            subresource: writer.subresource.to_owned(),
            api_version: writer.api_version.to_owned(),
        };
        // The writer's earlier fields are treated like anybody's, and joined with its new ones afterwards. An update
        // is never refused, so there is always a comparison.
        let nobody = Manager { name: String::new(), ..manager.clone() };
        let Ok(mut taken) = take_over(live, new, managed, &nobody, writer, self.at(), true) else { return };
        taken.subtract(&STRIPPED_FIELDS);
        if taken.is_empty() {
            return;
        }
        let owned = managed.entry(manager).or_default();
        owned.fields.add(taken);
        owned.api_version = writer.api_version.to_owned();
        owned.time = Some(writer.now.to_owned());
    }
}

impl Writer<'_> {
    fn as_applier(&self) -> Manager {
        Manager {
            applies: true,
            name: self.manager.to_owned(),
            subresource: self.subresource.to_owned(),
            api_version: String::new(),
        }
    }
}

/// Takes changed and removed fields from all other managers; refuses if some would lose fields and it is not forced.
/// Returns the changed ones.
fn take_over(
    live: &Value,
    new: &Value,
    managed: &mut Managed,
    writer: &Manager,
    how: &Writer<'_>,
    at: At<'_>,
    is_forced: bool,
) -> Result<FieldSet, Refused> {
    let Comparison { mut removed, mut changed } = walk::compare(live, new, at);
    let ignored = FieldSet::of_fields(how.ignored);
    removed.subtract_all_below(&ignored);
    changed.subtract_all_below(&ignored);
    // Whoever wrote through the kind's other version owns fields by the names that they have there.
    let elsewhere = [&changed, &removed].map(|fields| fields.renamed(how.renamed));
    let known_as = |owned: &Owned| match owned.api_version == how.api_version {
        true => [&changed, &removed],
        false => elsewhere.each_ref().map(AsRef::as_ref),
    };
    if !is_forced {
        refuse_conflicts(managed, writer, |owned| known_as(owned)[0])?;
    }
    for (_, owned) in managed.iter_mut().filter(|(manager, _)| *manager != writer) {
        for fields in known_as(owned) {
            owned.fields.subtract(fields);
        }
    }
    managed.retain(|_, owned| !owned.fields.is_empty());
    Ok(changed)
}

fn refuse_conflicts<'a>(
    managed: &Managed,
    writer: &Manager,
    changed: impl Fn(&Owned) -> &'a FieldSet,
) -> Result<(), Refused> {
    let others = managed.iter().filter(|(manager, _)| *manager != writer);
    let mut conflicts: Vec<Conflict> = others
        .flat_map(|(manager, owned)| {
            let fields = owned.fields.intersection(changed(owned)).shown_paths();
            fields.into_iter().map(|field| Conflict { manager: manager.to_string(), field })
        })
        .collect();
    conflicts.sort_by(|a, b| a.manager.cmp(&b.manager));
    if conflicts.is_empty() { Ok(()) } else { Err(Refused::Conflicts(conflicts)) }
}

/// Removes what a manager applied last time, does not apply now, and nobody else has.
fn prune(merged: Value, managed: &Managed, last: &FieldSet, at: At<'_>) -> Value {
    let declared = |set: &FieldSet| {
        set.with_declared(at, &|at, step| match step.strip_prefix("f:") {
            Some(name) => at.field(name).map_or((false, At::Opaque), |(below, is_named)| (is_named, below)),
            None => (false, at.element()),
        })
    };
    let last = declared(last);
    let everything = declared(&walk::fields_of(&merged, at));
    let mut kept = declared(&walk::fields_of(&walk::remove(&merged, &last, at), at));
    for owned in managed.values() {
        kept.add(declared(&owned.fields));
    }
    let pruned = walk::remove(&merged, &everything.difference(&kept), at);
    // Only what was applied last time may go, even if removing it has emptied what was around it.
    let left = declared(&walk::fields_of(&pruned, at));
    walk::remove(&merged, &everything.difference(&left).intersection(&last), at)
}

/// The fields that nobody owns: they are the server's, or say which object it is.
static STRIPPED_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

fn strip_metadata(managed: &mut Managed, manager: &Manager) {
    if let Some(owned) = managed.get_mut(manager) {
        owned.fields.subtract(&STRIPPED_FIELDS);
    }
    managed.retain(|_, owned| !owned.fields.is_empty());
}

fn live_uid(live: &Value) -> &str {
    crate::object::uid(live)
}

/// The managers that an object names; none if any of them is not understood.
fn managers(object: &Value) -> Option<Managed> {
    managed::decode(object.get("metadata")?.get("managedFields")?.as_array()?)
}

/// The managers that a client wants: an empty list takes them all away, and what says nothing leaves them as they are.
fn given_managers(object: &Value) -> Option<Managed> {
    let given = object.get("metadata")?.get("managedFields")?.as_array()?;
    let is_reset = given.iter().all(|entry| entry.as_object().is_some_and(Map::is_empty)) && given.len() <= 1;
    if is_reset {
        return Some(Managed::new());
    }
    let group = |version: &str| version.split_once('/').map(|(group, _)| group.to_owned());
    let own = group(object.get("apiVersion")?.as_str()?);
    let mut given = managed::decode(given)?;
    // Fields of another group's kind cannot be those of this object.
    given.retain(|_, owned| group(&owned.api_version) == own);
    Some(given).filter(|given| !given.is_empty())
}

fn take_managed(object: &mut Value) -> Option<Vec<Value>> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    match metadata.remove("managedFields")? {
        Value::Array(entries) => Some(entries),
        _ => None,
    }
}

fn set_managed(object: &mut Value, managed: Managed) {
    let Value::Object(fields) = object else { return };
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let (Value::Object(metadata), false) = (metadata, managed.is_empty()) {
        metadata.insert("managedFields".to_owned(), Value::Array(managed::encode(managed)));
    }
}

#[cfg(test)]
mod tests;
