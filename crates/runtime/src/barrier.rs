//! The own-writes barrier: no decision for a root before the cache has seen what the last decision wrote.
//!
//! Without it a decision could be taken on a state in which the pods just created are missing, or the retry just
//! charged is not yet charged.

use krafla_api::{Key, Kind, Time, Uid};

use crate::cache::Cache;

/// What the cache must show before the root is looked at again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

/// The writes of a root's last decision that are still to be seen, and when they were made.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub(crate) struct OwnWrites(Option<(Time, Vec<Expectation>)>);

impl OwnWrites {
    /// The last decision wrote this.
    pub(crate) fn wrote(&mut self, expectations: Vec<Expectation>, now: Time) {
        if !expectations.is_empty() {
            self.0 = Some((now, expectations));
        }
    }

    /// Whether everything written has been seen; if not, what is awaited.
    pub(crate) fn check(&mut self, cache: &Cache) -> Result<(), Unseen> {
        let Some((since, expectations)) = &mut self.0 else { return Ok(()) };
        // What has been seen stays seen, so that one look at what is not yet seen is enough: every event leads here, and a plan
        // may have made thousands of writes. The last of them is most likely the last to be seen.
        while let Some(last) = expectations.last() {
            if !last.is_met(cache) {
                return Err(Unseen { kind: last.kind(), since: *since });
            }
            expectations.pop();
        }
        self.0 = None;
        Ok(())
    }

    /// Whether the last decision deleted this object, and its going has not been seen.
    pub(crate) fn awaits_going(&self, of: &Uid) -> bool {
        let expected = self.0.as_ref().map_or(&[][..], |(_, expectations)| expectations);
        expected.iter().any(|expectation| matches!(expectation, Expectation::Gone { uid, .. } if uid == of))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use krafla_cluster::Listed;

    fn list(cache: &mut Cache, kind: Kind, revision: u64, names: &[&str]) {
        let item = |name: &&str| json!({ "metadata": { "name": name, "uid": name } }).to_string().into();
        cache.relist(kind, &Listed { revision, items: names.iter().map(item).collect() }).unwrap();
    }

    #[test]
    fn nothing_is_decided_before_the_last_of_all_writes_is_seen() {
        let mut cache = Cache::default();
        list(&mut cache, Kind::Pod, 4, &["going"]);
        list(&mut cache, Kind::Job, 4, &[]);
        let gone = Expectation::Gone { kind: Kind::Pod, key: Key::new("", "going"), uid: "going".into() };
        let written = |kind, revision| Expectation::Revision { kind, revision };
        let (mut writes, now) = (OwnWrites::default(), Time::from_seconds(0));
        writes.wrote(vec![gone, written(Kind::Job, 7), written(Kind::Pod, 6)], now);

        let unseen = |kind| Err(Unseen { kind, since: now });
        assert_eq!(writes.check(&cache), unseen(Kind::Pod));
        list(&mut cache, Kind::Pod, 6, &["going"]);
        assert_eq!(writes.check(&cache), unseen(Kind::Job));
        list(&mut cache, Kind::Job, 7, &[]);
        assert_eq!(writes.check(&cache), unseen(Kind::Pod), "what goes is still there");
        list(&mut cache, Kind::Pod, 8, &[]);
        assert_eq!(writes.check(&cache), Ok(()));
    }
}
