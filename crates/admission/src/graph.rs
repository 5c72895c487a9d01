//! Whether things that wait for each other can ever start.

use std::collections::{BTreeMap, BTreeSet};

/// The names that are in a ring, or wait for one that is, in order. A name that nobody has is waited for in vain; that is
/// the caller's finding, and it is no ring. Takes time in proportion to names and edges.
fn stuck<N: Ord + Copy>(waits_for: &BTreeMap<N, Vec<N>>) -> Vec<N> {
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

/// One ring, in the order in which its names wait for each other, from the one that comes first in the alphabet; empty if
/// there is none.
pub fn ring<N: Ord + Copy>(waits_for: &BTreeMap<N, Vec<N>>) -> Vec<N> {
    let stuck: BTreeSet<N> = stuck(waits_for).into_iter().collect();
    // Whoever is stuck waits for somebody who is: the way from one to the next comes back to a name that it has passed.
    let mut way = Vec::new();
    let mut place_of = BTreeMap::new();
    let mut next = stuck.first().copied();
    while let Some(name) = next {
        if let Some(start) = place_of.insert(name, way.len()) {
            let mut ring = way.split_off(start);
            let first = ring.iter().enumerate().min_by_key(|(_, name)| **name).map_or(0, |(place, _)| place);
            ring.rotate_left(first);
            return ring;
        }
        way.push(name);
        next = waits_for.get(&name).into_iter().flatten().find(|target| stuck.contains(target)).copied();
    }
    Vec::new()
}

/// How many names of a ring are shown: Events and refusals are read by people.
const SHOWN_MAX: usize = 10;

/// A ring in words: `a -> b -> a`.
pub fn describe(ring: &[&str]) -> String {
    let (shown, n_hidden) = (ring.iter().take(SHOWN_MAX), ring.len().saturating_sub(SHOWN_MAX));
    let mut names: Vec<String> = shown.map(|name| (*name).to_owned()).collect();
    if n_hidden > 0 {
        names.push(format!("({n_hidden} more)"));
    }
    names.extend(ring.first().map(|name| (*name).to_owned()));
    names.join(" -> ")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    fn acyclic(edges: &[(&'static str, &[&'static str])]) -> bool {
        ring(&edges.iter().map(|(name, targets)| (*name, targets.to_vec())).collect()).is_empty()
    }

    #[test]
    fn only_rings_are_rings() {
        assert!(acyclic(&[]));
        assert!(acyclic(&[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c", "b"])]));
        assert!(acyclic(&[("a", &["nobody"])]));
        assert!(!acyclic(&[("a", &["a"])]));
        assert!(!acyclic(&[("a", &["c"]), ("b", &["a"]), ("c", &["b"]), ("d", &[])]));
    }

    #[test]
    fn a_ring_is_named_without_what_only_waits_for_it() {
        let named = |edges: &[(&'static str, &[&'static str])]| {
            describe(&ring(&edges.iter().map(|(name, targets)| (*name, targets.to_vec())).collect()))
        };
        assert_eq!(named(&[("a", &[]), ("b", &["a", "nobody"])]), "");
        assert_eq!(named(&[("a", &["a"])]), "a -> a");
        assert_eq!(
            named(&[("a", &["free", "d"]), ("free", &[]), ("d", &["c"]), ("c", &["b"]), ("b", &["d"])]),
            "b -> d -> c -> b"
        );
    }

    #[test]
    fn a_long_ring_is_named_in_a_line() {
        let names: Vec<String> = (0..1000).map(|n| format!("s{n:03}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let waits_for =
            names.iter().zip(names.iter().cycle().skip(1)).map(|(name, next)| (*name, vec![*next]));
        let shown = describe(&ring(&waits_for.collect()));
        assert_eq!(
            shown,
            "s000 -> s001 -> s002 -> s003 -> s004 -> s005 -> s006 -> s007 -> s008 -> s009 -> (990 more) -> s000"
        );
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
        assert!(ring(&waits_for).is_empty());
        COMPARISONS.get()
    }

    #[test]
    fn volcano_44_a_graph_of_twice_the_size_takes_little_more_than_twice_the_steps() {
        // A search in a map of twice the size takes one more comparison.
        let (once, twice) = (comparisons(1000), comparisons(2000));
        assert!(twice * 10 < once * 25, "{once} comparisons for 1,000 names, {twice} for 2,000");
    }
}
