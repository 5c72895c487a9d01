//! What can be asked of the store, and why it may refuse.

use bytes::Bytes;
use krafla_api::{Key, Uid};
use serde_json::{Map, Value};

use super::entry::{Entry, EntryMeta, ResourceId};
use super::text::Text;

/// One change of one object, on a condition.
#[derive(Clone, Debug)]
pub struct Write {
    /// Of what resource.
    pub resource: ResourceId,
    /// Which object.
    pub key: Key,
    /// What must be true of it.
    pub expect: Expect,
    /// What is to become of it.
    pub change: Change,
}

/// What must be true of an object for a write to happen. It is checked against the newest state, durable or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is no such object.
    Absent,
    /// It is as it was at this revision.
    Revision(u64),
}

/// What is to become of an object.
#[derive(Clone, Debug)]
pub enum Change {
    /// It is this.
    Put(Draft),
    /// It is gone. The draft is the last that is seen of it, by watchers and by the one who deletes it; its
    /// resourceVersion is the revision of the deletion.
    Delete(Draft),
}

/// An object ready to be stored but for its resourceVersion, which only the store knows. It is serialised by whoever
/// makes it, so that the store, which does one write at a time, only fills in the number.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The JSON without the digits of the resourceVersion.
    text: Vec<u8>,
    /// Where in the text the digits go.
    gap: usize,
    /// The levels of objects and lists in the text.
    depth: usize,
    pub(super) uid: Uid,
    pub(super) meta: EntryMeta,
}

impl Draft {
    /// Serialises an object. Whatever resourceVersion it has is left out. A value that is not an object with metadata is
    /// made one, since every stored object has a resourceVersion.
    pub fn new(object: Value, meta: EntryMeta) -> Draft {
        Draft::managed(object, None, meta)
    }

    /// The same, of an object whose managers come as text, which must be what would stand in `metadata.managedFields`.
    pub(crate) fn managed(object: Value, managers: Option<String>, meta: EntryMeta) -> Draft {
        let uid = krafla_schema::object::uid(&object).into();
        let (text, gap, depth) = serialise(object, managers.as_deref());
        Draft { text, gap, depth, uid, meta }
    }

    /// How long the text is, but for a number.
    pub(crate) fn n_bytes(&self) -> usize {
        self.text.len()
    }

    /// How many levels of objects and lists the object has, without managers that come as text.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the stored object is already this one: then there is nothing to write.
    pub fn is_stored_as(&self, entry: &Entry) -> bool {
        self.meta == entry.meta && self.to_bytes(entry.revision) == entry.bytes
    }

    /// The object with its resourceVersion.
    pub(super) fn to_bytes(&self, revision: u64) -> Bytes {
        let digits = revision.to_string();
        let (before, after) = self.text.split_at_checked(self.gap).unwrap_or((&self.text, &[]));
        [before, digits.as_bytes(), after].concat().into()
    }
}

/// The canonical text of an object, where in it the digits of its resourceVersion go, and its levels. Only the two levels around
/// that place are written here; keys are in order, as everywhere.
fn serialise(object: Value, managers: Option<&str>) -> (Vec<u8>, usize, usize) {
    let mut object = into_map(object);
    let mut metadata = into_map(object.remove("metadata").unwrap_or_default());
    metadata.remove("resourceVersion");
    if managers.is_some() {
        metadata.remove("managedFields");
    }

    let mut text = Text::default();
    text.open("{");
    text.fields(object.iter().filter(|(name, _)| name.as_str() < "metadata"));
    text.push("\"metadata\":");
    text.open("{");
    text.fields(metadata.iter().filter(|(name, _)| name.as_str() < "managedFields"));
    if let Some(managers) = managers {
        text.push("\"managedFields\":");
        text.push(managers);
        text.push(",");
    }
    let between = "managedFields".."resourceVersion";
    text.fields(metadata.iter().filter(|(name, _)| between.contains(&name.as_str())));
    text.push("\"resourceVersion\":\"");
    let gap = text.len();
    text.push("\",");
    text.fields(metadata.iter().filter(|(name, _)| name.as_str() > "resourceVersion"));
    text.close("}");
    text.push(",");
    text.fields(object.iter().filter(|(name, _)| name.as_str() > "metadata"));
    text.close("}");
    let depth = text.n_levels();
    (text.into_bytes(), gap, depth)
}

fn into_map(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

impl Write {
    /// Whether it makes room, or is on the way to it.
    pub(super) fn is_deletion(&self) -> bool {
        match &self.change {
            Change::Delete(_) => true,
            Change::Put(draft) => draft.meta.is_deleting,
        }
    }
}

/// Why a write did not happen.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum CommitError {
    /// It was to be new, but there is one.
    #[error("the object exists already")]
    Exists,
    /// It was to be changed, but there is none.
    #[error("the object does not exist")]
    Missing,
    /// It has changed since.
    #[error("the object has changed and is at revision {current} now")]
    Stale {
        /// Its revision.
        current: u64,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
    /// The disk is full; nothing has changed.
    #[error("no space left on the disk of the store: it takes only deletes until there is room again")]
    NoSpace,
    /// The disk did not take it; nothing has changed.
    #[error("the store could not write: {0}")]
    Failed(String),
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(object: Value, expected: Expect) {
        let draft = Draft::new(object, EntryMeta::default());
        expected.assert_eq(std::str::from_utf8(&draft.to_bytes(42)).unwrap());
    }

    #[test]
    fn a_draft_has_its_keys_in_order_and_the_stores_revision() {
        check(
            json!({"spec": {"b": 1, "a": "\"}"}, "kind": "Pod", "metadata": {"uid": "u", "name": "a"}}),
            expect![[
                r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"42","uid":"u"},"spec":{"a":"\"}","b":1}}"#
            ]],
        );
        check(
            json!({"metadata": {"resourceVersion": "7", "name": "a"}}),
            expect![[r#"{"metadata":{"name":"a","resourceVersion":"42"}}"#]],
        );
        check(json!({"kind": "Pod"}), expect![[r#"{"kind":"Pod","metadata":{"resourceVersion":"42"}}"#]]);
        check(json!(null), expect![[r#"{"metadata":{"resourceVersion":"42"}}"#]]);
    }

    #[test]
    fn managers_that_come_as_text_stand_where_they_would_stand() {
        let managers = json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]);
        let bare = json!({"metadata": {"labels": {"a": "b"}, "name": "a", "uid": "u"}, "spec": {}});
        let mut whole = bare.clone();
        whole["metadata"]["managedFields"] = managers.clone();
        let expected = Draft::new(whole.clone(), EntryMeta::default()).to_bytes(7);
        for object in [bare, whole] {
            let draft = Draft::managed(object, Some(managers.to_string()), EntryMeta::default());
            assert_eq!(draft.to_bytes(7), expected);
        }
    }

    #[test]
    fn a_draft_is_what_serde_would_write() {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod", "zebra": [1, 2.5, null, true, "ü\n"],
            "metadata": {"annotations": {"resourceVersion": "1"}, "uid": "u", "selfLink": "", "labels": {}},
        });
        let bytes = Draft::new(object.clone(), EntryMeta::default()).to_bytes(u64::MAX);
        object["metadata"]["resourceVersion"] = u64::MAX.to_string().into();
        assert_eq!(bytes, serde_json::to_vec(&object).unwrap());
    }
}
