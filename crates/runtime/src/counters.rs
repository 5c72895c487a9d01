//! Coalescing of status writes: a status in which only counters changed waits for more changes.
//!
//! However fast pods come and go, the counters of one root are written twice a second at most. While those of many roots, or
//! of many children, are in motion they wait longer, so that all together are written a few times a second. Most are then not
//! written on their own at all: by the time they could be, the root is in its next phase, and its counters were written with
//! that.

use std::collections::BTreeMap;
use std::time::Duration;

use krafla_api::Time;
use krafla_plan::Plan;

/// How long the counters of a root wait at least.
const WAIT_MIN: Duration = Duration::from_millis(500);

/// How much longer they wait for each child of it and of the others that wait: of many there is news for a longer time.
const WAIT_PER_CHILD: Duration = Duration::from_millis(1);

/// How much longer they wait for each other root whose counters wait: ten writes a second, for whomever.
const WAIT_PER_ROOT: Duration = Duration::from_millis(100);

/// How long they wait at most: somebody may be looking.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The roots whose counters differ from what is stored.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Counters<K> {
    waiting: BTreeMap<K, Waiting>,
    /// How many children they have together.
    n_children: usize,
}

#[derive(Clone, Copy, Debug, Hash)]
struct Waiting {
    since: Time,
    due_at: Time,
    n_children: usize,
}

impl<K> Default for Counters<K> {
    fn default() -> Self {
        Counters { waiting: BTreeMap::new(), n_children: 0 }
    }
}

impl<K: Ord + Clone> Counters<K> {
    /// The plan without its status, if nothing but counters changed in that and they have not waited long enough.
    pub(crate) fn hold_back(&mut self, root: &K, mut plan: Plan, n_children: usize, now: Time) -> Plan {
        let may_wait = plan.status.is_some() && plan.status_may_wait;
        let due_at = if may_wait { self.due_at(root, n_children, now) } else { now };
        if due_at <= now {
            self.forget(root);
        } else {
            plan.status = None;
            plan.wake_at = Some(plan.wake_at.map_or(due_at, |at| at.min(due_at)));
        }
        plan
    }

    /// When the root's counters are to be written. With more roots in motion it is put off; with fewer it is not brought
    /// forward, since what has waited for so long is about to be overtaken.
    fn due_at(&mut self, root: &K, n_children: usize, now: Time) -> Time {
        let known = self.waiting.get(root).copied();
        let Waiting { since, due_at, .. } = known.unwrap_or(Waiting { since: now, due_at: now, n_children });
        self.forget(root);
        let n_others = self.waiting.len();
        self.n_children = self.n_children.saturating_add(n_children);
        let times = |wait: Duration, n: usize| wait.saturating_mul(u32::try_from(n).unwrap_or(u32::MAX));
        let longer = times(WAIT_PER_ROOT, n_others).saturating_add(times(WAIT_PER_CHILD, self.n_children));
        let due_at = due_at.max(since.after(WAIT_MIN.saturating_add(longer).min(WAIT_MAX)));
        self.waiting.insert(root.clone(), Waiting { since, due_at, n_children });
        due_at
    }

    /// The root is gone, or its counters need not wait any longer.
    pub(crate) fn forget(&mut self, root: &K) {
        if let Some(gone) = self.waiting.remove(root) {
            self.n_children = self.n_children.saturating_sub(gone.n_children);
        }
    }
}

#[cfg(test)]
mod tests {
    use krafla_api::{Key, Kind};
    use krafla_cluster::Step;
    use serde_json::json;

    use super::*;

    /// A plan in whose status only counters changed.
    fn counted() -> Plan {
        let status = Step::Patch {
            kind: Kind::VcJob,
            key: Key::new("default", "a"),
            uid: "u".into(),
            revision: None,
            of_status: true,
            patch: json!({ "status": { "running": 1 } }),
        };
        Plan { status: Some(status), status_may_wait: true, ..Plan::nothing() }
    }

    fn is_written(counters: &mut Counters<u32>, root: u32, plan: Plan, now: Time) -> bool {
        counters.hold_back(&root, plan, 0, now).status.is_some()
    }

    /// So many milliseconds after the start.
    fn at(ms: u64) -> Time {
        Time::from_seconds(0).after(Duration::from_millis(ms))
    }

    #[test]
    fn the_counters_of_one_root_are_written_after_a_moment() {
        let mut counters = Counters::default();
        assert_eq!(counters.hold_back(&1, counted(), 0, at(0)).wake_at, Some(at(500)));
        assert!(!is_written(&mut counters, 1, counted(), at(499)));
        assert!(is_written(&mut counters, 1, counted(), at(500)));
        // The next change is a new one.
        assert!(!is_written(&mut counters, 1, counted(), at(501)));
    }

    #[test]
    fn what_decides_does_not_wait_and_takes_the_counters_with_it() {
        let mut counters = Counters::default();
        assert!(!is_written(&mut counters, 1, counted(), at(0)));
        let decides = Plan { status_may_wait: false, ..counted() };
        assert!(is_written(&mut counters, 1, decides, at(0)));
        assert!(!is_written(&mut counters, 1, counted(), at(500)));
    }

    #[test]
    fn an_earlier_reason_to_look_again_stands() {
        let earlier = Plan { wake_at: Some(at(50)), ..counted() };
        assert_eq!(Counters::default().hold_back(&1, earlier, 0, at(0)).wake_at, Some(at(50)));
    }

    #[test]
    fn the_counters_of_many_children_wait_longer() {
        let of_many = |n_children| Counters::default().hold_back(&1, counted(), n_children, at(0)).wake_at;
        assert_eq!(of_many(1000), Some(at(1500)));
        assert_eq!(of_many(usize::MAX), Some(at(10_000)));
    }

    #[test]
    fn the_children_of_all_roots_in_motion_count() {
        let mut counters = Counters::default();
        assert_eq!(counters.hold_back(&1, counted(), 1000, at(0)).wake_at, Some(at(1500)));
        assert_eq!(counters.hold_back(&2, counted(), 2000, at(0)).wake_at, Some(at(3600)));
        // The first again, with a child less: each is counted once.
        assert_eq!(counters.hold_back(&1, counted(), 999, at(0)).wake_at, Some(at(3599)));
        counters.forget(&2);
        counters.forget(&1);
        assert_eq!(counters.hold_back(&3, counted(), 1, at(0)).wake_at, Some(at(501)));
    }

    #[test]
    fn the_counters_of_many_roots_wait_longer_but_not_for_ever() {
        let mut counters = Counters::default();
        for root in 0..20 {
            assert!(!is_written(&mut counters, root, counted(), at(0)));
        }
        // The first is put off like the others, and stays so when they are gone.
        assert!(!is_written(&mut counters, 0, counted(), at(500)));
        (1..20).for_each(|root| counters.forget(&root));
        assert!(!is_written(&mut counters, 0, counted(), at(2399)));
        assert!(is_written(&mut counters, 0, counted(), at(2400)));

        for root in 0..1000 {
            assert!(!is_written(&mut counters, root, counted(), at(0)));
        }
        assert!(is_written(&mut counters, 0, counted(), at(10_000)));
    }
}
