//! Whether things that wait for each other can ever start.

use std::collections::{BTreeMap, BTreeSet};

/// Whether nothing waits for itself, directly or through others. A name that nobody has is waited for in vain; that is
/// the caller's finding, and it is no ring.
pub(crate) fn is_acyclic(waits_for: &BTreeMap<&str, Vec<&str>>) -> bool {
    stuck(waits_for).is_empty()
}

/// The names that are in a ring, or wait for one that is, in order. Takes time in proportion to names and edges.
pub fn stuck<'a>(waits_for: &BTreeMap<&'a str, Vec<&'a str>>) -> Vec<&'a str> {
    // Whatever waits for nothing (any more) may start; if something is never reached, it is in or behind a ring.
    let mut n_missing: BTreeMap<&str, usize> = BTreeMap::new();
    let mut followers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, targets) in waits_for {
        let targets: BTreeSet<&str> =
            targets.iter().copied().filter(|target| waits_for.contains_key(target)).collect();
        n_missing.insert(name, targets.len());
        for target in targets {
            followers.entry(target).or_default().push(name);
        }
    }
    let mut ready: Vec<&str> = n_missing.iter().filter(|(_, n)| **n == 0).map(|(name, _)| *name).collect();
    while let Some(name) = ready.pop() {
        for follower in followers.get(name).into_iter().flatten() {
            if let Some(n) = n_missing.get_mut(follower) {
                *n -= 1;
                if *n == 0 {
                    ready.push(follower);
                }
            }
        }
    }
    n_missing.into_iter().filter(|(_, n)| *n > 0).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_deep_layered_graph_takes_no_time() {
        let names: Vec<String> = (0..400).map(|index| format!("n{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let layers = names.chunks(2).zip(names.chunks(2).skip(1));
        let mut waits_for: BTreeMap<&str, Vec<&str>> = names.iter().map(|name| (*name, Vec::new())).collect();
        for (above, below) in layers {
            below.iter().for_each(|name| waits_for.insert(name, above.to_vec()).map_or((), drop));
        }
        assert!(is_acyclic(&waits_for));
    }
}
