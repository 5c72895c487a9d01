//! One stored object: its bytes, and the little that is read of it without parsing them.

use std::sync::Arc;

use bytes::Bytes;
use krafla_api::{Key, Pairs, Uid};
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
}
