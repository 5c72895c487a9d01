//! Which pods must be near each other, and which must not: inter-pod affinity and anti-affinity.
//!
//! ```text
//!   term      pods that its selectors pick, and the label that says which nodes are near each other
//!   domain    all nodes with one value of that label
//!   matching  per domain, how many pods there are picked by the term
//!   avoiding  per domain, how many pods there have the term as their anti-affinity
//! ```
//!
//! A pod that demands several things near it means one pod that is all of them, so these are terms of several selectors. What
//! it demands away from it, it demands one by one.
//!
//! The counts follow every pod that is put on the board or taken back, so a question about a node is a few look-ups.
//! Where no pod has such a demand, which is most clusters, nothing here costs anything.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Kind;
use krafla_api::meta::LabelSelector;
use krafla_plan::placement::{PodAffinityTerm, selects};
use krafla_plan::{Object, Objects};

use crate::lacks;
use crate::node::{Host, Hosts};
use crate::spread::{Spread, Standing};

/// A term on one board.
pub(crate) type TermId = usize;

/// What ties a pod to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ties {
    /// The terms that it demands near it.
    joins: Vec<TermId>,
    /// The terms that it demands away from it.
    avoids: Vec<TermId>,
    /// The terms that pick it.
    matches: Vec<TermId>,
    /// What it has to do with spreading.
    standing: Standing,
}

impl Ties {
    /// Whether a pod that is put elsewhere can make a node good for this one.
    pub(crate) fn wants_company(&self) -> bool {
        !self.joins.is_empty() || self.standing.is_bound()
    }

    /// Whether the pod demands what a term picks near it.
    pub(crate) fn joins(&self, term: TermId) -> bool {
        self.joins.contains(&term)
    }
}

#[derive(Debug)]
struct Term<'a> {
    /// All of these must pick a pod.
    picks: Vec<Picker<'a>>,
    topology_key: &'a str,
    matching: BTreeMap<&'a str, usize>,
    avoiding: BTreeMap<&'a str, usize>,
}

/// Pods by their labels and namespaces.
#[derive(Debug)]
struct Picker<'a> {
    /// Without one, no pod is picked.
    selector: Option<&'a LabelSelector>,
    namespaces: Namespaces<'a>,
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
    spread: Spread<'a>,
}

impl<'a> Neighbours<'a> {
    /// Reads the terms of all pods that have not ended.
    pub(crate) fn observe(objects: &'a Objects, hosts: &Hosts<'a>) -> Neighbours<'a> {
        let mut neighbours = Neighbours::default();
        for object in objects.all(Kind::Pod) {
            neighbours.spread.learn(object, hosts);
            for required in requirements_of(object) {
                neighbours.learn(object, &required, objects);
            }
        }
        neighbours
    }

    fn learn(&mut self, pod: &'a Object, required: &Requirement<'a>, objects: &'a Objects) {
        let id = self.terms.len();
        if *self.known.entry(required.written(pod)).or_insert(id) != id {
            return;
        }
        let pick = |term: &'a PodAffinityTerm| Picker {
            selector: term.label_selector.as_ref(),
            namespaces: Namespaces::of(pod, term, objects),
        };
        let picks: Vec<Picker<'a>> = required.picks.iter().map(pick).collect();
        let mut labels = picks.iter().filter_map(|pick| pick.selector?.match_labels.first_key_value());
        match labels.next() {
            _ if picks.iter().any(|pick| pick.selector.is_none()) => {}
            Some((key, value)) => self.by_label.entry((key, value)).or_default().push(id),
            None => self.without_label.push(id),
        }
        self.terms.push(Term {
            picks,
            topology_key: required.topology_key,
            matching: BTreeMap::new(),
            avoiding: BTreeMap::new(),
        });
    }

    /// What ties a pod to others.
    pub(crate) fn ties(&self, pod: &'a Object) -> Ties {
        let mut ties = Ties { standing: self.spread.standing(pod), ..Ties::default() };
        if self.terms.is_empty() {
            return ties;
        }
        for required in requirements_of(pod) {
            let Some(id) = self.known.get(&required.written(pod)) else { continue };
            match required.side {
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
        self.spread.count(&ties.standing, host, &change);
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

    /// A term by which a pod demands its own kind near it while there is none anywhere.
    pub(crate) fn founds(&self, ties: &Ties) -> Option<TermId> {
        ties.joins.first().filter(|_| self.is_first(ties)).copied()
    }

    /// Whether a pod is the first of a series that wants its own kind near: it finds none, and may go anywhere.
    fn is_first(&self, ties: &Ties) -> bool {
        let picks_itself_alone = |id: &TermId| {
            ties.matches.contains(id) && self.terms.get(*id).is_some_and(Term::picks_nobody_yet)
        };
        ties.joins.iter().all(picks_itself_alone)
    }

    /// The domain of a term that a node is in.
    pub(crate) fn domain(&self, term: TermId, host: &Host<'a>) -> Option<&'a str> {
        host.meta.labels.get(self.terms.get(term)?.topology_key)
    }

    /// Whether a node is in a domain of a term.
    pub(crate) fn is_in(&self, term: TermId, domain: &str, host: &Host<'a>) -> bool {
        self.domain(term, host) == Some(domain)
    }

    /// Why a node will not do because of the pods around it. `None` means that it will.
    pub(crate) fn objection(&self, ties: &Ties, host: &Host<'_>) -> Option<&'static krafla_why::Lack> {
        if let Some(objection) = self.spread.objection(&ties.standing, host) {
            return Some(objection);
        }
        let term = |id: &TermId| self.terms.get(*id);
        let mut joins = ties.joins.iter().filter_map(term);
        let is_homeless = |term: &Term<'a>| term.domain(host).is_none();
        let is_lonely = |term: &Term<'a>| term.n_matching(host) == 0;
        if joins.any(|term| is_homeless(term) || (is_lonely(term) && !self.is_first(ties))) {
            return Some(&lacks::POD_AFFINITY);
        }
        if ties.avoids.iter().filter_map(term).any(|term| term.n_matching(host) > 0) {
            return Some(&lacks::POD_ANTI_AFFINITY);
        }
        if ties.matches.iter().filter_map(term).any(|term| term.n_avoiding(host) > 0) {
            return Some(&lacks::EXISTING_ANTI_AFFINITY);
        }
        None
    }
}

impl<'a> Term<'a> {
    fn picks(&self, pod: &Object) -> bool {
        self.picks.iter().all(|pick| pick.picks(pod))
    }

    fn domain<'h>(&self, host: &'h Host<'_>) -> Option<&'h str> {
        host.meta.labels.get(self.topology_key)
    }

    fn with_domain(&mut self, host: &Host<'a>) -> Option<(&mut Term<'a>, &'a str)> {
        let domain = host.meta.labels.get(self.topology_key)?;
        Some((self, domain))
    }

    fn picks_nobody_yet(&self) -> bool {
        self.matching.values().all(|n| *n == 0)
    }

    fn n_matching(&self, host: &Host<'_>) -> usize {
        self.domain(host).and_then(|domain| self.matching.get(domain)).copied().unwrap_or(0)
    }

    fn n_avoiding(&self, host: &Host<'_>) -> usize {
        self.domain(host).and_then(|domain| self.avoiding.get(domain)).copied().unwrap_or(0)
    }
}

impl Picker<'_> {
    fn picks(&self, pod: &Object) -> bool {
        let in_namespace = match &self.namespaces {
            Namespaces::All => true,
            Namespaces::Some(names) => names.contains(&*pod.meta.key.namespace),
        };
        in_namespace && self.selector.is_some_and(|selector| selects(selector, &pod.meta.labels))
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

/// One thing that a pod requires: pods near it, or away from it.
#[derive(Clone, Copy, Debug)]
struct Requirement<'a> {
    side: Side,
    topology_key: &'a str,
    picks: &'a [PodAffinityTerm],
}

impl Requirement<'_> {
    /// As it is written; where it says nothing about namespaces, it means the pod's own.
    fn written(&self, pod: &Object) -> String {
        format!("{} {} {:?}", pod.meta.key.namespace, self.topology_key, self.picks)
    }
}

/// What a pod that has not ended requires.
fn requirements_of(pod: &Object) -> impl Iterator<Item = Requirement<'_>> {
    let alive = pod.as_pod().filter(|pod| !pod.status.phase.is_finished());
    let affinity = alive.and_then(|pod| pod.spec.affinity.as_deref());
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref()).map(|it| it.required.as_slice());
    let away = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let near = near.into_iter().flat_map(|picks| {
        let required = move |term| Requirement { side: Side::Near, topology_key: topology(term), picks };
        picks.iter().map(required)
    });
    let away = away.into_iter().flat_map(|it| &it.required).map(|term| Requirement {
        side: Side::Away,
        topology_key: topology(term),
        picks: std::slice::from_ref(term),
    });
    near.chain(away)
}

fn topology(term: &PodAffinityTerm) -> &str {
    &term.topology_key
}
