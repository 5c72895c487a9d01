//! The own-writes barrier: no decision for a root before the cache has seen what the last decision wrote.
//!
//! Without it a decision could be taken on a state in which the pods just created are missing, or the retry just
//! charged is not yet charged.

use std::collections::BTreeMap;

use krafla_api::{Key, Kind, Time, Uid};

use crate::cache::Cache;

/// What the cache must show before the root is looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The kind has been observed up to this revision.
    Revision {
        /// The kind written.
        kind: Kind,
        /// The revision of the write.
        revision: u64,
    },
    /// This object is gone, or its deletion has begun.
    Gone {
        /// The kind deleted.
        kind: Kind,
        /// Where it was.
        key: Key,
        /// Who it was.
        uid: Uid,
    },
}

impl Expectation {
    fn kind(&self) -> Kind {
        match self {
            Expectation::Revision { kind, .. } | Expectation::Gone { kind, .. } => *kind,
        }
    }

    fn is_met(&self, cache: &Cache) -> bool {
        match self {
            // A kind that is not watched will never be observed; nothing is decided from it either.
            Expectation::Revision { kind, revision } => {
                !cache.has_listed(*kind) || cache.revision(*kind) >= *revision
            }
            Expectation::Gone { kind, key, uid } => cache
                .objects()
                .get(*kind, key)
                .is_none_or(|object| object.meta.uid != *uid || object.meta.is_deleting()),
        }
    }
}

/// An own write that has not come back yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// The kind written.
    pub(crate) kind: Kind,
    /// Since when it is awaited.
    pub(crate) since: Time,
}

/// What is still expected, root by root.
#[derive(Debug)]
pub(crate) struct Barrier<K> {
    expected: BTreeMap<K, (Time, Vec<Expectation>)>,
}

impl<K: Ord + Clone> Barrier<K> {
    pub(crate) fn new() -> Self {
        Barrier { expected: BTreeMap::new() }
    }

    /// The last decision for this root wrote this.
    pub(crate) fn wrote(&mut self, key: &K, expectations: Vec<Expectation>, now: Time) {
        if !expectations.is_empty() {
            self.expected.insert(key.clone(), (now, expectations));
        }
    }

    /// Whether everything written has been seen; if not, what is awaited.
    pub(crate) fn check(&mut self, key: &K, cache: &Cache) -> Result<(), Unseen> {
        let Some((since, expectations)) = self.expected.get_mut(key) else { return Ok(()) };
        expectations.retain(|expectation| !expectation.is_met(cache));
        match expectations.first().map(Expectation::kind) {
            Some(kind) => Err(Unseen { kind, since: *since }),
            None => {
                self.expected.remove(key);
                Ok(())
            }
        }
    }

    /// Stop waiting for this root.
    pub(crate) fn drop_root(&mut self, key: &K) {
        self.expected.remove(key);
    }
}
