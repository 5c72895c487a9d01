//! Which pods must be near each other, and which must not: inter-pod affinity and anti-affinity.
//!
//! ```text
//!   term      pods that a selector picks, and the label that says which nodes are near each other
//!   domain    all nodes with one value of that label
//!   matching  per domain, how many pods there are picked by the term
//!   avoiding  per domain, how many pods there have the term as their anti-affinity
//! ```
//!
//! The counts follow every pod that is put on the board or taken back, so a question about a node is a few look-ups.
//! Where no pod has such a demand, which is most clusters, nothing here costs anything.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Kind;
use krafla_api::meta::LabelSelector;
use krafla_plan::placement::{PodAffinityTerm, selects};
use krafla_plan::{Object, Objects};

use crate::node::Host;

/// A term on one board.
type TermId = usize;

/// What ties a pod to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ties {
    /// The terms that it demands near it.
    joins: Vec<TermId>,
    /// The terms that it demands away from it.
    avoids: Vec<TermId>,
    /// The terms that pick it.
    matches: Vec<TermId>,
}

impl Ties {
    /// Whether a pod that is put elsewhere can make a node good for this one.
    pub(crate) fn wants_company(&self) -> bool {
        !self.joins.is_empty()
    }
}

#[derive(Debug)]
struct Term<'a> {
    /// Without one, no pod is picked.
    selector: Option<&'a LabelSelector>,
    namespaces: Namespaces<'a>,
    topology_key: &'a str,
    matching: BTreeMap<&'a str, usize>,
    avoiding: BTreeMap<&'a str, usize>,
}

/// The namespaces that a term looks at.
#[derive(Debug, PartialEq, Eq)]
enum Namespaces<'a> {
    All,
    Some(BTreeSet<&'a str>),
}

/// All terms, and where the pods are that they are about.
#[derive(Debug, Default)]
pub(crate) struct Neighbours<'a> {
    terms: Vec<Term<'a>>,
    /// Terms by how they are written, so that equal ones are counted once.
    known: BTreeMap<String, TermId>,
    /// Terms by one label that picked pods must have, so that a pod is not compared with all terms.
    by_label: BTreeMap<(&'a str, &'a str), Vec<TermId>>,
    /// Terms that demand no particular label.
    without_label: Vec<TermId>,
}

impl<'a> Neighbours<'a> {
    /// Reads the terms of all pods that have not ended.
    pub(crate) fn observe(objects: &'a Objects) -> Neighbours<'a> {
        let mut neighbours = Neighbours::default();
        for object in objects.all(Kind::Pod) {
            for (_, term) in terms_of(object) {
                neighbours.learn(object, term, objects);
            }
        }
        neighbours
    }

    fn learn(&mut self, pod: &'a Object, term: &'a PodAffinityTerm, objects: &'a Objects) {
        let selector = term.label_selector.as_ref();
        let id = self.terms.len();
        if *self.known.entry(written(pod, term)).or_insert(id) != id {
            return;
        }
        match selector.map(|selector| selector.match_labels.first_key_value()) {
            Some(Some((key, value))) => self.by_label.entry((key, value)).or_default().push(id),
            Some(None) => self.without_label.push(id),
            None => {}
        }
        self.terms.push(Term {
            selector,
            namespaces: Namespaces::of(pod, term, objects),
            topology_key: &term.topology_key,
            matching: BTreeMap::new(),
            avoiding: BTreeMap::new(),
        });
    }

    /// What ties a pod to others.
    pub(crate) fn ties(&self, pod: &'a Object) -> Ties {
        let mut ties = Ties::default();
        if self.terms.is_empty() {
            return ties;
        }
        for (side, term) in terms_of(pod) {
            let Some(id) = self.known.get(&written(pod, term)) else { continue };
            match side {
                Side::Near => ties.joins.push(*id),
                Side::Away => ties.avoids.push(*id),
            }
        }
        let by_label = pod.meta.labels.iter().filter_map(|(key, value)| self.by_label.get(&(key, value)));
        let candidates = by_label.flatten().chain(&self.without_label);
        ties.matches = candidates
            .copied()
            .filter(|id| self.terms.get(*id).is_some_and(|term| term.picks(pod)))
            .collect();
        ties
    }

    /// A pod is on a node.
    pub(crate) fn arrive(&mut self, ties: &Ties, host: &Host<'a>) {
        self.count(ties, host, |n| *n += 1);
    }

    /// A pod that was to come does not come.
    pub(crate) fn leave(&mut self, ties: &Ties, host: &Host<'a>) {
        self.count(ties, host, |n| *n = n.saturating_sub(1));
    }

    fn count(&mut self, ties: &Ties, host: &Host<'a>, change: impl Fn(&mut usize)) {
        for id in &ties.matches {
            if let Some((term, domain)) = self.terms.get_mut(*id).and_then(|term| term.with_domain(host)) {
                change(term.matching.entry(domain).or_default());
            }
        }
        for id in &ties.avoids {
            if let Some((term, domain)) = self.terms.get_mut(*id).and_then(|term| term.with_domain(host)) {
                change(term.avoiding.entry(domain).or_default());
            }
        }
    }

    /// Why a node will not do because of the pods around it. `None` means that it will.
    pub(crate) fn objection(&self, ties: &Ties, host: &Host<'_>) -> Option<&'static str> {
        let term = |id: &TermId| self.terms.get(*id);
        let is_lonely =
            |id: &TermId| term(id).is_some_and(|it| !it.has_company(host, ties.matches.contains(id)));
        if ties.joins.iter().any(is_lonely) {
            return Some("node(s) didn't match pod affinity rules");
        }
        if ties.avoids.iter().filter_map(term).any(|term| term.n_matching(host) > 0) {
            return Some("node(s) didn't match pod anti-affinity rules");
        }
        if ties.matches.iter().filter_map(term).any(|term| term.n_avoiding(host) > 0) {
            return Some("node(s) didn't satisfy existing pods anti-affinity rules");
        }
        None
    }
}

impl<'a> Term<'a> {
    fn picks(&self, pod: &Object) -> bool {
        let in_namespace = match &self.namespaces {
            Namespaces::All => true,
            Namespaces::Some(names) => names.contains(&*pod.meta.key.namespace),
        };
        in_namespace && self.selector.is_some_and(|selector| selects(selector, &pod.meta.labels))
    }

    fn domain<'h>(&self, host: &'h Host<'_>) -> Option<&'h str> {
        host.meta.labels.get(self.topology_key)
    }

    fn with_domain(&mut self, host: &Host<'a>) -> Option<(&mut Term<'a>, &'a str)> {
        let domain = host.meta.labels.get(self.topology_key)?;
        Some((self, domain))
    }

    fn n_matching(&self, host: &Host<'_>) -> usize {
        self.domain(host).and_then(|domain| self.matching.get(domain)).copied().unwrap_or(0)
    }

    fn n_avoiding(&self, host: &Host<'_>) -> usize {
        self.domain(host).and_then(|domain| self.avoiding.get(domain)).copied().unwrap_or(0)
    }

    /// Whether the pods that are wanted near are there. The first of a series that wants its own kind near finds none, and
    /// may go anywhere.
    fn has_company(&self, host: &Host<'_>, picks_itself: bool) -> bool {
        let is_first = picks_itself && self.matching.values().all(|n| *n == 0);
        self.domain(host).is_some() && (is_first || self.n_matching(host) > 0)
    }
}

impl<'a> Namespaces<'a> {
    fn of(pod: &'a Object, term: &'a PodAffinityTerm, objects: &'a Objects) -> Namespaces<'a> {
        let mut names: BTreeSet<&str> = term.namespaces.iter().map(String::as_str).collect();
        match &term.namespace_selector {
            Some(selector) if *selector == LabelSelector::default() => return Namespaces::All,
            Some(selector) => {
                let all = objects.all(Kind::Namespace).filter(|it| selects(selector, &it.meta.labels));
                names.extend(all.map(|namespace| &*namespace.meta.key.name));
            }
            None if names.is_empty() => {
                names.insert(&pod.meta.key.namespace);
            }
            None => {}
        }
        Namespaces::Some(names)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Near,
    Away,
}

/// The demands of a pod that has not ended.
fn terms_of(pod: &Object) -> impl Iterator<Item = (Side, &PodAffinityTerm)> {
    let alive = pod.as_pod().filter(|pod| !pod.status.phase.is_finished());
    let affinity = alive.and_then(|pod| pod.spec.affinity.as_deref());
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let away = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let near = near.into_iter().flat_map(|it| &it.required).map(|term| (Side::Near, term));
    let away = away.into_iter().flat_map(|it| &it.required).map(|term| (Side::Away, term));
    near.chain(away)
}

/// A term as it is written; where it says nothing about namespaces, it means the pod's own.
fn written(pod: &Object, term: &PodAffinityTerm) -> String {
    format!("{} {term:?}", pod.meta.key.namespace)
}
