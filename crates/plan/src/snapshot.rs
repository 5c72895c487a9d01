//! What one decision sees.

use std::sync::Arc;

use krafla_api::{Key, Kind, Time};

use crate::object::Object;
use crate::objects::Objects;

/// What one decision sees: a root by its key, everything observed around it, and the time.
///
/// There is no event in it. What an event would say is visible in the objects (a failed pod *is* the news that a pod
/// failed), so a restart, a relist, a lost or a doubled event changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The root's key.
    pub key: &'a Key,
    /// The root's kind.
    pub kind: Kind,
    /// The moment of the decision.
    pub now: Time,
    /// Everything observed.
    pub objects: &'a Objects,
}

impl<'a> Snapshot<'a> {
    /// The root itself, unless it is gone.
    pub fn root(&self) -> Option<&'a Arc<Object>> {
        self.objects.get(self.kind, self.key)
    }

    /// The objects of `kind` that the root controls, by UID.
    pub fn children(&self, kind: Kind) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let objects = self.objects;
        self.root().into_iter().flat_map(move |root| objects.children(&root.meta.uid, kind))
    }
}
