//! Whether things that wait for each other can ever start.

use std::collections::{BTreeMap, BTreeSet};

/// Whether nothing waits for itself, directly or through others. A name that nobody has is waited for in vain; that is
/// the caller's finding, and it is no ring.
pub(crate) fn is_acyclic<N: Ord + Copy>(waits_for: &BTreeMap<N, Vec<N>>) -> bool {
    stuck(waits_for).is_empty()
}

/// The names that are in a ring, or wait for one that is, in order. Takes time in proportion to names and edges.
pub fn stuck<N: Ord + Copy>(waits_for: &BTreeMap<N, Vec<N>>) -> Vec<N> {
    // Whatever waits for nothing (any more) may start; if something is never reached, it is in or behind a ring.
    let mut n_missing: BTreeMap<N, usize> = BTreeMap::new();
    let mut followers: BTreeMap<N, Vec<N>> = BTreeMap::new();
    for (name, targets) in waits_for {
        let targets: BTreeSet<N> =
            targets.iter().copied().filter(|target| waits_for.contains_key(target)).collect();
        n_missing.insert(*name, targets.len());
        for target in targets {
            followers.entry(target).or_default().push(*name);
        }
    }
    let mut ready: Vec<N> = n_missing.iter().filter(|(_, n)| **n == 0).map(|(name, _)| *name).collect();
    while let Some(name) = ready.pop() {
        for follower in followers.get(&name).into_iter().flatten() {
            if let Some(n) = n_missing.get_mut(follower) {
                *n -= 1;
                if *n == 0 {
                    ready.push(*follower);
                }
            }
        }
    }
    n_missing.into_iter().filter(|(_, n)| *n > 0).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    fn acyclic(edges: &[(&'static str, &[&'static str])]) -> bool {
        is_acyclic(&edges.iter().map(|(name, targets)| (*name, targets.to_vec())).collect())
    }

    #[test]
    fn only_rings_are_rings() {
        assert!(acyclic(&[]));
        assert!(acyclic(&[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c", "b"])]));
        assert!(acyclic(&[("a", &["nobody"])]));
        assert!(!acyclic(&[("a", &["a"])]));
        assert!(!acyclic(&[("a", &["c"]), ("b", &["a"]), ("c", &["b"]), ("d", &[])]));
    }

    thread_local! {
        static COMPARISONS: Cell<u64> = const { Cell::new(0) };
    }

    /// A name that counts how often names are compared.
    #[derive(Clone, Copy)]
    struct Name(usize);

    impl Ord for Name {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Name {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Name {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }

    impl Eq for Name {}

    /// How many comparisons it takes to look at layers of two, each of which waits for both of the layer above: the number
    /// of ways through it doubles with every layer.
    fn comparisons(n_names: usize) -> u64 {
        let waits_for: BTreeMap<Name, Vec<Name>> = (0..n_names)
            .map(|name| {
                let above = (name / 2 * 2).saturating_sub(2)..name / 2 * 2;
                (Name(name), above.map(Name).collect())
            })
            .collect();
        COMPARISONS.set(0);
        assert!(is_acyclic(&waits_for));
        COMPARISONS.get()
    }

    #[test]
    fn volcano_44_a_graph_of_twice_the_size_takes_little_more_than_twice_the_steps() {
        // A search in a map of twice the size takes one more comparison.
        let (once, twice) = (comparisons(1000), comparisons(2000));
        assert!(twice * 10 < once * 25, "{once} comparisons for 1,000 names, {twice} for 2,000");
    }
}
