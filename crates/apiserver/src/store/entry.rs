//! One stored object: its bytes, and the little that is read of it without parsing them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use krafla_api::{Key, Uid};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A resource by its qualified plural: `pods`, `jobs.batch.volcano.sh`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(Arc<str>);

impl ResourceId {
    /// The qualified plural.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ResourceId {
    fn from(qualified_plural: &str) -> Self {
        ResourceId(qualified_plural.into())
    }
}

impl std::fmt::Display for ResourceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One stored object.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Namespace and name.
    pub key: Key,
    /// Who it is.
    pub uid: Uid,
    /// When it last changed; the number in its `metadata.resourceVersion`.
    pub revision: u64,
    /// The object as canonical JSON: complete, keys in order, no spaces.
    pub bytes: Bytes,
    /// What selectors, lists and garbage collection read.
    pub meta: EntryMeta,
}

/// What is read of an object without parsing it. It is stored beside the bytes, so that a start does not parse every
/// object either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryMeta {
    /// `metadata.labels`.
    pub labels: Pairs,
    /// The fields by which the kind can be selected, by path: `spec.nodeName`. A path that is absent here was not
    /// recorded when the object was written; an empty field is recorded as the empty string.
    pub fields: Pairs,
    /// `metadata.ownerReferences`, in their order.
    pub owners: Vec<OwnerMark>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_deleting: bool,
    /// Whether `metadata.finalizers` holds the object.
    pub has_finalizers: bool,
}

/// One owner of an object, as garbage collection sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerMark {
    /// Who owns.
    pub uid: Uid,
    /// Whether a foreground deletion of the owner waits for this object (`blockOwnerDeletion`).
    pub blocks_deletion: bool,
}

impl EntryMeta {
    /// Reads the metadata of an object. What is not shaped like metadata reads as absent. The caller adds
    /// [`EntryMeta::fields`], which depend on the kind.
    pub fn of(object: &Value) -> EntryMeta {
        let metadata = &object["metadata"];
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        EntryMeta {
            labels: labels.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect(),
            fields: Pairs::default(),
            owners: owners.filter_map(OwnerMark::of).collect(),
            is_deleting: metadata["deletionTimestamp"].is_string(),
            has_finalizers: metadata["finalizers"].as_array().is_some_and(|held| !held.is_empty()),
        }
    }
}

impl OwnerMark {
    fn of(reference: &Value) -> Option<OwnerMark> {
        let uid = reference["uid"].as_str()?.into();
        Some(OwnerMark { uid, blocks_deletion: reference["blockOwnerDeletion"] == true })
    }
}

/// Names and values in order of names. All are in one text: as a tree of strings they would take several times the
/// memory, and every object has two of these.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<Box<str>, Box<str>>")]
pub struct Pairs {
    /// Name, value, name, value...
    text: Box<str>,
    /// Where in the text each of them ends.
    ends: Box<[u32]>,
}

impl Pairs {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| value)
    }

    /// All of them, in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        let mut parts = self.ends.iter().map(move |end| {
            let part = start..*end as usize;
            start = part.end;
            self.text.get(part).unwrap_or_default()
        });
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl From<BTreeMap<Box<str>, Box<str>>> for Pairs {
    fn from(pairs: BTreeMap<Box<str>, Box<str>>) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::with_capacity(2 * pairs.len()));
        for part in pairs.iter().flat_map(|(name, value)| [name, value]) {
            text.push_str(part);
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        Pairs { text: text.into(), ends: ends.into() }
    }
}

impl<N: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(N, V)> for Pairs {
    /// Of two values of one name, the later counts.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect::<BTreeMap<_, _>>().into()
    }
}

impl Serialize for Pairs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl std::fmt::Debug for Pairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_of_an_object_survives_the_disk() {
        let object = json!({"metadata": {
            "labels": {"b": "2", "a": "1", "odd": 3},
            "ownerReferences": [{"uid": "u1", "blockOwnerDeletion": true}, {"uid": "u2"}, {"name": "no uid"}],
            "deletionTimestamp": "2026-11-15T08:00:00Z",
            "finalizers": ["foregroundDeletion"],
        }});
        let mut meta = EntryMeta::of(&object);
        meta.fields = [("spec.nodeName", "")].into_iter().collect();
        let stored = serde_json::to_string(&meta).unwrap();
        expect![[r#"{"labels":{"a":"1","b":"2"},"fields":{"spec.nodeName":""},"owners":[{"uid":"u1","blocks_deletion":true},{"uid":"u2","blocks_deletion":false}],"is_deleting":true,"has_finalizers":true}"#]]
            .assert_eq(&stored);
        assert_eq!(serde_json::from_str::<EntryMeta>(&stored).unwrap(), meta);
    }

    #[test]
    fn what_is_not_shaped_like_metadata_reads_as_absent() {
        for object in [json!(null), json!({}), json!({"metadata": []}), json!({"metadata": {"labels": "x"}})]
        {
            assert_eq!(EntryMeta::of(&object), EntryMeta::default());
        }
    }

    #[test]
    fn the_later_of_two_values_counts() {
        let pairs: Pairs = [("b", "1"), ("a", "2"), ("b", "3")].into_iter().collect();
        assert_eq!(pairs.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!((pairs.get("b"), pairs.get("c")), (Some("3"), None));
    }
}
