//! Ports of a node that pods want for themselves. Two pods with the same port cannot run on one node; few pods have any.
//! Kubernetes: the NodePorts plugin.

use std::collections::BTreeMap;

use krafla_plan::object::{HostPort, PodSpec};

/// The address that stands for all addresses of a node.
const ANY_ADDRESS: &str = "0.0.0.0";

/// The ports that are taken, by node.
#[derive(Debug, Default)]
pub(crate) struct Ports<'a> {
    taken: BTreeMap<usize, Vec<&'a HostPort>>,
}

impl<'a> Ports<'a> {
    pub(crate) fn take(&mut self, host: usize, ports: &[&'a HostPort]) {
        if !ports.is_empty() {
            self.taken.entry(host).or_default().extend(ports);
        }
    }

    pub(crate) fn give_back(&mut self, host: usize, ports: &[&'a HostPort]) {
        let Some(taken) = self.taken.get_mut(&host).filter(|_| !ports.is_empty()) else { return };
        for port in ports {
            if let Some(index) = taken.iter().position(|it| it == port) {
                taken.swap_remove(index);
            }
        }
    }

    pub(crate) fn are_free(&self, host: usize, ports: &[&'a HostPort]) -> bool {
        let Some(taken) = self.taken.get(&host).filter(|_| !ports.is_empty()) else { return true };
        !ports.iter().any(|port| taken.iter().any(|other| collides(port, other)))
    }
}

/// The ports that a pod wants of its node. Init containers are over before its others start, unless they are sidecars.
pub(crate) fn wanted(spec: &PodSpec) -> Vec<&HostPort> {
    let sidecars = spec.init_containers.iter().filter(|container| container.restart_policy == "Always");
    spec.containers.iter().chain(sidecars).flat_map(|container| &container.host_ports).collect()
}

fn collides(one: &HostPort, other: &HostPort) -> bool {
    let is_any = |port: &HostPort| port.address.is_empty() || port.address == ANY_ADDRESS;
    let same_address = one.address == other.address || is_any(one) || is_any(other);
    same_address && one.port == other.port && one.protocol() == other.protocol()
}
