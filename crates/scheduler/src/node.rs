//! The nodes, and what is free on them while a decision is being made.

use std::collections::HashMap;

use krafla_api::Kind;
use krafla_plan::object::Node;
use krafla_plan::{Meta, Objects};

use crate::lacks;
use crate::resources::{Amounts, Names, Unasked};

/// One node and what is free on it.
#[derive(Debug)]
pub(crate) struct Host<'a> {
    /// Its place among all nodes.
    pub(crate) index: usize,
    pub(crate) meta: &'a Meta,
    pub(crate) node: &'a Node,
    /// What pods may use when there are none.
    pub(crate) total: Amounts,
    /// What is left beside the pods that are there and those that this decision puts there.
    pub(crate) free: Amounts,
    /// What pods here are taken to use without having asked for it.
    unasked: Unasked,
    /// Whether new pods may come here.
    is_open: bool,
}

/// Whether a pod's room is part of what queues share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// It is on an open node.
    Shared,
    /// Its node is closed or gone: nobody gets that room, so it is nobody's share.
    Outside,
}

impl Host<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.meta.key.name
    }

    /// How much of the node is free, in millionths: the mean of cpu and memory.
    pub(crate) fn emptiness(&self) -> u32 {
        self.free.share_beside(self.unasked, &self.total)
    }

    /// Why no new pod may come here. Only a pod that says so may come to a node that is cordoned.
    pub(crate) fn closed(&self, tolerates_cordon: bool) -> Option<&'static krafla_why::Lack> {
        let is_down =
            self.node.status.conditions.iter().any(|c| c.condition_type == "Ready" && c.status != "True");
        if self.meta.is_deleting() {
            Some(&lacks::LEAVING)
        } else if self.node.spec.unschedulable && !tolerates_cordon {
            Some(&lacks::CORDONED)
        } else if is_down {
            Some(&lacks::NOT_READY)
        } else {
            None
        }
    }
}

/// All nodes, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct Hosts<'a> {
    all: Vec<Host<'a>>,
    /// Every pod that runs looks up its node here. It is never gone through, so nothing depends on its order.
    by_name: HashMap<&'a str, usize>,
}

impl<'a> Hosts<'a> {
    pub(crate) fn observe(objects: &'a Objects, names: &mut Names) -> Hosts<'a> {
        let mut hosts = Hosts::default();
        for object in objects.all(Kind::Node) {
            let Some(node) = object.as_node() else { continue };
            let total = names.amounts(&node.status.allocatable);
            hosts.by_name.insert(&object.meta.key.name, hosts.all.len());
            let (free, unasked) = (total.clone(), Unasked::default());
            let mut host = Host {
                index: hosts.all.len(),
                meta: &object.meta,
                node,
                total,
                free,
                unasked,
                is_open: false,
            };
            host.is_open = host.closed(false).is_none();
            hosts.all.push(host);
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
            host.unasked.add(Unasked::by(needs));
        }
    }

    /// A pod that was to come here does not come.
    pub(crate) fn give_back(&mut self, index: usize, needs: &Amounts) {
        if let Some(host) = self.all.get_mut(index) {
            host.free.add(needs);
            host.unasked.sub(Unasked::by(needs));
        }
    }

    /// Whether room on a node is part of what queues share.
    pub(crate) fn ground(&self, index: Option<usize>) -> Ground {
        let is_open = index.and_then(|index| self.get(index)).is_some_and(|host| host.is_open);
        if is_open { Ground::Shared } else { Ground::Outside }
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

    /// What can be given to pods, node by node: what one has too little of is not made up for by the others.
    pub(crate) fn room(&self) -> Amounts {
        let mut room = Amounts::default();
        for host in self.open() {
            room.add_what_is_there(&host.free);
        }
        room
    }

    /// What can be given to pods on one node.
    pub(crate) fn room_on(&self, index: usize) -> Amounts {
        let mut room = Amounts::default();
        if let Some(host) = self.get(index).filter(|host| host.is_open) {
            room.add_what_is_there(&host.free);
        }
        room
    }

    /// What pods use of the open nodes.
    pub(crate) fn used(&self) -> Amounts {
        let mut used = self.total();
        used.sub(&self.free());
        used
    }

    /// The nodes that take new pods.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Host<'a>> {
        self.all.iter().filter(|host| host.is_open)
    }
}
