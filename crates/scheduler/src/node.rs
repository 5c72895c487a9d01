//! The nodes, and what is free on them while a decision is being made.

use std::collections::BTreeMap;

use krafla_api::Kind;
use krafla_plan::object::Node;
use krafla_plan::{Meta, Objects};

use crate::resources::{Amounts, Names};

/// One node and what is free on it.
#[derive(Debug)]
pub(crate) struct Host<'a> {
    pub(crate) meta: &'a Meta,
    pub(crate) node: &'a Node,
    /// What pods may use when there are none.
    pub(crate) total: Amounts,
    /// What is left beside the pods that are there and those that this decision puts there.
    pub(crate) free: Amounts,
}

impl Host<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.meta.key.name
    }

    /// How much of the node is free, in thousandths: the mean of cpu and memory.
    pub(crate) fn emptiness(&self) -> u32 {
        self.free.share_of(&self.total)
    }

    /// Why no new pod at all may come here.
    pub(crate) fn closed(&self) -> Option<&'static str> {
        let is_down =
            self.node.status.conditions.iter().any(|c| c.condition_type == "Ready" && c.status != "True");
        if self.meta.is_deleting() {
            Some("node(s) were being deleted")
        } else if self.node.spec.unschedulable {
            Some("node(s) were unschedulable")
        } else if is_down {
            Some("node(s) were not ready")
        } else {
            None
        }
    }
}

/// All nodes, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct Hosts<'a> {
    all: Vec<Host<'a>>,
    by_name: BTreeMap<&'a str, usize>,
}

impl<'a> Hosts<'a> {
    pub(crate) fn observe(objects: &'a Objects, names: &mut Names) -> Hosts<'a> {
        let mut hosts = Hosts::default();
        for object in objects.all(Kind::Node) {
            let Some(node) = object.as_node() else { continue };
            let total = names.amounts(&node.status.allocatable);
            hosts.by_name.insert(&object.meta.key.name, hosts.all.len());
            hosts.all.push(Host { meta: &object.meta, node, free: total.clone(), total });
        }
        hosts
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Host<'a>> {
        self.all.get(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Host<'a>> {
        self.all.iter()
    }

    /// The place of a node by its name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// A pod uses room.
    pub(crate) fn take(&mut self, index: usize, needs: &Amounts) {
        if let Some(host) = self.all.get_mut(index) {
            host.free.sub(needs);
        }
    }

    /// A pod that was to come here does not come.
    pub(crate) fn give_back(&mut self, index: usize, needs: &Amounts) {
        if let Some(host) = self.all.get_mut(index) {
            host.free.add(needs);
        }
    }

    /// What all open nodes have together.
    pub(crate) fn total(&self) -> Amounts {
        let mut total = Amounts::default();
        for host in self.open() {
            total.add(&host.total);
        }
        total
    }

    /// What is free on all open nodes together.
    pub(crate) fn free(&self) -> Amounts {
        let mut free = Amounts::default();
        for host in self.open() {
            free.add(&host.free);
        }
        free
    }

    /// What pods use of the open nodes.
    pub(crate) fn used(&self) -> Amounts {
        let mut used = self.total();
        used.sub(&self.free());
        used
    }

    fn open(&self) -> impl Iterator<Item = &Host<'a>> {
        self.all.iter().filter(|host| host.closed().is_none())
    }
}
