//! Snapshot: the input of one decision.

use std::sync::Arc;

use krafla_api::{Key, Kind, Time};

use crate::object::Object;
use crate::objects::Objects;
use crate::plan::Note;
use crate::probe::{Answers, NO_ANSWERS};

/// What one decision sees: a root by its key, everything observed around it, and the time.
///
/// There is no event in it. What an event would say is visible in the objects (a failed pod *is* the news that a pod
/// failed), so a restart, a relist, a lost or a doubled event changes nothing. The one thing that objects cannot show is
/// an object that is gone: that stays as evidence until the plan that made use of it is stored.
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
    /// Children of the root that went away and whose going no stored plan has made use of yet.
    pub departed: &'a [Departed],
    /// What pods answered to the questions that the last decision for this root hung on.
    pub answers: &'a Answers,
    /// Whether nothing has been decided for this root since the program started, and all kinds have been observed at least
    /// up to the root's own revision: only then does a difference between status and children show what happened while
    /// nobody looked.
    pub is_first_look: bool,
    /// What the server said when it refused a write of the last decision for this root: what that was about to make may not
    /// be there.
    pub refusal: Option<&'a Note>,
}

/// An object that went away.
#[derive(Clone, Debug, PartialEq)]
pub struct Departed {
    /// As it last was.
    pub object: Arc<Object>,
    /// When its going was noticed.
    pub at: Time,
}

impl<'a> Snapshot<'a> {
    /// A snapshot of what is there, with no evidence of what is gone.
    pub fn new(kind: Kind, key: &'a Key, now: Time, objects: &'a Objects) -> Snapshot<'a> {
        Snapshot {
            key,
            kind,
            now,
            objects,
            departed: &[],
            answers: &NO_ANSWERS,
            is_first_look: false,
            refusal: None,
        }
    }

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
