//! The work queue: which roots wait for a decision.
//!
//! A root waits at most once, in order of arrival; a root that is being worked on is not handed out again, but comes
//! back once its work is done if something happened meanwhile. Wake-ups and back-off are moments in one ordered set.
//! It is plain data and takes the time as an argument; a [`Meter`] may count what happens to it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use krafla_api::Time;

/// The first delay after a failure; it doubles with each further one.
const BACKOFF_MIN: Duration = Duration::from_millis(5);
/// No root waits longer than this after failures: an outage that ends is noticed within it.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Counts what happens to the roots in a queue.
pub(crate) trait Meter<K> {
    /// A root has come to wait.
    fn added(&self, key: &K);
    /// A root that had waited since `added_at` is handed out.
    fn taken(&self, key: &K, added_at: Time, now: Time);
    /// The work on a root that was handed out at `taken_at` is over.
    fn done(&self, key: &K, taken_at: Time, now: Time);
    /// A root's work failed and is to be tried again.
    fn retried(&self, key: &K);
}

/// The work queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue<K, M> {
    ready: VecDeque<K>,
    /// Everything in `ready`, and what must come back after its present work: since when.
    dirty: BTreeMap<K, Time>,
    /// What is worked on, and since when.
    busy: BTreeMap<K, Time>,
    wakes: BTreeMap<K, Time>,
    by_time: BTreeSet<(Time, K)>,
    failures: BTreeMap<K, u32>,
    meter: M,
}

impl<K: Ord + Clone, M: Meter<K>> Queue<K, M> {
    pub(crate) fn new(meter: M) -> Self {
        Queue {
            ready: VecDeque::new(),
            dirty: BTreeMap::new(),
            busy: BTreeMap::new(),
            wakes: BTreeMap::new(),
            by_time: BTreeSet::new(),
            failures: BTreeMap::new(),
            meter,
        }
    }

    /// Something happened to this root.
    pub(crate) fn push(&mut self, key: K, now: Time) {
        let Entry::Vacant(place) = self.dirty.entry(key.clone()) else { return };
        place.insert(now);
        self.meter.added(&key);
        if !self.busy.contains_key(&key) {
            self.ready.push_back(key);
        }
    }

    /// The next root to work on. It must be given back with [`Queue::done`].
    pub(crate) fn pop(&mut self, now: Time) -> Option<K> {
        while let Some((at, key)) = self.by_time.first().cloned() {
            if at > now {
                break;
            }
            self.wake(&key, None);
            self.push(key, now);
        }
        let key = self.ready.pop_front()?;
        let added_at = self.dirty.remove(&key).unwrap_or(now);
        self.meter.taken(&key, added_at, now);
        self.busy.insert(key.clone(), now);
        Some(key)
    }

    /// The work on this root is over.
    pub(crate) fn done(&mut self, key: &K, now: Time) {
        let Some(taken_at) = self.busy.remove(key) else { return };
        self.meter.done(key, taken_at, now);
        if self.dirty.contains_key(key) {
            self.ready.push_back(key.clone());
        }
    }

    /// The root is to be looked at again at that moment, and no longer at the one said before.
    pub(crate) fn wake(&mut self, key: &K, at: Option<Time>) {
        if let Some(before) = self.wakes.remove(key) {
            self.by_time.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.wakes.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// The root's work failed: when to try again.
    pub(crate) fn back_off(&mut self, key: &K, now: Time) -> Time {
        self.meter.retried(key);
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = BACKOFF_MIN.saturating_mul(1 << (*failures).min(20)).min(BACKOFF_MAX);
        *failures = failures.saturating_add(1);
        now.after(delay)
    }

    /// The root's work succeeded: the next failure is again the first.
    pub(crate) fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// When the next delayed root is due.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Whether something can be worked on now.
    pub(crate) fn has_ready(&self, now: Time) -> bool {
        !self.ready.is_empty() || self.next_wake().is_some_and(|at| at <= now)
    }

    /// Takes what decides about the order of work into a number. Since when something waits is only measured.
    pub(crate) fn digest(&self, into: &mut impl Hasher)
    where
        K: Hash,
    {
        self.ready.hash(into);
        self.dirty.len().hash(into);
        self.dirty.keys().for_each(|key| key.hash(into));
        self.busy.len().hash(into);
        self.busy.keys().for_each(|key| key.hash(into));
        self.by_time.hash(into);
        self.failures.hash(into);
    }

    /// How many roots wait for their turn.
    pub(crate) fn len(&self) -> usize {
        self.ready.len()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Writes down what happens.
    #[derive(Default)]
    struct Minutes(RefCell<Vec<String>>);

    impl Meter<&str> for Minutes {
        fn added(&self, key: &&str) {
            self.0.borrow_mut().push(format!("added {key}"));
        }
        fn taken(&self, key: &&str, added_at: Time, now: Time) {
            self.0.borrow_mut().push(format!("taken {key} after {:?}", now.since(added_at)));
        }
        fn done(&self, key: &&str, taken_at: Time, now: Time) {
            self.0.borrow_mut().push(format!("done {key} after {:?}", now.since(taken_at)));
        }
        fn retried(&self, key: &&str) {
            self.0.borrow_mut().push(format!("retried {key}"));
        }
    }

    fn queue() -> Queue<&'static str, Minutes> {
        Queue::new(Minutes::default())
    }

    #[test]
    fn what_waits_is_counted_once_and_its_time_runs_from_the_first_news() {
        let mut queue = queue();
        queue.push("a", at(0));
        queue.push("a", at(1));
        queue.pop(at(2));
        queue.push("a", at(3));
        queue.push("a", at(4));
        queue.done(&"a", at(7));
        queue.pop(at(8));
        let retry_at = queue.back_off(&"a", at(9));
        queue.done(&"a", at(9));
        queue.done(&"a", at(9));
        queue.wake(&"a", Some(retry_at));
        queue.pop(at(10));
        assert_eq!(
            *queue.meter.0.borrow(),
            [
                "added a",
                "taken a after 2s",
                "added a",
                "done a after 5s",
                "taken a after 5s",
                "retried a",
                "done a after 1s",
                "added a",
                "taken a after 0ns",
            ]
        );
    }

    fn at(second: i64) -> Time {
        Time::from_seconds(second)
    }

    #[test]
    fn volcano_14_and_18_a_root_waits_once_and_keeps_no_other_from_being_worked_on() {
        let mut queue = queue();
        for key in ["a", "b", "a"] {
            queue.push(key, at(0));
        }
        assert_eq!((queue.pop(at(0)), queue.pop(at(0)), queue.pop(at(0))), (Some("a"), Some("b"), None));
    }

    #[test]
    fn news_during_work_bring_the_root_back_after_it() {
        let mut queue = queue();
        queue.push("a", at(0));
        queue.pop(at(0));
        queue.push("a", at(0));
        assert_eq!(queue.pop(at(0)), None, "never worked on twice at once");
        queue.done(&"a", at(0));
        assert_eq!(queue.pop(at(0)), Some("a"));
    }

    #[test]
    fn a_wake_up_replaces_the_one_before() {
        let mut queue = queue();
        queue.wake(&"a", Some(at(5)));
        queue.wake(&"a", Some(at(9)));
        assert_eq!(queue.next_wake(), Some(at(9)));
        assert_eq!(queue.pop(at(8)), None);
        assert_eq!(queue.pop(at(9)), Some("a"));
        assert_eq!(queue.next_wake(), None);
    }

    #[test]
    fn volcano_17_30_and_32_failures_back_off_to_a_minute_and_a_success_starts_anew() {
        let mut queue = queue();
        let delays: Vec<_> = (0..20).map(|_| queue.back_off(&"a", at(0)).since(at(0)).as_millis()).collect();
        assert_eq!(delays[..4], [5, 10, 20, 40]);
        assert_eq!(delays[19], 60_000);
        queue.forget(&"a");
        assert_eq!(queue.back_off(&"a", at(0)).since(at(0)).as_millis(), 5);
    }
}
