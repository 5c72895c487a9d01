//! Roots with many children rest for a moment after each decision.
//!
//! News of children come one by one, and a decision reads all of them: without a rest, the cost of a job would grow with the
//! square of its pods. The rest is in proportion to the children, so that what a root costs in a second is bounded, and
//! news that come meanwhile are read together.

use std::collections::BTreeMap;
use std::time::Duration;

use krafla_api::Time;

/// How long a root rests for each of its children.
const REST_PER_CHILD: Duration = Duration::from_micros(5);

/// With fewer children than this a root does not rest.
const CHILDREN_MANY: usize = 100;

/// Until when each root rests.
#[derive(Debug)]
pub(crate) struct Rests<K> {
    until: BTreeMap<K, Time>,
}

impl<K> Default for Rests<K> {
    fn default() -> Self {
        Rests { until: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Rests<K> {
    /// A decision is taken for a root with so many children.
    pub(crate) fn decided(&mut self, root: &K, n_children: usize, now: Time) {
        if n_children < CHILDREN_MANY {
            self.until.remove(root);
        } else {
            let n_children = u32::try_from(n_children).unwrap_or(u32::MAX);
            self.until.insert(root.clone(), now.after(REST_PER_CHILD.saturating_mul(n_children)));
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
    fn only_roots_with_many_children_rest_and_in_proportion() {
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
