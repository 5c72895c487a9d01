//! Who depends on whom, as far as the collector has looked, and whom it should look at.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::{Key, Uid};

use crate::store::{Entry, EventType, OwnerMark, ResourceId, StoredEvent};

/// One object, by its identity and where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) resource: ResourceId,
    pub(super) key: Key,
    pub(super) uid: Uid,
}

impl Item {
    fn of(resource: &ResourceId, entry: &Entry) -> Item {
        Item { resource: resource.clone(), key: entry.key.clone(), uid: entry.uid.clone() }
    }
}

/// Who depends on whom. Objects without owners and without anything to wait for are not in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    /// The objects that name an owner, by the owner's UID.
    dependents: BTreeMap<Uid, BTreeSet<Item>>,
    /// The objects that are to go but are held.
    held: BTreeMap<Uid, Item>,
    /// The objects to look at.
    due: BTreeSet<Item>,
}

impl Graph {
    /// Takes in an object that was there when the collector began.
    pub(super) fn begin_with(&mut self, resource: &ResourceId, entry: &Entry) {
        let item = Item::of(resource, entry);
        entry.meta.owners.iter().for_each(|owner| self.insert(&owner.uid, &item));
        if is_held(entry) {
            self.held.insert(item.uid.clone(), item);
        }
    }

    /// Looks at what was there when the collector began, if it is held or one of its owners is not alive.
    pub(super) fn look_for_lost(&mut self, alive: &BTreeSet<Uid>) {
        self.due.extend(self.held.values().cloned());
        for (owner, dependents) in &self.dependents {
            if !alive.contains(owner) || self.held.contains_key(owner) {
                self.due.extend(dependents.iter().cloned());
            }
        }
    }

    /// Takes in what happened to an object.
    pub(super) fn observe(&mut self, resource: &ResourceId, event: &StoredEvent) {
        let after = match event.event_type {
            EventType::Added | EventType::Modified => Some(event.entry.as_ref()),
            EventType::Deleted => None,
        };
        self.change(resource, event.previous.as_deref(), after);
    }

    fn change(&mut self, resource: &ResourceId, before: Option<&Entry>, after: Option<&Entry>) {
        let (owners_before, owners_after) = (owners(before), owners(after));
        let Some(item) = after.or(before).map(|entry| Item::of(resource, entry)) else { return };
        if owners_before != owners_after {
            owners_before.iter().for_each(|owner| self.remove(&owner.uid, &item));
            owners_after.iter().for_each(|owner| self.insert(&owner.uid, &item));
            // An owner that waits for this object may have waited long enough.
            self.due.extend(owners_before.iter().filter_map(|owner| self.held.get(&owner.uid)).cloned());
        }
        match after {
            None => {
                self.held.remove(&item.uid);
                self.due_dependents_of(&item.uid);
            }
            Some(entry) if is_held(entry) => {
                self.held.insert(item.uid.clone(), item.clone());
                self.due_dependents_of(&item.uid);
                self.due.insert(item);
            }
            Some(_) if owners_before != owners_after => {
                self.due.insert(item);
            }
            Some(_) => {}
        }
    }

    fn insert(&mut self, owner: &Uid, item: &Item) {
        self.dependents.entry(owner.clone()).or_default().insert(item.clone());
    }

    fn remove(&mut self, owner: &Uid, item: &Item) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(item);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }

    fn due_dependents_of(&mut self, owner: &Uid) {
        self.due.extend(self.dependents.get(owner).into_iter().flatten().cloned());
    }

    /// The objects that name an owner.
    pub(super) fn dependents(&self, owner: &Uid) -> impl Iterator<Item = &Item> {
        self.dependents.get(owner).into_iter().flatten()
    }

    /// Whether there is anything to look at.
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The objects to look at, once.
    pub(super) fn take_due(&mut self) -> BTreeSet<Item> {
        std::mem::take(&mut self.due)
    }

    /// An object to look at.
    pub(super) fn look_at(&mut self, item: Item) {
        self.due.insert(item);
    }
}

/// Whether an object is to go, but something holds it.
fn is_held(entry: &Entry) -> bool {
    entry.meta.is_deleting && entry.meta.has_finalizers
}

fn owners(entry: Option<&Entry>) -> &[OwnerMark] {
    entry.map_or(&[], |entry| &entry.meta.owners)
}
