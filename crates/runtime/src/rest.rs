//! Roots whose decisions read many objects rest for a moment after each.
//!
//! News of pods come one by one, and a decision reads all of them: without a rest, the cost of a job would grow with the
//! square of its pods, and so would that of the scheduler. The rest is in proportion to what is read, so that what a root costs
//! in a second is bounded, and news that come meanwhile are read together.

use std::collections::BTreeMap;
use std::time::Duration;

use krafla_api::Time;

/// How long a root rests for each object that was read.
const REST_PER_OBJECT: Duration = Duration::from_micros(5);

/// After fewer objects than this a root does not rest.
const OBJECTS_MANY: usize = 100;

/// Until when each root rests.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Rests<K> {
    until: BTreeMap<K, Time>,
}

impl<K> Default for Rests<K> {
    fn default() -> Self {
        Rests { until: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Rests<K> {
    /// A decision is taken for a root, and reads so many objects.
    pub(crate) fn decided(&mut self, root: &K, n_read: usize, now: Time) {
        if n_read < OBJECTS_MANY {
            self.until.remove(root);
        } else {
            let n_read = u32::try_from(n_read).unwrap_or(u32::MAX);
            self.until.insert(root.clone(), now.after(REST_PER_OBJECT.saturating_mul(n_read)));
        }
    }

    /// Until when the root rests, if it does now.
    pub(crate) fn until(&self, root: &K, now: Time) -> Option<Time> {
        self.until.get(root).copied().filter(|until| now < *until)
    }

    /// The root is gone.
    pub(crate) fn forget(&mut self, root: &K) {
        self.until.remove(root);
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
}
