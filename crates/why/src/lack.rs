//! What nodes lack for a pod, as schedulers count it: `1 Insufficient cpu, 2 node(s) were unschedulable`.

use std::fmt;

use crate::foreign;
use crate::sentence::{Gap, Name, counted, list, sentences};

sentences! {
    /// Why a node will not do for a pod. The words are Kubernetes' own: people search for them. Sorted as their texts are.
    #[derive(PartialOrd, Ord)]
    pub enum Lack {
        /// The node has too little of a resource left.
        Insufficient { resource: Name } = "Insufficient {resource}",
        /// The node runs as many pods as it may.
        TooManyPods = "Too many pods",
        /// The cluster has more names of resources than the scheduler keeps account of.
        TooManyNames = "Too many resource names",
        /// A hostPort is taken.
        Ports = "node(s) didn't have free ports for the requested pod ports",
        /// The node's labels do not match.
        Selector = "node(s) didn't match Pod's node affinity/selector",
        /// A pod that must be near is not.
        PodAffinity = "node(s) didn't match pod affinity rules",
        /// A pod that must not be near is.
        PodAntiAffinity = "node(s) didn't match pod anti-affinity rules",
        /// The spread over nodes would be too uneven.
        Spread = "node(s) didn't match pod topology spread constraints",
        /// The node lacks the label that pods are spread by.
        SpreadLabel = "node(s) didn't match pod topology spread constraints (missing required label)",
        /// Another pod wants to be alone.
        ExistingAntiAffinity = "node(s) didn't satisfy existing pods anti-affinity rules",
        /// The node has taints that the pod does not tolerate.
        Taints = "node(s) had untolerated taint(s)",
        /// The node has this taint, which the pod does not tolerate.
        Taint { taint: String } = "node(s) had untolerated taint {{{taint}}}",
        /// The pod's volume is on another node.
        VolumeElsewhere = "node(s) had volume node affinity conflict",
        /// The node is being deleted.
        Leaving = "node(s) were being deleted",
        /// The node does not report that it is ready.
        NotReady = "node(s) were not ready",
        /// The node is cordoned.
        Cordoned = "node(s) were unschedulable",
        /// A claim of the pod has no volume yet.
        ClaimUnbound = "pod has unbound immediate PersistentVolumeClaims",
        /// An object that the pod names does not exist.
        NotFound { kind: Name, name: Name } = "{kind} \"{name}\" not found",
        /// Anything else.
        Other { text: String } = "{text}",
    }
}

impl Lack {
    /// Reads one. Every text is one.
    pub fn parse(text: &str) -> Lack {
        Lack::parse_sentence(text).unwrap_or_else(|| Lack::Other { text: text.to_owned() })
    }
}

/// What nodes lack, and how many of them, where that is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacks(pub Vec<(Option<u32>, Lack)>);

impl Lacks {
    /// All lacks without their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Lack> {
        self.0.iter().map(|(_, lack)| lack)
    }

    /// Reads a list of them.
    pub(crate) fn parse_list(text: &str) -> Lacks {
        let one = |item: &str| match counted(item) {
            Some((n, what)) => (Some(n), Lack::parse(&what)),
            None => (None, Lack::parse(item)),
        };
        Lacks(text.split(", ").filter(|item| !item.is_empty()).map(one).collect())
    }
}

impl Gap for Lacks {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() {
            f.write_str(": ")?;
        }
        let shown = self.0.iter().map(|(n, lack)| match n {
            Some(n) => format!("{n} {lack}"),
            None => lack.to_string(),
        });
        list(shown, f)
    }

    fn read(text: &str) -> Option<Lacks> {
        if text.is_empty() {
            return Some(Lacks::default());
        }
        let list = text.strip_prefix(": ").filter(|list| !list.is_empty() && !foreign::has_other_words(list));
        list.map(Lacks::parse_list)
    }
}
