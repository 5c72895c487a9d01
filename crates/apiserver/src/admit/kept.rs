//! What is made of stored configuration, such as compiled expressions, is kept for as long as that stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_api::Key;
use parking_lot::Mutex;
use serde_json::Value;

use crate::store::{Entry, Snapshot};

/// What is kept of one kind of configuration; what is beyond it is made anew for each request.
const KEPT_MAX: usize = 1024;

/// What was made of the objects of one resource.
pub(super) struct Kept<T> {
    made: Mutex<BTreeMap<Key, Made<T>>>,
}

struct Made<T> {
    /// Of what exactly. Holding it keeps its place in memory from being anybody else's.
    from: Arc<Entry>,
    value: Arc<T>,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { made: Mutex::default() }
    }
}

impl<T> Kept<T> {
    /// What `make` makes of each object of a snapshot, in order of their names. What cannot be read says nothing.
    pub(super) fn all(&self, snapshot: &Snapshot, make: impl Fn(Value) -> T) -> Vec<Arc<T>> {
        snapshot.entries.values().filter_map(|entry| self.one(snapshot, entry, &make)).collect()
    }

    /// What `make` makes of one object of a snapshot.
    pub(super) fn one(
        &self,
        snapshot: &Snapshot,
        entry: &Arc<Entry>,
        make: impl Fn(Value) -> T,
    ) -> Option<Arc<T>> {
        if let Some(made) = self.made.lock().get(&entry.key)
            && Arc::ptr_eq(&made.from, entry)
        {
            return Some(made.value.clone());
        }
        let value = Arc::new(make(serde_json::from_slice(&entry.bytes).ok()?));
        let mut made = self.made.lock();
        // Something has changed; what is gone need not be kept any longer.
        made.retain(|key, _| snapshot.entries.contains_key(key));
        if made.len() < KEPT_MAX {
            made.insert(entry.key.clone(), Made { from: entry.clone(), value: value.clone() });
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::store::{Change, Draft, EntryMeta, Expect, Store, Write};

    /// Stores an object, or takes it away.
    fn write(store: &Store, name: &str, value: Option<u64>) {
        let key = Key::new("", name);
        let before = store.get(&"things".into(), &key);
        let expect = before.map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
        let draft = Draft::new(json!({"value": value}), EntryMeta::default());
        let change = if value.is_some() { Change::Put(draft) } else { Change::Delete(draft) };
        let write = Write { resource: "things".into(), key, expect, change };
        store.commit(write).now_or_never().unwrap().unwrap();
    }

    #[test]
    fn each_object_is_made_something_of_once() {
        let (store, kept, n_made) = (Store::in_memory(), Kept::default(), Cell::new(0));
        let ask = |store: &Store| -> Vec<u64> {
            let make = |object: Value| {
                n_made.set(n_made.get() + 1);
                object["value"].as_u64().unwrap()
            };
            kept.all(&store.snapshot(&"things".into()), make).iter().map(|value| **value).collect()
        };
        write(&store, "a", Some(1));
        write(&store, "b", Some(2));
        assert_eq!((ask(&store), ask(&store), n_made.get()), (vec![1, 2], vec![1, 2], 2));
        write(&store, "b", Some(3));
        assert_eq!((ask(&store), n_made.get()), (vec![1, 3], 3));
        write(&store, "a", None);
        write(&store, "c", Some(4));
        assert_eq!((ask(&store), kept.made.lock().len()), (vec![3, 4], 2));
    }

    #[test]
    fn two_stores_at_one_revision_are_told_apart() {
        let (store, kept) = (Store::in_memory(), Kept::default());
        let other = store.fork();
        write(&store, "a", Some(1));
        write(&other, "a", Some(2));
        let ask =
            |store: &Store| kept.all(&store.snapshot(&"things".into()), |object| object["value"].clone());
        assert_eq!((&*ask(&store)[0], &*ask(&other)[0], &*ask(&store)[0]), (&json!(1), &json!(2), &json!(1)));
    }

    #[test]
    fn what_is_kept_has_an_end() {
        let (store, kept) = (Store::in_memory(), Kept::default());
        (0..=KEPT_MAX).for_each(|number| write(&store, &format!("{number:05}"), Some(7)));
        let all = kept.all(&store.snapshot(&"things".into()), |object| object["value"].clone());
        assert_eq!((all.len(), kept.made.lock().len()), (KEPT_MAX + 1, KEPT_MAX));
    }
}
