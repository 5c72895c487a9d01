//! What the engine remembers of each root, in one place: a root that is gone is forgotten as a whole.

use std::collections::BTreeMap;

use krafla_plan::Note;

use crate::barrier::OwnWrites;
use crate::counters::Counters;
use crate::engine::Root;
use crate::inquiry::Inquiries;
use crate::rest::Rests;

/// What is remembered of one root. A root of which nothing is known is in its default state.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub(crate) struct RootState {
    /// The writes of its last decision that have not come back on the watch.
    pub(crate) own_writes: OwnWrites,
    /// Whether it has lost a child since a plan was last carried out. It may be gone itself, and its children with it, and
    /// the news of that late: what was made for it would go again, and that would lead here again.
    pub(crate) has_lost_child: bool,
    /// Whether a plan has been stored for it, or found to be empty, since the start.
    pub(crate) is_looked_at: bool,
    /// What the server said when it refused a write of its last decision.
    pub(crate) refused: Option<Note>,
    /// What was last said about it, so that nothing is said twice in a row.
    pub(crate) last_notes: Vec<Note>,
}

/// All roots.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Roots {
    /// Those that are not in their default state.
    states: BTreeMap<Root, RootState>,
    /// Roots whose counters wait to be written: how long depends on all of them.
    pub(crate) counters: Counters<Root>,
    /// Roots with many children, which rest between decisions: how long is measured for several decisions together.
    pub(crate) rests: Rests<Root>,
    /// What pods are asked, one question after the other.
    pub(crate) inquiries: Inquiries,
}

impl Roots {
    /// What is known of a root, if anything.
    pub(crate) fn get(&self, root: &Root) -> Option<&RootState> {
        self.states.get(root)
    }

    /// Changes what is known of a root. One that is back in its default state takes no room.
    pub(crate) fn update<T>(&mut self, root: &Root, change: impl FnOnce(&mut RootState) -> T) -> T {
        let Some(state) = self.states.get_mut(root) else {
            let mut state = RootState::default();
            let result = change(&mut state);
            if state != RootState::default() {
                self.states.insert(root.clone(), state);
            }
            return result;
        };
        let result = change(state);
        if *state == RootState::default() {
            self.states.remove(root);
        }
        result
    }

    /// The root is gone.
    pub(crate) fn forget(&mut self, root: &Root) {
        self.states.remove(root);
        self.counters.forget(root);
        self.rests.forget(root);
        self.inquiries.forget(root);
    }
}

#[cfg(test)]
mod tests {
    use krafla_api::{Key, Kind};

    use super::*;

    #[test]
    fn a_root_of_which_nothing_is_known_takes_no_room() {
        let root = Root { controller: 0, kind: Kind::VcJob, key: Key::new("ns", "a") };
        let mut roots = Roots::default();
        roots.update(&root, |state| state.last_notes.clear());
        assert!(roots.states.is_empty());
        roots.update(&root, |state| state.has_lost_child = true);
        assert!(roots.get(&root).is_some_and(|state| state.has_lost_child));
        roots.update(&root, |state| state.has_lost_child = false);
        assert!(roots.states.is_empty());
        roots.update(&root, |state| state.is_looked_at = true);
        roots.forget(&root);
        assert_eq!(roots.get(&root), None);
    }
}
