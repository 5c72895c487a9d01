//! All objects of a resource as they were at one revision.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use krafla_api::Key;

use super::entry::Entry;

/// The objects of one resource, by namespace and name.
pub type Entries = OrdMap<Key, Arc<Entry>>;

/// All objects of a resource as they were at one revision. Taking one costs nothing, and holding one stops nobody.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The store's revision at which this was so: a watch from here on misses nothing and repeats nothing.
    pub revision: u64,
    /// The objects.
    pub entries: Entries,
}

impl Snapshot {
    /// One object.
    pub fn get(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.entries.get(key)
    }

    /// The objects of one namespace, or of all, that come after a key, or from the first: one page and the next.
    pub fn range<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Entry>> + use<'a> {
        let first = Key::new(namespace.unwrap_or_default(), "");
        let start = match after {
            Some(after) if *after >= first => Bound::Excluded(after.clone()),
            _ => Bound::Included(first),
        };
        let entries = self.entries.range((start, Bound::Unbounded)).map(|(_, entry)| entry);
        entries.take_while(move |entry| namespace.is_none_or(|namespace| *entry.key.namespace == *namespace))
    }
}
