//! What pods demand of a node besides room: selectors, affinities, tolerations. Pods with equal demands are asked about
//! once.

use std::collections::BTreeMap;

use krafla_plan::object::PodSpec;

use crate::fit;
use crate::node::Hosts;

/// A demand among [`Demands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DemandId(usize);

/// One demand, and the nodes that meet it.
#[derive(Debug)]
struct Demand<'a> {
    /// The first pod with this demand speaks for all.
    spec: &'a PodSpec,
    /// Found out when first asked for.
    suitable: Option<Vec<bool>>,
}

/// All demands that occur.
#[derive(Debug, Default)]
pub(crate) struct Demands<'a> {
    all: Vec<Demand<'a>>,
    /// Demands by how they are written.
    known: BTreeMap<String, DemandId>,
}

impl<'a> Demands<'a> {
    /// The demand of a pod.
    pub(crate) fn of(&mut self, spec: &'a PodSpec) -> DemandId {
        let id = DemandId(self.all.len());
        let id = *self.known.entry(written(spec)).or_insert(id);
        if id.0 == self.all.len() {
            self.all.push(Demand { spec, suitable: None });
        }
        id
    }

    /// For each node, whether it meets the demand.
    pub(crate) fn suitable(&mut self, id: DemandId, hosts: &Hosts<'a>) -> &[bool] {
        let Some(Demand { spec, suitable }) = self.all.get_mut(id.0) else { return &[] };
        suitable
            .get_or_insert_with(|| hosts.iter().map(|host| fit::objection(spec, host).is_none()).collect())
    }
}

/// Most pods demand nothing, and that is quickly said.
fn written(spec: &PodSpec) -> String {
    let PodSpec { node_selector, tolerations, affinity, .. } = spec;
    let node_affinity = affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    if node_selector.is_empty() && tolerations.is_empty() && node_affinity.is_none() {
        return String::new();
    }
    format!("{node_selector:?} {tolerations:?} {node_affinity:?}")
}
