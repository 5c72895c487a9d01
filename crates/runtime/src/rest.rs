//! Roots whose decisions read many objects rest for a moment after each.
//!
//! News of pods come one by one, and a decision reads all of them: without a rest, the cost of a job would grow with the
//! square of its pods, and so would that of the scheduler. The rest is in proportion to what is read, so that what a root costs
//! in a second is bounded, and news that come meanwhile are read together.
//!
//! Where others use the processor too, everything takes longer, and so would the same work take more decisions. So the rest is
//! also in proportion to how long the decision took.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use krafla_api::Time;

/// How long a root rests for each object that was read.
const REST_PER_OBJECT: Duration = Duration::from_micros(5);

/// How much longer a root rests than its decision took. On a machine with nothing else to do this is less than
/// [`REST_PER_OBJECT`].
const REST_PER_TIME: u32 = 12;

/// How many times as long as usual a root rests at most, however long its decision took: pods wait for it.
const STRETCH_MAX: u32 = 4;

/// After fewer objects than this a root does not rest.
const OBJECTS_MANY: usize = 100;

/// Until when each root rests.
#[derive(Clone, Debug)]
pub(crate) struct Rests<K> {
    until: BTreeMap<K, Time>,
    /// The decisions of which it is not known yet how long they took: whose, when, and how long the root rests at least.
    fresh: Vec<(K, Time, Duration)>,
}

impl<K> Default for Rests<K> {
    fn default() -> Self {
        Rests { until: BTreeMap::new(), fresh: Vec::new() }
    }
}

impl<K: Hash> Hash for Rests<K> {
    /// How long decisions take is measured, and where nobody measures it there is no clock.
    fn hash<H: Hasher>(&self, into: &mut H) {
        self.until.hash(into);
    }
}

impl<K: Ord + Clone> Rests<K> {
    /// A decision is taken for a root, and reads so many objects.
    pub(crate) fn decided(&mut self, root: &K, n_read: usize, now: Time) {
        if n_read < OBJECTS_MANY {
            self.until.remove(root);
        } else {
            let n_read = u32::try_from(n_read).unwrap_or(u32::MAX);
            let rest = REST_PER_OBJECT.saturating_mul(n_read);
            self.until.insert(root.clone(), now.after(rest));
            self.fresh.push((root.clone(), now, rest));
        }
    }

    /// Decisions begin. How long those before them took is not known any more.
    pub(crate) fn begin(&mut self) {
        self.fresh.clear();
    }

    /// All decisions since they began were taken by now.
    pub(crate) fn took_until(&mut self, now: Time) {
        let n_fresh = u32::try_from(self.fresh.len()).unwrap_or(u32::MAX).max(1);
        for (root, decided_at, rest) in self.fresh.drain(..) {
            let took = now.since(decided_at) / n_fresh;
            let longer = took.saturating_mul(REST_PER_TIME).min(rest.saturating_mul(STRETCH_MAX));
            if longer > rest {
                self.until.insert(root, now.after(longer));
            }
        }
    }

    /// Until when the root rests, if it does now.
    pub(crate) fn until(&self, root: &K, now: Time) -> Option<Time> {
        self.until.get(root).copied().filter(|until| now < *until)
    }

    /// The root is gone.
    pub(crate) fn forget(&mut self, root: &K) {
        self.until.remove(root);
        self.fresh.retain(|(fresh, ..)| fresh != root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_roots_whose_decisions_read_much_rest_and_in_proportion() {
        let (mut rests, now) = (Rests::default(), Time::from_seconds(0));
        rests.decided(&"small", 99, now);
        rests.decided(&"large", 10_000, now);
        assert_eq!(rests.until(&"small", now), None);
        let over = now.after(Duration::from_millis(50));
        assert_eq!(rests.until(&"large", now), Some(over));
        assert_eq!(rests.until(&"large", over), None);
        rests.decided(&"large", 10, now);
        assert_eq!(rests.until(&"large", now), None);
    }

    /// How many decisions a root takes over the same work if everything takes so many times as long.
    fn n_decisions(slower: u32) -> usize {
        const OBJECTS: usize = 10_000;
        let news_every = Duration::from_micros(400) * slower;
        let decision = Duration::from_millis(4) * slower;
        let (mut rests, mut now, mut n_decisions) = (Rests::default(), Time::from_seconds(0), 0);
        let end = now.after(news_every * OBJECTS as u32);
        while now < end {
            now = rests.until(&"root", now).unwrap_or(now.after(news_every));
            rests.decided(&"root", OBJECTS, now);
            now = now.after(decision);
            rests.took_until(now);
            n_decisions += 1;
        }
        n_decisions
    }

    #[test]
    fn on_a_starved_machine_the_same_work_takes_no_more_decisions() {
        let usual = n_decisions(1);
        for slower in [2, 3, 4] {
            let starved = n_decisions(slower);
            assert!(
                starved * 10 <= usual * 11,
                "{slower} times slower: {starved} decisions instead of {usual}"
            );
        }
    }

    #[test]
    fn a_decision_that_was_held_up_does_not_hold_up_the_next_for_long() {
        let (mut rests, now) = (Rests::default(), Time::from_seconds(0));
        rests.decided(&"root", 10_000, now);
        let late = now.after(Duration::from_secs(3));
        rests.took_until(late);
        assert_eq!(rests.until(&"root", late), Some(late.after(Duration::from_millis(200))));
        rests.took_until(late.after(Duration::from_secs(3)));
        assert_eq!(rests.until(&"root", late), Some(late.after(Duration::from_millis(200))), "said once");
    }
}
